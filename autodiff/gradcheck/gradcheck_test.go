package gradcheck_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// square is y = scale·x² with the VJP dx = slope·scale·dy·x + offset.
func square(x *autodiff.Var, scale, slope, offset float64) *autodiff.Var {
	t := x.Tape()
	be := t.Backend()
	y := t.Alloc(x.Rows(), x.Cols())
	be.Binary(y, backend.Mul, x.Value(), x.Value())
	be.Affine(y, scale, y, 0)
	return t.Record("square", y, func(dy *tensor.Tensor) {
		dx := be.Alloc(x.Rows(), x.Cols())
		be.Binary(dx, backend.Mul, dy, x.Value())
		be.Affine(dx, slope*scale, dx, offset)
		x.AddGrad(dx)
	}, x)
}

func point() []gradcheck.Input {
	return []gradcheck.Input{gradcheck.Random(rand.New(rand.NewPCG(1, 1)), 3, 4)}
}

func TestAcceptsRightGradient(t *testing.T) {
	for _, scale := range []float64{1e-3, 1, 1e6} {
		gradcheck.Check(t, ref.New(), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
			return square(in[0], scale, 2, 0)
		}, point())
	}
}

// TestRejects: the check must catch what it is there for.
func TestRejects(t *testing.T) {
	calls := 0.0
	for _, c := range []struct {
		name, want string
		f          func(x *autodiff.Var) *autodiff.Var
	}{
		{"wrong factor", "analytic", func(x *autodiff.Var) *autodiff.Var { return square(x, 1, 2.001, 0) }},
		{"wrong factor on a small function", "analytic", func(x *autodiff.Var) *autodiff.Var { return square(x, 1e-3, 2.001, 0) }},
		{"zero gradient of a small function", "analytic", func(x *autodiff.Var) *autodiff.Var { return square(x, 1e-3, 0, 0) }},
		{"offset", "analytic", func(x *autodiff.Var) *autodiff.Var { return square(x, 1, 2, 1e-3) }},
		{"sign", "analytic", func(x *autodiff.Var) *autodiff.Var { return square(x, 1, -2, 0) }},
		{"negligible", "negligible", func(x *autodiff.Var) *autodiff.Var { return square(x, 1e-9, 2, 0) }},
		{"drowned in noise", "negligible", func(x *autodiff.Var) *autodiff.Var { return square(x, 1e-4, 2, 0).Sum().Shift(1e8) }},
		{"unused", "depends on no input", func(x *autodiff.Var) *autodiff.Var { return x.Detach() }},
		{"not finite", "the value is", func(x *autodiff.Var) *autodiff.Var { return x.Scale(0).Log() }},
		{"infinite gradient", "the gradient at entry", func(x *autodiff.Var) *autodiff.Var { return x.Scale(0).Sqrt() }},
		{"changing value", "deterministic", func(x *autodiff.Var) *autodiff.Var { calls++; return x.Square().Shift(calls) }},
		{"changing gradient", "two backward passes differ", func(x *autodiff.Var) *autodiff.Var {
			calls++
			return square(x, 1, 2+1e-15*calls, 0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := gradcheck.Inputs(ref.New(), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { return c.f(in[0]) }, point())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestRandomDirections(t *testing.T) {
	in := []gradcheck.Input{gradcheck.Random(rand.New(rand.NewPCG(1, 1)), 80, 40)}
	f := func(slope float64) gradcheck.Func {
		return func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { return square(in[0], 1, slope, 0) }
	}
	if err := gradcheck.Inputs(ref.New(), f(2), in); err != nil {
		t.Error(err)
	}
	if err := gradcheck.Inputs(ref.New(), f(2.01), in); err == nil || !strings.Contains(err.Error(), "random direction") {
		t.Errorf("got %v, want a failing random direction", err)
	}
}

func TestRejectsWrongInput(t *testing.T) {
	err := gradcheck.Inputs(ref.New(), nil, []gradcheck.Input{{Rows: 2, Cols: 2, Values: []float64{1}}})
	if err == nil || !strings.Contains(err.Error(), "1 values for [2×2]") {
		t.Errorf("got %v", err)
	}
}

// An operator of one's own, checked: y = x³ with dx = 3·dy∘x².
func ExampleInputs() {
	cube := func(x *autodiff.Var) *autodiff.Var {
		t := x.Tape()
		be := t.Backend()
		y := t.Alloc(x.Rows(), x.Cols())
		be.Binary(y, backend.Mul, x.Value(), x.Value())
		be.Binary(y, backend.Mul, y, x.Value())
		return t.Record("cube", y, func(dy *tensor.Tensor) {
			dx := be.Alloc(x.Rows(), x.Cols())
			be.Binary(dx, backend.Mul, x.Value(), x.Value())
			be.Binary(dx, backend.Mul, dx, dy)
			be.Affine(dx, 3, dx, 0)
			x.AddGrad(dx)
		}, x)
	}
	in := gradcheck.Input{Rows: 1, Cols: 3, Values: []float64{0.5, -1, 2}}
	err := gradcheck.Inputs(ref.New(), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return cube(in[0])
	}, []gradcheck.Input{in})
	fmt.Println("error:", err)
	// Output: error: <nil>
}
