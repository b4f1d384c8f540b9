package gradcheck_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
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
	calls, evaluations := 0.0, 0
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
		{"drowned in noise", "negligible", func(x *autodiff.Var) *autodiff.Var { return square(x, 1e-2, 2, 0).Sum().Shift(1e6) }},
		{"unused", "depends on no input", func(x *autodiff.Var) *autodiff.Var { return x.Detach() }},
		{"not finite", "the value is", func(x *autodiff.Var) *autodiff.Var { return x.Scale(0).Log() }},
		{"infinite gradient", "the gradient at entry", func(x *autodiff.Var) *autodiff.Var { return x.Scale(0).Sqrt() }},
		{"changing value", "deterministic", func(x *autodiff.Var) *autodiff.Var { calls++; return x.Square().Shift(calls) }},
		{"value changed by evaluations", "the value changed", func(x *autodiff.Var) *autodiff.Var {
			evaluations++
			return x.Square().Shift(float64(min(max(evaluations, 2), 3)))
		}},
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
	err = gradcheck.Inputs(cpu.New(tensor.Float32), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { return in[0].Square() }, point())
	if err == nil || !strings.Contains(err.Error(), "want float64") {
		t.Errorf("in float32: got %v", err)
	}
}

// TestReports: of an input that is wrong everywhere, a few entries are listed,
// and those of the next input too.
func TestReports(t *testing.T) {
	err := gradcheck.Inputs(ref.New(), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return square(in[0], 1, -2, 0).Add(square(in[1], 1, -2, 0))
	}, append(point(), point()...))
	for _, input := range []string{"input 0[3×4]: entry", "input 1[3×4]: entry"} {
		if n := strings.Count(fmt.Sprint(err), input); n != 4 {
			t.Errorf("%d reports with %q, want 4:\n%v", n, input, err)
		}
	}
}

// TestAllowZero: with it a negligible gradient, an input that is not used and a
// result that depends on none pass, and a wrong gradient still does not.
func TestAllowZero(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(x *autodiff.Var) *autodiff.Var
		ok   bool
	}{
		{"negligible", func(x *autodiff.Var) *autodiff.Var { return square(x, 1e-9, 2, 0) }, true},
		{"unused", func(x *autodiff.Var) *autodiff.Var { return x.Tape().Scalar(3) }, true},
		{"wrong", func(x *autodiff.Var) *autodiff.Var { return square(x, 1, 2.001, 0) }, false},
	} {
		err := gradcheck.Inputs(ref.New(), func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { return c.f(in[0]) }, append(point(), point()...), gradcheck.Options{AllowZero: true})
		if (err == nil) != c.ok {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}

// TestParams: a parameter's gradient of before does not count, and none is left;
// its value is what it was.
func TestParams(t *testing.T) {
	be := ref.New()
	p := autodiff.NewParam(be, "p", 1, 2, []float64{1, -2})
	tape := autodiff.NewTape(be)
	tape.Backward(tape.Param(p).Sum())
	tape.Reset()
	if err := gradcheck.Params(be, func(tape *autodiff.Tape) *autodiff.Var { return tape.Param(p).Square() }, []*autodiff.Param{p}); err != nil {
		t.Error(err)
	}
	value := make([]float64, 2)
	be.Download(value, p.Value)
	if p.HasGrad() || value[0] != 1 || value[1] != -2 {
		t.Errorf("afterwards the value is %v, want [1 -2]; gradient: %v", value, p.HasGrad())
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
