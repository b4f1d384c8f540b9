package cpu

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
)

// This file computes the GIN layer in one call. Run as primitives, each of a dozen
// passes over the N×F activations reads and writes main memory, or at best the
// third-level cache. Here the nodes are cut into blocks of whole graphs, a few
// hundred nodes each, and a block goes through all passes while it is in the
// second-level cache. Graphs are closed under message passing, so blocks do not
// need each other, except that batch norm needs the statistics of a whole view:
// the only barrier, once forward and once backward.
//
//	forward, per block    x → agg → h1 → h2, graph sums of h2, mean and squares
//	         barrier      statistics of the views → y = scale·h2 + shift
//	         per block    h2 → y, graph sums → pooled
//	backward, per block   Σdy, Σdy∘(h2-μ)
//	         barrier      → k1, k2, k3, dγ, dβ
//	         per block    d = k1·dy + k2 + k3·h2 where h2 > 0; dW2, db2;
//	                      dh1 = d·W2ᵀ where h1 > 0; dW1, db1;
//	                      dagg = dh1·W1ᵀ; dx = Aᵀ·dagg + self·dagg
//
// The gradient of the readout is the same for all nodes of a graph, so it is
// never spread over them: it is added to k2, graph by graph.
//
// fused_blocks.go defines the blocks and says why results do not depend on the workers.

const (
	// ginElements is the number of elements of the widest matrix in a block: with half
	// a dozen matrices in use, a block fits a second-level cache of 512 KiB.
	ginElements = 3 << 12
	ginMinRows  = 64 // with fewer, packing the weights would dominate

	// Layers wider than this have blocks of as many rows as features: every block keeps
	// its part of the gradients of the weights.
	ginWide = 128
)

type ginState[T float] struct {
	graphBlocks[T]
	ginOperands[T]
	k            *kernels[T]
	in, hid, out int // features
	self         T
	scratch      freeList[ginScratch[T]]
}

// ginOperands are the operands of the call in progress.
type ginOperands[T float] struct {
	ptr, adj, ptrT, adjT []int32
	category             []int32 // of one-hot rows, or else:
	x, agg               []T
	w1, b1, w2, b2       []T
	h1, h2, sums         []T
	y, pooled            []T
	mean                 []T
	dy, dpooled, dx      []T
}

// ginScratch is the memory of one worker for one block.
type ginScratch[T float] struct {
	d, dh1, dagg, row []T

	blockRows
	tptr, tadj []int32 // the transpose
	val, tval  []T     // their values, unless they are ones
}

func (e *engine[T]) setGIN(l *backend.GINLayer) *ginState[T] {
	s := &e.gin
	s.in, s.hid, s.out = backend.CheckGIN(l)
	s.k = &e.k
	s.self = T(l.Self)
	s.running = l.Running
	s.ginOperands = ginOperands[T]{
		ptr:    l.Adj.Ptr.Host,
		adj:    l.Adj.Col.Host,
		ptrT:   l.AdjT.Ptr.Host,
		adjT:   l.AdjT.Col.Host,
		w1:     e.data(l.W1),
		b1:     e.data(l.B1),
		w2:     e.data(l.W2),
		b2:     e.data(l.B2),
		h1:     e.data(l.H1),
		h2:     e.data(l.H2),
		sums:   e.data(l.Sums),
		y:      e.optional(l.Y),
		pooled: e.data(l.Pooled),
		mean:   e.data(l.Mean),
	}
	s.graphs = l.Graphs.Host
	widest := max(s.hid, s.out)
	if l.X != nil {
		s.x = e.data(l.X)
		s.agg = e.data(l.Agg)
		widest = max(widest, s.in)
	} else {
		s.category = l.Category.Host
	}
	rows := max(ginMinRows, ginElements/widest)
	if s.hid > ginWide {
		rows = max(rows, s.hid)
	}
	s.cut(l.Views.Host, rows)
	return s
}

// release drops the references to the operands.
func (s *ginState[T]) release() {
	s.ginOperands = ginOperands[T]{}
	s.graphs = nil
	s.views = nil
}

func (e *engine[T]) GINForward(l *backend.GINLayer) {
	s := e.setGIN(l)
	defer s.release()
	s.moments = grow(s.moments, len(s.blocks)*2*s.out)
	e.pool.do((*ginForwardTask[T])(s), len(s.blocks), 1)
	variance := e.data(l.Var)
	if !l.Running {
		s.statistics(s.mean, variance, s.out)
	}
	s.affine(e.data(l.Gamma), e.data(l.Beta), s.mean, variance, l.Eps)
	e.pool.do((*ginNormTask[T])(s), len(s.blocks), 1)
	if s.y != nil {
		clear(s.y[s.nodes()*s.out:]) // padding
	}
}

// ginForwardTask computes h1, h2, the sums of graphs and the moments of blocks lo..hi-1.
type ginForwardTask[T float] ginState[T]

func (t *ginForwardTask[T]) run(lo, hi int) {
	s := (*ginState[T])(t)
	w := s.scratch.take()
	for i := lo; i < hi; i++ {
		s.forward(i, w)
	}
	s.scratch.give(w)
}

func (s *ginState[T]) forward(i int, w *ginScratch[T]) {
	b := s.blocks[i]
	n := b.hi - b.lo
	h1 := nodesOf(s.h1, b, s.hid)
	h2 := nodesOf(s.h2, b, s.out)
	sums := graphsOf(s.sums, b, s.out)
	if n == 0 {
		clear(sums)
		return
	}
	if s.x == nil {
		w.oneHot(s, b)
		simd.SpMM(h1, s.hid, 0, n, w.ptr, w.adj, s.values(w.val), s.w1, 0)
	} else {
		simd.SpMM(s.agg, s.in, b.lo, b.hi, s.ptr, s.adj, nil, s.x, s.self)
		s.k.gemm.multiply(h1, s.agg[b.lo*s.in:], s.w1, n, s.hid, s.in)
	}
	simd.AddRowReLU(h1, h1, s.b1)
	s.k.gemm.multiply(h2, h1, s.w2, n, s.out, s.hid)
	simd.AddRowReLU(h2, h2, s.b2)

	for g := b.g0; g < b.g1; g++ {
		nodes := s.h2[int(s.graphs[g])*s.out : int(s.graphs[g+1])*s.out]
		simd.ColSums(rowOf(s.sums, g, s.out), nodes)
	}
	if s.running {
		return
	}
	w.row = aligned(w.row, 2*s.out)
	mean := w.row[:s.out]
	simd.ColSums(mean, sums)
	s.setMoments(i, h2, mean, w.row[s.out:])
}

// oneHot fills ptr, adj and val with the block's rows of (A + Self·I)·x for one-hot
// x: row i of agg·W1 is the sum of the rows of W1 for the categories of node i and its
// neighbours.
func (w *ginScratch[T]) oneHot(s *ginState[T], b graphBlock) {
	nodes := b.hi - b.lo
	w.ptr = grow(w.ptr, nodes+1)
	w.adj = grow(w.adj, int(s.ptr[b.hi]-s.ptr[b.lo])+nodes)
	k := 0
	for i := b.lo; i < b.hi; i++ {
		w.ptr[i-b.lo] = int32(k)
		w.adj[k] = s.category[i]
		k++
		for _, j := range s.adj[s.ptr[i]:s.ptr[i+1]] {
			w.adj[k] = s.category[j]
			k++
		}
	}
	w.ptr[nodes] = int32(k)
	w.val = w.val[:0]
	if s.self != 1 {
		w.val = aligned(w.val, k)
		fill(w.val, 1)
		for _, k := range w.ptr[:nodes] {
			w.val[k] = s.self
		}
	}
}

// values returns val, or nil if all values are ones.
func (s *ginState[T]) values(val []T) []T {
	if s.self == 1 {
		return nil
	}
	return val
}

// ginNormTask computes y and the pooled rows of blocks lo..hi-1.
type ginNormTask[T float] ginState[T]

func (t *ginNormTask[T]) run(lo, hi int) {
	s := (*ginState[T])(t)
	f := s.out
	for _, b := range s.blocks[lo:hi] {
		scale := rowOf(s.coef, 2*b.view, f)
		shift := rowOf(s.coef, 2*b.view+1, f)
		if s.y != nil {
			simd.AffineRow(
				nodesOf(s.y, b, f), nodesOf(s.h2, b, f), scale, shift,
			)
		}
		simd.MulRow(graphsOf(s.pooled, b, f), graphsOf(s.sums, b, f), scale)
		for g := b.g0; g < b.g1; g++ {
			simd.Axpy(s.size(g), shift, rowOf(s.pooled, g, f))
		}
	}
}

// size returns the number of nodes of graph g.
func (s *ginState[T]) size(g int) T {
	return T(s.graphs[g+1] - s.graphs[g])
}

func (e *engine[T]) GINBackward(
	l *backend.GINLayer, g *backend.GINGradients,
) {
	s := e.setGIN(l)
	defer s.release()
	s.dy = e.optional(g.DY)
	s.dpooled = e.optional(g.DPooled)
	s.dx = e.optional(g.DX)

	// The sums of batch norm's gradient, then its coefficients.
	width := 2 * s.out
	s.partial = aligned(s.partial, len(s.blocks)*width)
	e.pool.do((*ginReduceTask[T])(s), len(s.blocks), 1)
	s.normGradients(
		e.data(g.Gamma), e.data(g.Beta), e.data(l.Gamma),
		s.mean, e.data(l.Var), l.Eps, width,
	)

	// The rest of the layer.
	size := s.gradients()
	s.partial = aligned(s.partial, len(s.blocks)*size)
	e.pool.do((*ginBackwardTask[T])(s), len(s.blocks), 1)
	if s.dx != nil {
		clear(s.dx[s.nodes()*s.in:]) // padding
	}
	total := s.mergeRows(size)
	for _, t := range [4]*tensor.Tensor{g.W1, g.B1, g.W2, g.B2} {
		d := e.data(t)
		copy(d, total)
		total = total[len(d):]
	}
}

// gradients returns the number of entries of W1, b1, W2 and b2.
func (s *ginState[T]) gradients() int {
	return (s.in+1)*s.hid + (s.hid+1)*s.out
}

// ginReduceTask sets the partial sums of blocks lo..hi-1.
type ginReduceTask[T float] ginState[T]

func (t *ginReduceTask[T]) run(lo, hi int) {
	s := (*ginState[T])(t)
	w := s.scratch.take()
	for i := lo; i < hi; i++ {
		s.reduce(i, w)
	}
	s.scratch.give(w)
}

// reduce sets the block's partial sums Σdy and Σdy∘(h2-μ).
func (s *ginState[T]) reduce(i int, w *ginScratch[T]) {
	b := s.blocks[i]
	f := s.out
	sum := rowOf(s.partial, 2*i, f)
	proj := rowOf(s.partial, 2*i+1, f)
	mean := s.viewRow(s.mean, b.view, f)
	if s.dy != nil {
		dy := nodesOf(s.dy, b, f)
		w.d = aligned(w.d, len(dy))
		simd.ColSums(sum, dy)
		simd.SubRow(w.d, nodesOf(s.h2, b, f), mean)
		simd.ColDots(proj, dy, w.d)
	} else {
		clear(sum)
		clear(proj)
	}
	if s.dpooled == nil {
		return
	}
	// Every node of a graph has the graph's dpooled.
	w.row = aligned(w.row, f)
	centred := w.row[:f]
	for g := b.g0; g < b.g1; g++ {
		n := s.size(g)
		d := rowOf(s.dpooled, g, f)
		simd.Axpy(n, d, sum)
		simd.Axpby(centred, 1, rowOf(s.sums, g, f), -n, mean)
		simd.Mul(centred, centred, d)
		simd.Add(proj, proj, centred)
	}
}

// ginBackwardTask computes dx and the gradients of the weights from blocks lo..hi-1.
type ginBackwardTask[T float] ginState[T]

func (t *ginBackwardTask[T]) run(lo, hi int) {
	s := (*ginState[T])(t)
	w := s.scratch.take()
	for i := lo; i < hi; i++ {
		s.backward(i, w)
	}
	s.scratch.give(w)
}

func (s *ginState[T]) backward(i int, w *ginScratch[T]) {
	b := s.blocks[i]
	n := b.hi - b.lo
	inputs := s.in
	hidden := s.hid
	outputs := s.out
	partial := rowOf(s.partial, i, s.gradients())
	if n == 0 {
		clear(partial)
		return
	}
	dw1, partial := partial[:inputs*hidden], partial[inputs*hidden:]
	db1, partial := partial[:hidden], partial[hidden:]
	dw2 := partial[:hidden*outputs]
	db2 := partial[hidden*outputs:]
	h1 := nodesOf(s.h1, b, hidden)

	// Through batch norm and the second layer of the MLP.
	w.d = aligned(w.d, n*outputs)
	w.dh1 = aligned(w.dh1, n*hidden)
	w.row = aligned(w.row, outputs)
	s.normBackward(b, w.d, w.row[:outputs])
	simd.Gate(w.d, w.d, nodesOf(s.h2, b, outputs))
	simd.ColSums(db2, w.d)
	s.k.gemm.multiplyTN(dw2, h1, w.d, hidden, outputs, n)
	s.k.gemm.multiplyNT(w.dh1, w.d, s.w2, n, hidden, outputs)

	// Through the first layer and the sums over neighbours.
	simd.Gate(w.dh1, w.dh1, h1)
	simd.ColSums(db1, w.dh1)
	if s.x == nil {
		w.oneHot(s, b)
		w.transpose(n, inputs)
		simd.SpMM(
			dw1, hidden, 0, inputs, w.tptr,
			w.tadj, s.values(w.tval), w.dh1, 0,
		)
		return
	}
	s.k.gemm.multiplyTN(dw1, s.agg[b.lo*inputs:], w.dh1, inputs, hidden, n)
	if s.dx == nil {
		return
	}
	w.dagg = aligned(w.dagg, n*inputs)
	s.k.gemm.multiplyNT(w.dagg, w.dh1, s.w1, n, inputs, hidden)
	w.local(s.ptrT, s.adjT, b)
	simd.SpMM(
		nodesOf(s.dx, b, inputs), inputs, 0,
		n, w.ptr, w.adj, nil, w.dagg, s.self,
	)
}

// normBackward sets d to the gradient of h2 through batch norm and readout,
// k1·dy + k2 + k3·h2, with dpooled a part of dy. shift is scratch for a row.
func (s *ginState[T]) normBackward(b graphBlock, d, shift []T) {
	f := s.out
	k1 := rowOf(s.coef, 3*b.view, f)
	k2 := rowOf(s.coef, 3*b.view+1, f)
	k3 := rowOf(s.coef, 3*b.view+2, f)
	if s.dpooled == nil {
		simd.CombineRow(
			d, nodesOf(s.dy, b, f), k1, nodesOf(s.h2, b, f), k3, k2,
		)
		return
	}
	for g := b.g0; g < b.g1; g++ {
		lo := int(s.graphs[g]) * f
		hi := int(s.graphs[g+1]) * f
		if lo == hi {
			continue
		}
		dst := d[lo-b.lo*f : hi-b.lo*f]
		simd.Mul(shift, rowOf(s.dpooled, g, f), k1)
		simd.Add(shift, shift, k2)
		if s.dy != nil {
			simd.CombineRow(dst, s.dy[lo:hi], k1, s.h2[lo:hi], k3, shift)
		} else {
			simd.AffineRow(dst, s.h2[lo:hi], k3, shift)
		}
	}
}

// transpose sets tptr, tadj and tval to the transpose of ptr, adj and val,
// which have n rows and cols columns.
func (w *ginScratch[T]) transpose(n, cols int) {
	w.tptr = grow(w.tptr, cols+2)
	w.tadj = grow(w.tadj, len(w.adj))
	// Counts go two places ahead, so that placing the entries moves every pointer to
	// the start of its row.
	next := w.tptr
	clear(next)
	for _, c := range w.adj {
		next[c+2]++
	}
	for c := 2; c < cols+2; c++ {
		next[c] += next[c-1]
	}
	next = next[1:]
	w.tval = aligned(w.tval, len(w.val))
	for i := range n {
		for k := w.ptr[i]; k < w.ptr[i+1]; k++ {
			c := w.adj[k]
			w.tadj[next[c]] = int32(i)
			if len(w.val) > 0 {
				w.tval[next[c]] = w.val[k]
			}
			next[c]++
		}
	}
}
