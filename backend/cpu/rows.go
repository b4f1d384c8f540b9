package cpu

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
)

// StoreRows implements [backend.RowKeeper].
func (e *engine[T]) StoreRows(x *tensor.Tensor, to []int32, from int) {
	backend.CheckBlock(x, from, 0, x, from, 0, len(to), x.Cols)
	t := &e.task
	t.dst, t.cols, t.n, t.col = e.data(x), x.Cols, from, to
	e.pool.do((*storeTask[T])(t), len(to), rowsPer(grain, x.Cols))
}

type storeTask[T float] args[T]

func (t *storeTask[T]) run(lo, hi int) {
	for k := lo; k < hi; k++ {
		if at := int(t.col[k]); at >= 0 {
			copy(t.dst[at*t.cols:][:t.cols], t.dst[(t.n+k)*t.cols:])
		}
	}
}

// PoolRows implements [backend.RowKeeper].
func (e *engine[T]) PoolRows(sum, largest, x *tensor.Tensor, rows, ptr *backend.Indices) {
	t := &e.task
	t.dst, t.b = nil, nil
	for _, each := range []struct {
		to   *[]T
		from *tensor.Tensor
	}{{&t.dst, sum}, {&t.b, largest}} {
		if each.from != nil {
			if !each.from.Is(ptr.Len()-1, x.Cols) {
				tensor.Mismatch("backend: PoolRows", "want a row of x's width for each graph", each.from, x)
			}
			*each.to = e.data(each.from)
		}
	}
	t.a, t.cols, t.ptr, t.col = e.data(x), x.Cols, ptr.Host, rows.Host
	e.pool.do((*poolRowsTask[T])(t), costOf(ptr.Host), rowsPer(grain, x.Cols))
}

type poolRowsTask[T float] args[T]

func (t *poolRowsTask[T]) run(lo, hi int) {
	first, end := rowAt(t.ptr, lo), rowAt(t.ptr, hi)
	for g := first; g < end; g++ {
		if t.dst != nil { // the rows are then near for the second pass
			simd.SpMM(t.dst, t.cols, g, g+1, t.ptr, t.col, nil, t.a, 0)
		}
		if t.b == nil {
			continue
		}
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
