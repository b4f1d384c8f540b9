package cuda

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// splitting says which products are split.
type splitting struct {
	flops int64 // of the smallest
	width int   // of the narrowest: the harmonic mean of the numbers of rows and columns
}

// splits reports whether a product [m×n] of a and b, with sums of k terms, is split.
func (s *splitting) splits(m, n, k int, a, b *tensor.Tensor) bool {
	return s != nil && productFlops(m, n, k) >= s.flops && 2*m*n >= s.width*(m+n) &&
		max(a.Len(), b.Len()) <= math.MaxInt32/3
}

// gemmSplit is [engine.Gemm] on tensor cores, with about the errors of float32. An element x is a head of
// 11 significant bits, and a rest, which TF32 holds but for the last bit. A product needs
//
//	a·b = rest(a)·head(b) + head(a)·rest(b) + head(a)·head(b),
//
// without the product of the rests, 2⁻²² of it. The sums have three times as many terms: the operands
// of the three products lie behind one another, the small ones first. Only the last product has the
// heads that are not finite, because infinity times a rest of 0 is NaN.
//
// Float32's range has two ends that this lacks. Below 2⁻¹¹², rests are subnormal and lose bits. A finite
// product beyond the range, infinite in float32, may be NaN, since rests have a sign of their own.
func (e *engine) gemmSplit(
	dst *tensor.Tensor,
	transA, transB bool,
	alpha float64,
	a, b *tensor.Tensor,
	beta float64,
) {
	m, n, k := backend.CheckGemm(dst, transA, transB, a, b)
	x := e.splitOperand(a, transA, 0)
	y := e.splitOperand(b, !transB, 1)
	if beta != 0 {
		e.ptr(dst) // read, too
	}
	e.check("Gemm", e.d.round(true))
	e.check("Gemm", e.d.gemm(
		transA, transB, m, n, 3*k, alpha, pointer(e.ptr(x)), x.Cols,
		pointer(e.ptr(y)), y.Cols, beta, pointer(e.ptr(dst)),
	))
	e.check("Gemm", e.d.round(false))
	e.launched()
	e.work.Flops += productFlops(m, n, k)
	e.Free(x)
	e.Free(y)
}

// splitOperand returns the rest of x at place rest, 0 or 1, the finite heads at the other, and then the heads:
// under one another if stacked is set, else side by side. The caller frees it.
func (e *engine) splitOperand(x *tensor.Tensor, stacked bool, rest int) *tensor.Tensor {
	part := x.Cols
	var parts *tensor.Tensor
	if stacked {
		part = x.Len()
		parts = e.Alloc(3*x.Rows, x.Cols)
	} else {
		parts = e.Alloc(x.Rows, 3*x.Cols)
	}
	e.flat(
		"split", x.Len(), e.ptr(parts), e.ptr(x), intWord(part), intWord(parts.Cols),
		intWord(rest), intWord(x.Len()), intWord(x.Cols),
	)
	return parts
}
