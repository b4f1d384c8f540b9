package cuda

import "github.com/specmatch/specmatch/tensor"

const (
	// tallParts is the number of parts into which a tall product is cut.
	tallParts = 8
	// tallTerms is the smallest number of terms in the sums of a tall product.
	tallTerms = 4096
	// The results of a tall product are at least and at most so many.
	tallFewest = 1 << 16
	tallMost   = 1 << 19
)

// isTall reports whether the sums of aᵀ·b [m×n] have so many terms, and so few results, that
// cuBLAS keeps most of a large device idle. The gradient of a wide layer's weights is such a product.
// On tensor cores it takes a fifth of the time, and stays whole.
func (e *engine) isTall(m, n, k int) bool {
	results := m * n
	if e.rounds || k < tallTerms {
		return false
	}
	return results >= tallFewest && results <= tallMost
}

// gemmTall sets dst [m×n] to alpha·aᵀ·b with sums of k terms: the sum of products of equal parts of
// the terms, and of what these leave.
func (e *engine) gemmTall(dst *tensor.Tensor, alpha float64, a, b *tensor.Tensor) {
	m := a.Cols
	n := b.Cols
	terms := a.Rows / tallParts
	whole := terms * tallParts
	sums := e.Alloc(tallParts, m*n)
	addressA := pointer(e.ptr(a))
	addressB := pointer(e.ptr(b))
	err := e.d.gemmParts(
		tallParts,
		m,
		n,
		terms,
		alpha,
		addressA,
		addressB,
		pointer(e.ptr(sums)),
	)
	e.check("Gemm", err)
	e.launched()
	e.work.Flops += productFlops(m, n, whole)
	flat := &tensor.Tensor{
		Rows: 1,
		Cols: m * n,
		Buf:  dst.Buf,
	}
	e.ColSums(flat, sums)
	e.Free(sums)
	if whole == a.Rows {
		return
	}
	remainder := a.Rows - whole
	addressA += pointer(whole * m * e.bytes)
	addressB += pointer(whole * n * e.bytes)
	moved := remainder*(m+n) + 2*m*n
	e.moves += moved * e.bytes
	err = e.d.gemm(
		true,
		false,
		m,
		n,
		remainder,
		alpha,
		addressA,
		m,
		addressB,
		n,
		1,
		pointer(e.address(dst)),
	)
	e.check("Gemm", err)
	e.launched()
	e.work.Flops += productFlops(m, n, remainder)
}
