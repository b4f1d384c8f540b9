package cpu

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
	"gonum.org/v1/gonum/blas"
)

// This file has the GIN layer in one call. Run as primitives, each of a dozen
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
// never spread over them: it joins k2, graph by graph.
//
// fused_blocks.go has the blocks and why the results do not depend on the workers.

// ginElements is how many elements of the widest matrix make a block: with half
// a dozen matrices in use, a block fits a second-level cache of 512 KiB.
const (
	ginElements = 3 << 12
	ginMinRows  = 64 // with fewer, packing the weights would dominate

	// Layers wider than this have blocks of as many rows as features: every block keeps
	// its part of the gradients of the weights.
	ginWide = 128
)

type ginState[T float] struct {
	graphBlocks[T]
	k                            *kernels[T]
	in, hid, out                 int
	self                         T
	ptr, adj, ptrT, adjT         []int32
	category                     []int32
	x, w1, b1, w2, b2            []T
	agg, h1, h2, sums, y, pooled []T
	mean, dy, dpooled, dx        []T
	scratch                      freeList[ginScratch[T]]
}

// ginScratch is the memory of one worker for one block.
type ginScratch[T float] struct {
	d, dh1, dagg, row []T

	blockRows
	tptr, tadj []int32 // the transpose
	val, tval  []T     // their values, if they are not ones
}

func (e *engine[T]) setGIN(l *backend.GINLayer) *ginState[T] {
	s := &e.gin
	s.in, s.hid, s.out = backend.CheckGIN(l)
	s.k = &e.k
	s.self = T(l.Self)
	s.running = l.Running
	s.ptr = l.Adj.Ptr.Host
	s.adj = l.Adj.Col.Host
	s.ptrT = l.AdjT.Ptr.Host
	s.adjT = l.AdjT.Col.Host
	s.graphs = l.Graphs.Host
	s.w1 = e.data(l.W1)
	s.b1 = e.data(l.B1)
	s.w2 = e.data(l.W2)
	s.b2 = e.data(l.B2)
	s.h1 = e.data(l.H1)
	s.h2 = e.data(l.H2)
	s.sums = e.data(l.Sums)
	s.pooled = e.data(l.Pooled)
	s.x = nil
	s.agg = nil
	s.category = nil
	if l.X != nil {
		s.x = e.data(l.X)
		s.agg = e.data(l.Agg)
	} else {
		s.category = l.Category.Host
	}
	s.y = nil
	s.dy = nil
	s.dpooled = nil
	s.dx = nil
	if l.Y != nil {
		s.y = e.data(l.Y)
	}
	widest := max(s.hid, s.out)
	if s.x != nil {
		widest = max(widest, s.in)
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
	s.ptr = nil
	s.adj = nil
	s.ptrT = nil
	s.adjT = nil
	s.category = nil
	s.graphs = nil
	s.views = nil
	s.x = nil
	s.w1 = nil
	s.b1 = nil
	s.w2 = nil
	s.b2 = nil
	s.agg = nil
	s.h1 = nil
	s.h2 = nil
	s.sums = nil
	s.y = nil
	s.pooled = nil
	s.mean = nil
	s.dy = nil
	s.dpooled = nil
	s.dx = nil
}

func (e *engine[T]) GINForward(l *backend.GINLayer) {
	s := e.setGIN(l)
	defer s.release()
	f := s.out
	s.moments = grow(s.moments, len(s.blocks)*2*f)
	e.pool.do((*ginForwardTask[T])(s), len(s.blocks), 1)
	mean := e.data(l.Mean)
	variance := e.data(l.Var)
	if !l.Running {
		s.statistics(mean, variance, f)
	}
	s.affine(e.data(l.Gamma), e.data(l.Beta), mean, variance, l.Eps)
	e.pool.do((*ginNormTask[T])(s), len(s.blocks), 1)
	if s.y != nil {
		clear(s.y[s.nodes()*f:]) // padding
	}
}

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
	in := s.in
	hid := s.hid
	out := s.out
	h1 := s.h1[b.lo*hid : b.hi*hid]
	h2 := s.h2[b.lo*out : b.hi*out]
	sums := s.sums[b.g0*out : b.g1*out]
	if n == 0 {
		clear(sums)
		return
	}
	if s.x == nil {
		w.oneHot(s, b)
		simd.SpMM(h1, hid, 0, n, w.ptr, w.adj, s.values(w.val), s.w1, 0)
	} else {
		simd.SpMM(s.agg, in, b.lo, b.hi, s.ptr, s.adj, nil, s.x, s.self)
		s.k.gemm(blas.NoTrans, blas.NoTrans, n, hid, in, 1, s.agg[b.lo*in:], in, s.w1, hid, 0, h1, hid)
	}
	simd.AddRowReLU(h1, h1, s.b1)
	s.k.gemm(blas.NoTrans, blas.NoTrans, n, out, hid, 1, h1, hid, s.w2, out, 0, h2, out)
	simd.AddRowReLU(h2, h2, s.b2)

	for g := b.g0; g < b.g1; g++ {
		simd.ColSums(s.sums[g*out:(g+1)*out], s.h2[int(s.graphs[g])*out:int(s.graphs[g+1])*out])
	}
	if s.running {
		return
	}
	w.row = aligned(w.row, 2*out)
	mean := w.row[:out]
	simd.ColSums(mean, sums)
	s.setMoments(i, h2, mean, w.row[out:])
}

// oneHot makes the rows of A + Self·I on the categories: row i of agg is the sum
// of the rows of W1 of node i and of its neighbours. It fills ptr, adj and val.
func (w *ginScratch[T]) oneHot(s *ginState[T], b graphBlock) {
	entries := int(s.ptr[b.hi]-s.ptr[b.lo]) + b.hi - b.lo
	w.ptr = grow(w.ptr, b.hi-b.lo+1)
	w.adj = grow(w.adj, entries)
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
	w.ptr[b.hi-b.lo] = int32(k)
	w.val = w.val[:0]
	if s.self != 1 {
		w.val = aligned(w.val, k)
		fill(w.val, 1)
		for _, k := range w.ptr[:b.hi-b.lo] {
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

type ginNormTask[T float] ginState[T]

func (t *ginNormTask[T]) run(lo, hi int) {
	s := (*ginState[T])(t)
	f := s.out
	for i := lo; i < hi; i++ {
		b := s.blocks[i]
		scale := s.coef[2*b.view*f:][:f]
		shift := s.coef[(2*b.view+1)*f:][:f]
		if s.y != nil {
			simd.AffineRow(s.y[b.lo*f:b.hi*f], s.h2[b.lo*f:b.hi*f], scale, shift)
		}
		simd.MulRow(s.pooled[b.g0*f:b.g1*f], s.sums[b.g0*f:b.g1*f], scale)
		for g := b.g0; g < b.g1; g++ {
			simd.Axpy(T(s.graphs[g+1]-s.graphs[g]), shift, s.pooled[g*f:(g+1)*f])
		}
	}
}

func (e *engine[T]) GINBackward(l *backend.GINLayer, g *backend.GINGradients) {
	s := e.setGIN(l)
	defer s.release()
	if g.DY != nil {
		s.dy = e.data(g.DY)
	}
	if g.DPooled != nil {
		s.dpooled = e.data(g.DPooled)
	}
	if g.DX != nil {
		s.dx = e.data(g.DX)
	}
	f := s.out
	s.mean = e.data(l.Mean)
	s.partial = aligned(s.partial, len(s.blocks)*2*f)
	e.pool.do((*ginReduceTask[T])(s), len(s.blocks), 1)
	s.normGradients(e.data(g.Gamma), e.data(g.Beta), e.data(l.Gamma), s.mean, e.data(l.Var), l.Eps, 2*f)

	size := s.gradients()
	s.partial = aligned(s.partial, len(s.blocks)*size)
	e.pool.do((*ginBackwardTask[T])(s), len(s.blocks), 1)
	if s.dx != nil {
		clear(s.dx[s.nodes()*s.in:])
	}
	total := s.mergeRows(size)
	for _, t := range [4]*tensor.Tensor{g.W1, g.B1, g.W2, g.B2} {
		d := e.data(t)
		copy(d, total)
		total = total[len(d):]
	}
}

// gradients returns the number of entries of W1, b1, W2 and b2.
func (s *ginState[T]) gradients() int { return (s.in+1)*s.hid + (s.hid+1)*s.out }

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
	sum := s.partial[i*2*f:][:f]
	proj := s.partial[(i*2+1)*f:][:f]
	mean := s.of(b.view, s.mean, f)
	if s.dy != nil {
		dy := s.dy[b.lo*f : b.hi*f]
		w.d = aligned(w.d, len(dy))
		simd.ColSums(sum, dy)
		simd.SubRow(w.d, s.h2[b.lo*f:b.hi*f], mean)
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
		n := T(s.graphs[g+1] - s.graphs[g])
		d := s.dpooled[g*f : (g+1)*f]
		simd.Axpy(n, d, sum)
		simd.Axpby(centred, 1, s.sums[g*f:(g+1)*f], -n, mean)
		simd.Mul(centred, centred, d)
		simd.Add(proj, proj, centred)
	}
}

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
	in := s.in
	hid := s.hid
	out := s.out
	size := s.gradients()
	p := s.partial[i*size : (i+1)*size]
	if n == 0 {
		clear(p)
		return
	}
	dw1 := p[:in*hid]
	p = p[in*hid:]
	db1 := p[:hid]
	p = p[hid:]
	dw2 := p[:hid*out]
	db2 := p[hid*out:]
	h1 := s.h1[b.lo*hid : b.hi*hid]
	h2 := s.h2[b.lo*out : b.hi*out]

	w.d = aligned(w.d, n*out)
	w.dh1 = aligned(w.dh1, n*hid)
	w.row = aligned(w.row, out)
	s.normBackward(b, w.d, w.row[:out])
	simd.Gate(w.d, w.d, h2)
	simd.ColSums(db2, w.d)
	s.k.gemm(blas.Trans, blas.NoTrans, hid, out, n, 1, h1, hid, w.d, out, 0, dw2, out)
	s.k.gemm(blas.NoTrans, blas.Trans, n, hid, out, 1, w.d, out, s.w2, out, 0, w.dh1, hid)
	simd.Gate(w.dh1, w.dh1, h1)
	simd.ColSums(db1, w.dh1)
	if s.x == nil {
		w.oneHot(s, b)
		w.transpose(n, in)
		simd.SpMM(dw1, hid, 0, in, w.tptr, w.tadj, s.values(w.tval), w.dh1, 0)
		return
	}
	s.k.gemm(blas.Trans, blas.NoTrans, in, hid, n, 1, s.agg[b.lo*in:], in, w.dh1, hid, 0, dw1, hid)
	if s.dx == nil {
		return
	}
	w.dagg = aligned(w.dagg, n*in)
	s.k.gemm(blas.NoTrans, blas.Trans, n, in, hid, 1, w.dh1, hid, s.w1, hid, 0, w.dagg, in)
	w.local(s.ptrT, s.adjT, b)
	simd.SpMM(s.dx[b.lo*in:b.hi*in], in, 0, n, w.ptr, w.adj, nil, w.dagg, s.self)
}

// normBackward sets d to the gradient of h2 through batch norm and readout,
// k1·dy + k2 + k3·h2, with dpooled a part of dy.
func (s *ginState[T]) normBackward(b graphBlock, d, k []T) {
	f := s.out
	k1 := s.coef[3*b.view*f:][:f]
	k2 := s.coef[(3*b.view+1)*f:][:f]
	k3 := s.coef[(3*b.view+2)*f:][:f]
	if s.dpooled == nil {
		simd.CombineRow(d, s.dy[b.lo*f:b.hi*f], k1, s.h2[b.lo*f:b.hi*f], k3, k2)
		return
	}
	for g := b.g0; g < b.g1; g++ {
		lo, hi := int(s.graphs[g])*f, int(s.graphs[g+1])*f
		if lo == hi {
			continue
		}
		dst := d[lo-b.lo*f : hi-b.lo*f]
		simd.Mul(k, s.dpooled[g*f:(g+1)*f], k1)
		simd.Add(k, k, k2)
		if s.dy != nil {
			simd.CombineRow(dst, s.dy[lo:hi], k1, s.h2[lo:hi], k3, k)
		} else {
			simd.AffineRow(dst, s.h2[lo:hi], k3, k)
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
	at := w.tptr
	clear(at)
	for _, c := range w.adj {
		at[c+2]++
	}
	for c := 2; c < cols+2; c++ {
		at[c] += at[c-1]
	}
	at = at[1:]
	w.tval = aligned(w.tval, len(w.val))
	for i := range n {
		for k := w.ptr[i]; k < w.ptr[i+1]; k++ {
			c := w.adj[k]
			w.tadj[at[c]] = int32(i)
			if len(w.val) > 0 {
				w.tval[at[c]] = w.val[k]
			}
			at[c]++
		}
	}
}
