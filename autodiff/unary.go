package autodiff

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has the elementwise operators on one matrix.

// Scale returns y = s·x for a constant s. VJP: dx = s·dy.
func (x *Var) Scale(s float64) *Var {
	return affine("Scale", x, s, 0)
}

// Shift returns y = x + c for a constant c. VJP: dx = dy.
func (x *Var) Shift(c float64) *Var {
	return affine("Shift", x, 1, c)
}

func affine(name string, x *Var, s, c float64) *Var {
	t := x.tape
	out := t.Alloc(x.Rows(), x.Cols())
	t.be.Affine(out, s, x.value, c)
	return t.Record(
		name,
		out,
		func(dy *tensor.Tensor) { x.AddGrad(t.scaled(s, dy)) },
		x,
	)
}

// Exp returns y = e^x. VJP: dx = dy∘y.
func (x *Var) Exp() *Var {
	return x.unary("Exp", backend.Exp,
		func(be backend.Backend, dx, dy, y *tensor.Tensor) {
			be.Binary(dx, backend.Mul, dy, y)
		})
}

// Log returns y = ln x. VJP: dx = dy/x.
func (x *Var) Log() *Var {
	return x.unary("Log", backend.Log,
		func(be backend.Backend, dx, dy, _ *tensor.Tensor) {
			be.Binary(dx, backend.Div, dy, x.value)
		})
}

// Sqrt returns y = √x. VJP: dx = dy/(2y); infinite at 0, as the derivative is.
func (x *Var) Sqrt() *Var {
	return x.unary("Sqrt", backend.Sqrt,
		func(be backend.Backend, dx, dy, y *tensor.Tensor) {
			be.Binary(dx, backend.Div, dy, y)
			be.Affine(dx, 0.5, dx, 0)
		})
}

// Square returns y = x∘x. VJP: dx = 2·dy∘x.
func (x *Var) Square() *Var {
	t := x.tape
	x.live()
	y := t.keep(t.binary(backend.Mul, x.value, x.value))
	return t.Record("Square", y, func(dy *tensor.Tensor) {
		dx := t.binary(backend.Mul, dy, x.value)
		t.be.Affine(dx, 2, dx, 0)
		x.AddGrad(dx)
	}, x)
}

// Sigmoid returns y = 1/(1+e^-x). VJP: dx = dy∘y∘(1-y).
func (x *Var) Sigmoid() *Var {
	return x.unary("Sigmoid", backend.Sigmoid,
		func(be backend.Backend, dx, dy, y *tensor.Tensor) {
			be.Affine(dx, -1, y, 1)
			be.Binary(dx, backend.Mul, dx, y)
			be.Binary(dx, backend.Mul, dx, dy)
		})
}

// Softplus returns y = ln(1+e^x). VJP: dx = dy∘sigmoid(x).
func (x *Var) Softplus() *Var {
	return x.unary("Softplus", backend.Softplus,
		func(be backend.Backend, dx, dy, _ *tensor.Tensor) {
			be.Unary(dx, backend.Sigmoid, x.value)
			be.Binary(dx, backend.Mul, dx, dy)
		})
}

// Tanh returns y = tanh x. VJP: dx = dy∘(1-y²).
func (x *Var) Tanh() *Var {
	return x.unary("Tanh", backend.Tanh,
		func(be backend.Backend, dx, dy, y *tensor.Tensor) {
			be.Binary(dx, backend.Mul, y, y)
			be.Affine(dx, -1, dx, 1)
			be.Binary(dx, backend.Mul, dx, dy)
		})
}

// ReLU returns y = max(x, 0). VJP: dx = dy where y > 0, else 0; the
// sub-gradient at 0 is 0, as PyTorch's.
func (x *Var) ReLU() *Var {
	return x.unary("ReLU", backend.ReLU,
		func(be backend.Backend, dx, dy, y *tensor.Tensor) {
			be.Binary(dx, backend.Gate, dy, y)
		})
}

// Abs returns y = |x|. VJP: dx = dy∘sign(x); the sub-gradient at 0 is 0.
func (x *Var) Abs() *Var {
	return x.unary("Abs", backend.Abs,
		func(be backend.Backend, dx, dy, _ *tensor.Tensor) {
			be.Unary(dx, backend.Sign, x.value)
			be.Binary(dx, backend.Mul, dx, dy)
		})
}

// InvSqrt returns y = x^-1/2 where x is at least [backend.LeastDegree], a tiny
// number, else 0. It is applied to the degrees of nodes: an isolated node, of degree
// 0, gets 0. VJP: dx = -dy∘y³/2, which is 0 where y is.
func (x *Var) InvSqrt() *Var {
	return x.unary("InvSqrt", backend.InvSqrt,
		func(be backend.Backend, dx, dy, y *tensor.Tensor) {
			be.Binary(dx, backend.Mul, dy, y) // in this order, because y³ alone may overflow
			be.Binary(dx, backend.Mul, dx, y)
			be.Binary(dx, backend.Mul, dx, y)
			be.Affine(dx, -0.5, dx, 0)
		})
}

// unary records y = op(x); grad sets dx from dy and y.
func (x *Var) unary(
	name string,
	op backend.UnaryOp,
	grad func(be backend.Backend, dx, dy, y *tensor.Tensor),
) *Var {
	t := x.tape
	y := t.Alloc(x.Rows(), x.Cols())
	t.be.Unary(y, op, x.value)
	return t.Record(name, y, func(dy *tensor.Tensor) {
		dx := t.be.Alloc(dy.Rows, dy.Cols)
		grad(t.be, dx, dy, y)
		x.AddGrad(dx)
	}, x)
}

// Dropout returns y = x∘mask, where an entry of mask is 1/keep with probability
// keep, else 0 (Srivastava et al. 2014, inverted). The mask depends on seed, on
// the value of step [1×1], and on the entry's position only; step is a tensor so
// that a recorded training step draws a new mask at every replay. VJP: dx = dy∘mask.
// With keep 1, y is x itself. It panics unless 0 < keep ≤ 1 and step is [1×1].
func (x *Var) Dropout(
	keep float64, seed uint64, step *tensor.Tensor,
) *Var {
	if keep == 1 {
		return x
	}
	if !step.Is(1, 1) {
		mismatch(
			"Dropout",
			fmt.Sprintf("%v at step %v", x.value, step),
			"want a step [1×1]",
		)
	}
	t := x.tape
	mask := t.Alloc(x.Rows(), x.Cols())
	t.be.DropoutMask(mask, keep, seed, step)
	return x.Mul(t.Const(mask))
}
