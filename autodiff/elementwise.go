package autodiff

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Add returns y = x + b for equal shapes. VJP: dx = dy, db = dy.
func (x *Var) Add(b *Var) *Var { return binary("Add", backend.Add, same, x, b) }

// Sub returns y = x - b for equal shapes. VJP: dx = dy, db = -dy.
func (x *Var) Sub(b *Var) *Var { return binary("Sub", backend.Sub, same, x, b) }

// Mul returns the elementwise product y = x∘b for equal shapes; the matrix
// product is [Var.MatMul]. VJP: dx = dy∘b, db = dy∘x.
func (x *Var) Mul(b *Var) *Var { return binary("Mul", backend.Mul, same, x, b) }

// Div returns y = x/b, elementwise for equal shapes. VJP: dx = dy/b,
// db = -dy∘y/b.
func (x *Var) Div(b *Var) *Var { return binary("Div", backend.Div, same, x, b) }

// AddRow returns y_ij = x_ij + b_j for x [N×F] and a row b [1×F]. VJP: dx = dy,
// db = column sums of dy.
func (x *Var) AddRow(b *Var) *Var { return binary("AddRow", backend.Add, row, x, b) }

// SubRow returns y_ij = x_ij - b_j for a row b [1×F].
func (x *Var) SubRow(b *Var) *Var { return binary("SubRow", backend.Sub, row, x, b) }

// MulRow returns y_ij = x_ij·b_j for a row b [1×F]. VJP: dx_ij = dy_ij·b_j,
// db = column sums of dy∘x.
func (x *Var) MulRow(b *Var) *Var { return binary("MulRow", backend.Mul, row, x, b) }

// DivRow returns y_ij = x_ij/b_j for a row b [1×F].
func (x *Var) DivRow(b *Var) *Var { return binary("DivRow", backend.Div, row, x, b) }

// AddCol returns y_ij = x_ij + b_i for x [N×F] and a column b [N×1]. VJP:
// dx = dy, db = row sums of dy.
func (x *Var) AddCol(b *Var) *Var { return binary("AddCol", backend.Add, col, x, b) }

// SubCol returns y_ij = x_ij - b_i for a column b [N×1].
func (x *Var) SubCol(b *Var) *Var { return binary("SubCol", backend.Sub, col, x, b) }

// MulCol returns y_ij = x_ij·b_i for a column b [N×1]: diag(b)·x.
func (x *Var) MulCol(b *Var) *Var { return binary("MulCol", backend.Mul, col, x, b) }

// DivCol returns y_ij = x_ij/b_i for a column b [N×1].
func (x *Var) DivCol(b *Var) *Var { return binary("DivCol", backend.Div, col, x, b) }

// AddScalar returns y_ij = x_ij + s for s [1×1]. VJP: dx = dy, ds = Σ dy.
func (x *Var) AddScalar(s *Var) *Var { return binary("AddScalar", backend.Add, scalar, x, s) }

// SubScalar returns y_ij = x_ij - s for s [1×1].
func (x *Var) SubScalar(s *Var) *Var { return binary("SubScalar", backend.Sub, scalar, x, s) }

// MulScalar returns y_ij = x_ij·s for s [1×1].
func (x *Var) MulScalar(s *Var) *Var { return binary("MulScalar", backend.Mul, scalar, x, s) }

// DivScalar returns y_ij = x_ij/s for s [1×1].
func (x *Var) DivScalar(s *Var) *Var { return binary("DivScalar", backend.Div, scalar, x, s) }

// Greater returns y_ij = 1 where x_ij > s, else 0, for s [1×1]. It is a step:
// its derivative is zero wherever it exists, so y carries no gradient.
func (x *Var) Greater(s *Var) *Var {
	y := x.tape.Alloc(x.Rows(), x.Cols())
	scalar.apply(x.tape.be, y, backend.Greater, x.value, s.value)
	return x.tape.newVar("Greater", y)
}

// broadcast says how the second argument of a binary operator is spread over
// the first, and how a gradient is summed back.
type broadcast struct {
	apply  func(be backend.Backend, dst *tensor.Tensor, op backend.BinaryOp, a, b *tensor.Tensor)
	reduce func(be backend.Backend, dst, a *tensor.Tensor) // nil: no reduction
}

var (
	same = broadcast{apply: backend.Backend.Binary}
	row  = broadcast{backend.Backend.BinaryRow, backend.Backend.ColSums}
	col  = broadcast{backend.Backend.BinaryCol, func(be backend.Backend, dst, a *tensor.Tensor) { be.ReduceRows(dst, backend.RowSum, a) }}

	scalar = broadcast{backend.Backend.BinaryScalar, func(be backend.Backend, dst, a *tensor.Tensor) { be.Dot(dst, a, nil) }}
)

// binary is the one implementation of the operators above. With b spread over
// x, and Σ the sum over the entries that share an entry of b:
//
//	y = x+b: dx = dy,    db = Σ dy
//	y = x-b: dx = dy,    db = -Σ dy
//	y = x·b: dx = dy·b,  db = Σ dy·x
//	y = x/b: dx = dy/b,  db = -(Σ dy·y)/b
func binary(name string, op backend.BinaryOp, bc broadcast, x, b *Var) *Var {
	t := x.tape
	be := t.be
	out := t.Alloc(x.Rows(), x.Cols())
	bc.apply(be, out, op, x.value, b.value)
	var y *Var
	y = t.Record(name, out, func(dy *tensor.Tensor) {
		if x.needs {
			if op == backend.Add || op == backend.Sub {
				x.LendGrad(dy, y)
			} else {
				dx := be.Alloc(x.Rows(), x.Cols())
				bc.apply(be, dx, op, dy, b.value)
				x.AddGrad(dx)
			}
		}
		if !b.needs {
			return
		}
		// full is what must be summed over the broadcast.
		full := dy
		switch op {
		case backend.Mul:
			full = be.Alloc(dy.Rows, dy.Cols)
			be.Binary(full, backend.Mul, dy, x.value)
		case backend.Div:
			full = be.Alloc(dy.Rows, dy.Cols)
			be.Binary(full, backend.Mul, dy, out)
		}
		db := full
		if bc.reduce != nil {
			db = be.Alloc(b.Rows(), b.Cols())
			bc.reduce(be, db, full)
			if full != dy {
				be.Free(full)
			}
		} else if full == dy && op == backend.Add {
			b.LendGrad(dy, y)
			return
		} else if full == dy {
			db = be.Alloc(b.Rows(), b.Cols())
			be.Affine(db, -1, dy, 0)
			b.AddGrad(db)
			return
		}
		switch op {
		case backend.Sub:
			be.Affine(db, -1, db, 0)
		case backend.Div:
			be.Binary(db, backend.Div, db, b.value)
			be.Affine(db, -1, db, 0)
		}
		b.AddGrad(db)
	}, x, b)
	return y
}

// Scale returns y = s·x for a constant s. VJP: dx = s·dy.
func (x *Var) Scale(s float64) *Var { return affine("Scale", x, s, 0) }

// Shift returns y = x + c for a constant c. VJP: dx = dy.
func (x *Var) Shift(c float64) *Var { return affine("Shift", x, 1, c) }

func affine(name string, x *Var, s, c float64) *Var {
	t := x.tape
	out := t.Alloc(x.Rows(), x.Cols())
	t.be.Affine(out, s, x.value, c)
	return t.Record(name, out, func(dy *tensor.Tensor) {
		dx := t.be.Alloc(dy.Rows, dy.Cols)
		t.be.Affine(dx, s, dy, 0)
		x.AddGrad(dx)
	}, x)
}

// Exp returns y = e^x. VJP: dx = dy∘y.
func (x *Var) Exp() *Var {
	return x.unary("Exp", backend.Exp, func(be backend.Backend, dx, dy, y *tensor.Tensor) {
		be.Binary(dx, backend.Mul, dy, y)
	})
}

// Log returns y = ln x. VJP: dx = dy/x.
func (x *Var) Log() *Var {
	return x.unary("Log", backend.Log, func(be backend.Backend, dx, dy, _ *tensor.Tensor) {
		be.Binary(dx, backend.Div, dy, x.value)
	})
}

// Sqrt returns y = √x. VJP: dx = dy/(2y); infinite at 0, as the derivative is.
func (x *Var) Sqrt() *Var {
	return x.unary("Sqrt", backend.Sqrt, func(be backend.Backend, dx, dy, y *tensor.Tensor) {
		be.Binary(dx, backend.Div, dy, y)
		be.Affine(dx, 0.5, dx, 0)
	})
}

// Square returns y = x∘x. VJP: dx = 2·dy∘x.
func (x *Var) Square() *Var {
	t := x.tape
	out := t.Alloc(x.Rows(), x.Cols())
	t.be.Binary(out, backend.Mul, x.value, x.value)
	return t.Record("Square", out, func(dy *tensor.Tensor) {
		dx := t.be.Alloc(dy.Rows, dy.Cols)
		t.be.Binary(dx, backend.Mul, dy, x.value)
		t.be.Affine(dx, 2, dx, 0)
		x.AddGrad(dx)
	}, x)
}

// Sigmoid returns y = 1/(1+e^-x). VJP: dx = dy∘y∘(1-y).
func (x *Var) Sigmoid() *Var {
	return x.unary("Sigmoid", backend.Sigmoid, func(be backend.Backend, dx, dy, y *tensor.Tensor) {
		be.Affine(dx, -1, y, 1)
		be.Binary(dx, backend.Mul, dx, y)
		be.Binary(dx, backend.Mul, dx, dy)
	})
}

// Softplus returns y = ln(1+e^x). VJP: dx = dy∘sigmoid(x).
func (x *Var) Softplus() *Var {
	return x.unary("Softplus", backend.Softplus, func(be backend.Backend, dx, dy, _ *tensor.Tensor) {
		be.Unary(dx, backend.Sigmoid, x.value)
		be.Binary(dx, backend.Mul, dx, dy)
	})
}

// Tanh returns y = tanh x. VJP: dx = dy∘(1-y²).
func (x *Var) Tanh() *Var {
	return x.unary("Tanh", backend.Tanh, func(be backend.Backend, dx, dy, y *tensor.Tensor) {
		be.Binary(dx, backend.Mul, y, y)
		be.Affine(dx, -1, dx, 1)
		be.Binary(dx, backend.Mul, dx, dy)
	})
}

// ReLU returns y = max(x, 0). VJP: dx = dy where y > 0, else 0; the
// sub-gradient at 0 is 0, as PyTorch's.
func (x *Var) ReLU() *Var {
	return x.unary("ReLU", backend.ReLU, func(be backend.Backend, dx, dy, y *tensor.Tensor) {
		be.Binary(dx, backend.Gate, dy, y)
	})
}

// AddRowReLU returns y_ij = max(x_ij + b_j, 0) for a row b [1×F]: what follows
// the product of a linear layer. VJP: dx = dy where y > 0, else 0; db = column
// sums of dx.
func (x *Var) AddRowReLU(b *Var) *Var {
	t := x.tape
	fuser, ok := t.be.(backend.BiasFuser)
	if !ok || t.composed {
		return x.AddRow(b).ReLU()
	}
	y := t.Alloc(x.Rows(), x.Cols())
	fuser.BiasReLU(y, x.value, b.value)
	return t.Record("AddRowReLU", y, func(dy *tensor.Tensor) {
		dx, db := t.be.Alloc(dy.Rows, dy.Cols), t.be.Alloc(1, dy.Cols)
		fuser.BiasReLUBackward(dx, db, dy, y)
		x.AddGrad(dx)
		b.AddGrad(db)
	}, x, b)
}

// Abs returns y = |x|. VJP: dx = dy∘sign(x); the sub-gradient at 0 is 0.
func (x *Var) Abs() *Var {
	return x.unary("Abs", backend.Abs, func(be backend.Backend, dx, dy, _ *tensor.Tensor) {
		be.Unary(dx, backend.Sign, x.value)
		be.Binary(dx, backend.Mul, dx, dy)
	})
}

// InvSqrt returns y = x^-1/2 where x > 0, else 0: the rule for the degree of an
// isolated node. VJP: dx = -dy∘y³/2, hence 0 where y is.
func (x *Var) InvSqrt() *Var {
	return x.unary("InvSqrt", backend.InvSqrt, func(be backend.Backend, dx, dy, y *tensor.Tensor) {
		be.Binary(dx, backend.Mul, y, y)
		be.Binary(dx, backend.Mul, dx, y)
		be.Binary(dx, backend.Mul, dx, dy)
		be.Affine(dx, -0.5, dx, 0)
	})
}

// unary records y = op(x); grad sets dx from dy and y.
func (x *Var) unary(name string, op backend.UnaryOp, grad func(be backend.Backend, dx, dy, y *tensor.Tensor)) *Var {
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
// the value of step [1×1], and on the entry's position only. VJP: dx = dy∘mask.
// With keep 1, y is x itself.
func (x *Var) Dropout(keep float64, seed uint64, step *tensor.Tensor) *Var {
	if keep == 1 {
		return x
	}
	t := x.tape
	mask := t.Alloc(x.Rows(), x.Cols())
	t.be.DropoutMask(mask, keep, seed, step)
	return x.Mul(t.Const(mask))
}
