package autodiff

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// ConcatCols returns the matrices [N×F₁], [N×F₂], … side by side, [N×ΣF]. VJP:
// each input gets its columns of dy. It panics without inputs.
func ConcatCols(vs ...*Var) *Var {
	cols := 0
	for _, v := range vs {
		if v.Rows() != vs[0].Rows() {
			mismatch(
				"ConcatCols",
				fmt.Sprintf("%v beside %v", vs[0].value, v.value),
				"rows must agree",
			)
		}
		cols += v.Cols()
	}
	return concat("ConcatCols", vs, vs[0].Rows(), cols, 0, 1)
}

// ConcatRows returns the matrices [N₁×F], [N₂×F], … under one another, [ΣN×F].
// VJP: each input gets its rows of dy. It panics without inputs.
func ConcatRows(vs ...*Var) *Var {
	rows := 0
	for _, v := range vs {
		if v.Cols() != vs[0].Cols() {
			mismatch(
				"ConcatRows",
				fmt.Sprintf("%v above %v", vs[0].value, v.value),
				"columns must agree",
			)
		}
		rows += v.Rows()
	}
	return concat("ConcatRows", vs, rows, vs[0].Cols(), 1, 0)
}

func concat(
	name string, vs []*Var, rows, cols, stepRows, stepCols int,
) *Var {
	t := vs[0].tape
	be := t.be
	out := t.Alloc(rows, cols)
	var i, j int
	blocks := make([]backend.Block, len(vs))
	for k, v := range vs {
		blocks[k] = backend.Block{
			Dst: out, DI: i, DJ: j, Src: v.value, Rows: v.Rows(), Cols: v.Cols(),
		}
		i += stepRows * v.Rows()
		j += stepCols * v.Cols()
	}
	backend.CopyBlocks(be, blocks)
	return t.Record(name, out, func(dy *tensor.Tensor) {
		var needy []*Var
		var back []backend.Block
		for k, v := range vs {
			if v.needs {
				needy = append(needy, v)
				b := blocks[k]
				dv := be.Alloc(b.Rows, b.Cols)
				back = append(back, backend.Block{
					Dst: dv, Src: dy, SI: b.DI, SJ: b.DJ, Rows: b.Rows, Cols: b.Cols,
				})
			}
		}
		backend.CopyBlocks(be, back)
		for k, v := range needy {
			v.AddGrad(back[k].Dst)
		}
	}, vs...)
}

// SliceRows returns a copy [hi-lo × F] of the rows lo ≤ i < hi of x [N×F]. VJP: dx
// is dy in those rows and 0 elsewhere. It panics unless 0 ≤ lo ≤ hi ≤ N.
func (x *Var) SliceRows(lo, hi int) *Var {
	return x.slice("SliceRows", lo, 0, hi-lo, x.Cols())
}

// SliceCols returns a copy [N × hi-lo] of the columns lo ≤ j < hi of x [N×F]. VJP:
// dx is dy in those columns and 0 elsewhere. It panics unless 0 ≤ lo ≤ hi ≤ F.
func (x *Var) SliceCols(lo, hi int) *Var {
	return x.slice("SliceCols", 0, lo, x.Rows(), hi-lo)
}

func (x *Var) slice(name string, i, j, rows, cols int) *Var {
	if min(i, j, rows, cols) < 0 || i+rows > x.Rows() ||
		j+cols > x.Cols() {
		mismatch(
			name,
			x.value.String(),
			fmt.Sprintf("the block [%d×%d] at (%d,%d) is outside",
				rows, cols, i, j),
		)
	}
	t := x.tape
	be := t.be
	out := t.Alloc(rows, cols)
	be.CopyBlock(out, 0, 0, x.value, i, j, rows, cols)
	return t.Record(name, out, func(dy *tensor.Tensor) {
		if dx := x.grad; dx != nil && !x.shared {
			// Only the block is touched: many slices together cost what x does, not each.
			sum := be.Alloc(rows, cols)
			be.CopyBlock(sum, 0, 0, dx, i, j, rows, cols)
			be.Axpby(sum, 1, sum, 1, dy)
			be.CopyBlock(dx, i, j, sum, 0, 0, rows, cols)
			be.Free(sum)
			return
		}
		dx := x.newGrad()
		be.Fill(dx, 0)
		be.CopyBlock(dx, i, j, dy, 0, 0, rows, cols)
		x.AddGrad(dx)
	}, x)
}

// FillDiagonal returns a copy of a square x with v on the diagonal. VJP: dx = dy
// with a zero diagonal.
func (x *Var) FillDiagonal(v float64) *Var {
	checkSquare("FillDiagonal", x)
	t := x.tape
	be := t.be
	n := x.Rows()
	filled := func(src *tensor.Tensor, v float64) *tensor.Tensor {
		dst := be.Alloc(n, n)
		be.CopyBlock(dst, 0, 0, src, 0, 0, n, n)
		be.FillDiagonal(dst, v)
		return dst
	}
	return t.Record(
		"FillDiagonal",
		t.keep(filled(x.value, v)),
		func(dy *tensor.Tensor) { x.AddGrad(filled(dy, 0)) },
		x,
	)
}

// GatherRows returns y [K×F] with y_k = x_idx[k] for x [N×F] and K indices in
// 0..N-1, which may repeat: the lookup in an embedding table. VJP: dx_i = Σ dy_k
// over all k with idx[k] = i, in ascending order of k. It panics if an index is out
// of range.
func (x *Var) GatherRows(idx []int32) *Var {
	t := x.tape
	checkIndices("GatherRows", idx, x.Rows())
	return x.gatherRows(t.Indices(idx), func() *backend.CSR {
		return t.members(idx, x.Rows())
	})
}

// GatherRowsOf is GatherRows with indices that are on the engine already, where a
// recorded step needs them. members [N×K], without values, is their transpose: row
// i lists the k with idx[k] = i. The contents of both are not checked.
func (x *Var) GatherRowsOf(
	idx *backend.Indices, members *backend.CSR,
) *Var {
	if members.Rows != x.Rows() || members.Cols != idx.Len() {
		mismatch(
			"GatherRowsOf",
			fmt.Sprintf("%v by %d indices", x.value, idx.Len()),
			fmt.Sprintf("want members [%d×%d], not [%d×%d]",
				x.Rows(), idx.Len(), members.Rows, members.Cols),
		)
	}
	return x.gatherRows(idx, func() *backend.CSR {
		return members
	})
}

func (x *Var) gatherRows(
	idx *backend.Indices, members func() *backend.CSR,
) *Var {
	t := x.tape
	be := t.be
	out := t.Alloc(idx.Len(), x.Cols())
	be.GatherRows(out, x.value, idx)
	return t.Record("GatherRows", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.SpMM(dx, members(), dy, 0)
		x.AddGrad(dx)
	}, x)
}

// ScatterAddRows returns y [n×F] with y_i = Σ x_k over all k with idx[k] = i,
// in ascending order of k, for x [K×F]: the transpose of [Var.GatherRows]. VJP:
// dx_k = dy_idx[k]. It panics unless there are K indices, all in 0..n-1.
func (x *Var) ScatterAddRows(idx []int32, n int) *Var {
	t := x.tape
	be := t.be
	checkIndices("ScatterAddRows", idx, n)
	if len(idx) != x.Rows() {
		mismatch(
			"ScatterAddRows",
			x.value.String(),
			fmt.Sprintf("%d indices for the rows", len(idx)),
		)
	}
	out := t.Alloc(n, x.Cols())
	be.SpMM(out, t.members(idx, n), x.value, 0)
	return t.Record("ScatterAddRows", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.GatherRows(dx, dy, t.Indices(idx))
		x.AddGrad(dx)
	}, x)
}

// members returns the matrix [n×K] of ones whose row i lists the k with idx[k] = i.
// A scatter would need atomics to run in parallel; a product with this matrix runs
// in parallel over rows and always adds in the same order.
func (t *Tape) members(idx []int32, n int) *backend.CSR {
	ptr, col := backend.Members(nil, nil, idx, n)
	return &backend.CSR{
		Rows: n,
		Cols: len(idx),
		Ptr:  t.Indices(ptr),
		Col:  t.Indices(col),
	}
}

func checkIndices(op string, idx []int32, n int) {
	for k, i := range idx {
		if i < 0 || int(i) >= n {
			panic(fmt.Sprintf(
				"autodiff: %s: index %d at position %d is outside 0..%d",
				op, i, k, n-1,
			))
		}
	}
}
