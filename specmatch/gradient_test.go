package specmatch_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch"
)

// views returns two correlated views [n×d] of unnormalised embeddings.
func views(seed uint64, n, d int) []gradcheck.Input {
	rng := rand.New(rand.NewPCG(seed, 0))
	z1 := gradcheck.Random(rng, n, d)
	z2 := gradcheck.Random(rng, n, d)
	for i := range z2.Values {
		z2.Values[i] = z1.Values[i] + 0.6*z2.Values[i]
	}
	return []gradcheck.Input{z1, z2}
}

func forms() map[string][]autodiff.Option {
	return map[string][]autodiff.Option{"fused": nil, "composed": {autodiff.Composed()}}
}

func TestInfoNCEGradients(t *testing.T) {
	for form, opts := range forms() {
		for _, variant := range []specmatch.InfoNCEVariant{specmatch.NTXent, specmatch.CrossView} {
			for _, sum := range []bool{false, true} {
				for _, tau := range []float64{1, 0.2} {
					for _, size := range [][2]int{{2, 3}, {5, 4}, {9, 2}} {
						c := specmatch.InfoNCE{Variant: variant, Temperature: tau, Sum: sum}
						t.Run(fmt.Sprintf("%s/%+v/%v", form, c, size), func(t *testing.T) {
							gradcheck.Check(t, ref.New(), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
								return c.Loss(in[0], in[1])
							}, views(7, size[0], size[1]), gradcheck.Options{Tape: opts})
						})
					}
				}
			}
		}
	}
}

// lossSettings lists every combination of the switches of LaplacianMatch.
func lossSettings(visit func(c specmatch.LaplacianMatch)) {
	for _, adj := range []specmatch.Adjacency{specmatch.Sigmoid, specmatch.SpreadSigmoid, specmatch.Hard, specmatch.StraightThrough} {
		for _, rw := range []bool{false, true} {
			for _, theta := range []string{"percentile", "clamped", "fixed", "fixed and clamped"} {
				for _, grad := range []bool{false, true} {
					for _, scale := range []specmatch.LossScale{specmatch.ScaleOne, specmatch.ScaleInvN, specmatch.ScaleInvN2} {
						c := specmatch.LaplacianMatch{Adjacency: adj, Kappa: 4, RandomWalk: rw, Percentile: 70, ThresholdGradient: grad, Scale: scale}
						switch theta {
						case "clamped":
							c.Clamp, c.Percentile = true, 97
						case "fixed":
							c.FixedThreshold, c.Threshold = true, 0.15
						case "fixed and clamped":
							c.FixedThreshold, c.Threshold, c.Clamp = true, 0.99, true
						}
						visit(c)
					}
				}
			}
		}
	}
}

func TestLaplacianMatchGradients(t *testing.T) {
	for form, opts := range forms() {
		lossSettings(func(c specmatch.LaplacianMatch) {
			t.Run(fmt.Sprintf("%s/%+v", form, c), func(t *testing.T) {
				be := ref.New()
				for _, size := range [][2]int{{3, 2}, {5, 4}, {8, 3}} {
					in := views(11, size[0], size[1])
					f := func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { return c.Loss(in[0], in[1]) }
					o := gradcheck.Options{Tape: opts}
					switch {
					case c.Adjacency == specmatch.Hard:
						// Zero gradient is the statement; the numeric one agrees.
						o.AllowZero = true
						gradcheck.Check(t, be, f, in, o)
						tape := autodiff.NewTape(be, opts...)
						if c.Loss(tape.Leaf(size[0], size[1], in[0].Values), tape.Leaf(size[0], size[1], in[1].Values)).NeedsGrad() {
							t.Error("the hard threshold claims a gradient")
						}
						tape.Reset()
					case c.Adjacency == specmatch.StraightThrough:
						// Its gradient is not a derivative: fused against
						// composed is the witness (TestFormsAgree).
					default:
						gradcheck.Check(t, be, freezeTheta(c, f), in, o)
					}
				}
			})
		})
	}
}

// freezeTheta makes a loss whose θ carries no gradient differentiable for a
// numeric check: θ is held at its value at the inputs.
func freezeTheta(c specmatch.LaplacianMatch, f gradcheck.Func) gradcheck.Func {
	if c.ThresholdGradient || c.FixedThreshold && !c.Clamp {
		return f
	}
	var thetas []float64 // of view 1 and view 2 at the first evaluation
	return func(tape *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		if thetas == nil {
			for _, z := range in {
				e := z.Detach().L2Normalize()
				s := e.MatMulT(e)
				q := c.Percentile / 100
				if c.Clamp {
					q = 0.9
				}
				thetas = append(thetas, s.UpperQuantile(q).Float())
			}
		}
		fixed := c
		fixed.FixedThreshold, fixed.Clamp = true, false
		return specmatch.LossWithThresholds(fixed, in[0], in[1], thetas[0], thetas[1])
	}
}

func TestFormsAgree(t *testing.T) {
	be := ref.New()
	lossSettings(func(c specmatch.LaplacianMatch) {
		for _, n := range []int{2, 3, 7, 20} {
			in := views(uint64(n), n, 5)
			var value [2]float64
			var grad [2][]float64
			for k, opts := range [][]autodiff.Option{nil, {autodiff.Composed()}} {
				tape := autodiff.NewTape(be, opts...)
				z1, z2 := tape.Leaf(n, 5, in[0].Values), tape.Leaf(n, 5, in[1].Values)
				loss := c.Loss(z1, z2)
				value[k] = loss.Float()
				if loss.NeedsGrad() {
					tape.Backward(loss)
				}
				grad[k] = append(z1.Grad(), z2.Grad()...)
				tape.Reset()
			}
			if !(math.Abs(value[0]-value[1]) <= 1e-12*max(1, math.Abs(value[1]))) {
				t.Errorf("%+v, n=%d: fused %v, composed %v", c, n, value[0], value[1])
			}
			scale := 0.0
			for _, g := range grad[1] {
				scale = max(scale, math.Abs(g))
			}
			for i := range grad[0] {
				if !(math.Abs(grad[0][i]-grad[1][i]) <= 1e-11*max(1e-3, scale)) {
					t.Errorf("%+v, n=%d: gradient %d: fused %v, composed %v", c, n, i, grad[0][i], grad[1][i])
					break
				}
			}
		}
	})
	if be.InUse() != 0 {
		t.Errorf("%d bytes in use after Reset", be.InUse())
	}
}

func TestMetricGradients(t *testing.T) {
	for _, size := range [][2]int{{2, 3}, {5, 4}, {7, 2}} {
		gradcheck.Check(t, ref.New(), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
			return specmatch.Alignment(in[0], in[1], 2).Add(specmatch.Alignment(in[0], in[1], 1.5)).Add(specmatch.Uniformity(in[0], 0.5))
		}, views(3, size[0], size[1]))
	}
}

// TestDegenerateEmbeddings: losses and gradients are finite where geometry
// degenerates.
func TestDegenerateEmbeddings(t *testing.T) {
	be := ref.New()
	constant := func(n, d int) []float64 {
		z := make([]float64, n*d)
		for i := range z {
			z[i] = float64(1 + i%d)
		}
		return z
	}
	withZeroRow := func(n, d int) []float64 {
		z := views(5, n, d)[0].Values
		clear(z[:d])
		return z
	}
	for name, points := range map[string]func(n, d int) []float64{"identical": constant, "zero row": withZeroRow, "all zero": func(n, d int) []float64 { return make([]float64, n*d) }} {
		for _, n := range []int{1, 2, 3, 8} {
			for _, tau := range []float64{1, 0.01} {
				for form, opts := range forms() {
					losses := map[string]func(z1, z2 *autodiff.Var) *autodiff.Var{
						"NT-Xent":    specmatch.InfoNCE{Temperature: tau}.Loss,
						"cross-view": specmatch.InfoNCE{Variant: specmatch.CrossView, Temperature: tau}.Loss,
					}
					lossSettings(func(c specmatch.LaplacianMatch) { losses[fmt.Sprintf("%+v", c)] = c.Loss })
					for what, loss := range losses {
						tape := autodiff.NewTape(be, opts...)
						z1, z2 := tape.Leaf(n, 3, points(n, 3)), tape.Leaf(n, 3, points(n, 3))
						l := loss(z1, z2)
						if v := l.Float(); math.IsNaN(v) || math.IsInf(v, 0) {
							t.Fatalf("%s, %s, n=%d, tau=%v, %s: loss %v", name, what, n, tau, form, v)
						}
						if l.NeedsGrad() {
							tape.Backward(l)
						}
						for _, g := range append(z1.Grad(), z2.Grad()...) {
							if math.IsNaN(g) || math.IsInf(g, 0) {
								t.Fatalf("%s, %s, n=%d, tau=%v, %s: gradient %v", name, what, n, tau, form, g)
							}
						}
						tape.Reset()
					}
				}
			}
		}
	}
}

// TestLaplacianMatchProperties: what the formula promises for any input.
func TestLaplacianMatchProperties(t *testing.T) {
	be := ref.New()
	loss := func(c specmatch.LaplacianMatch, n int, a, b []float64) float64 {
		tape := autodiff.NewInference(be)
		defer tape.Reset()
		d := len(a) / n
		return c.Loss(tape.Matrix(n, d, a), tape.Matrix(n, d, b)).Float()
	}
	lossSettings(func(c specmatch.LaplacianMatch) {
		n := 9
		in := views(21, n, 3)
		a, b := in[0].Values, in[1].Values
		v := loss(c, n, a, b)
		if v < 0 || math.IsNaN(v) {
			t.Errorf("%+v: loss %v", c, v)
		}
		near(t, fmt.Sprintf("%+v: symmetric in the views", c), loss(c, n, b, a), v, 1e-12)
		if same := loss(c, n, a, a); same != 0 {
			t.Errorf("%+v: identical views have loss %v", c, same)
		}
		// A rotation of one view changes nothing.
		rotated := make([]float64, len(b))
		sin, cos := math.Sincos(0.7)
		for i := range n {
			x, y, z := b[3*i], b[3*i+1], b[3*i+2]
			rotated[3*i], rotated[3*i+1], rotated[3*i+2] = cos*x-sin*y, sin*x+cos*y, -z
		}
		if c.Adjacency != specmatch.Hard && c.Adjacency != specmatch.StraightThrough {
			near(t, fmt.Sprintf("%+v: rotation", c), loss(c, n, a, rotated), v, 1e-9)
		}
	})
	// p = 100 keeps no edge: the loss vanishes whatever the views are.
	in := views(22, 12, 3)
	if v := loss(specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Percentile: 100}, 12, in[0].Values, in[1].Values); v != 0 {
		t.Errorf("hard threshold at p = 100: loss %v", v)
	}
}
