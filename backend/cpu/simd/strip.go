package simd

import (
	"fmt"
	"sync"
	"unsafe"
)

// stripArgs is the argument of a strip kernel, which walks down the rows of a
// strip of columns. Strides are in bytes.
type stripArgs struct {
	dst           unsafe.Pointer
	x, y          unsafe.Pointer
	ldd, ldx, ldy uintptr
	ptr, adj, val unsafe.Pointer // of a sparse matrix; ptr starts at the first row
	rows          int
	flag          int            // column sums: begin with dst, not 0; SpMM: add self·y
	mask          uint64         // lanes of the last vector, for AVX-512
	maskVec       unsafe.Pointer // the same, for AVX2
	self          float32
	part          [2]int32 // for ptr, if it is a part of one row
}

var stripPool = sync.Pool{New: func() any {
	return new(stripArgs)
}}

// The families of strip kernels.
const (
	stripColSums = iota
	stripColDots
	stripColDevs
	stripSpMM
	stripSpMMVal
	numStrips
)

type stripSet struct {
	lanes int
	kern  [numStrips][2][]func(*stripArgs) // by family, whole or partial, and vectors-1
}

// run calls the kernels of a family for all strips of cols columns. The
// pointers of p are those of column 0; those of y move along with the others.
func (s *stripSet) run(family int, p *stripArgs, cols int) {
	table := &s.kern[family]
	vectors := (cols + s.lanes - 1) / s.lanes
	strips := (vectors + len(table[0]) - 1) / len(table[0])
	// Pointers are set together: one check for a write barrier.
	dst, x, y := p.dst, p.x, p.y
	for i := range strips {
		lo, hi := i*vectors/strips, (i+1)*vectors/strips
		off := uintptr(lo * s.lanes * 4)
		p.dst, p.x = unsafe.Add(dst, off), unsafe.Add(x, off)
		if y != nil {
			p.y = unsafe.Add(y, off)
		}
		part := 0
		if w := cols - (hi-1)*s.lanes; w < s.lanes {
			part = 1
			p.mask = 1<<w - 1
			p.maskVec = unsafe.Add(unsafe.Pointer(&maskTable), 32-4*min(w, 8))
		}
		table[part][hi-lo-1](p)
	}
	p.dst, p.x, p.y = dst, x, y
}

// columns runs a column reduction over all rows of x, in calls that are short
// enough. ldy is 0 if y is one row.
func columns[T Float](family int, dst, x, y []T, rows, ldy int) {
	cols := len(dst)
	p := stripPool.Get().(*stripArgs)
	p.flag = 0
	p.dst = unsafe.Pointer(&dst[0])
	p.ldx = uintptr(4 * cols)
	p.ldy = uintptr(4 * ldy)
	step := rowBlock(cols)
	set := strips()
	for i := 0; i < rows; i += step {
		p.x = unsafe.Pointer(&x[i*cols])
		p.y = nil
		if y != nil {
			p.y = unsafe.Pointer(&y[i*ldy])
		}
		p.rows = min(step, rows-i)
		set.run(family, p, cols)
		p.flag = 1
	}
	p.dst = nil
	p.x = nil
	p.y = nil
	stripPool.Put(p)
}

// ColSums sets dst_j = Σ_i x_ij for a matrix of len(dst) columns: one chain of
// additions down each column, from 0. It panics unless x is whole rows.
func ColSums[T Float](dst, x []T) {
	rows := rowsOf("ColSums", len(x), len(dst))
	if fast[T]() && rows > 0 {
		columns(stripColSums, dst, x, nil, rows, 0)
		return
	}
	clear(dst)
	for i := range rows {
		for j, v := range x[i*len(dst):][:len(dst)] {
			dst[j] += v
		}
	}
}

// ColDots sets dst_j = Σ_i x_ij·y_ij for matrices of len(dst) columns, in the
// order of [ColSums]. It panics unless x and y are equally long and whole rows.
func ColDots[T Float](dst, x, y []T) {
	if len(x) != len(y) {
		badLength("ColDots", "x and y equal", len(x), len(y))
	}
	rows := rowsOf("ColDots", len(x), len(dst))
	if fast[T]() && rows > 0 {
		columns(stripColDots, dst, x, y, rows, len(dst))
		return
	}
	clear(dst)
	for i := range rows {
		a := x[i*len(dst):][:len(dst)]
		b := y[i*len(dst):][:len(dst)]
		for j := range dst {
			dst[j] += a[j] * b[j]
		}
	}
}

// ColSquares sets dst_j = Σ_i (x_ij-mean_j)² for a matrix of len(dst) columns,
// in the order of [ColSums]. It panics unless x is whole rows and mean is as
// long as dst.
func ColSquares[T Float](dst, x, mean []T) {
	if len(mean) != len(dst) {
		badLength("ColSquares", "dst and mean equal", len(dst), len(mean))
	}
	rows := rowsOf("ColSquares", len(x), len(dst))
	if fast[T]() && rows > 0 {
		columns(stripColDevs, dst, x, mean, rows, 0)
		return
	}
	clear(dst)
	for i := range rows {
		for j, v := range x[i*len(dst):][:len(dst)] {
			d := v - mean[j]
			dst[j] += d * d
		}
	}
}

// checkIndices panics unless 0 ≤ idx_i < n for all i.
func checkIndices(op string, idx []int32, n int) {
	for i, v := range idx {
		if uint64(v) >= uint64(n) { // a negative index is a large number
			panic(fmt.Sprintf("simd: %s: index %d is %d, want 0 to %d",
				op, i, v, n-1))
		}
	}
}

// checkRising panics unless every entry of ptr lies between its first and its
// last entry, and these lie between 0 and n.
func checkRising(op string, ptr []int32, n int) {
	lo := ptr[0]
	hi := ptr[len(ptr)-1]
	if lo < 0 || hi < lo || int(hi) > n {
		panic(fmt.Sprintf(
			"simd: %s: ptr runs from %d to %d, want 0 to at most %d",
			op, lo, hi, n,
		))
	}
	for i, v := range ptr {
		if v < lo || v > hi {
			panic(fmt.Sprintf("simd: %s: ptr[%d] is %d, outside %d to %d",
				op, i, v, lo, hi))
		}
	}
}

// SpMM computes rows lo..hi-1 of dst = self·x + A·x for a sparse A in compressed
// rows and matrices of cols columns:
//
//	dst_i = self·x_i + Σ_{k=ptr[i]}^{ptr[i+1]-1} val_k·x_adj[k]
//
// A nil val stands for ones. With self = 0 the row x_i is not read and need not
// exist. The sum runs in the order written. Each term is one fused multiply-add, or
// one addition with a nil val. The result does not depend on the range of rows. dst is
// the whole matrix, but only rows lo..hi-1 are written; it must not overlap x.
//
// SpMM panics if dst or x is not whole rows, if a row is missing, if ptr or adj
// point outside, or if val is neither nil nor as long as adj.
func SpMM[T Float](
	dst []T, cols, lo, hi int, ptr, adj []int32, val []T, x []T, self T,
) {
	rows := rowsOf("SpMM", len(dst), cols)
	n := rowsOf("SpMM", len(x), cols)
	outside := lo < 0 || hi < lo || hi > rows
	if outside || hi >= len(ptr) && hi > lo || self != 0 && hi > n {
		panic(fmt.Sprintf(
			"simd: SpMM: rows %d to %d: dst has %d rows, x %d, ptr %d entries",
			lo,
			hi,
			rows,
			n,
			len(ptr),
		))
	}
	if val != nil && len(val) != len(adj) {
		badLength("SpMM", "val and adj equal", len(val), len(adj))
	}
	if lo == hi || cols == 0 {
		return
	}
	checkRising("SpMM", ptr[lo:hi+1], len(adj))
	checkIndices("SpMM", adj[ptr[lo]:ptr[hi]], n)
	if fast[T]() {
		spmm(dst, cols, lo, hi, ptr, adj, val, x, self)
		return
	}
	for i := lo; i < hi; i++ {
		d := dst[i*cols:][:cols]
		if self == 0 {
			clear(d)
		} else {
			for j, v := range x[i*cols:][:cols] {
				d[j] = self * v
			}
		}
		for k := ptr[i]; k < ptr[i+1]; k++ {
			row := x[int(adj[k])*cols:][:cols]
			if val == nil {
				for j := range d {
					d[j] += row[j]
				}
				continue
			}
			w := val[k]
			for j := range d {
				d[j] += w * row[j]
			}
		}
	}
}

// spmm is SpMM in assembly, for checked arguments, in calls that are short enough.
func spmm[T Float](
	dst []T, cols, lo, hi int, ptr, adj []int32, val []T, x []T, self T,
) {
	p := stripPool.Get().(*stripArgs)
	family := stripSpMM
	p.ldd = uintptr(4 * cols)
	p.ldx = uintptr(4 * cols)
	if len(x) > 0 {
		p.x = unsafe.Pointer(&x[0])
	} else {
		p.x = unsafe.Pointer(&dst[0]) // never read: no index is valid
	}
	p.adj = unsafe.Pointer(unsafe.SliceData(adj))
	if val != nil {
		family = stripSpMMVal
		p.val = unsafe.Pointer(unsafe.SliceData(val))
	}
	p.self = float32(self)
	p.flag = 0
	p.y = nil
	set := strips()
	limit := int32(max(1, 4*chunk/cols)) // entries of A for one call
	for i := lo; i < hi; {
		end := min(hi, i+rowBlock(cols))
		for end > i+1 && ptr[end]-ptr[i] > limit {
			end = i + (end-i)/2
		}
		p.rows = end - i
		p.dst = unsafe.Pointer(&dst[i*cols])
		if self != 0 {
			p.flag = 1
			p.y = unsafe.Pointer(&x[i*cols])
		}
		if ptr[end]-ptr[i] <= limit {
			p.ptr = unsafe.Pointer(&ptr[i])
			set.run(family, p, cols)
		} else { // one long row in parts: each continues from the sums in dst
			p.ptr = unsafe.Pointer(&p.part)
			for k := ptr[i]; k < ptr[end]; k = p.part[1] {
				p.part = [2]int32{k, k + min(limit, ptr[end]-k)}
				set.run(family, p, cols)
				p.flag = 1
				p.self = 1
				p.y = p.dst
			}
			p.flag = 0
			p.self = float32(self)
			p.y = nil
		}
		i = end
	}
	*p = stripArgs{}
	stripPool.Put(p)
}

// GatherRows sets row k of dst to row idx[k] of src, both cols wide. It panics
// unless dst has len(idx) rows, src is whole rows, and src has every row of idx.
func GatherRows[T Float](dst, src []T, cols int, idx []int32) {
	if len(dst) != len(idx)*cols {
		badLength(
			"GatherRows", "dst of len(idx) rows", len(dst), len(idx), cols,
		)
	}
	checkIndices("GatherRows", idx, rowsOf("GatherRows", len(src), cols))
	for k, i := range idx {
		copy(dst[k*cols:][:cols], src[int(i)*cols:][:cols])
	}
}
