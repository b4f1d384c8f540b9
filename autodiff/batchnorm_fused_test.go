package autodiff_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// fusing are the engines that run chains of primitives as one call.
var fusing = []func(p tensor.Precision) backend.Backend{func(p tensor.Precision) backend.Backend { return cpu.New(p) }}

// TestFusedRows compares batch norm, with and without ReLU and a bias before it, and bias
// with ReLU in their fused forms with their definitions on the oracle: values, statistics and
// gradients, on groups that are empty, of one row, constant, and of many blocks.
func TestFusedRows(t *testing.T) {
	for _, c := range []struct {
		f      int
		groups []int32
	}{
		{1, []int32{0, 1}}, {3, []int32{0, 5}}, {5, []int32{0, 0, 3, 4, 4, 20}}, {128, []int32{0, 700, 1500}},
		{300, []int32{0, 54, 55, 400}}, {37, []int32{0, 1000, 1001}}, {17000, []int32{0, 3, 5}}, {4, []int32{0}}, {4, []int32{0, 0}},
	} {
		n := int(c.groups[len(c.groups)-1])
		rng := rand.New(rand.NewPCG(uint64(c.f), 1))
		draw := func(n int, around float64) []float64 {
			v := make([]float64, n)
			for i := range v {
				v[i] = float64(float32(around + rng.NormFloat64()))
			}
			return v
		}
		x, gamma, beta, dy := draw(n*c.f, 3), draw(c.f, 1), draw(c.f, 0), draw(n*c.f, 0)
		weights := make([]float64, n)
		for i := range n {
			x[i*c.f] = 2 // the first column is constant
			weights[i] = float64(1 + rng.IntN(9))
		}
		type result map[string][]float64
		compute := func(be backend.Backend, opts ...autodiff.Option) map[string]result {
			all := map[string]result{}
			tape := autodiff.NewTape(be, opts...)
			type form = func(x, gamma, beta *autodiff.Var) (y *autodiff.Var, mean, variance *tensor.Tensor)
			norm := func(weigh, bias, relu bool) form {
				norm := autodiff.Norm{Groups: tape.Indices(c.groups), Eps: 1e-5, ReLU: relu}
				if weigh {
					norm.Weights = tape.Matrix(n, 1, weights).Value()
				}
				return func(x, gamma, beta *autodiff.Var) (*autodiff.Var, *tensor.Tensor, *tensor.Tensor) {
					if bias {
						norm.Bias = gamma.Detach()
					}
					return x.BatchNorm(gamma, beta, norm)
				}
			}
			for name, f := range map[string]form{
				"plain": norm(false, false, false), "ReLU": norm(false, false, true),
				"weighted": norm(true, false, false), "weighted, ReLU": norm(true, false, true), "weighted, bias": norm(true, true, false),
				"bias": norm(false, true, false), "bias, ReLU": norm(false, true, true),
				"L2Normalize": func(x, _, _ *autodiff.Var) (*autodiff.Var, *tensor.Tensor, *tensor.Tensor) {
					return x.L2Normalize(), nil, nil
				},
				"AddRowReLU": func(x, _, beta *autodiff.Var) (*autodiff.Var, *tensor.Tensor, *tensor.Tensor) {
					return x.AddRowReLU(beta), nil, nil
				},
			} {
				in := []*autodiff.Var{tape.Leaf(n, c.f, x), tape.Leaf(1, c.f, gamma), tape.Leaf(1, c.f, beta)}
				y, mean, variance := f(in[0], in[1], in[2])
				tape.Backward(y.Dot(tape.Matrix(n, c.f, dy)))
				r := result{"y": y.Data(), "dx": in[0].Grad(), "dβ": in[2].Grad()}
				if mean != nil {
					r["dγ"] = in[1].Grad()
					r["μ"], r["σ²"] = make([]float64, mean.Len()), make([]float64, mean.Len())
					be.Download(r["μ"], mean)
					be.Download(r["σ²"], variance)
				}
				all[name] = r
			}
			tape.Reset()
			if used := be.InUse(); used != 0 {
				t.Errorf("%s: %d bytes in use after Reset", be.Name(), used)
			}
			return all
		}
		want := compute(ref.New(), autodiff.Composed())
		type engine struct {
			be  backend.Backend
			tol float64
		}
		engines := []engine{{ref.New(), 1e-12}}
		for _, open := range fusing {
			engines = append(engines, engine{open(tensor.Float64), 1e-12}, engine{open(tensor.Float32), 1e-4})
		}
		for _, e := range engines {
			for name, r := range compute(e.be) {
				tol := e.tol
				if strings.HasPrefix(name, "weighted") {
					tol *= 4 // the weighted mean of a single row need not be the row: noise over √ε, too
				}
				for what, values := range r {
					scale, worst := 1e-30, 0.0
					for i, w := range want[name][what] {
						scale = max(scale, math.Abs(w))
						// A constant column is noise over √ε.
						if i%c.f != 0 || what == "μ" || name == "AddRowReLU" {
							worst = max(worst, math.Abs(values[i]-w))
						}
					}
					if !(worst <= tol*scale) {
						t.Errorf("%s %v, %d columns, groups %v: %s: %s differs by %.2g of %.2g", e.be.Name(), e.be.Precision(), c.f, c.groups, name, what, worst, scale)
					}
				}
			}
		}
		// Equal bits for any number of workers.
		for _, workers := range []int{1, 3} {
			if a, b := compute(cpu.New(tensor.Float32, cpu.Workers(workers))), compute(cpu.New(tensor.Float32, cpu.Workers(2))); !reflect.DeepEqual(a, b) {
				t.Errorf("%d columns, groups %v: %d workers differ from 2", c.f, c.groups, workers)
			}
		}
	}
}

// TestComposed: a tape with that option runs definitions, of several operators
// each, where the engine has them as one.
func TestComposed(t *testing.T) {
	be := cpu.New(tensor.Float64)
	for _, fused := range []bool{true, false} {
		var opts []autodiff.Option
		want := backend.CapabilitiesOf(be).Fused
		if !fused {
			opts, want = append(opts, autodiff.Composed()), backend.Fused{}
		}
		tape := autodiff.NewTape(be, opts...)
		if got := tape.Fused(); got != want || (got.GIN != nil) != fused {
			t.Errorf("want fused %v: the tape has %+v", fused, got)
		}
		x, row := tape.Leaf(3, 2, []float64{1, 2, 3, 4, 5, 6}), tape.Leaf(1, 2, []float64{1, 2})
		groups := tape.Indices([]int32{0, 3})
		for name, f := range map[string]func(){
			"AddRowReLU":    func() { x.AddRowReLU(row) },
			"BatchNorm":     func() { x.BatchNorm(row, row, autodiff.Norm{Groups: groups, Eps: 1e-5}) },
			"BatchNormReLU": func() { x.BatchNorm(row, row, autodiff.Norm{Groups: groups, Eps: 1e-5, ReLU: true}) },
		} {
			before := tape.Len()
			f()
			if n := tape.Len() - before; (n == 1) != fused {
				t.Errorf("want fused %v: %s is %d operators", fused, name, n)
			}
		}
		tape.Reset()
	}
	if tape := autodiff.NewTape(ref.New()); tape.Fused() != (backend.Fused{}) {
		t.Error("the oracle has fused forms")
	}
}

// TestNormPadding: rows behind the last group give and get zeros, whatever they
// hold and was in memory, and nobody else notices them.
func TestNormPadding(t *testing.T) {
	t.Setenv("SPECMATCH_DEBUG", "1") // undefined memory is NaN
	const f, rows, padding = 3, 7, 2
	rng := rand.New(rand.NewPCG(8, 1))
	x, dy := make([]float64, (rows+padding)*f), make([]float64, (rows+padding)*f)
	for i := range x {
		x[i], dy[i] = float64(float32(rng.NormFloat64())), float64(float32(rng.NormFloat64()))
	}
	for _, open := range fusing {
		for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
			for _, relu := range []bool{false, true} {
				be := open(p)
				compute := func(n int, opts ...autodiff.Option) [][]float64 {
					tape := autodiff.NewTape(be, opts...)
					defer tape.Reset()
					in := []*autodiff.Var{tape.Leaf(n, f, x[:n*f]), tape.Leaf(1, f, []float64{1, -2, 3}), tape.Leaf(1, f, []float64{0.5, 1, -1})}
					y, _, _ := in[0].BatchNorm(in[1], in[2], autodiff.Norm{Groups: tape.Indices([]int32{0, 4, rows}), Eps: 1e-5, ReLU: relu})
					tape.Backward(y.Dot(tape.Matrix(n, f, dy[:n*f])))
					return [][]float64{y.Data(), in[0].Grad(), in[1].Grad(), in[2].Grad()}
				}
				for _, opts := range [][]autodiff.Option{nil, {autodiff.Composed()}} {
					want, got := compute(rows, opts...), compute(rows+padding, opts...)
					for k := range 2 {
						want[k] = append(want[k], make([]float64, padding*f)...)
					}
					for k := range want {
						if !slices.Equal(got[k], want[k]) {
							t.Errorf("%s %v, ReLU %v, %d options: y, dx, dγ and dβ with padding are\n%v, want\n%v", be.Name(), p, relu, len(opts), got, want)
							break
						}
					}
				}
			}
		}
	}
}
