package cpu

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"gonum.org/v1/gonum/blas"
)

// This file has a layer of ResGCN in one call, block by block (fused_blocks.go). As
// primitives the layer reads or writes an N×F matrix in memory 29 times, in one call
// 12 times.
//
//	forward, per block    mean and squares of x
//	         barrier      statistics of the views → z = scale·x + shift
//	         per block    x → z → z·W → Â· → r → y
//	backward, per block   d = dy where r > 0; db; Âᵀ·d; z once more; dW;
//	                      dz = (Âᵀ·d)·Wᵀ; Σdz, Σdz∘(x-μ)
//	         barrier      → k1, k2, k3, dγ, dβ
//	         per block    dx = k1·dz + k2 + k3·x, and dy with the residual

// gcnElements is how many elements of the wider matrix make a block: 512 rows of
// 128. Smaller blocks would fit the second-level cache, but every product packs the
// weights and every block has its own gradient of them. Measured: with 128 rows a
// step takes 9 % longer, with 1,024 rows the same time.
const gcnElements = 1 << 16

type gcnState[T float] struct {
	graphBlocks[T]
	k                    *kernels[T]
	in, out              int
	residual             bool
	ptr, adj, ptrT, adjT []int32
	val, valT            []T
	x, w, b, mean, r, y  []T
	dy, dx               []T
	scratch              freeList[gcnScratch[T]]
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
	s.residual = l.Residual
	s.running = l.Running
	s.ptr = l.Adj.Ptr.Host
	s.adj = l.Adj.Col.Host
	s.val = e.data(l.Adj.Val)
	s.ptrT = l.AdjT.Ptr.Host
	s.adjT = l.AdjT.Col.Host
	s.valT = e.data(l.AdjT.Val)
	s.x = e.data(l.X)
	s.w = e.data(l.W)
	s.b = e.data(l.B)
	s.mean = e.data(l.Mean)
	s.r = e.data(l.R)
	s.y = e.data(l.Y)
	s.graphs = l.Graphs.Host
	s.cut(l.Views.Host, max(1, gcnElements/max(s.in, s.out)))
	return s
}

// release drops the references to the operands.
func (s *gcnState[T]) release() {
	s.graphs = nil
	s.views = nil
	s.ptr = nil
	s.adj = nil
	s.ptrT = nil
	s.adjT = nil
	s.val = nil
	s.valT = nil
	s.x = nil
	s.w = nil
	s.b = nil
	s.mean = nil
	s.r = nil
	s.y = nil
	s.dy = nil
	s.dx = nil
}

func (e *engine[T]) GCNForward(l *backend.GCNLayer) {
	s := e.setGCN(l)
	defer s.release()
	if !l.Running {
		s.moments = grow(s.moments, len(s.blocks)*2*s.in)
		e.pool.do((*gcnMomentsTask[T])(s), len(s.blocks), 1)
		s.statistics(s.mean, e.data(l.Var), s.in)
	}
	s.affine(e.data(l.Gamma), e.data(l.Beta), s.mean, e.data(l.Var), l.Eps)
	e.pool.do((*gcnForwardTask[T])(s), len(s.blocks), 1)
	clear(s.r[s.nodes()*s.out:]) // padding
	clear(s.y[s.nodes()*s.out:])
}

type gcnMomentsTask[T float] gcnState[T]

func (t *gcnMomentsTask[T]) run(lo, hi int) {
	s := (*gcnState[T])(t)
	w := s.scratch.take()
	f := s.in
	w.row = aligned(w.row, 2*f)
	for i := lo; i < hi; i++ {
		if b := s.blocks[i]; b.lo < b.hi {
			x := s.x[b.lo*f : b.hi*f]
			simd.ColSums(w.row[:f], x)
			s.setMoments(i, x, w.row[:f], w.row[f:])
		}
	}
	s.scratch.give(w)
}

// normed sets w.z to batch norm of the block's rows.
func (s *gcnState[T]) normed(b graphBlock, w *gcnScratch[T]) {
	f := s.in
	w.z = aligned(w.z, (b.hi-b.lo)*f)
	simd.AffineRow(w.z, s.x[b.lo*f:b.hi*f], s.coef[2*b.view*f:][:f], s.coef[(2*b.view+1)*f:][:f])
}

type gcnForwardTask[T float] gcnState[T]

func (t *gcnForwardTask[T]) run(lo, hi int) {
	s := (*gcnState[T])(t)
	w := s.scratch.take()
	for i := lo; i < hi; i++ {
		if b := s.blocks[i]; b.lo < b.hi {
			s.forward(b, w)
		}
	}
	s.scratch.give(w)
}

func (s *gcnState[T]) forward(b graphBlock, w *gcnScratch[T]) {
	n := b.hi - b.lo
	in := s.in
	out := s.out
	r := s.r[b.lo*out : b.hi*out]
	s.normed(b, w)
	w.h = aligned(w.h, n*out)
	s.k.gemm(blas.NoTrans, blas.NoTrans, n, out, in, 1, w.z, in, s.w, out, 0, w.h, out)
	w.local(s.ptr, s.adj, b)
	simd.SpMM(r, out, 0, n, w.ptr, w.adj, s.val[s.ptr[b.lo]:s.ptr[b.hi]], w.h, 0)
	simd.AddRowReLU(r, r, s.b)
	if s.residual {
		simd.Add(s.y[b.lo*out:b.hi*out], s.x[b.lo*in:b.hi*in], r)
	}
}

func (e *engine[T]) GCNBackward(l *backend.GCNLayer, g *backend.GCNGradients) {
	s := e.setGCN(l)
	defer s.release()
	s.dy = e.data(g.DY)
	if g.DX != nil {
		s.dx = e.data(g.DX)
	}
	gamma := e.data(l.Gamma)
	beta := e.data(l.Beta)
	variance := e.data(l.Var)
	s.affine(gamma, beta, s.mean, variance, l.Eps)
	size := s.gradients()
	s.partial = aligned(s.partial, len(s.blocks)*size)
	e.pool.do((*gcnBackwardTask[T])(s), len(s.blocks), 1)
	s.normGradients(e.data(g.Gamma), e.data(g.Beta), gamma, s.mean, variance, l.Eps, size)
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
func (s *gcnState[T]) gradients() int { return 2*s.in + (s.in+1)*s.out }

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
	in := s.in
	out := s.out
	size := s.gradients()
	p := s.partial[i*size : (i+1)*size]
	if n == 0 {
		clear(p)
		return
	}
	sum := p[:in]
	proj := p[in : 2*in]
	dw := p[2*in:][:in*out]
	db := p[(2+out)*in:]

	w.d = aligned(w.d, n*max(in, out))
	w.h = aligned(w.h, n*out)
	d := w.d[:n*out]
	simd.Gate(d, s.dy[b.lo*out:b.hi*out], s.r[b.lo*out:b.hi*out])
	simd.ColSums(db, d)
	w.local(s.ptrT, s.adjT, b)
	simd.SpMM(w.h, out, 0, n, w.ptr, w.adj, s.valT[s.ptrT[b.lo]:s.ptrT[b.hi]], d, 0)
	s.normed(b, w)
	s.k.gemm(blas.Trans, blas.NoTrans, in, out, n, 1, w.z, in, w.h, out, 0, dw, out)
	dz := w.d[:n*in]
	if s.dx != nil {
		dz = s.dx[b.lo*in : b.hi*in]
	}
	s.k.gemm(blas.NoTrans, blas.Trans, n, in, out, 1, w.h, out, s.w, out, 0, dz, in)
	simd.ColSums(sum, dz)
	simd.SubRow(w.z, s.x[b.lo*in:b.hi*in], s.of(b.view, s.mean, in))
	simd.ColDots(proj, dz, w.z)
}

type gcnNormTask[T float] gcnState[T]

func (t *gcnNormTask[T]) run(lo, hi int) {
	s := (*gcnState[T])(t)
	f := s.in
	for i := lo; i < hi; i++ {
		b := s.blocks[i]
		dx := s.dx[b.lo*f : b.hi*f]
		k := s.coef[3*b.view*f:]
		simd.CombineRow(dx, dx, k[:f], s.x[b.lo*f:b.hi*f], k[2*f:3*f], k[f:2*f])
		if s.residual {
			simd.Add(dx, dx, s.dy[b.lo*f:b.hi*f])
		}
	}
}
