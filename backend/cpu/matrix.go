package cpu

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
	"gonum.org/v1/gonum/blas"
)

func (e *engine[T]) CopyBlock(
	dst *tensor.Tensor,
	di, dj int,
	src *tensor.Tensor,
	si, sj, rows, cols int,
) {
	backend.CheckBlock(dst, di, dj, src, si, sj, rows, cols)
	if rows == 0 || cols == 0 {
		return
	}
	t := &e.task
	t.dst = e.data(dst)[di*dst.Cols+dj:]
	t.a = e.data(src)[si*src.Cols+sj:]
	t.rows = rows
	t.cols = cols
	t.n = dst.Cols
	t.inner = src.Cols
	e.pool.do((*copyTask[T])(t), rows, rowsPer(2*grain, cols))
}

type copyTask[T float] args[T]

func (t *copyTask[T]) run(lo, hi int) {
	if t.n == t.cols && t.inner == t.cols { // whole rows
		copy(t.dst[lo*t.cols:hi*t.cols], t.a[lo*t.cols:])
		return
	}
	for i := lo; i < hi; i++ {
		copy(t.dst[i*t.n:i*t.n+t.cols], t.a[i*t.inner:])
	}
}

func (e *engine[T]) Transpose(dst, src *tensor.Tensor) {
	backend.CheckTranspose(dst, src)
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(src)
	t.rows = src.Rows
	t.cols = src.Cols
	if src.Rows == 1 || src.Cols == 1 {
		copy(t.dst, t.a)
		return
	}
	// A chunk is a band of columns of src, in whole cache lines.
	band := (rowsPer(grain, src.Rows) + 15) / 16 * 16
	e.pool.do((*transposeTask[T])(t), src.Cols, band)
}

type transposeTask[T float] args[T]

func (t *transposeTask[T]) run(lo, hi int) {
	const block = 16 // the lines of two blocks fit the first-level cache
	for j0 := lo; j0 < hi; j0 += block {
		j1 := min(j0+block, hi)
		for i0 := 0; i0 < t.rows; i0 += block {
			i1 := min(i0+block, t.rows)
			for j := j0; j < j1; j++ {
				d := t.dst[j*t.rows+i0 : j*t.rows+i1]
				s := t.a[i0*t.cols+j:]
				for i := range d {
					d[i] = s[i*t.cols]
				}
			}
		}
	}
}

func (e *engine[T]) GatherRows(
	dst, src *tensor.Tensor, idx *backend.Indices,
) {
	backend.CheckGather(dst, src, idx)
	if dst.Len() == 0 {
		return
	}
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(src)
	t.col = idx.Host
	t.cols = src.Cols
	e.pool.do((*gatherTask[T])(t), dst.Rows, rowsPer(grain, src.Cols))
}

type gatherTask[T float] args[T]

func (t *gatherTask[T]) run(lo, hi int) {
	simd.GatherRows(t.dst[lo*t.cols:hi*t.cols], t.a, t.cols, t.col[lo:hi])
}

// A product is cut along the rows of dst into a few blocks for every worker.
// This is the only cut that depends on the number of workers; results do not, since
// a kernel computes every row by itself. Every block packs B again, so a block has a
// minimum number of rows, lower where workers would be idle. It also has a minimum
// number of multiply-adds, to be worth waking a worker.
const (
	gemmBlocks  = 4 // per worker
	gemmRows    = 256
	gemmMinRows = 64 // where workers would be idle
	gemmWork    = 1 << 20
)

// rowBlocks returns the number of blocks into which to cut the m rows of a product,
// each of n·k multiply-adds. The product is cut into parts already.
func (p *pool) rowBlocks(m, n, k, parts int) int {
	workers := p.helpers + 1
	perPart := (workers + parts - 1) / parts
	if perPart == 1 && (parts > 1 || workers == 1) {
		return 1
	}
	small := min(perPart, m/gemmMinRows)
	large := min(gemmBlocks*perPart, m/gemmRows)
	return max(1, min(m*n*k/gemmWork, max(small, large)))
}

// A product with a long sum, such as the gradient of a weight, XᵀdY, is cut
// along the sum instead: splitParts partial products go to scratch memory and
// are added in order.
const (
	splitParts = 8
	splitTerms = 4096    // least length of the sum
	splitSize  = 1 << 18 // largest size of the result
)

func (e *engine[T]) Gemm(
	dst *tensor.Tensor,
	transA, transB bool,
	alpha float64,
	a, b *tensor.Tensor,
	beta float64,
) {
	m, n, k := backend.CheckGemm(dst, transA, transB, a, b)
	switch {
	case m == 0 || n == 0:
		return
	case k == 0 && beta == 0:
		e.Fill(dst, 0)
		return
	case k == 0:
		e.Affine(dst, beta, dst, 0)
		return
	}
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(a)
	t.b = e.data(b)
	t.rows = m
	t.cols = n
	t.inner = k
	t.alpha = T(alpha)
	t.beta = T(beta)
	t.transA = transA
	t.transB = transB
	if k >= splitTerms && m*n <= splitSize {
		e.splitGemm(t)
		return
	}
	blocks := e.pool.rowBlocks(m, n, k, 1)
	e.pool.share((*gemmTask[T])(t), m, (m+blocks-1)/blocks)
}

// splitGemm computes the product of t in parts along the sum.
func (e *engine[T]) splitGemm(t *args[T]) {
	m, n, k := t.rows, t.cols, t.inner
	t.n = (k + splitParts - 1) / splitParts
	t.c = grow(e.partial, splitParts*m*n)
	e.partial = t.c
	parts := (k + t.n - 1) / t.n
	blocks := e.pool.rowBlocks(m, n, t.n, parts)
	t.block = (m + blocks - 1) / blocks
	blocks = (m + t.block - 1) / t.block
	e.pool.share((*splitGemmTask[T])(t), parts*blocks, 1)
	e.pool.do((*mergeTask[T])(t), m*n, grain/splitParts)
}

// layout returns the leading dimensions of a and b, and the BLAS flags.
func (t *gemmTask[T]) layout() (tA, tB blas.Transpose, lda, ldb int) {
	tA = blas.NoTrans
	tB = blas.NoTrans
	lda = t.inner
	ldb = t.cols
	if t.transA {
		tA = blas.Trans
		lda = t.rows
	}
	if t.transB {
		tB = blas.Trans
		ldb = t.inner
	}
	return tA, tB, lda, ldb
}

// offset returns where row i of a matrix starts, or column i if row is false.
func offset(i, stride int, row bool) int {
	if row {
		return i * stride
	}
	return i
}

type gemmTask[T float] args[T]

func (t *gemmTask[T]) run(lo, hi int) {
	tA, tB, lda, ldb := t.layout()
	a := t.a[offset(lo, lda, !t.transA):]
	c := t.dst[lo*t.cols:]
	t.k.gemm(
		tA, tB, hi-lo, t.cols, t.inner, t.alpha,
		a, lda, t.b, ldb, t.beta, c, t.cols,
	)
}

type splitGemmTask[T float] args[T]

// run computes blocks of rows of partial products, one part after the other.
func (t *splitGemmTask[T]) run(lo, hi int) {
	tA, tB, lda, ldb := (*gemmTask[T])(t).layout()
	blocks := (t.rows + t.block - 1) / t.block
	for x := lo; x < hi; x++ {
		part := x / blocks
		term := part * t.n
		terms := min(t.n, t.inner-term)
		row := x % blocks * t.block
		rows := min(t.block, t.rows-row)
		a := t.a[offset(term, lda, t.transA)+offset(row, lda, !t.transA):]
		b := t.b[offset(term, ldb, !t.transB):]
		c := t.c[(part*t.rows+row)*t.cols:]
		t.k.gemm(
			tA, tB, rows, t.cols, terms, t.alpha,
			a, lda, b, ldb, 0, c, t.cols,
		)
	}
}

// mergeTask sets dst = beta·dst + the sum of the partial products.
type mergeTask[T float] args[T]

func (t *mergeTask[T]) run(lo, hi int) {
	size := t.rows * t.cols
	dst := t.dst[lo:hi]
	if t.beta == 0 {
		copy(dst, t.c[lo:hi])
	} else {
		simd.Axpby(dst, t.beta, dst, 1, t.c[lo:hi])
	}
	parts := (t.inner + t.n - 1) / t.n
	for i := 1; i < parts; i++ {
		product := rowOf(t.c, i, size)
		simd.Add(dst, dst, product[lo:hi])
	}
}

func (e *engine[T]) SpMM(
	dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64,
) {
	backend.CheckSpMM(dst, a, x, self)
	if dst.Len() == 0 {
		return
	}
	t := &e.task
	t.dst = e.data(dst)
	t.a = e.data(x)
	t.b = e.optional(a.Val)
	t.ptr = a.Ptr.Host
	t.col = a.Col.Host
	t.cols = x.Cols
	t.alpha = T(self)
	e.pool.do((*spmmTask[T])(t), costOf(t.ptr), rowsPer(grain, x.Cols))
}

type spmmTask[T float] args[T]

func (t *spmmTask[T]) run(lo, hi int) {
	simd.SpMM(
		t.dst, t.cols, rowAt(t.ptr, lo), rowAt(t.ptr, hi),
		t.ptr, t.col, t.b, t.a, t.alpha,
	)
}
