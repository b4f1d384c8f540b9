package cuda

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file is the GIN layer as one call: six launches forward and ten backward
// in place of four times as many primitives. The formulas are those of
// [backend.GINLayer]; those of batch norm's gradient stand at the kernels.
//
//	forward    agg = A·x + self·x      or, for one-hot rows, rows of W1 at once
//	           h1, h2                  product, bias and ReLU in one kernel
//	           moments, coefficients   of the views: y = scale·h2 + shift
//	           y, pooled               a block for each graph
//	backward   Σdy, Σdy∘(h2-μ)         of the graphs, then of the views
//	           d                       the gradient of h2, gated
//	           dW2, db2; dh1; dW1, db1
//	           dx = Aᵀ·(dh1·W1ᵀ) + self·(dh1·W1ᵀ)
//
// Layers wider than narrow go to cuBLAS.

// narrow is the width up to which a weight matrix fits the shared memory of the
// kernels linear and outer_partials.
const narrow = 64

// linear sets dst = a·w, or a·wᵀ with trans; then, for what is there, adds the
// bias, takes the ReLU, and keeps only what gate lets pass.
func (e *engine) linear(dst, a, w *tensor.Tensor, trans bool, bias *tensor.Tensor, relu bool, gate *tensor.Tensor) {
	if a.Cols <= narrow && dst.Cols <= narrow {
		e.blocks("linear", ceil(dst.Rows, narrow), e.ptr(dst), e.ptr(a), e.ptr(w), e.ptr(bias), e.ptr(gate),
			flag(trans), flag(relu), i(dst.Rows), i(a.Cols), i(dst.Cols))
		return
	}
	e.Gemm(dst, false, trans, 1, a, w, 0)
	if bias != nil {
		e.biasReLU(dst, dst, bias, relu)
	}
	if gate != nil {
		e.flat("gate_into", dst.Len(), e.ptr(dst), e.ptr(gate), i(dst.Len()))
	}
}

func (e *engine) biasReLU(dst, a, bias *tensor.Tensor, relu bool) {
	e.flat("bias_relu", dst.Len(), e.ptr(dst), e.ptr(a), e.ptr(bias), flag(relu), i(dst.Cols), i(dst.Len()))
}

// outer sets dw = aᵀ·b and db to the column sums of b.
func (e *engine) outer(dw, db, a, b *tensor.Tensor) {
	if a.Cols > narrow || b.Cols > narrow {
		e.Gemm(dw, true, false, 1, a, b, 0)
		e.ColSums(db, b)
		return
	}
	parts := max(1, min(maxChunks, ceil(a.Rows, chunkRows)))
	part := e.Alloc(parts*(a.Cols+1), b.Cols)
	e.blocks("outer_partials", parts, e.ptr(part), e.ptr(a), e.ptr(b), i(a.Rows), i(a.Cols), i(b.Cols))
	e.flat("merge_outer", (a.Cols+1)*b.Cols, e.ptr(dw), e.ptr(db), e.ptr(part), i(parts), i(a.Cols), i(b.Cols))
	e.Free(part)
}

func (e *engine) GINForward(l *backend.GINLayer) {
	_, _, out := backend.CheckGIN(l)
	n, graphs, views := l.H1.Rows, l.Graphs.Len()-1, l.Views.Len()-1
	if l.X != nil {
		e.spmm(l.Agg, l.Adj, l.X, 0, l.Self)
		e.linear(l.H1, l.Agg, l.W1, false, l.B1, true, nil)
	} else {
		e.spmm(l.H1, l.Adj, l.W1, e.idx(l.Category), l.Self)
		e.biasReLU(l.H1, l.H1, l.B1, true)
	}
	e.linear(l.H2, l.H1, l.W2, false, l.B2, true, nil)

	parts := chunks(n, views)
	var part *tensor.Tensor
	if !l.Running {
		part = e.Alloc(views*parts*2, out)
		e.tiles("segment_moments", views*parts, out, e.ptr(part), e.ptr(l.H2), e.idx(l.Views), i(views), i(parts), i(out))
	}
	coef := e.Alloc(2*views, out)
	e.flat("norm_coefficients", views*out, e.ptr(l.Mean), e.ptr(l.Var), e.ptr(coef), e.ptr(part), e.ptr(l.Gamma), e.ptr(l.Beta),
		e.idx(l.Views), f(l.Eps), i(views), i(parts), i(out))
	e.tiles("norm_readout", graphs+1, out, e.ptr(l.Y), e.ptr(l.Sums), e.ptr(l.Pooled), e.ptr(l.H2), e.ptr(coef),
		e.idx(l.Graphs), e.idx(l.Views), i(graphs), i(views), i(n), i(out))
	e.Free(part)
	e.Free(coef)
}

func (e *engine) GINBackward(l *backend.GINLayer, g *backend.GINGradients) {
	in, hid, out := backend.CheckGIN(l)
	n, graphs, views := l.H1.Rows, l.Graphs.Len()-1, l.Views.Len()-1

	part := e.Alloc(2*graphs, out)
	e.tiles("norm_grad_partials", graphs, out, e.ptr(part), e.ptr(g.DY), e.ptr(g.DPooled), e.ptr(l.H2), e.ptr(l.Mean),
		e.idx(l.Graphs), e.idx(l.Views), flag(!l.Running), i(graphs), i(views), i(out))
	coef := e.Alloc(3*views, out)
	e.launch("norm_grad_coefficients", dims{uint32(ceil(out, warp)), 1, 1}, dims{warp, warp, 1},
		e.ptr(coef), e.ptr(g.Gamma), e.ptr(g.Beta), e.ptr(part), e.ptr(l.Mean), e.ptr(l.Var), e.ptr(l.Gamma),
		e.idx(l.Graphs), e.idx(l.Views), f(l.Eps), flag(l.Running), i(graphs), i(views), i(out))
	d := e.Alloc(n, out)
	e.tiles("norm_grad_apply", graphs+1, out, e.ptr(d), e.ptr(g.DY), e.ptr(g.DPooled), e.ptr(l.H2), e.ptr(coef),
		e.idx(l.Graphs), e.idx(l.Views), i(graphs), i(views), i(n), i(out))
	e.Free(part)
	e.Free(coef)

	e.outer(g.W2, g.B2, l.H1, d)
	dh1 := e.Alloc(n, hid)
	e.linear(dh1, d, l.W2, true, nil, false, l.H1)
	e.Free(d)
	switch {
	case l.X == nil:
		e.categoryGradient(l, g, dh1)
	case g.DX == nil:
		e.outer(g.W1, g.B1, l.Agg, dh1)
	default:
		e.outer(g.W1, g.B1, l.Agg, dh1)
		dagg := e.Alloc(n, in)
		e.linear(dagg, dh1, l.W1, true, nil, false, nil)
		e.spmm(g.DX, l.AdjT, dagg, 0, l.Self)
		e.Free(dagg)
	}
	e.Free(dh1)
}

// categoryGradient sets the gradients of W1 and b1 for one-hot rows: row c of
// dW1 is the sum of (Aᵀ + self)·dh1 over the nodes of category c.
func (e *engine) categoryGradient(l *backend.GINLayer, g *backend.GINGradients, dh1 *tensor.Tensor) {
	dz := e.Alloc(dh1.Rows, dh1.Cols)
	e.spmm(dz, l.AdjT, dh1, 0, l.Self)
	members := l.Members
	if members == nil {
		members = e.members(l.Category.Host, l.W1.Rows)
		defer e.FreeIndices(members.Ptr)
		defer e.FreeIndices(members.Col)
	}
	// Most nodes may be of one category, so a category has many parts, as long as
	// there are not many categories.
	rows, cols := l.W1.Rows, l.W1.Cols
	parts := max(1, min(narrow, dh1.Rows/chunkRows, 8192/rows))
	part := e.Alloc(rows*parts, cols)
	e.tiles("segment_sum", rows*parts, cols, e.ptr(part), e.ptr(dz), 0, e.idx(members.Ptr), e.idx(members.Col),
		i(dh1.Rows), i(rows), i(parts), i(cols))
	e.flat("merge_partials", rows*cols, e.ptr(g.W1), e.ptr(part), i(rows), i(parts), i(cols))
	e.Free(part)
	e.Free(dz)
	e.ColSums(g.B1, dh1)
}

// members lists the nodes of each of n categories.
func (e *engine) members(category []int32, n int) *backend.CSR {
	ptr, nodes := backend.Members(nil, nil, category, n)
	return &backend.CSR{Rows: n, Cols: len(category), Ptr: e.Indices(ptr), Col: e.Indices(nodes)}
}

func (e *engine) TrackStatistics(runningMean, runningVar, mean, variance *tensor.Tensor, groups *backend.Indices, momentum float64) {
	backend.CheckTrack(runningMean, runningVar, mean, variance, groups)
	e.flat("norm_track", mean.Cols, e.ptr(runningMean), e.ptr(runningVar), e.ptr(mean), e.ptr(variance), e.idx(groups),
		f(momentum), i(mean.Rows), i(mean.Cols))
}

// The kernels over many tensors take a table of pointers: entries of
// [tableWords] words, p, g, m, v and the number of elements, and share each
// tensor among tableBlocks blocks.
const (
	tableWords  = 5
	tableBlocks = 8
)

func (e *engine) SquaredNorm(sum *tensor.Tensor, ts []*tensor.Tensor) {
	backend.CheckDot(sum, sum, nil)
	if len(ts) == 0 {
		e.Fill(sum, 0)
		return
	}
	words := make([]uint64, 0, tableWords*len(ts))
	for _, t := range ts {
		words = append(words, 0, e.ptr(t), 0, 0, uint64(t.Len()))
	}
	parts := tableBlocks * len(ts)
	table, part := e.table("SquaredNorm", words), e.scratch(parts, 8)
	e.launch("square_sums_many", dims{tableBlocks, uint32(len(ts)), 1}, dims{threads, 1, 1}, e.ptr(part), e.ptr(table), i(len(ts)))
	e.blocks("sum_partials", 1, e.ptr(sum), e.ptr(part), f(1), i(parts))
	e.Free(table)
	e.Free(part)
}

func (e *engine) AdamAll(p, g, m, v []*tensor.Tensor, rate, step *tensor.Tensor, c backend.AdamConfig) {
	if len(p) == 0 {
		return
	}
	words := make([]uint64, 0, tableWords*len(p))
	for k := range p {
		backend.CheckAdam(p[k], g[k], m[k], v[k], rate, step)
		words = append(words, e.ptr(p[k]), e.ptr(g[k]), e.ptr(m[k]), e.ptr(v[k]), uint64(p[k].Len()))
	}
	table := e.table("AdamAll", words)
	e.launch("adam_many", dims{tableBlocks, uint32(len(p)), 1}, dims{threads, 1, 1}, e.ptr(table), e.ptr(rate), e.ptr(step),
		f(c.Beta1), f(c.Beta2), f(c.Eps), f(c.WeightDecay), i(len(p)))
	e.Free(table)
}
