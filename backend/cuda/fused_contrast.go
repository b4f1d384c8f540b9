package cuda

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file is both losses of contrastive training as one call. The
// similarities S = U·Uᵀ are one product; kernels with a block for each of its
// rows do the rest. Backward, S is symmetric, so dU = (G + Gᵀ)·U with
// G = ∂L/∂S, and G + Gᵀ is written down row by row (see contrast_gradient).

func (e *engine) ContrastTiles() bool { return false }

func (e *engine) ContrastForward(c *backend.Contrast) {
	n, _ := backend.CheckContrast(c)
	m := 2 * n
	e.Gemm(c.E, false, true, 1, c.U, c.U, 0)
	terms := e.scratch(m, 8)
	defer e.Free(terms)
	if !c.Match {
		e.blocks("contrast_rows", m, e.ptr(c.E), e.ptr(c.InvZ), e.ptr(terms), 0, 0, f(c.Temperature), i(n))
		e.blocks("sum_partials", 1, e.ptr(c.LossC), e.ptr(terms), f(c.Scale), i(m))
		return
	}
	e.blocks("contrast_rows", m, e.ptr(c.E), e.ptr(c.InvZ), e.ptr(terms), e.ptr(c.A1), e.ptr(c.A2), f(c.Temperature), i(n))
	e.blocks("sum_partials", 1, e.ptr(c.LossC), e.ptr(terms), f(c.Scale), i(m))
	theta := e.Alloc(1, 2)
	if n < 2 {
		e.Fill(theta, 0)
	} else {
		e.Free(e.percentile(theta, c.A1, c.A2, c.Percentile))
	}
	e.blocks("contrast_graph", m, e.ptr(c.A1), e.ptr(c.A2), e.ptr(c.R), e.ptr(theta), f(c.Kappa), i(n))
	e.blocks("contrast_match", n, e.ptr(terms), e.ptr(c.W), e.ptr(c.A1), e.ptr(c.A2), e.ptr(c.R), i(n))
	e.blocks("sum_partials", 1, e.ptr(c.LossG), e.ptr(terms), f(1), i(n))
	e.Free(theta)
}

func (e *engine) ContrastBackward(c *backend.Contrast, dc, dg, du *tensor.Tensor) {
	backend.CheckSame("backend: ContrastBackward", du, c.U)
	n, _ := backend.CheckContrast(c)
	g := e.Alloc(2*n, 2*n)
	var a1, a2, r, w uint64
	alpha := 0.0
	if c.Match {
		a1, a2, r, w = e.ptr(c.A1), e.ptr(c.A2), e.ptr(c.R), e.ptr(c.W)
		alpha = c.Kappa
	}
	e.blocks("contrast_gradient", 2*n, e.ptr(g), e.ptr(c.E), e.ptr(c.InvZ), a1, a2, r, w, e.ptr(dc), e.ptr(dg),
		f(c.Scale/c.Temperature), f(alpha), i(n))
	e.Gemm(du, false, false, 1, g, c.U, 0)
	e.Free(g)
}
