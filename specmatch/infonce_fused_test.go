package specmatch_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

// fusing are the engines that run chains of primitives as one call.
var fusing = []func(p tensor.Precision) backend.Backend{func(p tensor.Precision) backend.Backend { return cpu.New(p) }}

// matches are the forms of L_G that the fused losses know.
var matches = map[string]specmatch.LaplacianMatch{
	"default": specmatch.DefaultLaplacianMatch(),
	"sharp":   {Kappa: 20, Percentile: 63},
	"last":    {Kappa: 10, Percentile: 100},
}

// fusedLosses runs both losses of z and returns them, and the gradient of
// c·L_C + g·L_G.
func fusedLosses(be backend.Backend, o specmatch.Objective, z gradcheck.Input, c, g float64, opts ...autodiff.Option) (values, grad []float64) {
	tape := autodiff.NewTape(be, opts...)
	defer tape.Reset()
	x := tape.Leaf(z.Rows, z.Cols, z.Values)
	lossC, lossG := o.Losses(x, true)
	tape.Backward(lossC.Scale(c).Add(lossG.Scale(g)))
	return []float64{lossC.Float(), lossG.Float()}, x.Grad()
}

// fixedLoss runs L_G of z with the threshold theta and returns it and its gradient.
func fixedLoss(be backend.Backend, c specmatch.LaplacianMatch, z gradcheck.Input, theta float64, opts ...autodiff.Option) (value float64, grad []float64) {
	tape := autodiff.NewTape(be, opts...)
	defer tape.Reset()
	x := tape.Leaf(z.Rows, z.Cols, z.Values)
	loss := specmatch.LossWithThresholds(c, x.SliceRows(0, z.Rows/2), x.SliceRows(z.Rows/2, z.Rows), theta, theta)
	tape.Backward(loss)
	return loss.Float(), x.Grad()
}

// TestFusedLosses compares the fused losses with the composed ones: values and
// gradients of each and of both, for sizes about the panels', zero rows too.
func TestFusedLosses(t *testing.T) {
	for name, m := range matches {
		for _, sum := range []bool{false, true} {
			o := specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.2, Sum: sum}, Match: m}
			for _, n := range []int{2, 3, 17, 64, 100} {
				z := gradcheck.Random(newRand(uint64(n)), 2*n, 9)
				if n > 3 {
					clear(z.Values[9*4 : 9*5])
				}
				for _, p := range []tensor.Precision{tensor.Float64, tensor.Float32} {
					tol := 1e-11
					if p == tensor.Float32 {
						tol = 1e-4
					}
					for _, f := range [][2]float64{{1, 0}, {0, 1}, {0.7, 0.02}} {
						want, wantGrad := fusedLosses(cpu.New(p), o, z, f[0], f[1], autodiff.Composed())
						for _, open := range fusing {
							be := open(p)
							got, gotGrad := fusedLosses(be, o, z, f[0], f[1])
							what := fmt.Sprintf("%s, %s, %d samples, %v, %v", be.Name(), name, n, p, f)
							closeTo(t, what+": losses", got, want, tol)
							closeTo(t, what+": gradient", gotGrad, wantGrad, tol)
						}
					}
				}
			}
		}
	}
}

// TestLossIsolated: where no two samples are similar enough, every weight is
// below the smallest number and every degree 0; L_G is 0 then, and so its gradient.
func TestLossIsolated(t *testing.T) {
	z := gradcheck.Random(newRand(4), 10, 3)
	for _, p := range []tensor.Precision{tensor.Float64, tensor.Float32} {
		for _, open := range fusing {
			for form, opts := range map[string][]autodiff.Option{"fused": nil, "composed": {autodiff.Composed()}} {
				loss, grad := fixedLoss(open(p), specmatch.LaplacianMatch{Kappa: 800}, z, 2, opts...)
				for _, v := range append(grad, loss) {
					if v != 0 {
						t.Fatalf("%v, %s: L_G is %v, its gradient %v", p, form, loss, grad)
					}
				}
			}
		}
	}
}

// TestFusedTinyDegrees: where the weights of a node are next to the least numbers of the
// format it counts as isolated, in both forms and all engines, and gradients are
// numbers for degrees of any size.
func TestFusedTinyDegrees(t *testing.T) {
	// Two graphs with cosine .45 in one view and .2 in the other: weights of e^-90 and
	// e^-140. In float64 both are neighbours of each other, and M is the same.
	pair := []float64{1, 0, .45, .893, 1, 0, .2, .98}
	engines := append(slices.Clone(fusing), func(p tensor.Precision) backend.Backend {
		if p == tensor.Float64 {
			return ref.New()
		}
		return cpu.New(p, cpu.Workers(1))
	})
	for _, open := range engines {
		for _, p := range []tensor.Precision{tensor.Float64, tensor.Float32} {
			be := open(p)
			for form, opts := range forms() {
				what := fmt.Sprintf("%s %v, %s", be.Name(), p, form)
				loss, grad := fixedLoss(be, specmatch.LaplacianMatch{Kappa: 200}, gradcheck.Input{Rows: 4, Cols: 2, Values: pair}, .9, opts...)
				closeTo(t, what, append(grad, loss), make([]float64, 9), 1e-10)
				// A pair, which p = 100 makes the threshold, and a third graph with
				// the weights e^-x to both, for all x on both sides of the least degree.
				reach := -math.Log(backend.LeastDegree(p))
				const kappa = 2000
				o := specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.LaplacianMatch{Kappa: kappa, Percentile: 100}}
				for k := range 60 {
					x := reach * (0.4 + 0.02*float64(k))
					var z []float64
					for _, x := range []float64{x, 1.03 * x} {
						cos := 1 - x/kappa
						z = append(z, 1, 0, 1, 0, cos, math.Sqrt(1-cos*cos))
					}
					losses, grad := fusedLosses(be, o, gradcheck.Input{Rows: 6, Cols: 2, Values: z}, 0, 1, opts...)
					for _, v := range append(grad, losses...) {
						if math.IsNaN(v) || math.IsInf(v, 0) {
							t.Fatalf("%s: weights of e^-%.4g: losses %v, gradient %v", what, x, losses, grad)
						}
					}
					if least := reach + math.Ln2 + 0.5; x > least && losses[1] != 0 {
						t.Errorf("%s: weights of e^-%.4g: L_G is %v; want 0, as both views have the pair only", what, x, losses[1])
					}
				}
			}
		}
	}
}

// TestLowTemperature: where e^((s-1)/τ) is no number of the format any more, the
// loss is what it should be. Four orthogonal rows have ln 3.
func TestLowTemperature(t *testing.T) {
	o := specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 1e-3}, Match: specmatch.DefaultLaplacianMatch()}
	z := gradcheck.Input{Rows: 4, Cols: 4, Values: []float64{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}}
	for _, p := range []tensor.Precision{tensor.Float64, tensor.Float32} {
		for _, open := range fusing {
			got, _ := fusedLosses(open(p), o, z, 1, 0)
			closeTo(t, fmt.Sprint(p), got[:1], []float64{math.Log(3)}, 1e-6)
		}
	}
}

func closeTo(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	// With two samples, L_G and its gradient are 0, or what rounding makes of it
	// where S is not symmetric to the last bit, or a product fused into a
	// difference is not rounded.
	scale := 0.01
	for _, v := range want {
		scale = max(scale, math.Abs(v))
	}
	for i, v := range want {
		if !(math.Abs(got[i]-v) <= tol*scale) {
			t.Fatalf("%s: entry %d is %v, composed %v, of %v", what, i, got[i], v, scale)
		}
	}
}

// TestFusedLossesGradient checks the operator by itself.
func TestFusedLossesGradient(t *testing.T) {
	be := cpu.New(tensor.Float64)
	for name, m := range matches {
		o := specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.5}, Match: m}
		t.Run(name, func(t *testing.T) {
			before := be.InUse()
			gradcheck.Check(t, be, func(tape *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
				lossC, _ := o.Losses(in[0], true)
				return lossC // in L_G, θ is a constant to the gradient, and not to differences
			}, []gradcheck.Input{gradcheck.Random(newRand(3), 12, 5)})
			if n := be.InUse() - before; n != 0 {
				t.Errorf("%d bytes left in use", n)
			}
		})
	}
}

// TestFusedLossesThreads: any number of workers, equal bits.
func TestFusedLossesThreads(t *testing.T) {
	o := specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.DefaultLaplacianMatch()}
	z := gradcheck.Random(newRand(5), 2*300, 33)
	for _, p := range []tensor.Precision{tensor.Float64, tensor.Float32} {
		values, grad := fusedLosses(cpu.New(p, cpu.Workers(1)), o, z, 1, 0.01)
		want := append(values, grad...)
		for _, workers := range []int{2, 4} {
			v, g := fusedLosses(cpu.New(p, cpu.Workers(workers)), o, z, 1, 0.01)
			for i, x := range append(v, g...) {
				if x != want[i] {
					t.Fatalf("%v, %d workers: number %d is %v, with one %v", p, workers, i, x, want[i])
				}
			}
		}
	}
}

// TestTiles: whatever holds of the losses holds of those whose similarities are computed
// twice.
func TestTiles(t *testing.T) {
	defer specmatch.KeepGraphs(specmatch.KeepGraphs(0))
	defer func(all []func(tensor.Precision) backend.Backend) { fusing = all }(fusing)
	fusing = fusing[:1]
	t.Run("composed", TestFusedLosses)
	t.Run("tiny degrees", TestFusedTinyDegrees)
	t.Run("low temperature", TestLowTemperature)
	t.Run("gradient", TestFusedLossesGradient)
	t.Run("threads", TestFusedLossesThreads)
	t.Run("golden L_C", TestGoldenInfoNCE)
	t.Run("golden L_G", TestGoldenLaplacianMatch)
	t.Run("golden gradient of L_G", TestGoldenLaplacianMatchGradient)
	t.Run("gradient of L_C", TestInfoNCEGradients)
}

// tiledLosses are all losses that come in tiles, of views z1 and z2.
var tiledLosses = map[string]func(z1, z2 *autodiff.Var) *autodiff.Var{
	"NT-Xent":    specmatch.InfoNCE{Tau: 0.2}.Loss,
	"cross-view": specmatch.InfoNCE{Variant: specmatch.CrossView, Tau: 0.2, Sum: true}.Loss,
	"L_G":        specmatch.DefaultLaplacianMatch().Loss,
	"both": func(z1, z2 *autodiff.Var) *autodiff.Var {
		o := specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.DefaultLaplacianMatch()}
		lossC, lossG := o.Losses(autodiff.ConcatRows(z1, z2), true)
		return lossC.Add(lossG.Scale(0.01))
	},
	"cross-view and L_G": func(z1, z2 *autodiff.Var) *autodiff.Var {
		o := specmatch.Objective{Contrast: specmatch.InfoNCE{Variant: specmatch.CrossView, Tau: 0.3}, Match: matches["sharp"]}
		lossC, lossG := o.Losses(autodiff.ConcatRows(z1, z2), true)
		return lossC.Scale(0.5).Add(lossG)
	},
}

// TestTilesAgree compares losses in tiles with their definitions: one block of
// graphs and several, whole ones and a rest.
func TestTilesAgree(t *testing.T) {
	defer specmatch.KeepGraphs(specmatch.KeepGraphs(1))
	for name, loss := range tiledLosses {
		for _, n := range []int{2, 64, 128, 300, 385} {
			z := gradcheck.Random(newRand(uint64(n)), 2*n, 5)
			if n > 2 { // L_G of two is 0
				clear(z.Values[5:10])
			}
			for p, tol := range map[tensor.Precision]float64{tensor.Float64: 1e-10, tensor.Float32: 1e-4} {
				run := func(opts ...autodiff.Option) []float64 {
					tape := autodiff.NewTape(cpu.New(p), opts...)
					defer tape.Reset()
					x := tape.Leaf(2*n, 5, z.Values)
					y := loss(x.SliceRows(0, n), x.SliceRows(n, 2*n))
					tape.Backward(y)
					return append(x.Grad(), y.Float())
				}
				closeTo(t, fmt.Sprintf("%s, %d graphs, %v", name, n, p), run(), run(autodiff.Composed()), tol)
			}
		}
	}
}

// TestTilesMemory: a loss and its gradient take less than a byte for each similarity
// within a view.
func TestTilesMemory(t *testing.T) {
	const n = 2048
	z := gradcheck.Random(newRand(1), 2*n, 3)
	for name, loss := range tiledLosses {
		be := cpu.New(tensor.Float32, cpu.Workers(1))
		tape := autodiff.NewTape(be)
		x := tape.Leaf(2*n, 3, z.Values)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tape.Backward(loss(x.SliceRows(0, n), x.SliceRows(n, 2*n)))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > n*n {
			t.Errorf("%s allocates %d bytes, want at most %d", name, got, n*n)
		}
		tape.Reset()
	}
}
