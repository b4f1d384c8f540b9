package simd

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// BLAS is gonum's pure Go implementation with Sgemm and Dgemm replaced by the
// kernels of this package. It satisfies every interface that
// [gonum.Implementation] does, [blas.Float32Level3] and [blas.Float64Level3]
// among them. The zero value is ready; it is safe for concurrent use.
type BLAS struct{ gonum.Implementation }

var (
	_ blas.Float32Level3 = BLAS{}
	_ blas.Float64Level3 = BLAS{}
)

// Sgemm computes one of the products
//
//	C = alpha·A·B   + beta·C
//	C = alpha·Aᵀ·B  + beta·C
//	C = alpha·A·Bᵀ  + beta·C
//	C = alpha·Aᵀ·Bᵀ + beta·C
//
// where op(A) is m×k, op(B) is k×n and C is m×n, all row-major with leading
// dimensions lda, ldb, ldc. It runs in the calling goroutine and allocates
// nothing once its buffers have grown to the shapes in use.
//
// C must not overlap A or B. With beta = 0 C is not read: NaN in it disappears.
// With alpha = 0 or k = 0, A and B are not read and C = beta·C. Otherwise no
// term is skipped: NaN and Inf in A and B reach C by the rules of IEEE 754 for
// all transposes, 0·NaN and 0·Inf included. (gonum's own product drops terms
// with a zero of A, except for A·Bᵀ.)
//
// Every element of C depends only on its row of op(A), its column of op(B), its
// old value, alpha and beta, and on whether n exceeds 64; so computing C in blocks of rows
// gives the same bits as in one call, and so do blocks of columns on the same side of 64. The sum over k runs in order in blocks of
// at most 704, or 320 if n ≤ 64, of equal length except the last; each block is a chain of fused
// multiply-adds from zero, times alpha, added to C. The vector instruction sets
// agree bit for bit; plain Go rounds the products.
//
// Sgemm panics, with the same words as gonum, if tA or tB is not a transpose, if a
// dimension is negative, if a leading dimension is less than a row, or if a
// slice is too short.
func (BLAS) Sgemm(
	tA, tB blas.Transpose,
	m, n, k int,
	alpha float32,
	a []float32,
	lda int,
	b []float32,
	ldb int,
	beta float32, c []float32, ldc int,
) {
	if !checkGemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) {
		return
	}
	ws := pool32.Get().(*workspace[float32])
	gemm(
		ws, tiles32(), tA != blas.NoTrans, tB != blas.NoTrans,
		m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
	)
	pool32.Put(ws)
}

// Dgemm is [BLAS.Sgemm] for float64.
func (BLAS) Dgemm(
	tA, tB blas.Transpose,
	m, n, k int,
	alpha float64,
	a []float64,
	lda int,
	b []float64,
	ldb int,
	beta float64, c []float64, ldc int,
) {
	if !checkGemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) {
		return
	}
	ws := pool64.Get().(*workspace[float64])
	gemm(
		ws, tiles64(), tA != blas.NoTrans, tB != blas.NoTrans,
		m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
	)
	pool64.Put(ws)
}

// gonum's words, so that callers and tests cannot tell the two apart.
const (
	badTranspose = "blas: illegal transpose"
	mLT0         = "blas: m < 0"
	nLT0         = "blas: n < 0"
	kLT0         = "blas: k < 0"
	badLdA       = "blas: bad leading dimension of A"
	badLdB       = "blas: bad leading dimension of B"
	badLdC       = "blas: bad leading dimension of C"
	shortA       = "blas: insufficient length of a"
	shortB       = "blas: insufficient length of b"
	shortC       = "blas: insufficient length of c"
)

// checkGemm panics on bad arguments, does what needs no product, and reports
// whether there is a product to compute.
func checkGemm[T Float](
	tA, tB blas.Transpose,
	m, n, k int,
	alpha T,
	a []T,
	lda int,
	b []T,
	ldb int,
	beta T,
	c []T,
	ldc int,
) bool {
	rowsA, colsA := storedShape(tA, m, k)
	rowsB, colsB := storedShape(tB, k, n)
	switch {
	case m < 0:
		panic(mLT0)
	case n < 0:
		panic(nLT0)
	case k < 0:
		panic(kLT0)
	case lda < max(1, colsA):
		panic(badLdA)
	case ldb < max(1, colsB):
		panic(badLdB)
	case ldc < max(1, n):
		panic(badLdC)
	case m == 0 || n == 0:
		return false
	case len(a) < (rowsA-1)*lda+colsA:
		panic(shortA)
	case len(b) < (rowsB-1)*ldb+colsB:
		panic(shortB)
	case len(c) < (m-1)*ldc+n:
		panic(shortC)
	}
	if alpha != 0 && k != 0 {
		return true
	}
	if beta == 1 {
		return false
	}
	for i := range m {
		row := c[i*ldc:][:n]
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
	return false
}

// storedShape returns the shape that an operand of rows×cols has in memory.
func storedShape(
	t blas.Transpose, rows, cols int,
) (storedRows, storedCols int) {
	switch t {
	case blas.NoTrans:
		return rows, cols
	case blas.Trans, blas.ConjTrans:
		return cols, rows
	}
	panic(badTranspose)
}
