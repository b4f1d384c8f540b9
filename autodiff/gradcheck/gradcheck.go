// Package gradcheck compares the gradients of package autodiff with central
// differences. Every operator, layer, loss and model of this module is tested with
// it, and so can those of other modules be.
//
//	gradcheck.Check(t, be, func(tp *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
//		return in[0].MatMul(in[1]).ReLU()
//	}, []gradcheck.Input{gradcheck.Random(rng, 5, 4), gradcheck.Random(rng, 4, 3)})
//
// A function with a matrix result is checked through a fixed random projection
// of it to one number.
//
// # What passes
//
// With a the analytic and n the numeric derivative of one entry, and s the
// largest |n| of the input that the entry belongs to, an entry passes if
//
//	|a-n| ≤ RTol·max(|a|,|n|) + ATol·s + noise,
//
// where noise is the rounding error that a central difference cannot avoid. The
// tolerance scales with the gradient, because an absolute one passes a zero
// gradient wherever the true one is small; for the same reason an input whose s
// is below 1e-6, or drowns in the noise, is an error unless AllowZero is set.
// Backward is run twice and must agree bit for bit, and the value at the inputs
// must be unchanged at the end. Only float64 engines are accepted: in float32
// the difference quotient means nothing.
//
// Choose inputs away from kinks (the zero of ReLU, ties of a percentile): there
// the two sides of a central difference belong to different pieces.
package gradcheck

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Func is a differentiable function of its inputs, built on the tape. It must
// be deterministic.
type Func func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var

// Input is the point at which one input is checked, row-major.
type Input struct {
	Rows, Cols int
	Values     []float64
}

// Random returns an input of standard normal values.
func Random(rng *rand.Rand, rows, cols int) Input {
	v := make([]float64, rows*cols)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return Input{rows, cols, v}
}

// Options tune a check. The zero value means the defaults.
type Options struct {
	Eps       float64 // step of the central difference; default 1e-6
	RTol      float64 // default 1e-5
	ATol      float64 // relative to the largest derivative of the input; default 1e-6
	AllowZero bool    // accept an input whose gradient is negligible
	MaxEvals  int     // evaluations up to which every entry is checked; default 4096
	// Directions is how many random directions are checked per input where
	// its entries are too many; default 24.
	Directions int
	Tape       []autodiff.Option // options of the tapes that Func gets
}

func (o Options) withDefaults() Options {
	if o.Eps == 0 {
		o.Eps = 1e-6
	}
	if o.RTol == 0 {
		o.RTol = 1e-5
	}
	if o.ATol == 0 {
		o.ATol = 1e-6
	}
	if o.MaxEvals == 0 {
		o.MaxEvals = 4096
	}
	if o.Directions == 0 {
		o.Directions = 24
	}
	return o
}

// Check fails the test if [Inputs] finds an error.
func Check(
	tb testing.TB,
	be backend.Backend,
	f Func,
	inputs []Input,
	opts ...Options,
) {
	tb.Helper()
	if err := Inputs(be, f, inputs, opts...); err != nil {
		tb.Error(err)
	}
}

// Inputs checks the gradient of f with respect to every input and returns all
// entries that fail, at most a few per input.
func Inputs(
	be backend.Backend, f Func, inputs []Input, opts ...Options,
) error {
	params := make([]*autodiff.Param, len(inputs))
	for k, input := range inputs {
		if len(input.Values) != input.Rows*input.Cols {
			return fmt.Errorf(
				"gradcheck: input %d: %d values for [%d×%d]",
				k,
				len(input.Values),
				input.Rows,
				input.Cols,
			)
		}
		params[k] = autodiff.NewParam(
			be, fmt.Sprintf("input %d", k),
			input.Rows, input.Cols, input.Values,
		)
		defer func() {
			be.Free(params[k].Value)
			be.Free(params[k].Grad)
		}()
	}
	return Params(be, func(t *autodiff.Tape) *autodiff.Var {
		vars := make([]*autodiff.Var, len(params))
		for k, p := range params {
			vars[k] = t.Param(p)
		}
		return f(t, vars)
	}, params, opts...)
}

// Params checks the gradient of f with respect to parameters that f reads with
// Tape.Param: a layer's, or a whole model's. The parameters are left as they
// were.
func Params(
	be backend.Backend,
	f func(t *autodiff.Tape) *autodiff.Var,
	params []*autodiff.Param,
	opts ...Options,
) error {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	o = o.withDefaults()
	if be.Precision() != tensor.Float64 {
		return fmt.Errorf(
			"gradcheck: engine %s has precision %v; want float64",
			be.Name(),
			be.Precision(),
		)
	}
	c := &checker{
		be:  be,
		f:   f,
		o:   o,
		rng: rand.New(rand.NewPCG(1, 2)),
	}

	f0, grads, err := c.gradients(params)
	if err != nil {
		return err
	}
	again, grads2, err := c.gradients(params)
	if err != nil {
		return err
	}
	if again != f0 {
		return fmt.Errorf("gradcheck: two evaluations differ: %v and %v; the function must be deterministic",
			f0, again)
	}
	var errs []error
	for k, p := range params {
		for i := range grads[k] {
			first := math.Float64bits(grads[k][i])
			if first != math.Float64bits(grads2[k][i]) {
				errs = append(errs, fmt.Errorf(
					"gradcheck: %s%v: two backward passes differ at entry %d: %v and %v",
					p.Name, p.Value, i, grads[k][i], grads2[k][i],
				))
				break
			}
		}
		errs = append(errs, c.check(p, grads[k], f0)...)
	}
	if end := c.value(); end != f0 {
		errs = append(errs, fmt.Errorf(
			"gradcheck: the value changed from %v to %v",
			f0, end,
		))
	}
	return errors.Join(errs...)
}

type checker struct {
	be  backend.Backend
	f   func(t *autodiff.Tape) *autodiff.Var
	o   Options
	rng *rand.Rand
}

// scalar projects a matrix result to one number with weights that depend on the
// position only.
func (c *checker) scalar(
	t *autodiff.Tape, y *autodiff.Var,
) *autodiff.Var {
	if y.Value().Is(1, 1) {
		return y
	}
	w := make([]float64, y.Value().Len())
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range w {
		w[i] = 0.5 + rng.Float64()
		if rng.IntN(2) == 0 {
			w[i] = -w[i]
		}
	}
	return y.Dot(t.Matrix(y.Rows(), y.Cols(), w))
}

func (c *checker) value() float64 {
	t := autodiff.NewInference(c.be, c.o.Tape...)
	defer t.Reset()
	return c.scalar(t, c.f(t)).Float()
}

func (c *checker) gradients(
	params []*autodiff.Param,
) (float64, [][]float64, error) {
	t := autodiff.NewTape(c.be, c.o.Tape...)
	defer t.Reset()
	for _, p := range params {
		p.ZeroGrad()
	}
	y := c.scalar(t, c.f(t))
	f0 := y.Float()
	if math.IsNaN(f0) || math.IsInf(f0, 0) {
		return 0, nil, fmt.Errorf("gradcheck: the value is %v", f0)
	}
	grads := make([][]float64, len(params))
	if y.NeedsGrad() {
		t.Backward(y)
	} else if !c.o.AllowZero {
		return 0, nil, fmt.Errorf(
			"gradcheck: the result (%s) depends on no input",
			y.Op(),
		)
	}
	for k, p := range params {
		grads[k] = make([]float64, p.Value.Len())
		if p.HasGrad() {
			c.be.Download(grads[k], p.Grad)
		}
		for i, g := range grads[k] {
			if math.IsNaN(g) || math.IsInf(g, 0) {
				return 0, nil, fmt.Errorf(
					"gradcheck: %s%v: the gradient at entry %d is %v",
					p.Name,
					p.Value,
					i,
					g,
				)
			}
		}
		p.ZeroGrad()
	}
	return f0, grads, nil
}

// maxReports bounds the failing entries that are listed per input.
const maxReports = 4

func (c *checker) check(
	p *autodiff.Param, grad []float64, f0 float64,
) []error {
	n := len(grad)
	if n == 0 {
		return nil
	}
	x := make([]float64, n)
	c.be.Download(x, p.Value)
	defer c.be.Upload(p.Value, x)

	// Every direction is either one axis or random over the whole input.
	axes := 2*n <= c.o.MaxEvals
	count := n
	if !axes {
		count = c.o.Directions
	}
	analytic, numeric, biggest := c.slopes(p, x, grad, count, axes)
	// A value of size b carries a rounding error of some b·2⁻⁵³; the quotient
	// divides it by the step.
	noise := 16 * 0x1p-53 * max(biggest, math.Abs(f0)) / c.o.Eps
	s := 0.0
	for _, v := range numeric {
		s = max(s, math.Abs(v))
	}
	var errs []error
	if !c.o.AllowZero && (s < 1e-6 || s < 100*noise) {
		errs = append(errs, fmt.Errorf(
			"gradcheck: %s%v: the gradient is negligible (largest %.3g, noise %.3g): the check "+
				"would prove nothing",
			p.Name, p.Value, s, noise,
		))
	}
	for k := range count {
		a := analytic[k]
		m := numeric[k]
		relative := c.o.RTol * max(math.Abs(a), math.Abs(m))
		tolerance := relative + c.o.ATol*s + noise
		if d := math.Abs(a - m); !(d <= tolerance) {
			where := fmt.Sprintf("entry (%d,%d)",
				k/p.Value.Cols, k%p.Value.Cols)
			if !axes {
				where = fmt.Sprintf("random direction %d", k)
			}
			errs = append(errs, fmt.Errorf(
				"gradcheck: %s%v: %s: analytic %.12g, numeric %.12g, difference %.3g",
				p.Name, p.Value, where, a, m, d,
			))
			if len(errs) >= maxReports {
				break
			}
		}
	}
	return errs
}

// slopes returns the derivatives of the value in count directions from x: analytic ones by
// grad, and numeric ones by central differences. Directions are axes or random. biggest is
// the largest magnitude of a value that it met.
func (c *checker) slopes(
	p *autodiff.Param, x, grad []float64, count int, axes bool,
) (analytic, numeric []float64, biggest float64) {
	n := len(grad)
	analytic = make([]float64, count)
	numeric = make([]float64, count)
	step := make([]float64, n)
	moved := make([]float64, n)
	for k := range count {
		clear(step)
		if axes {
			step[k] = c.o.Eps * max(1, math.Abs(x[k]))
		} else {
			for i := range step {
				step[i] = c.o.Eps * c.rng.NormFloat64()
			}
		}
		eval := func(sign float64) float64 {
			for i := range moved {
				moved[i] = x[i] + sign*step[i]
			}
			c.be.Upload(p.Value, moved)
			v := c.value()
			biggest = max(biggest, math.Abs(v))
			return v
		}
		hi := eval(1)
		lo := eval(-1)
		scale := c.o.Eps
		if axes {
			scale = step[k]
		}
		numeric[k] = (hi - lo) / (2 * scale)
		for i := range step {
			analytic[k] += grad[i] * step[i] / scale
		}
	}
	return analytic, numeric, biggest
}
