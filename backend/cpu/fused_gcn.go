package cpu

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
)

// This file computes a layer of ResGCN in one call, block by block
// (fused_blocks.go). As primitives the layer reads or writes an N×F matrix in
// memory 29 times, in one call 12 times.
//
//	forward, per block    mean and squares of x
//	         barrier      statistics of the views → z = scale·x + shift
//	         per block    x → z → z·W → Â· → r → y
//	backward, per block   d = dy where r > 0; db; Âᵀ·d; z once more; dW;
//	                      dz = (Âᵀ·d)·Wᵀ; Σdz, Σdz∘(x-μ)
//	         barrier      → k1, k2, k3, dγ, dβ
//	         per block    dx = k1·dz + k2 + k3·x, and dy with the residual

// gcnElements is the number of elements of the wider matrix in a block: 512 rows of
// 128. Smaller blocks would fit the second-level cache, but every product packs the
// weights and every block has its own gradient of them. Measured: a step takes 9 %
// longer with 128 rows, and the same time with 1,024.
const gcnElements = 1 << 16

type gcnState[T float] struct {
	graphBlocks[T]
	gcnOperands[T]
	k       *kernels[T]
	in, out int // features
	scratch freeList[gcnScratch[T]]
}

// gcnOperands are the operands of the call in progress.
type gcnOperands[T float] struct {
	residual   bool
	ptr, adj   []int32 // Â
	ptrT, adjT []int32
	val, valT  []T
	x, w, b    []T
	mean       []T
	r, y       []T
	dy, dx     []T
}

// gcnScratch is the memory of one worker for one block.
type gcnScratch[T float] struct {
	blockRows
	z, d, h, row []T
}

func (e *engine[T]) setGCN(l *backend.GCNLayer) *gcnState[T] {
	s := &e.gcn
	s.in, s.out = backend.CheckGCN(l)
	s.k = &e.k
	s.running = l.Running
	s.gcnOperands = gcnOperands[T]{
		residual: l.Residual,
		ptr:      l.Adj.Ptr.Host,
		adj:      l.Adj.Col.Host,
		val:      e.data(l.Adj.Val),
		ptrT:     l.AdjT.Ptr.Host,
		adjT:     l.AdjT.Col.Host,
		valT:     e.data(l.AdjT.Val),
		x:        e.data(l.X),
		w:        e.data(l.W),
		b:        e.data(l.B),
		mean:     e.data(l.Mean),
		r:        e.data(l.R),
		y:        e.data(l.Y),
	}
	s.graphs = l.Graphs.Host
	s.cut(l.Views.Host, max(1, gcnElements/max(s.in, s.out)))
	return s
}

// release drops the references to the operands.
func (s *gcnState[T]) release() {
	s.gcnOperands = gcnOperands[T]{}
	s.graphs = nil
	s.views = nil
}

func (e *engine[T]) GCNForward(l *backend.GCNLayer) {
	s := e.setGCN(l)
	defer s.release()
	variance := e.data(l.Var)
	if !l.Running {
		s.moments = grow(s.moments, len(s.blocks)*2*s.in)
		e.pool.do((*gcnMomentsTask[T])(s), len(s.blocks), 1)
		s.statistics(s.mean, variance, s.in)
	}
	s.affine(e.data(l.Gamma), e.data(l.Beta), s.mean, variance, l.Eps)
	e.pool.do((*gcnForwardTask[T])(s), len(s.blocks), 1)
	padding := s.nodes() * s.out
	clear(s.r[padding:])
	clear(s.y[padding:])
}

// gcnMomentsTask sets the moments of x in blocks lo..hi-1.
type gcnMomentsTask[T float] gcnState[T]

func (t *gcnMomentsTask[T]) run(lo, hi int) {
	s := (*gcnState[T])(t)
	w := s.scratch.take()
	f := s.in
	w.row = aligned(w.row, 2*f)
	for i := lo; i < hi; i++ {
		b := s.blocks[i]
		if b.lo == b.hi {
			continue
		}
		x := nodesOf(s.x, b, f)
		simd.ColSums(w.row[:f], x)
		s.setMoments(i, x, w.row[:f], w.row[f:])
	}
	s.scratch.give(w)
}

// normalize sets w.z to the batch norm of the block's rows.
func (s *gcnState[T]) normalize(b graphBlock, w *gcnScratch[T]) {
	f := s.in
	w.z = aligned(w.z, (b.hi-b.lo)*f)
	scale := rowOf(s.coef, 2*b.view, f)
	shift := rowOf(s.coef, 2*b.view+1, f)
	simd.AffineRow(w.z, nodesOf(s.x, b, f), scale, shift)
}

// gcnForwardTask computes blocks lo..hi-1 of r and y.
type gcnForwardTask[T float] gcnState[T]

func (t *gcnForwardTask[T]) run(lo, hi int) {
	s := (*gcnState[T])(t)
	w := s.scratch.take()
	for _, b := range s.blocks[lo:hi] {
		if b.lo < b.hi {
			s.forward(b, w)
		}
	}
	s.scratch.give(w)
}

func (s *gcnState[T]) forward(b graphBlock, w *gcnScratch[T]) {
	n := b.hi - b.lo
	r := nodesOf(s.r, b, s.out)
	s.normalize(b, w)
	w.h = aligned(w.h, n*s.out)
	s.k.gemm.multiply(w.h, w.z, s.w, n, s.out, s.in)
	w.local(s.ptr, s.adj, b)
	val := s.val[s.ptr[b.lo]:s.ptr[b.hi]]
	simd.SpMM(r, s.out, 0, n, w.ptr, w.adj, val, w.h, 0)
	simd.AddRowReLU(r, r, s.b)
	if s.residual {
		simd.Add(nodesOf(s.y, b, s.out), nodesOf(s.x, b, s.in), r)
	}
}

func (e *engine[T]) GCNBackward(
	l *backend.GCNLayer, g *backend.GCNGradients,
) {
	s := e.setGCN(l)
	defer s.release()
	s.dy = e.data(g.DY)
	s.dx = e.optional(g.DX)
	gamma := e.data(l.Gamma)
	variance := e.data(l.Var)
	s.affine(gamma, e.data(l.Beta), s.mean, variance, l.Eps)
	size := s.gradients()
	s.partial = aligned(s.partial, len(s.blocks)*size)
	e.pool.do((*gcnBackwardTask[T])(s), len(s.blocks), 1)
	s.normGradients(
		e.data(g.Gamma), e.data(g.Beta),
		gamma, s.mean, variance, l.Eps, size,
	)
	if s.dx != nil {
		e.pool.do((*gcnNormTask[T])(s), len(s.blocks), 1)
		clear(s.dx[s.nodes()*s.in:])
	}
	total := s.mergeRows(size)[2*s.in:]
	copy(e.data(g.W), total)
	copy(e.data(g.B), total[s.in*s.out:])
}

// gradients returns the number of a block's partial results: Σdz, Σdz∘(x-μ), dW
// and db.
func (s *gcnState[T]) gradients() int {
	return 2*s.in + (s.in+1)*s.out
}

// gcnBackwardTask computes dz and the partial results of blocks lo..hi-1.
type gcnBackwardTask[T float] gcnState[T]

func (t *gcnBackwardTask[T]) run(lo, hi int) {
	s := (*gcnState[T])(t)
	w := s.scratch.take()
	for i := lo; i < hi; i++ {
		s.backward(i, w)
	}
	s.scratch.give(w)
}

func (s *gcnState[T]) backward(i int, w *gcnScratch[T]) {
	b := s.blocks[i]
	n := b.hi - b.lo
	inputs := s.in
	outputs := s.out
	partial := rowOf(s.partial, i, s.gradients())
	if n == 0 {
		clear(partial)
		return
	}
	sum := partial[:inputs]
	proj := partial[inputs : 2*inputs]
	dw := partial[2*inputs:][:inputs*outputs]
	db := partial[(2+outputs)*inputs:]

	// Through ReLU, bias and Â.
	w.d = aligned(w.d, n*max(inputs, outputs))
	w.h = aligned(w.h, n*outputs)
	d := w.d[:n*outputs]
	simd.Gate(d, nodesOf(s.dy, b, outputs), nodesOf(s.r, b, outputs))
	simd.ColSums(db, d)
	w.local(s.ptrT, s.adjT, b)
	val := s.valT[s.ptrT[b.lo]:s.ptrT[b.hi]]
	simd.SpMM(w.h, outputs, 0, n, w.ptr, w.adj, val, d, 0)

	// Through the product.
	s.normalize(b, w)
	s.k.gemm.multiplyTN(dw, w.z, w.h, inputs, outputs, n)
	dz := w.d[:n*inputs]
	if s.dx != nil {
		dz = nodesOf(s.dx, b, inputs)
	}
	s.k.gemm.multiplyNT(dz, w.h, s.w, n, inputs, outputs)

	// The sums that batch norm's gradient needs.
	simd.ColSums(sum, dz)
	simd.SubRow(
		w.z, nodesOf(s.x, b, inputs), s.viewRow(s.mean, b.view, inputs),
	)
	simd.ColDots(proj, dz, w.z)
}

// gcnNormTask turns dz into dx in blocks lo..hi-1.
type gcnNormTask[T float] gcnState[T]

func (t *gcnNormTask[T]) run(lo, hi int) {
	s := (*gcnState[T])(t)
	f := s.in
	for _, b := range s.blocks[lo:hi] {
		dx := nodesOf(s.dx, b, f)
		k1 := rowOf(s.coef, 3*b.view, f)
		k2 := rowOf(s.coef, 3*b.view+1, f)
		k3 := rowOf(s.coef, 3*b.view+2, f)
		simd.CombineRow(dx, dx, k1, nodesOf(s.x, b, f), k3, k2)
		if s.residual {
			simd.Add(dx, dx, nodesOf(s.dy, b, f))
		}
	}
}
