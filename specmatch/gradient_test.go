package specmatch_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
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

// formsOn leaves out the fused form where the engine has none.
func formsOn(be backend.Backend) map[string][]autodiff.Option {
	all := forms()
	if backend.CapabilitiesOf(be).Fused == (backend.Fused{}) {
		delete(all, "fused")
	}
	return all
}

func TestInfoNCEGradients(t *testing.T) {
	for form, opts := range forms() {
		for _, variant := range []specmatch.InfoNCEVariant{specmatch.NTXent, specmatch.CrossView} {
			for _, sum := range []bool{false, true} {
				for _, tau := range []float64{1, 0.2} {
					for _, size := range [][2]int{{2, 3}, {5, 4}, {9, 2}} {
						c := specmatch.InfoNCE{Variant: variant, Tau: tau, Sum: sum}
						t.Run(fmt.Sprintf("%s/%+v/%v", form, c, size), func(t *testing.T) {
							gradcheck.Check(t, cpu.New(tensor.Float64), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
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
			for _, grad := range []bool{false, true} {
				visit(specmatch.LaplacianMatch{Adjacency: adj, Kappa: 4, RandomWalk: rw, Percentile: 70, ThresholdGradient: grad})
			}
		}
	}
}

func TestLaplacianMatchGradients(t *testing.T) {
	lossSettings(func(c specmatch.LaplacianMatch) {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			be := ref.New()
			for _, size := range [][2]int{{3, 2}, {5, 4}, {8, 3}} {
				in := views(11, size[0], size[1])
				f := func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { return c.Loss(in[0], in[1]) }
				var o gradcheck.Options
				switch {
				case c.Adjacency == specmatch.Hard:
					// Zero gradient is the statement; the numeric one agrees.
					o.AllowZero = true
					gradcheck.Check(t, be, f, in, o)
					tape := autodiff.NewTape(be)
					if c.Loss(tape.Leaf(size[0], size[1], in[0].Values), tape.Leaf(size[0], size[1], in[1].Values)).NeedsGrad() {
						t.Error("the hard threshold claims a gradient")
					}
					tape.Reset()
				case c.Adjacency == specmatch.StraightThrough:
					// Its gradient is not a derivative; see
					// TestStraightThroughGradient.
				default:
					gradcheck.Check(t, be, freezeTheta(c, f), in, o)
				}
			}
		})
	})
}

// freezeTheta makes a loss whose θ carries no gradient differentiable for a
// numeric check: θ is held at its value at the inputs.
func freezeTheta(c specmatch.LaplacianMatch, f gradcheck.Func) gradcheck.Func {
	if c.ThresholdGradient {
		return f
	}
	var thetas []float64 // of view 1 and view 2 at the first evaluation
	return func(tape *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		if thetas == nil {
			for _, z := range in {
				e := z.Detach().L2Normalize()
				s := e.MatMulT(e)
				thetas = append(thetas, s.UpperPercentile(c.Percentile).Float())
			}
		}
		return specmatch.LossWithThresholds(c, in[0], in[1], thetas[0], thetas[1])
	}
}

// TestStraightThroughGradient: the gradient is the derivative of what the loss is
// with the soft adjacency moved, by a constant, to the values of the hard one.
func TestStraightThroughGradient(t *testing.T) {
	be := ref.New()
	for _, rw := range []bool{false, true} {
		for _, n := range []int{3, 7, 20} {
			const kappa, theta = 4, 0.15
			c := specmatch.LaplacianMatch{Adjacency: specmatch.StraightThrough, Kappa: kappa, RandomWalk: rw}
			in := views(uint64(n), n, 5)
			gradient := func(loss func(z1, z2 *autodiff.Var) *autodiff.Var) (float64, []float64) {
				tape := autodiff.NewTape(be)
				defer tape.Reset()
				z1, z2 := tape.Leaf(n, 5, in[0].Values), tape.Leaf(n, 5, in[1].Values)
				l := loss(z1, z2)
				tape.Backward(l)
				return l.Float(), append(z1.Grad(), z2.Grad()...)
			}
			moved := func(z *autodiff.Var) *autodiff.Var {
				e := z.L2Normalize()
				s := e.MatMulT(e)
				soft := s.Shift(-theta).Scale(kappa).Sigmoid()
				shift, values := soft.Data(), s.Data()
				for i, v := range values {
					hard := 0.0
					if v > theta {
						hard = 1
					}
					shift[i] = hard - shift[i]
				}
				a := soft.Add(z.Tape().Matrix(n, n, shift)).FillDiagonal(0)
				r := a.RowSums().InvSqrt()
				if rw {
					return a.MulCol(r.Square())
				}
				return a.MulCol(r).MulRow(r.T())
			}
			wantLoss, want := gradient(func(z1, z2 *autodiff.Var) *autodiff.Var { return moved(z1).Sub(moved(z2)).Square().Sum() })
			loss, grad := gradient(func(z1, z2 *autodiff.Var) *autodiff.Var {
				return specmatch.LossWithThresholds(c, z1, z2, theta, theta)
			})
			near(t, "loss", loss, wantLoss, 1e-12)
			for i, w := range want {
				near(t, fmt.Sprintf("random walk %v, n = %d, gradient %d", rw, n, i), grad[i], w, 1e-11)
			}
		}
	}
}

func TestMetricGradients(t *testing.T) {
	for _, size := range [][2]int{{2, 3}, {5, 4}, {7, 2}} {
		gradcheck.Check(t, ref.New(), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
			return specmatch.Alignment(in[0], in[1]).Add(specmatch.Uniformity(in[0]))
		}, views(3, size[0], size[1]))
	}
}

// TestDegenerateEmbeddings: losses and gradients are finite where geometry
// degenerates.
func TestDegenerateEmbeddings(t *testing.T) {
	be := cpu.New(tensor.Float64)
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
						"NT-Xent":    specmatch.InfoNCE{Tau: tau}.Loss,
						"cross-view": specmatch.InfoNCE{Variant: specmatch.CrossView, Tau: tau}.Loss,
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
