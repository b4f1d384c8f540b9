package cuda

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has the GIN layer as one call. The time of a narrow layer, as in encoders for
// graph contrastive learning, is that of its launches and not of its arithmetic: four
// forward and five backward. The formulas are those of [backend.GINLayer]; the kernels
// give those of batch norm's gradient.
//
//	forward    agg = A·x + self·x      or, for one-hot rows, rows of W1 at once
//	           h1, h2, moments of h2   of chunks of the views
//	           coefficients            of the views: y = scale·h2 + shift
//	           y, pooled               a block for each graph
//	backward   Σdy, Σdy∘(h2-μ)         of the graphs
//	           coefficients            of the views
//	           d, dh1, dh1·W1ᵀ         d is the gradient of h2, gated; also each chunk's
//	                                   part of the gradients of the weights
//	           dW1, db1, dW2, db2
//	           dx = Aᵀ·(dh1·W1ᵀ) + self·(dh1·W1ᵀ)
//
// In wider layers cuBLAS computes the products, and every line is several launches.

// narrow is the largest width for which the kernels gin_mlp and gin_mlp_grad can hold
// both dense layers in shared memory.
const narrow = 64

// isNarrow reports whether a layer's dense part runs as one kernel.
func isNarrow(l *backend.GINLayer) bool {
	return (l.X == nil || l.W1.Rows <= narrow) && l.W1.Cols <= narrow &&
		l.W2.Cols <= narrow
}

// ginChunks returns the number of chunks that the dense kernels cut each view into, with
// a limit for all views together. A chunk is slightly shorter than a block's tile, of 64
// rows, or 32 in float64: a longer one would take the block twice as long.
func (e *engine) ginChunks(rows, views, limit int) int {
	tile := 256 / e.bytes
	return max(1, min(limit/views, ceil(9*rows, 8*views*tile)))
}

// The largest numbers of blocks of the dense kernels: more would only add parts to merge.
const (
	maxForward  = 1024
	maxBackward = 512
)

// ginKernel returns the name of the dense kernel for the widths of a layer.
func ginKernel(name string, l *backend.GINLayer) string {
	if (l.X == nil || l.W1.Rows <= narrow/2) && l.W1.Cols <= narrow/2 &&
		l.W2.Cols <= narrow/2 {
		return name
	}
	return name + "_wide"
}

// dense sets dst = a·w, or a·wᵀ with trans. Then it adds the bias and applies ReLU, or
// sets to 0 what is not positive in gate; both may be nil.
func (e *engine) dense(
	dst, a, w *tensor.Tensor, trans bool, bias, gate *tensor.Tensor,
) {
	e.Gemm(dst, false, trans, 1, a, w, 0)
	if bias != nil {
		e.biasReLU(dst, dst, bias, true)
	}
	if gate != nil {
		e.Binary(dst, backend.Gate, dst, gate)
	}
}

func (e *engine) biasReLU(dst, a, bias *tensor.Tensor, relu bool) {
	e.flat("bias_relu", dst.Len(),
		e.ptr(dst), e.ptr(a), e.ptr(bias),
		flagWord(relu), intWord(dst.Cols), intWord(dst.Len()))
}

func (e *engine) GINForward(l *backend.GINLayer) {
	input, hid, out := backend.CheckGIN(l)
	n := l.H1.Rows
	graphs := l.Graphs.Len() - 1
	views := l.Views.Len() - 1
	// Aggregate. For one-hot rows that includes the product with W1.
	w1 := l.W1
	if l.X != nil {
		e.spmm(l.Agg, l.Adj, l.X, 0, l.Self)
	} else {
		e.spmm(l.H1, l.Adj, l.W1, e.idx(l.Category), l.Self)
		w1 = nil
	}
	// The dense layers, and the moments of each chunk of h2.
	parts := chunks(n, views)
	if isNarrow(l) {
		parts = e.ginChunks(n, views, maxForward)
	}
	var part *tensor.Tensor
	if !l.Running {
		part = e.Alloc(views*parts*2, out)
	}
	if isNarrow(l) {
		e.blocks(ginKernel("gin_mlp", l), (views+1)*parts,
			e.ptr(l.H1), e.ptr(l.H2), e.ptr(part), e.ptr(l.Agg), e.ptr(w1),
			e.ptr(l.B1), e.ptr(l.W2), e.ptr(l.B2), e.idx(l.Views),
			intWord(views), intWord(parts), intWord(n), intWord(input),
			intWord(hid), intWord(out))
		e.work.Flops += productFlops(n, hid, out)
		if w1 != nil {
			e.work.Flops += productFlops(n, input, hid)
		}
	} else {
		if w1 != nil {
			e.dense(l.H1, l.Agg, w1, false, l.B1, nil)
		} else {
			e.biasReLU(l.H1, l.H1, l.B1, true)
		}
		e.dense(l.H2, l.H1, l.W2, false, l.B2, nil)
		if part != nil {
			e.tiles("segment_moments", views*parts, out,
				e.ptr(part), e.ptr(l.H2), e.idx(l.Views),
				intWord(views), intWord(parts), intWord(out))
		}
	}
	// Batch norm and the readout.
	coef := e.Alloc(2*views, out)
	e.blocks("norm_coefficients", views*ceil(out, mergedColumns),
		e.ptr(l.Mean), e.ptr(l.Var), e.ptr(coef), 0, e.ptr(part),
		e.ptr(l.Gamma), e.ptr(l.Beta), 0, e.idx(l.Views),
		floatWord(l.Eps), intWord(views), intWord(parts), intWord(out))
	e.tiles("norm_readout", graphs+1, out,
		e.ptr(l.Y), e.ptr(l.Sums), e.ptr(l.Pooled), e.ptr(l.H2), e.ptr(coef),
		e.idx(l.Graphs), e.idx(l.Views),
		intWord(graphs), intWord(views), intWord(n), intWord(out))
	e.Free(part)
	e.Free(coef)
}

func (e *engine) GINBackward(l *backend.GINLayer, g *backend.GINGradients) {
	input, hid, out := backend.CheckGIN(l)
	n := l.H1.Rows
	graphs := l.Graphs.Len() - 1
	views := l.Views.Len() - 1

	// The gradient through the readout and batch norm, as coefficients of the views.
	var graph *tensor.Tensor // the graph of each row, as 32-bit integers
	if isNarrow(l) {
		graph = e.scratch(n, 4)
	}
	part := e.Alloc(2*graphs, out)
	e.tiles("norm_grad_partials", graphs, out,
		e.ptr(part), e.ptr(graph), e.ptr(g.DY), e.ptr(g.DPooled), e.ptr(l.H2),
		e.ptr(l.Mean), e.idx(l.Graphs), e.idx(l.Views),
		flagWord(!l.Running), intWord(graphs), intWord(views), intWord(out))
	coef := e.Alloc(3*views, out)
	e.merge("norm_grad_coefficients", out,
		e.ptr(coef), e.ptr(g.Gamma), e.ptr(g.Beta), e.ptr(part),
		e.ptr(l.Mean), e.ptr(l.Var), e.ptr(l.Gamma), e.idx(l.Graphs),
		e.idx(l.Views),
		floatWord(l.Eps), flagWord(l.Running), intWord(graphs),
		intWord(views), intWord(out))
	e.Free(part)
	// The gradients of the dense layers.
	var dh1, dagg *tensor.Tensor
	if l.X == nil || !isNarrow(l) {
		dh1 = e.Alloc(n, hid)
	}
	if g.DX != nil {
		dagg = e.Alloc(n, input)
	}
	if isNarrow(l) {
		e.narrowGradients(l, g, coef, graph, dh1, dagg)
	} else {
		e.wideGradients(l, g, coef, dh1, dagg)
	}
	e.Free(coef)
	e.Free(graph)
	// The gradient through the aggregation.
	if l.X == nil {
		e.categoryGradient(l, g, dh1)
	}
	if dagg != nil {
		e.spmm(g.DX, l.AdjT, dagg, 0, l.Self)
	}
	e.Free(dh1)
	e.Free(dagg)
}

// wideGradients sets dh1 and, unless it is nil, dagg, and the gradients of the weights and
// biases, except that of W1 for one-hot rows.
func (e *engine) wideGradients(
	l *backend.GINLayer,
	g *backend.GINGradients,
	coef, dh1, dagg *tensor.Tensor,
) {
	n, out := l.H2.Rows, l.H2.Cols
	graphs := l.Graphs.Len() - 1
	d := e.Alloc(n, out)
	e.tiles("norm_grad_apply", graphs+1, out,
		e.ptr(d), e.ptr(g.DY), e.ptr(g.DPooled), e.ptr(l.H2), e.ptr(coef),
		e.idx(l.Graphs), e.idx(l.Views),
		intWord(graphs), intWord(l.Views.Len()-1), intWord(n), intWord(out))
	e.Gemm(g.W2, true, false, 1, l.H1, d, 0)
	e.ColSums(g.B2, d)
	e.dense(dh1, d, l.W2, true, nil, l.H1)
	e.Free(d)
	e.ColSums(g.B1, dh1)
	if l.X != nil {
		e.Gemm(g.W1, true, false, 1, l.Agg, dh1, 0)
	}
	if dagg != nil {
		e.dense(dagg, dh1, l.W1, true, nil, nil)
	}
}

// narrowGradients sets dh1 and dagg, unless they are nil, and the gradients of the weights
// and biases, except that of W1 for one-hot rows. graph has the graph of each row.
func (e *engine) narrowGradients(
	l *backend.GINLayer,
	g *backend.GINGradients,
	coef, graph, dh1, dagg *tensor.Tensor,
) {
	input, hid, out := backend.CheckGIN(l)
	n := l.H1.Rows
	views := l.Views.Len() - 1
	size := (hid+1)*out + hid // of all gradients of the weights and biases
	var w1, dw1 *tensor.Tensor
	if l.X != nil {
		w1 = l.W1
		dw1 = g.W1
		size += input * hid
	}
	parts := e.ginChunks(n, views, maxBackward)
	part := e.Alloc(views*parts, size)
	e.blocks(ginKernel("gin_mlp_grad", l), (views+1)*parts,
		e.ptr(dh1), e.ptr(dagg), e.ptr(part), e.ptr(g.DY), e.ptr(g.DPooled),
		e.ptr(l.H1), e.ptr(l.H2), e.ptr(l.Agg), e.ptr(w1), e.ptr(l.W2),
		e.ptr(coef), e.ptr(graph), e.idx(l.Views),
		intWord(views), intWord(parts), intWord(n), intWord(input),
		intWord(hid), intWord(out))
	e.work.Flops += 2 * productFlops(n, hid, out) // dW2 and dh1
	for _, t := range []*tensor.Tensor{dw1, dagg} {
		if t != nil {
			e.work.Flops += productFlops(n, input, hid)
		}
	}
	e.merge("merge_gradients", size,
		e.ptr(dw1), e.ptr(g.B1), e.ptr(g.W2), e.ptr(g.B2), e.ptr(part),
		intWord(views*parts), intWord(input), intWord(hid), intWord(out))
	e.Free(part)
}

// categoryGradient sets the gradient of W1 for one-hot rows: row c of dW1 is the sum of
// (Aᵀ + self)·dh1 over the nodes of category c.
func (e *engine) categoryGradient(
	l *backend.GINLayer, g *backend.GINGradients, dh1 *tensor.Tensor,
) {
	dz := e.Alloc(dh1.Rows, dh1.Cols)
	e.spmm(dz, l.AdjT, dh1, 0, l.Self)
	members := l.Members
	if members == nil {
		members = e.members(l.Category.Host, l.W1.Rows)
		defer e.FreeIndices(members.Ptr)
		defer e.FreeIndices(members.Col)
	}
	e.spmmLong(g.W1, members, dz)
	e.Free(dz)
}

// members lists the nodes of each of n categories.
func (e *engine) members(category []int32, n int) *backend.CSR {
	ptr, nodes := backend.Members(nil, nil, category, n)
	return &backend.CSR{
		Rows: n,
		Cols: len(category),
		Ptr:  e.Indices(ptr),
		Col:  e.Indices(nodes),
	}
}

func (e *engine) TrackStatistics(
	runningMean, runningVar, mean, variance *tensor.Tensor,
	groups *backend.Indices,
	momentum float64,
) {
	backend.CheckTrack(runningMean, runningVar, mean, variance, groups)
	e.flat("norm_track", mean.Cols,
		e.ptr(runningMean), e.ptr(runningVar), e.ptr(mean), e.ptr(variance),
		e.idx(groups),
		floatWord(momentum), intWord(mean.Rows), intWord(mean.Cols))
}

// tableWords is the number of words for each tensor in the table of a kernel over many
// tensors: p, g, m, v and the number of elements.
const tableWords = 5

// tableBlocks returns the number of blocks that share each tensor: in the largest, a thread
// has four elements, or more beyond 64 blocks.
func tableBlocks(ts []*tensor.Tensor) int {
	largest := 1
	for _, t := range ts {
		largest = max(largest, t.Len())
	}
	return min(ceil(largest, 4*threads), 64)
}

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
	blocks := tableBlocks(ts)
	parts := blocks * len(ts)
	part := e.scratch(parts, 8)
	e.table("SquaredNorm", words, func(table uint64) {
		e.moves += 8 * len(words)
		e.launch("square_sums_many", grid(blocks, len(ts)), lineBlock,
			e.ptr(part), table,
			intWord(len(ts)))
	})
	e.blocks(
		"sum_partials", 1, e.ptr(sum),
		e.ptr(part), floatWord(1), intWord(parts),
	)
	e.Free(part)
}

func (e *engine) AdamAll(
	p, g, m, v []*tensor.Tensor,
	rate, step *tensor.Tensor,
	c backend.AdamConfig,
) {
	if len(p) == 0 {
		return
	}
	words := make([]uint64, 0, tableWords*len(p))
	for k := range p {
		backend.CheckAdam(p[k], g[k], m[k], v[k], rate, step)
		words = append(
			words, e.ptr(p[k]), e.ptr(g[k]), e.ptr(m[k]),
			e.ptr(v[k]), uint64(p[k].Len()),
		)
		e.moves += 3 * p[k].Len() * e.bytes // p, m and v are written too
	}
	e.table("AdamAll", words, func(table uint64) {
		e.moves += 8 * len(words)
		e.launch("adam_many", grid(tableBlocks(p), len(p)), lineBlock,
			table, e.ptr(rate), e.ptr(step),
			floatWord(c.Beta1), floatWord(c.Beta2), floatWord(c.Eps),
			floatWord(c.WeightDecay), intWord(len(p)))
	})
}
