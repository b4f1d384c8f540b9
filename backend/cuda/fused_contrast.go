package cuda

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has both losses of contrastive training as one call. One product gives the
// similarities S = U·Uᵀ, and kernels with a block for each row of S do the rest. S is
// symmetric, so dU = (G + Gᵀ)·U with G = ∂L/∂S; kernel contrast_gradient writes G + Gᵀ
// row by row.

func (e *engine) ContrastTiles() bool {
	return false
}

func (e *engine) ContrastForward(c *backend.Contrast) {
	n, _ := backend.CheckContrast(c)
	m := 2 * n
	e.Gemm(c.E, false, true, 1, c.U, c.U, 0)
	// NT-Xent. The kernel also copies the two blocks of S that Match reads.
	terms := e.scratch(m, 8)
	defer e.Free(terms)
	var a1, a2 uint64
	if c.Match {
		a1 = e.ptr(c.A1)
		a2 = e.ptr(c.A2)
	}
	e.blocks("contrast_rows", m,
		e.ptr(c.E), e.ptr(c.InvZ), e.ptr(terms), a1, a2,
		floatWord(c.Temperature), intWord(n))
	e.blocks("sum_partials", 1,
		e.ptr(c.LossC), e.ptr(terms),
		floatWord(c.Scale), intWord(m))
	if !c.Match {
		return
	}
	// The Laplacian loss.
	theta := e.Alloc(1, 2)
	if n < 2 {
		e.Fill(theta, 0)
	} else {
		e.Free(e.percentile(theta, c.A1, c.A2, c.Percentile))
	}
	e.blocks("contrast_graph", m,
		e.ptr(c.A1), e.ptr(c.A2), e.ptr(c.R), e.ptr(theta),
		floatWord(c.Kappa), intWord(n))
	e.blocks("contrast_match", n,
		e.ptr(terms), e.ptr(c.W), e.ptr(c.A1), e.ptr(c.A2), e.ptr(c.R),
		intWord(n))
	e.blocks(
		"sum_partials", 1, e.ptr(c.LossG),
		e.ptr(terms), floatWord(1), intWord(n),
	)
	e.Free(theta)
}

func (e *engine) ContrastBackward(
	c *backend.Contrast, dc, dg, du *tensor.Tensor,
) {
	backend.CheckSame("backend: ContrastBackward", du, c.U)
	n, _ := backend.CheckContrast(c)
	g := e.Alloc(2*n, 2*n)
	var a1, a2, r, w uint64
	kappa := 0.0
	if c.Match {
		a1 = e.ptr(c.A1)
		a2 = e.ptr(c.A2)
		r = e.ptr(c.R)
		w = e.ptr(c.W)
		kappa = c.Kappa
	}
	e.blocks("contrast_gradient", 2*n,
		e.ptr(g), e.ptr(c.E), e.ptr(c.InvZ), a1, a2, r, w, e.ptr(dc),
		e.ptr(dg),
		floatWord(c.Scale/c.Temperature), floatWord(kappa), intWord(n))
	e.Gemm(du, false, false, 1, g, c.U, 0)
	e.Free(g)
}
