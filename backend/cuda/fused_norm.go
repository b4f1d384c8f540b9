package cuda

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has batch norm, and bias with ReLU, as one call each. Kernels sum the rows
// of a group in chunks; all the rest is an affine map of the rows.

func (e *engine) NormOperands() (bias, weights bool) {
	return true, false
}

func (e *engine) NormForward(n *backend.Norm) {
	backend.CheckNorm(n)
	rows, cols := n.X.Rows, n.X.Cols
	groups := n.Groups.Len() - 1
	parts := chunks(rows, groups)
	part := e.Alloc(groups*parts*2, cols)
	coef := e.Alloc(2*groups, cols)
	e.tiles("segment_moments", groups*parts, cols,
		e.ptr(part), e.ptr(n.X), e.idx(n.Groups),
		intWord(groups), intWord(parts), intWord(cols))
	e.blocks("norm_coefficients", groups*ceil(cols, mergedColumns),
		e.ptr(n.Mean), e.ptr(n.Var), e.ptr(coef), e.ptr(n.BiasedMean),
		e.ptr(part), e.ptr(n.Gamma), e.ptr(n.Beta), e.ptr(n.Bias),
		e.idx(n.Groups),
		floatWord(n.Eps), intWord(groups), intWord(parts), intWord(cols))
	e.flat("norm_apply", n.Y.Len(),
		e.ptr(n.Y), e.ptr(n.X), e.ptr(coef), e.ptr(n.Mean), e.ptr(n.Beta),
		e.idx(n.Groups),
		flagWord(n.ReLU), intWord(groups), intWord(rows), intWord(cols))
	e.Free(part)
	e.Free(coef)
}

func (e *engine) NormBackward(n *backend.Norm, g *backend.NormGradients) {
	backend.CheckNorm(n)
	rows, cols := n.X.Rows, n.X.Cols
	groups := n.Groups.Len() - 1
	parts := chunks(rows, groups)
	beta := uint64(0) // no ReLU to gate by
	if n.ReLU {
		beta = e.ptr(n.Beta)
	}
	part := e.Alloc(groups*parts*2, cols)
	coef := e.Alloc(3*groups, cols)
	e.tiles("group_grad_partials", groups*parts, cols,
		e.ptr(part), e.ptr(g.DY), e.ptr(n.X), e.ptr(n.Mean), e.ptr(n.Var),
		e.ptr(n.Gamma), beta, e.idx(n.Groups),
		floatWord(n.Eps), intWord(parts), intWord(cols))
	e.merge("group_grad_coefficients", cols,
		e.ptr(coef), e.ptr(g.Gamma), e.ptr(g.Beta), e.ptr(g.Bias),
		e.ptr(part), e.ptr(n.Var), e.ptr(n.Gamma), e.idx(n.Groups),
		floatWord(n.Eps), intWord(groups), intWord(parts), intWord(cols))
	if g.DX != nil {
		e.flat("group_grad_apply", g.DX.Len(),
			e.ptr(g.DX), e.ptr(g.DY), e.ptr(n.X), e.ptr(coef), e.ptr(n.Mean),
			beta, e.idx(n.Groups),
			intWord(groups), intWord(rows), intWord(cols))
	}
	e.Free(part)
	e.Free(coef)
}

func (e *engine) BiasReLU(y, x, b *tensor.Tensor) {
	backend.CheckRow("backend: BiasReLU", y, x, b)
	e.biasReLU(y, x, b, true)
}

func (e *engine) BiasReLUBackward(dx, db, dy, y *tensor.Tensor) {
	backend.CheckSame("backend: BiasReLUBackward", dx, dy, y)
	backend.CheckColSums(db, dx)
	part := db
	parts := chunks(dx.Rows, 1)
	if parts > 1 {
		part = e.Alloc(parts, dx.Cols)
	}
	e.tiles("bias_relu_grad", parts, dx.Cols,
		e.ptr(dx), e.ptr(part), e.ptr(dy), e.ptr(y),
		intWord(dx.Rows), intWord(parts), intWord(dx.Cols))
	e.mergeChunks(db, part, 1, parts)
}

func (e *engine) Normalize(
	y, r, x *tensor.Tensor,
	floor float64,
) {
	const op = "backend: Normalize"
	backend.CheckSame(op, y, x)
	backend.CheckReduceRows(op, r, x)
	e.blocks(
		"normalize_rows",
		ceil(x.Rows, threads/warp),
		e.ptr(y),
		e.ptr(r),
		e.ptr(x),
		floatWord(floor),
		intWord(x.Rows),
		intWord(x.Cols),
	)
}

func (e *engine) NormalizeBackward(
	dx, dy, y, r *tensor.Tensor,
	floor float64,
) {
	const op = "backend: NormalizeBackward"
	backend.CheckSame(op, dx, dy, y)
	backend.CheckReduceRows(op, r, y)
	e.blocks(
		"normalize_rows_grad",
		ceil(y.Rows, threads/warp),
		e.ptr(dx),
		e.ptr(dy),
		e.ptr(y),
		e.ptr(r),
		floatWord(floor),
		intWord(y.Rows),
		intWord(y.Cols),
	)
}
