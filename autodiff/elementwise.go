package autodiff

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has the elementwise operators on two matrices. Those on one matrix
// (unary.go), such as ReLU, are of the same form.

// Add returns y = x + b for equal shapes. VJP: dx = dy, db = dy.
func (x *Var) Add(b *Var) *Var {
	checkSame("Add", x, " + ", b)
	t := x.tape
	y := t.keep(t.binary(backend.Add, x.value, b.value))
	return t.Record("Add", y, func(dy *tensor.Tensor) {
		x.LendGrad(dy) // both gradients are dy itself
		b.LendGrad(dy)
	}, x, b)
}

// Sub returns y = x - b for equal shapes. VJP: dx = dy, db = -dy.
func (x *Var) Sub(b *Var) *Var {
	checkSame("Sub", x, " - ", b)
	t := x.tape
	y := t.keep(t.binary(backend.Sub, x.value, b.value))
	return t.Record("Sub", y, func(dy *tensor.Tensor) {
		x.LendGrad(dy)
		if b.needs {
			b.AddGrad(t.scaled(-1, dy)) // a new matrix, whose ownership passes to b
		}
	}, x, b)
}

// Mul returns the elementwise product y = x∘b for equal shapes; the matrix
// product is [Var.MatMul]. VJP: dx = dy∘b, db = dy∘x.
func (x *Var) Mul(b *Var) *Var {
	checkSame("Mul", x, " ∘ ", b)
	t := x.tape
	y := t.keep(t.binary(backend.Mul, x.value, b.value))
	return t.Record("Mul", y, func(dy *tensor.Tensor) {
		if x.needs {
			x.AddGrad(t.binary(backend.Mul, dy, b.value))
		}
		if b.needs {
			b.AddGrad(t.binary(backend.Mul, dy, x.value))
		}
	}, x, b)
}

// Div returns y = x/b, elementwise for equal shapes. VJP: dx = dy/b,
// db = -dy∘y/b.
func (x *Var) Div(b *Var) *Var {
	checkSame("Div", x, " / ", b)
	t := x.tape
	y := t.keep(t.binary(backend.Div, x.value, b.value))
	return t.Record("Div", y, func(dy *tensor.Tensor) {
		if x.needs {
			x.AddGrad(t.binary(backend.Div, dy, b.value))
		}
		if b.needs {
			db := t.binary(backend.Mul, dy, y)
			t.be.Binary(db, backend.Div, db, b.value)
			t.be.Affine(db, -1, db, 0)
			b.AddGrad(db)
		}
	}, x, b)
}

// binary returns op(a, b), elementwise, as a new matrix that the caller owns.
func (t *Tape) binary(op backend.BinaryOp, a, b *tensor.Tensor) *tensor.Tensor {
	y := t.be.Alloc(a.Rows, a.Cols)
	t.be.Binary(y, op, a, b)
	return y
}

// scaled returns s·a as a new matrix that the caller owns.
func (t *Tape) scaled(s float64, a *tensor.Tensor) *tensor.Tensor {
	y := t.be.Alloc(a.Rows, a.Cols)
	t.be.Affine(y, s, a, 0)
	return y
}

// AddRow returns y_ij = x_ij + b_j for x [N×F] and a row b [1×F]. VJP: dx = dy,
// db = column sums of dy.
func (x *Var) AddRow(b *Var) *Var {
	return spread("AddRow", x, " + ", b, backend.Add, row)
}

// SubRow returns y_ij = x_ij - b_j for a row b [1×F].
func (x *Var) SubRow(b *Var) *Var {
	return spread("SubRow", x, " - ", b, backend.Sub, row)
}

// MulRow returns y_ij = x_ij·b_j for a row b [1×F]. VJP: dx_ij = dy_ij·b_j,
// db = column sums of dy∘x.
func (x *Var) MulRow(b *Var) *Var {
	return spread("MulRow", x, " ∘ ", b, backend.Mul, row)
}

// DivRow returns y_ij = x_ij/b_j for a row b [1×F].
func (x *Var) DivRow(b *Var) *Var {
	return spread("DivRow", x, " / ", b, backend.Div, row)
}

// AddCol returns y_ij = x_ij + b_i for x [N×F] and a column b [N×1]. VJP:
// dx = dy, db = row sums of dy.
func (x *Var) AddCol(b *Var) *Var {
	return spread("AddCol", x, " + ", b, backend.Add, col)
}

// SubCol returns y_ij = x_ij - b_i for a column b [N×1].
func (x *Var) SubCol(b *Var) *Var {
	return spread("SubCol", x, " - ", b, backend.Sub, col)
}

// MulCol returns y_ij = x_ij·b_i for a column b [N×1]: diag(b)·x.
func (x *Var) MulCol(b *Var) *Var {
	return spread("MulCol", x, " ∘ ", b, backend.Mul, col)
}

// DivCol returns y_ij = x_ij/b_i for a column b [N×1].
func (x *Var) DivCol(b *Var) *Var {
	return spread("DivCol", x, " / ", b, backend.Div, col)
}

// AddScalar returns y_ij = x_ij + s for s [1×1]. VJP: dx = dy, ds = Σ dy.
func (x *Var) AddScalar(s *Var) *Var {
	return spread("AddScalar", x, " + ", s, backend.Add, scalar)
}

// SubScalar returns y_ij = x_ij - s for s [1×1].
func (x *Var) SubScalar(s *Var) *Var {
	return spread("SubScalar", x, " - ", s, backend.Sub, scalar)
}

// MulScalar returns y_ij = x_ij·s for s [1×1].
func (x *Var) MulScalar(s *Var) *Var {
	return spread("MulScalar", x, "·", s, backend.Mul, scalar)
}

// DivScalar returns y_ij = x_ij/s for s [1×1].
func (x *Var) DivScalar(s *Var) *Var {
	return spread("DivScalar", x, " / ", s, backend.Div, scalar)
}

// Greater returns y_ij = 1 where x_ij > s, else 0, for s [1×1]. The derivative of
// this step function is zero wherever it exists, so y carries no gradient.
func (x *Var) Greater(s *Var) *Var {
	scalar.check("Greater", x, " > ", s)
	y := x.tape.Alloc(x.Rows(), x.Cols())
	scalar.apply(x.tape.be, y, backend.Greater, x.value, s.value)
	return x.tape.newVar("Greater", y)
}

// broadcast describes how the second operand b of an operator is spread over the
// first [N×F], and how a gradient [N×F] is summed to b's shape.
type broadcast struct {
	shape  func(n, f int) (rows, cols int) // of b
	apply  func(be backend.Backend, dst *tensor.Tensor, op backend.BinaryOp, a, b *tensor.Tensor)
	reduce func(be backend.Backend, dst, a *tensor.Tensor)
}

var (
	row = broadcast{
		func(_, f int) (int, int) { return 1, f },
		backend.Backend.BinaryRow,
		backend.Backend.ColSums,
	}
	col = broadcast{func(n, _ int) (int, int) { return n, 1 }, backend.Backend.BinaryCol,
		func(be backend.Backend, dst, a *tensor.Tensor) { be.ReduceRows(dst, backend.RowSum, a) }}
	scalar = broadcast{func(_, _ int) (int, int) { return 1, 1 }, backend.Backend.BinaryScalar,
		func(be backend.Backend, dst, a *tensor.Tensor) { be.Dot(dst, a, nil) }}
)

func (bc broadcast) check(op string, x *Var, sign string, b *Var) {
	if rows, cols := bc.shape(x.Rows(), x.Cols()); b.Rows() != rows || b.Cols() != cols {
		mismatch(
			op,
			fmt.Sprintf("%v%s%v", x.value, sign, b.value),
			fmt.Sprintf("want [%d×%d] for the second", rows, cols),
		)
	}
}

// spread is the common code of the operators whose second operand is a row, a
// column or a scalar. With Σ the sum over the entries of x that share an entry of b:
//
//	y = x+b: dx = dy,    db = Σ dy
//	y = x-b: dx = dy,    db = -Σ dy
//	y = x·b: dx = dy·b,  db = Σ dy·x
//	y = x/b: dx = dy/b,  db = -(Σ dy·y)/b
func spread(name string, x *Var, sign string, b *Var, op backend.BinaryOp, bc broadcast) *Var {
	bc.check(name, x, sign, b)
	t := x.tape
	be := t.be
	y := t.Alloc(x.Rows(), x.Cols())
	bc.apply(be, y, op, x.value, b.value)
	return t.Record(name, y, func(dy *tensor.Tensor) {
		switch {
		case op == backend.Add || op == backend.Sub:
			x.LendGrad(dy)
		case x.needs:
			dx := be.Alloc(dy.Rows, dy.Cols)
			bc.apply(be, dx, op, dy, b.value)
			x.AddGrad(dx)
		}
		if !b.needs {
			return
		}
		db := be.Alloc(b.Rows(), b.Cols())
		switch op {
		case backend.Add, backend.Sub:
			bc.reduce(be, db, dy)
		case backend.Mul, backend.Div:
			factor := x.value
			if op == backend.Div {
				factor = y
			}
			terms := t.binary(backend.Mul, dy, factor)
			bc.reduce(be, db, terms)
			be.Free(terms)
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
}
