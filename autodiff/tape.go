// Package autodiff is tape-based reverse-mode automatic differentiation on the
// matrices of a [backend.Backend].
//
// # Mental model
//
// A [Tape] is a list. Calling an operator, as in
//
//	h := x.MatMul(w).AddRow(b).ReLU()
//
// computes its value at once and appends one entry: the value, and a closure
// that knows the operator's vector-Jacobian product (VJP), that is, how to turn
// the gradient of the loss with respect to the value into gradients with
// respect to the inputs. [Tape.Backward] walks the list from the loss back to
// its beginning and calls the closures. That is all: an entry can only depend on
// earlier entries, so the list is already in topological order.
//
// The value and the VJP of an operator stand side by side in the source, with
// the formula in the comment; dy is the gradient of the loss with respect to
// the operator's value y, and the closure adds dx = dy·∂y/∂x to each input x.
//
// The arithmetic is done by an engine, a [backend.Backend]: a calculator with its own
// memory and some thirty primitives that take their destination first. Binary(y, backend.Add,
// a, b) sets y = a + b, Axpby(y, s, a, r, b) y = s·a + r·b, Dot(y, a, nil) the sum of a.
//
// # Two forms
//
// Some chains of operators, such as batch norm, have a second form: one fused call
// that an engine may offer ([backend.Fused]), in a file NAME_fused.go beside the
// chain. The chain is the definition, and both agree up to rounding. A tape made
// with [Composed] runs definitions only: the form to read.
//
// # Memory
//
// The tape owns every value and every intermediate gradient, in the engine's
// memory; [Tape.Reset] frees all of it and empties the list. Parameters
// ([Param]) and optimizer state live outside. Values are immutable once
// recorded: no operator works in place.
//
// Gradients follow the ownership rule of HIPS/autograd: the first that reaches a variable
// is stored as it is, each later one is added to it, in the newcomer's memory, and that of
// an intermediate is freed once it has been passed on. A gradient that a VJP lends to an
// input ([Var.LendGrad]) is shared, and freed at the end of Backward.
//
// # Errors
//
// Shapes are the programmer's business: a wrong one panics with
// *[tensor.ShapeError], which names the operator and both shapes.
package autodiff

import (
	"fmt"
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Tape records operators and owns their values. It is used from one goroutine.
type Tape struct {
	be      backend.Backend
	fused   backend.Fused
	record  bool
	inspect bool // entries keep their inputs
	nodes   []*Var
	values  []*tensor.Tensor
	indices []*backend.Indices
	lent    []*tensor.Tensor // gradients that VJPs have lent, freed after Backward
	lending bool             // the running VJP has lent its gradient
	resets  int              // number of calls of Reset; older variables are dead
}

// Option configures a tape.
type Option func(*Tape)

// Composed makes everything run as its definition, a chain of basic operators. It
// is slower; it is the form to read, and the one that fused forms are tested against.
func Composed() Option { return func(t *Tape) { t.fused = backend.Fused{} } }

// NewTape returns an empty tape on an engine.
func NewTape(be backend.Backend, opts ...Option) *Tape {
	t := &Tape{be: be, fused: backend.CapabilitiesOf(be).Fused, record: true}
	for _, o := range opts {
		o(t)
	}
	return t
}

// NewInference returns a tape that computes values and records nothing: no
// variable on it needs a gradient.
func NewInference(be backend.Backend, opts ...Option) *Tape {
	t := NewTape(be, opts...)
	t.record = false
	return t
}

// Backend returns the engine.
func (t *Tape) Backend() backend.Backend { return t.be }

// Fused returns the fused forms that operators on the tape run as: those that the
// engine offers, or none with [Composed].
func (t *Tape) Fused() backend.Fused { return t.fused }

// Len returns the number of recorded operators.
func (t *Tape) Len() int { return len(t.nodes) }

// Reset frees everything that the tape owns. Variables of the tape, and the
// tensors behind them, must not be used afterwards.
func (t *Tape) Reset() {
	t.dropGradients()
	for i, v := range t.nodes {
		v.vjp = nil
		v.second = nil
		t.nodes[i] = nil
	}
	for i, x := range t.values {
		t.be.Free(x)
		t.values[i] = nil
	}
	for i, x := range t.indices {
		t.be.FreeIndices(x)
		t.indices[i] = nil
	}
	t.nodes = t.nodes[:0]
	t.values = t.values[:0]
	t.indices = t.indices[:0]
	t.resets++
}

// dropGradients frees the gradients of all variables, including those that a
// Backward ended by a panic has left.
func (t *Tape) dropGradients() {
	for _, v := range t.nodes {
		v.dropGrad()
	}
	t.freeLent()
}

func (t *Tape) freeLent() {
	for i, g := range t.lent {
		t.be.Free(g)
		t.lent[i] = nil
	}
	t.lent = t.lent[:0]
}

// newVar returns a variable that lives until the tape's next Reset.
func (t *Tape) newVar(op string, value *tensor.Tensor) *Var {
	return &Var{
		tape:  t,
		life:  t.resets,
		op:    op,
		value: value,
	}
}

// Alloc returns a tensor that the tape owns; contents are undefined.
func (t *Tape) Alloc(rows, cols int) *tensor.Tensor {
	return t.keep(t.be.Alloc(rows, cols))
}

// keep makes x the tape's.
func (t *Tape) keep(x *tensor.Tensor) *tensor.Tensor {
	t.values = append(t.values, x)
	return x
}

// Indices returns an index vector that the tape owns. The slice must not
// change before [Tape.Reset].
func (t *Tape) Indices(host []int32) *backend.Indices {
	x := t.be.Indices(host)
	t.indices = append(t.indices, x)
	return x
}

// Const returns a variable without gradient. The caller still owns value.
func (t *Tape) Const(value *tensor.Tensor) *Var {
	return t.newVar("Const", value)
}

// Matrix returns a constant [rows×cols] from row-major values.
func (t *Tape) Matrix(rows, cols int, values []float64) *Var {
	x := t.Alloc(rows, cols)
	t.be.Upload(x, values)
	return t.Const(x)
}

// Scalar returns a constant [1×1].
func (t *Tape) Scalar(v float64) *Var {
	x := t.Alloc(1, 1)
	t.be.Fill(x, v)
	return t.Const(x)
}

// Leaf returns a variable [rows×cols] with gradient from row-major values. Its
// gradient is read with [Var.Grad] after [Tape.Backward].
func (t *Tape) Leaf(rows, cols int, values []float64) *Var {
	v := t.Matrix(rows, cols, values)
	v.op = "Leaf"
	v.needs = t.record
	if v.needs {
		v.index = len(t.nodes)
		t.nodes = append(t.nodes, v)
	}
	return v
}

// Param returns a variable that reads a parameter; Backward adds its gradient
// to p.Grad.
func (t *Tape) Param(p *Param) *Var {
	v := t.newVar(p.Name, p.Value)
	v.param = p
	v.needs = t.record && !p.Frozen
	return v
}

// Record appends an operator: value is its result, allocated with [Tape.Alloc],
// and vjp receives dy, which it must neither change nor keep, and hands each input
// that needs a gradient its own by [Var.AddGrad] or [Var.LendGrad]. If no input
// needs a gradient, vjp is dropped. vjp may run more than once. All operators of
// this package are made with it, and so can operators of other packages be. It
// panics if an input is on another tape or was made before Reset.
func (t *Tape) Record(
	op string, value *tensor.Tensor, vjp func(dy *tensor.Tensor), inputs ...*Var,
) *Var {
	y := t.newVar(op, value)
	for _, x := range inputs {
		if x.tape != t || x.life != t.resets {
			panic(fmt.Sprintf(
				"autodiff: %s: an input (%s) is on another tape, or was made before Reset",
				op,
				x.op,
			))
		}
		y.needs = y.needs || x.needs
	}
	if y.needs {
		if t.inspect {
			y.inputs = slices.Clone(inputs)
		}
		y.vjp = vjp
		y.index = len(t.nodes)
		t.nodes = append(t.nodes, y)
	}
	return y
}

// RecordPair is [Tape.Record] for an operator with two results, y and z. vjp
// receives both gradients; nil stands for one that nothing depended on.
func (t *Tape) RecordPair(
	op string, y, z *tensor.Tensor, vjp func(dy, dz *tensor.Tensor), inputs ...*Var,
) (*Var, *Var) {
	first := t.Record(op, y, nil, inputs...)
	second := t.newVar(op, z)
	if first.needs {
		// The second output has no VJP of its own: its gradient waits, as a
		// leaf's does, until Backward comes to the first.
		second.needs = true
		second.index = len(t.nodes)
		t.nodes = append(t.nodes, second)
		first.vjp = func(dy *tensor.Tensor) { vjp(dy, second.grad) }
		first.second = second
	}
	return first, second
}

// Backward computes the gradient of loss [1×1] with respect to every leaf and
// parameter it depends on. It starts at loss, whatever was recorded later.
// Gradients of parameters are added to Param.Grad; those of leaves are replaced.
// Backward may be called again, for the same loss or another. It panics if loss is
// not [1×1], needs no gradient, or is not on this tape since its last Reset.
func (t *Tape) Backward(loss *Var) {
	if loss.tape != t || loss.life != t.resets {
		panic("autodiff: Backward: the loss is on another tape, or was made before Reset")
	}
	if !loss.value.Is(1, 1) {
		tensor.Mismatch("autodiff: Backward", "the loss must be [1×1]", loss.value)
	}
	if !loss.needs {
		panic("autodiff: Backward: the loss depends on no parameter or leaf that needs a gradient")
	}
	t.dropGradients()
	one := t.be.Alloc(1, 1)
	t.be.Fill(one, 1)
	loss.AddGrad(one)
	if loss.param != nil {
		return // the loss is itself a parameter, and parameters are not on the list
	}
	for i := loss.index; i >= 0; i-- {
		v := t.nodes[i]
		if v.vjp == nil || v.grad == nil && (v.second == nil || v.second.grad == nil) {
			continue
		}
		t.lending = false
		v.vjp(v.grad)
		for ; v != nil; v = v.second { // both outputs, if the operator has two
			if t.lending && v.grad != nil && !v.shared {
				t.lent = append(t.lent, v.grad)
				v.shared = true
			}
			v.dropGrad()
		}
	}
	t.freeLent()
}

// dropGrad forgets the gradient of v and, unless it is shared, frees it.
func (v *Var) dropGrad() {
	if v.grad != nil && !v.shared {
		v.tape.be.Free(v.grad)
	}
	v.grad = nil
	v.shared = false
}

// Var is a matrix on a tape, with the operator that made it.
type Var struct {
	tape   *Tape
	life   int // Tape.resets when the variable was made
	op     string
	value  *tensor.Tensor
	needs  bool                    // whether a gradient is wanted
	index  int                     // in Tape.nodes, if a gradient is wanted
	vjp    func(dy *tensor.Tensor) // nil for leaves, constants and parameters
	param  *Param                  // nil unless the variable reads a parameter
	grad   *tensor.Tensor          // during Backward, and afterwards for leaves
	shared bool                    // grad is also another variable's: not ours to change or free
	second *Var                    // the other output of an operator with two, at the first
	inputs []*Var                  // of the operator, if the tape is for inspection
}

// live panics if the tape was reset since the variable was made.
func (v *Var) live() {
	if v.life != v.tape.resets {
		panic("autodiff: a variable (" + v.op + ") is used after the Reset of its tape")
	}
}

// Value returns the matrix, which belongs to the tape and must not be changed. Like
// all accessors of the shape or the values, it panics after the tape's Reset.
func (v *Var) Value() *tensor.Tensor {
	v.live()
	return v.value
}

// Tape returns the tape.
func (v *Var) Tape() *Tape { return v.tape }

// Rows returns the number of rows.
func (v *Var) Rows() int {
	v.live()
	return v.value.Rows
}

// Cols returns the number of columns.
func (v *Var) Cols() int {
	v.live()
	return v.value.Cols
}

// Op returns the name of the operator that made the variable.
func (v *Var) Op() string { return v.op }

// NeedsGrad reports whether a gradient will be computed for v.
func (v *Var) NeedsGrad() bool { return v.needs }

// Data downloads the values, row-major.
func (v *Var) Data() []float64 {
	v.live()
	d := make([]float64, v.value.Len())
	v.tape.be.Download(d, v.value)
	return d
}

// Float downloads a value [1×1]. It panics on any other shape.
func (v *Var) Float() float64 {
	v.live()
	if !v.value.Is(1, 1) {
		tensor.Mismatch("autodiff: Float", "want [1×1]", v.value)
	}
	return v.Data()[0]
}

// Grad downloads the gradient that the last Backward left on a leaf; zeros if
// none arrived. The gradients of other variables are not kept.
func (v *Var) Grad() []float64 {
	v.live()
	d := make([]float64, v.value.Len())
	if v.grad != nil {
		v.tape.be.Download(d, v.grad)
	}
	return d
}

// Detach returns a variable with the same value and no gradient.
func (v *Var) Detach() *Var {
	v.live()
	return v.tape.newVar("Detach", v.value)
}

// newGrad returns a matrix of v's shape for a gradient, which the caller owns.
func (v *Var) newGrad() *tensor.Tensor {
	return v.tape.be.Alloc(v.value.Rows, v.value.Cols)
}

// AddGrad adds g to the gradient of v and takes ownership of it: g must come from
// Backend.Alloc, and the caller must not use it again. If v needs no gradient, g is
// freed. It panics unless g has v's shape.
func (v *Var) AddGrad(g *tensor.Tensor) {
	be := v.tape.be
	v.checkGrad(g)
	switch {
	case !v.needs:
		be.Free(g)
	case v.param != nil:
		v.param.take(be, g)
	case v.grad == nil:
		v.grad = g
	default:
		be.Axpby(g, 1, v.grad, 1, g)
		v.dropGrad()
		v.grad = g
	}
}

// LendGrad adds g to the gradient of v without taking ownership. It may only be
// called by a running VJP, and only with the dy that the VJP was given: operators
// such as Add pass dy on unchanged, and need not copy it. It panics unless g has
// v's shape.
func (v *Var) LendGrad(g *tensor.Tensor) {
	be := v.tape.be
	v.checkGrad(g)
	switch {
	case !v.needs:
	case v.param != nil:
		v.param.accumulate(be, g)
	case v.grad == nil && v.vjp != nil: // a leaf keeps its gradient, and needs a copy
		v.grad = g
		v.shared = true
		v.tape.lending = true
	default:
		copied := be.Alloc(g.Rows, g.Cols)
		be.CopyBlock(copied, 0, 0, g, 0, 0, g.Rows, g.Cols)
		v.AddGrad(copied)
	}
}

func (v *Var) checkGrad(g *tensor.Tensor) {
	if !g.Like(v.value) {
		tensor.Mismatch(
			"autodiff: gradient of "+v.op, "value and gradient must agree in shape", v.value, g,
		)
	}
}
