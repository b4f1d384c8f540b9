package cpu

import (
	"sort"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
)

func (e *engine[T]) ReduceRows(
	dst *tensor.Tensor, op backend.RowOp, a *tensor.Tensor,
) {
	backend.CheckReduceRows("backend: ReduceRows", dst, a)
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(a)
	t.reduce = e.k.reduce[op]
	t.cols = a.Cols
	g := grain
	if op == backend.RowLogSumExp {
		g = costly
	}
	e.pool.do((*reduceRowsTask[T])(t), a.Rows, rowsPer(g, a.Cols))
}

type reduceRowsTask[T float] args[T]

func (t *reduceRowsTask[T]) run(lo, hi int) {
	for i := lo; i < hi; i++ {
		t.dst[i] = t.reduce(rowOf(t.a, i, t.cols))
	}
}

func (e *engine[T]) ColSums(dst, a *tensor.Tensor) {
	backend.CheckColSums(dst, a)
	e.sumRows(e.data(dst), e.data(a), a.Rows)
}

// sumRows sets dst [1×F] to the sum of the rows of x [N×F]: it computes one partial sum
// for every chunk of rows, then adds them.
func (e *engine[T]) sumRows(dst, x []T, rows int) {
	cols := len(dst)
	per := rowsPer(grain, cols)
	if rows <= per {
		simd.ColSums(dst, x[:rows*cols])
		return
	}
	chunks := (rows + per - 1) / per
	e.partial = grow(e.partial, chunks*cols)
	t := &e.task
	t.dst = e.partial
	t.a = x
	t.cols = cols
	t.n = per
	e.pool.do((*partialRowsTask[T])(t), rows, per)
	simd.ColSums(dst, e.partial)
}

type partialRowsTask[T float] args[T]

func (t *partialRowsTask[T]) run(lo, hi int) {
	simd.ColSums(rowOf(t.dst, lo/t.n, t.cols), t.a[lo*t.cols:hi*t.cols])
}

func (e *engine[T]) Dot(dst, a, b *tensor.Tensor) {
	backend.CheckDot(dst, a, b)
	t := &e.task
	t.a = e.data(a)
	t.b = e.optional(b)
	e.partial = grow(e.partial, (len(t.a)+grain-1)/grain)
	t.dst = e.partial
	e.pool.do((*dotTask[T])(t), len(t.a), grain)
	var s T
	for _, v := range e.partial {
		s += v
	}
	e.data(dst)[0] = s
}

type dotTask[T float] args[T]

func (t *dotTask[T]) run(lo, hi int) {
	if t.b == nil {
		t.dst[lo/grain] = simd.Sum(t.a[lo:hi])
	} else {
		t.dst[lo/grain] = simd.Dot(t.a[lo:hi], t.b[lo:hi])
	}
}

// longSegment is the number of elements from which a segment is itself summed
// in chunks.
const longSegment = 4 * grain

// SegmentSum deals whole segments to the workers, balanced by their rows, and
// then sums segments of more than longSegment elements one by one, each in
// parallel.
func (e *engine[T]) SegmentSum(
	dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor,
) {
	backend.CheckSegments("backend: SegmentSum", dst, ptr, x)
	cols := dst.Cols
	if cols == 0 {
		return
	}
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(x)
	t.ptr = ptr.Host
	t.cols = cols
	t.n = longSegment / cols
	e.pool.do((*segmentSumTask[T])(t), costOf(ptr.Host), rowsPer(grain, cols))
	sums := t.dst // sumRows uses t again
	a := t.a
	longest := t.n
	for g := range dst.Rows {
		lo, hi := int(ptr.Host[g]), int(ptr.Host[g+1])
		if hi-lo > longest {
			e.sumRows(rowOf(sums, g, cols), a[lo*cols:], hi-lo)
		}
	}
}

type segmentSumTask[T float] args[T]

func (t *segmentSumTask[T]) run(lo, hi int) {
	end := rowAt(t.ptr, hi)
	for g := rowAt(t.ptr, lo); g < end; g++ {
		i, j := int(t.ptr[g]), int(t.ptr[g+1])
		if j-i <= t.n {
			simd.ColSums(rowOf(t.dst, g, t.cols), t.a[i*t.cols:j*t.cols])
		}
	}
}

// costOf returns the work in the segments of ptr: one unit for every entry and one for
// every segment. Together with rowAt it cuts segments into chunks of equal work.
func costOf(ptr []int32) int {
	return int(ptr[len(ptr)-1]) + len(ptr) - 1
}

// rowAt returns the first segment that starts at or after the given cost.
func rowAt(ptr []int32, cost int) int {
	lo := 0
	hi := len(ptr) - 1
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if int(ptr[mid])+mid < cost {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (e *engine[T]) SegmentExpand(
	dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor,
) {
	backend.CheckSegments("backend: SegmentExpand", x, ptr, dst)
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(x)
	t.ptr = ptr.Host
	t.cols = dst.Cols
	e.pool.do((*segmentExpandTask[T])(t), dst.Rows, rowsPer(grain, dst.Cols))
}

type segmentExpandTask[T float] args[T]

func (t *segmentExpandTask[T]) run(lo, hi int) {
	// The segment of row lo is the first that ends after it.
	g := sort.Search(len(t.ptr)-1, func(g int) bool {
		return int(t.ptr[g+1]) > lo
	})
	for i := lo; i < hi; g++ {
		if g == len(t.ptr)-1 { // padding
			clear(t.dst[i*t.cols : hi*t.cols])
			return
		}
		end := max(i, min(hi, int(t.ptr[g+1])))
		repeat(t.dst[i*t.cols:end*t.cols], rowOf(t.a, g, t.cols))
		i = end
	}
}
