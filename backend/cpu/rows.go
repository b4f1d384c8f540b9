package cpu

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
	"gonum.org/v1/gonum/blas"
)

// LayerRows implements [backend.RowKeeper] in blocks of rows that stay in the cache.
func (e *engine[T]) LayerRows(l *backend.RowsLayer) {
	backend.CheckRowsLayer(l)
	t := &e.rows
	t.e = e
	t.RowsLayer = l
	if l.W1 == nil {
		e.pool.share(t, costOf(l.Graphs.Host), rowsBlock)
	} else {
		e.pool.share(t, l.A.Rows, rowsBlock)
	}
	t.RowsLayer = nil
}

const (
	rowsBlock = 1568 // 112 tiles of the AVX-512 kernel; with fewer rows, packing the weights dominates
	rowsNear  = 32   // rows that stay in the first-level cache
)

type rowsTask[T float] struct {
	*backend.RowsLayer
	e       *engine[T]
	scratch *freeList[[2][]T]
}

func (s *rowsTask[T]) run(lo, hi int) {
	w := s.scratch.take()
	if s.W1 == nil {
		s.sumGraphs(w, lo, hi)
	} else {
		s.layer(w, lo, hi)
	}
	s.scratch.give(w)
}

// sumGraphs sets the rows of Y for the graphs between the costs lo and hi.
func (s *rowsTask[T]) sumGraphs(w *[2][]T, lo, hi int) {
	ptr := s.Graphs.Host
	first := rowAt(ptr, lo)
	end := rowAt(ptr, hi)
	h := s.inputs(w, int(ptr[first]), int(ptr[end]))
	simd.AddRowReLU(h, h, s.e.data(s.B1))
	y := s.e.data(s.Y)
	for g := first; g < end; g++ {
		n := int(ptr[g+1]-ptr[g]) * s.Y.Cols
		simd.ColSums(rowOf(y, g, s.Y.Cols), h[:n])
		h = h[n:]
	}
}

// layer sets the rows of Y for rows lo..hi-1 of A.
func (s *rowsTask[T]) layer(w *[2][]T, lo, hi int) {
	e := s.e
	n := hi - lo
	s.inputs(w, lo, hi)
	h := s.multiply(w, n, s.W1)
	simd.AddRowReLU(h, h, e.data(s.B1))
	x := s.multiply(w, n, s.W2)
	shift := simd.AddRow[T]
	if s.ReLU {
		shift = simd.AddRowReLU[T]
	}
	for i := 0; i < n; i += rowsNear {
		near := x[i*s.W2.Cols : min(n, i+rowsNear)*s.W2.Cols]
		simd.AddRow(near, near, e.data(s.B2))
		simd.MulRow(near, near, e.data(s.Scale))
		shift(near, near, e.data(s.Shift))
	}
	if s.W != nil {
		x = s.multiply(w, n, s.W)
	}
	y := e.data(s.Y)
	for i, target := range s.To[lo:hi] {
		copy(rowOf(y, int(target), s.Y.Cols), x[i*s.Y.Cols:])
	}
}

// inputs sets w[0] to rows lo to hi of A·X + C·E.
func (s *rowsTask[T]) inputs(w *[2][]T, lo, hi int) []T {
	e := s.e
	n := hi - lo
	cols := s.X.Cols
	kinds := s.E.Rows
	w[0] = aligned(w[0], max(n, rowsBlock)*cols)
	x := w[0][:n*cols]
	simd.SpMM(
		x, cols, 0, n, s.A.Ptr.Host[lo:hi+1],
		s.A.Col.Host, nil, e.data(s.X), 0,
	)
	counts := e.data(s.C)[lo*kinds:]
	e.k.gemm(
		blas.NoTrans, blas.NoTrans, n, cols, kinds, 1,
		counts, kinds, e.data(s.E), cols, 1, x, cols,
	)
	return x
}

// multiply replaces the n rows in w[0] by their products with m.
func (s *rowsTask[T]) multiply(w *[2][]T, n int, m *tensor.Tensor) []T {
	y := aligned(w[1], rowsBlock*m.Cols)
	s.e.k.gemm.multiply(y, w[0], s.e.data(m), n, m.Cols, m.Rows)
	w[1] = w[0]
	w[0] = y
	return y[:n*m.Cols]
}

func (e *engine[T]) PoolRows(
	sum, largest, x *tensor.Tensor, rows, ptr *backend.Indices,
) {
	t := &e.task
	graphs := ptr.Len() - 1
	if !sum.Is(graphs, x.Cols) || !largest.Is(graphs, x.Cols) {
		tensor.Mismatch(
			"backend: PoolRows",
			"want rows of x's width for each graph", sum, largest, x,
		)
	}
	t.dst = e.data(sum)
	t.b = e.data(largest)
	t.a = e.data(x)
	t.cols = x.Cols
	t.ptr = ptr.Host
	t.col = rows.Host
	e.pool.do(
		(*poolRowsTask[T])(t), costOf(ptr.Host), rowsPer(grain, x.Cols),
	)
}

type poolRowsTask[T float] args[T]

func (t *poolRowsTask[T]) run(lo, hi int) {
	end := rowAt(t.ptr, hi)
	for g := rowAt(t.ptr, lo); g < end; g++ {
		// After the sum the rows are near for the second pass.
		simd.SpMM(t.dst, t.cols, g, g+1, t.ptr, t.col, nil, t.a, 0)
		y := rowOf(t.b, g, t.cols)
		clear(y)
		for k, i := range t.col[t.ptr[g]:t.ptr[g+1]] {
			row := rowOf(t.a, int(i), t.cols)
			if k == 0 {
				copy(y, row)
			} else {
				simd.Maximum(y, y, row)
			}
		}
	}
}
