package autodiff

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// MatMul returns the matrix product y = x·w for x [N×K] and w [K×M]; the
// elementwise product is [Var.Mul]. VJP: dx = dy·wᵀ, dw = xᵀ·dy.
func (x *Var) MatMul(w *Var) *Var {
	checkInner("MatMul", "%v·%v", x, w, x.Cols(), w.Rows())
	return gemm("MatMul", x, w, x.Rows(), w.Cols(), false, false)
}

// MatMulT returns y = x·wᵀ for x [N×K] and w [M×K]. VJP: dx = dy·w,
// dw = dyᵀ·x.
func (x *Var) MatMulT(w *Var) *Var {
	checkInner("MatMulT", "%v·%vᵀ", x, w, x.Cols(), w.Cols())
	return gemm("MatMulT", x, w, x.Rows(), w.Rows(), false, true)
}

// TMatMul returns y = xᵀ·w for x [K×N] and w [K×M]. VJP: dx = w·dyᵀ,
// dw = x·dy.
func (x *Var) TMatMul(w *Var) *Var {
	checkInner("TMatMul", "%vᵀ·%v", x, w, x.Rows(), w.Rows())
	return gemm("TMatMul", x, w, x.Cols(), w.Cols(), true, false)
}

func checkInner(op, format string, x, w *Var, a, b int) {
	if a != b {
		mismatch(
			op,
			fmt.Sprintf(format, x.value, w.value),
			fmt.Sprintf("inner dimensions %d and %d differ", a, b),
		)
	}
}

// gemm records y = op(x)·op(w) [rows×cols], where op transposes if tx or tw is set;
// not both may be.
func gemm(name string, x, w *Var, rows, cols int, tx, tw bool) *Var {
	t := x.tape
	be := t.be
	out := t.Alloc(rows, cols)
	be.Gemm(out, tx, tw, 1, x.value, w.value, 0)
	return t.Record(name, out, func(dy *tensor.Tensor) {
		if x.needs {
			dx := x.newGrad()
			if tx {
				be.Gemm(dx, false, true, 1, w.value, dy, 0)
			} else {
				be.Gemm(dx, false, !tw, 1, dy, w.value, 0)
			}
			x.AddGrad(dx)
		}
		if w.needs {
			dw := be.Alloc(w.Rows(), w.Cols())
			if tw {
				be.Gemm(dw, true, false, 1, dy, x.value, 0)
			} else {
				be.Gemm(dw, !tx, false, 1, x.value, dy, 0)
			}
			w.AddGrad(dw)
		}
	}, x, w)
}

// T returns the transpose, a copy. VJP: dx = dyᵀ.
func (x *Var) T() *Var {
	t := x.tape
	be := t.be
	out := t.Alloc(x.Cols(), x.Rows())
	be.Transpose(out, x.value)
	return t.Record("T", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.Transpose(dx, dy)
		x.AddGrad(dx)
	}, x)
}

// Sparse is a constant sparse matrix A in compressed rows ([backend.CSR]) with its
// transpose T, which the VJP of [Var.SpMM] needs. A symmetric A is its own T.
type Sparse struct{ A, T *backend.CSR }

// SpMM returns y = A·x + self·x for a constant sparse A [R×C] and x [C×F]: the
// sum over neighbours of message passing, with (1+ε)·x_i of GIN as the self
// term. VJP: dx = Aᵀ·dy + self·dy.
func (x *Var) SpMM(a *Sparse, self float64) *Var {
	operands := func() string {
		return fmt.Sprintf("sparse [%d×%d]·%v", a.A.Rows, a.A.Cols, x.value)
	}
	switch {
	case x.Rows() != a.A.Cols:
		mismatch(
			"SpMM",
			operands(),
			fmt.Sprintf("inner dimensions %d and %d differ", a.A.Cols, x.Rows()),
		)
	case self != 0 && a.A.Rows != a.A.Cols:
		mismatch("SpMM", operands(), "a self term needs a square matrix")
	}
	t := x.tape
	be := t.be
	out := t.Alloc(a.A.Rows, x.Cols())
	be.SpMM(out, a.A, x.value, self)
	return t.Record("SpMM", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.SpMM(dx, a.T, dy, self)
		x.AddGrad(dx)
	}, x)
}
