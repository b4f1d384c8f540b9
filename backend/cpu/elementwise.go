package cpu

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
)

// grain is the number of elements in a chunk of a loop that is bound by memory: they
// take a few microseconds.
const grain = 1 << 14

// costly is the number of elements in a chunk of a transcendental function, or of a
// loop that takes as long.
const costly = grain / 4

// rowsPer returns the number of rows in a chunk of the given number of elements.
func rowsPer(elements, cols int) int {
	return max(1, elements/max(1, cols))
}

func (e *engine[T]) Fill(dst *tensor.Tensor, v float64) {
	t := &e.task
	t.dst = e.data(dst)
	t.alpha = T(v)
	e.pool.do((*fillTask[T])(t), len(t.dst), 2*grain)
}

type fillTask[T float] args[T]

func (t *fillTask[T]) run(lo, hi int) {
	fill(t.dst[lo:hi], t.alpha)
}

func (e *engine[T]) FillDiagonal(dst *tensor.Tensor, v float64) {
	backend.CheckSquare("backend: FillDiagonal", dst)
	d := e.data(dst)
	for i := 0; i < len(d); i += dst.Cols + 1 {
		d[i] = T(v)
	}
}

func (e *engine[T]) Unary(
	dst *tensor.Tensor, op backend.UnaryOp, a *tensor.Tensor,
) {
	backend.CheckSame("backend: Unary", dst, a)
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(a)
	t.unary = e.k.unary[op]
	g := grain
	switch op {
	case backend.Exp, backend.Log, backend.Sigmoid, backend.Softplus,
		backend.Tanh:
		g = costly
	}
	e.pool.do((*unaryTask[T])(t), len(t.dst), g)
}

type unaryTask[T float] args[T]

func (t *unaryTask[T]) run(lo, hi int) {
	t.unary(t.dst[lo:hi], t.a[lo:hi])
}

func (e *engine[T]) Binary(
	dst *tensor.Tensor, op backend.BinaryOp, a, b *tensor.Tensor,
) {
	backend.CheckSame("backend: Binary", dst, a, b)
	e.pairs(dst, op, a, b)
}

// pairs sets dst = op(a, b) element by element.
func (e *engine[T]) pairs(
	dst *tensor.Tensor, op backend.BinaryOp, a, b *tensor.Tensor,
) {
	e.binary(dst, a, b, e.k.binary[op], dst.Len(), 1, 1)
}

// binary runs a loop over rows of cols elements each. Every row has perRow elements of
// b, or, if that is 0, shares all of b.
func (e *engine[T]) binary(
	dst, a, b *tensor.Tensor, loop func(dst, a, b []T), rows, cols, perRow int,
) {
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(a)
	t.b = e.data(b)
	t.binary = loop
	t.cols = cols
	t.n = perRow
	e.pool.do((*binaryTask[T])(t), rows, rowsPer(grain, cols))
}

type binaryTask[T float] args[T]

func (t *binaryTask[T]) run(lo, hi int) {
	b := t.b
	if t.n > 0 {
		b = b[lo*t.n : hi*t.n]
	}
	lo *= t.cols
	hi *= t.cols
	t.binary(t.dst[lo:hi], t.a[lo:hi], b)
}

func (e *engine[T]) BinaryRow(
	dst *tensor.Tensor, op backend.BinaryOp, a, row *tensor.Tensor,
) {
	backend.CheckRow("backend: BinaryRow", dst, a, row)
	if a.Cols == 1 { // row is one number for all
		e.withScalar(dst, op, a, row)
		return
	}
	e.binary(dst, a, row, e.k.byRow[op], a.Rows, a.Cols, 0)
}

func (e *engine[T]) BinaryCol(
	dst *tensor.Tensor, op backend.BinaryOp, a, col *tensor.Tensor,
) {
	backend.CheckCol("backend: BinaryCol", dst, a, col)
	if a.Cols == 1 { // col has one number for each
		e.pairs(dst, op, a, col)
		return
	}
	e.binary(dst, a, col, e.k.byCol[op], a.Rows, a.Cols, 1)
}

func (e *engine[T]) BinaryScalar(
	dst *tensor.Tensor, op backend.BinaryOp, a, s *tensor.Tensor,
) {
	backend.CheckScalar("backend: BinaryScalar", dst, a, s)
	e.withScalar(dst, op, a, s)
}

// withScalar sets dst_ij = op(a_ij, s) for a tensor s with one element. A row that
// repeats it stays in the first-level cache and serves all kernels.
func (e *engine[T]) withScalar(
	dst *tensor.Tensor, op backend.BinaryOp, a, s *tensor.Tensor,
) {
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(a)
	t.binary = e.k.binary[op]
	t.b = e.repeated[:min(len(e.repeated), len(t.dst))]
	fill(t.b, e.data(s)[0])
	e.pool.do((*scalarTask[T])(t), len(t.dst), grain)
}

type scalarTask[T float] args[T]

func (t *scalarTask[T]) run(lo, hi int) {
	for ; lo < hi; lo += len(t.b) {
		n := min(len(t.b), hi-lo)
		t.binary(t.dst[lo:lo+n], t.a[lo:lo+n], t.b[:n])
	}
}

func (e *engine[T]) Affine(
	dst *tensor.Tensor, alpha float64, a *tensor.Tensor, c float64,
) {
	backend.CheckSame("backend: Affine", dst, a)
	t := &e.task
	t.dst = e.data(dst)
	t.alpha = T(alpha)
	t.a = e.data(a)
	t.beta = T(c)
	e.pool.do((*affineTask[T])(t), len(t.dst), grain)
}

type affineTask[T float] args[T]

func (t *affineTask[T]) run(lo, hi int) {
	simd.Affine(t.dst[lo:hi], t.alpha, t.a[lo:hi], t.beta)
}

func (e *engine[T]) Axpby(
	dst *tensor.Tensor,
	alpha float64,
	a *tensor.Tensor,
	beta float64,
	b *tensor.Tensor,
) {
	backend.CheckSame("backend: Axpby", dst, a, b)
	t := &e.task
	t.dst = e.data(dst)
	t.alpha = T(alpha)
	t.a = e.data(a)
	t.beta = T(beta)
	t.b = e.data(b)
	e.pool.do((*axpbyTask[T])(t), len(t.dst), grain)
}

type axpbyTask[T float] args[T]

func (t *axpbyTask[T]) run(lo, hi int) {
	simd.Axpby(t.dst[lo:hi], t.alpha, t.a[lo:hi], t.beta, t.b[lo:hi])
}
