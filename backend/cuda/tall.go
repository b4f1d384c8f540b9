package cuda

import "github.com/specmatch/specmatch/tensor"

// tallParts is the number of parts into which a tall product is cut, and tallTerms its fewest terms.
const (
	tallParts = 8
	tallTerms = 4096
)

// isTall reports whether the sums of aᵀ·b [m×n] have so many terms, and so few results, that
// cuBLAS keeps most of a large device idle. The gradient of a wide layer's weights is such a product.
// On tensor cores it takes a fifth of the time, and is left as it is.
func (e *engine) isTall(m, n, k int) bool {
	return !e.rounds && k >= tallTerms && m*n >= 1<<16 && m*n <= 1<<19
}

// gemmTall sets dst [m×n] to alpha·aᵀ·b with sums of k terms: the sum of products of equal parts of
// the terms, and of what these leave.
func (e *engine) gemmTall(dst *tensor.Tensor, alpha float64, a, b *tensor.Tensor) {
	m := a.Cols
	n := b.Cols
	part := a.Rows / tallParts
	whole := part * tallParts
	sums := e.Alloc(tallParts, m*n)
	left := pointer(e.ptr(a))
	right := pointer(e.ptr(b))
	e.check("Gemm", e.d.gemmParts(tallParts, m, n, part, alpha, left, right, pointer(e.ptr(sums))))
	e.launched()
	e.work.Flops += productFlops(m, n, whole)
	e.ColSums(&tensor.Tensor{Rows: 1, Cols: m * n, Buf: dst.Buf}, sums)
	e.Free(sums)
	rest := a.Rows - whole
	if rest == 0 {
		return
	}
	e.moves += (rest*(m+n) + 2*m*n) * e.bytes
	e.check("Gemm", e.d.gemm(
		true, false, m, n, rest, alpha, left+pointer(whole*m*e.bytes), m,
		right+pointer(whole*n*e.bytes), n, 1, pointer(e.address(dst)),
	))
	e.launched()
	e.work.Flops += productFlops(m, n, rest)
}
