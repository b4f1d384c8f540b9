package cpu

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
	"gonum.org/v1/gonum/blas"
)

// LayerRows implements [backend.RowKeeper]: blocks of rows stay in the second-level cache.
func (e *engine[T]) LayerRows(l *backend.RowsLayer) {
	backend.CheckRowsLayer(l)
	s := &e.rows
	*s = rowsState[T]{scratch: s.scratch, k: &e.k, n: l.A.Rows, in: l.W1.Rows, hid: l.W1.Cols, kinds: l.E.Rows, relu: l.ReLU, y: e.data(l.Y), to: l.To}
	s.ptr, s.col, s.x, s.c, s.e = l.A.Ptr.Host, l.A.Col.Host, e.data(l.X), e.data(l.C), e.data(l.E)
	s.w1, s.b1 = e.data(l.W1), e.data(l.B1)
	if l.W2 != nil {
		s.out, s.w2, s.b2, s.scale, s.shift = l.W2.Cols, e.data(l.W2), e.data(l.B2), e.data(l.Scale), e.data(l.Shift)
	}
	e.pool.share((*rowsTask[T])(s), s.n, rowsBlock)
	*s = rowsState[T]{scratch: s.scratch}
}

const (
	rowsBlock = 392 // with fewer, packing the weights would take more; 28 tiles of the AVX-512 kernel
	rowsNear  = 32  // rows that stay in the first-level cache
)

type rowsState[T float] struct {
	k                              *kernels[T]
	n, in, hid, out, kinds         int
	relu                           bool
	ptr, col, to                   []int32
	x, c, e, w1, b1, w2, b2, scale []T
	shift, y                       []T
	scratch                        *freeList[[2][]T]
}

type rowsTask[T float] rowsState[T]

func (s *rowsTask[T]) run(lo, hi int) {
	w := s.scratch.take()
	n := hi - lo
	for k, width := range []int{max(s.in, s.out), s.hid} {
		w[k] = aligned(w[k], rowsBlock*width)
	}
	x, h, y := w[0][:n*s.in], w[1][:n*s.hid], w[0][:n*s.out]
	if s.w2 == nil {
		h = s.y[lo*s.hid : hi*s.hid]
	}
	simd.SpMM(x, s.in, 0, n, s.ptr[lo:hi+1], s.col, nil, s.x, 0)
	s.k.gemm(blas.NoTrans, blas.NoTrans, n, s.in, s.kinds, 1, s.c[lo*s.kinds:], s.kinds, s.e, s.in, 1, x, s.in)
	s.k.gemm(blas.NoTrans, blas.NoTrans, n, s.hid, s.in, 1, x, s.in, s.w1, s.hid, 0, h, s.hid)
	simd.AddRowReLU(h, h, s.b1)
	if s.w2 == nil {
		s.scratch.give(w)
		return
	}
	s.k.gemm(blas.NoTrans, blas.NoTrans, n, s.out, s.hid, 1, h, s.hid, s.w2, s.out, 0, y, s.out)
	last := simd.AddRow[T]
	if s.relu {
		last = simd.AddRowReLU[T]
	}
	for i := 0; i < n; i += rowsNear {
		near := y[i*s.out : min(n, i+rowsNear)*s.out]
		simd.AddRow(near, near, s.b2)
		simd.MulRow(near, near, s.scale)
		last(near, near, s.shift)
		for k := i; k < min(n, i+rowsNear); k++ {
			copy(s.y[int(s.to[lo+k])*s.out:][:s.out], y[k*s.out:])
		}
	}
	s.scratch.give(w)
}

func (e *engine[T]) PoolRows(sum, largest, x *tensor.Tensor, rows, ptr *backend.Indices) {
	t, graphs := &e.task, ptr.Len()-1
	if !sum.Is(graphs, x.Cols) || !largest.Is(graphs, x.Cols) {
		tensor.Mismatch("backend: PoolRows", "want rows of x's width for each graph", sum, largest, x)
	}
	t.dst, t.b, t.a, t.cols, t.ptr, t.col = e.data(sum), e.data(largest), e.data(x), x.Cols, ptr.Host, rows.Host
	e.pool.do((*poolRowsTask[T])(t), costOf(ptr.Host), rowsPer(grain, x.Cols))
}

type poolRowsTask[T float] args[T]

func (t *poolRowsTask[T]) run(lo, hi int) {
	first, end := rowAt(t.ptr, lo), rowAt(t.ptr, hi)
	for g := first; g < end; g++ {
		simd.SpMM(t.dst, t.cols, g, g+1, t.ptr, t.col, nil, t.a, 0) // the rows are then near for the second pass
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
