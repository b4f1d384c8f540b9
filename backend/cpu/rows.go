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
	e.rows.e = e
	e.rows.RowsLayer = l
	if l.W1 == nil {
		e.pool.share(&e.rows, costOf(l.Graphs.Host), rowsBlock)
	} else {
		e.pool.share(&e.rows, l.A.Rows, rowsBlock)
	}
	e.rows.RowsLayer = nil
}

const (
	rowsBlock = 784 // with fewer, packing the weights would take more; 56 tiles of the AVX-512 kernel
	rowsNear  = 32  // rows that stay in the first-level cache
)

type rowsTask[T float] struct {
	*backend.RowsLayer
	e       *engine[T]
	scratch *freeList[[2][]T]
}

func (s *rowsTask[T]) run(lo, hi int) {
	w := s.scratch.take()
	e := s.e
	y := s.e.data(s.Y)
	out := s.Y.Cols
	defer s.scratch.give(w)
	if s.W1 == nil {
		ptr := s.Graphs.Host
		first := rowAt(ptr, lo)
		end := rowAt(ptr, hi)
		h := s.inputs(w, int(ptr[first]), int(ptr[end]))
		simd.AddRowReLU(h, h, e.data(s.B1))
		for g := first; g < end; g++ {
			n := int(ptr[g+1]-ptr[g]) * out
			simd.ColSums(y[g*out:][:out], h[:n])
			h = h[n:]
		}
		return
	}
	n := hi - lo
	s.inputs(w, lo, hi)
	h := s.times(w, n, s.W1)
	simd.AddRowReLU(h, h, e.data(s.B1))
	x := s.times(w, n, s.W2)
	last := simd.AddRow[T]
	if s.ReLU {
		last = simd.AddRowReLU[T]
	}
	for i := 0; i < n; i += rowsNear {
		near := x[i*s.W2.Cols : min(n, i+rowsNear)*s.W2.Cols]
		simd.AddRow(near, near, e.data(s.B2))
		simd.MulRow(near, near, e.data(s.Scale))
		last(near, near, e.data(s.Shift))
	}
	if s.W != nil {
		x = s.times(w, n, s.W)
	}
	for i, to := range s.To[lo:hi] {
		copy(y[int(to)*out:][:out], x[i*out:])
	}
}

// inputs sets w[0] to rows lo to hi of A·X + C·E.
func (s *rowsTask[T]) inputs(w *[2][]T, lo, hi int) []T {
	e := s.e
	n := hi - lo
	in := s.X.Cols
	kinds := s.E.Rows
	w[0] = aligned(w[0], max(n, rowsBlock)*in)
	x := w[0][:n*in]
	simd.SpMM(x, in, 0, n, s.A.Ptr.Host[lo:hi+1], s.A.Col.Host, nil, e.data(s.X), 0)
	e.k.gemm(
		blas.NoTrans, blas.NoTrans, n, in, kinds, 1, e.data(s.C)[lo*kinds:], kinds, e.data(s.E), in, 1, x, in,
	)
	return x
}

// times replaces the n rows in w[0] by their products with m.
func (s *rowsTask[T]) times(w *[2][]T, n int, m *tensor.Tensor) []T {
	y := aligned(w[1], rowsBlock*m.Cols)
	s.e.k.gemm(
		blas.NoTrans, blas.NoTrans, n, m.Cols, m.Rows, 1, w[0], m.Rows, s.e.data(m), m.Cols, 0, y, m.Cols,
	)
	w[0], w[1] = y, w[0]
	return y[:n*m.Cols]
}

func (e *engine[T]) PoolRows(sum, largest, x *tensor.Tensor, rows, ptr *backend.Indices) {
	t := &e.task
	graphs := ptr.Len() - 1
	if !sum.Is(graphs, x.Cols) || !largest.Is(graphs, x.Cols) {
		tensor.Mismatch("backend: PoolRows", "want rows of x's width for each graph", sum, largest, x)
	}
	t.dst = e.data(sum)
	t.b = e.data(largest)
	t.a = e.data(x)
	t.cols = x.Cols
	t.ptr = ptr.Host
	t.col = rows.Host
	e.pool.do((*poolRowsTask[T])(t), costOf(ptr.Host), rowsPer(grain, x.Cols))
}

type poolRowsTask[T float] args[T]

func (t *poolRowsTask[T]) run(lo, hi int) {
	first := rowAt(t.ptr, lo)
	end := rowAt(t.ptr, hi)
	for g := first; g < end; g++ {
		// the rows are then near for the second pass
		simd.SpMM(t.dst, t.cols, g, g+1, t.ptr, t.col, nil, t.a, 0)
		y := t.b[g*t.cols:][:t.cols]
		clear(y)
		for k, i := range t.col[t.ptr[g]:t.ptr[g+1]] {
			if row := t.a[int(i)*t.cols:][:t.cols]; k == 0 {
				copy(y, row)
			} else {
				simd.Maximum(y, y, row)
			}
		}
	}
}
