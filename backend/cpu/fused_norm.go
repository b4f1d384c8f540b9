package cpu

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
)

// This file has batch norm, its running statistics, and bias with ReLU, in one call
// each. As primitives batch norm is a dozen passes over the N×F activations. Here a
// block of rows goes through all steps while it is in the first- or second-level
// cache:
//
//	forward   per block   mean and squared deviations
//	          barrier     statistics of the groups
//	          per block   x → y
//	backward  per block   Σdy, Σdy∘(x-μ)
//	          barrier     → k1, k2, k3, dγ, dβ
//	          per block   dx = k1·dy + k2 + k3·(x-μ)
//
// Blocks depend on shapes only, and what they contribute to a sum is kept apart
// and added in their order: equal bits for any number of workers.

// normBlock is the rows lo..hi-1 of a group, which count as that many rows.
type normBlock struct {
	lo, hi, group int
	count         float64
}

type normState[T float] struct {
	f                  int
	relu               bool
	x, y, dy, dx, mean []T
	weights            []T // nil: all 1
	coef               []T // rows of f numbers for each group
	blocks             []normBlock
	moments            []float64 // [blocks × 2f]
	sum, proj, total   []float64
	scratch            freeList[normScratch[T]]
}

// normScratch is the memory of one worker: two blocks of rows, and two rows.
type normScratch[T float] struct{ d, c, row []T }

// take returns scratch for blocks of n elements.
func (s *normState[T]) take(n int) *normScratch[T] {
	w := s.scratch.take()
	w.d = aligned(w.d, n)
	w.c = aligned(w.c, n)
	w.row = aligned(w.row, 2*s.f)
	return w
}

// setNorm reads the operands and cuts the groups into blocks.
func (e *engine[T]) setNorm(n *backend.Norm) *normState[T] {
	backend.CheckNorm(n)
	s := &e.norm
	s.f = n.X.Cols
	s.relu = n.ReLU
	s.x = e.data(n.X)
	s.y = e.data(n.Y)
	s.mean = e.data(n.Mean)
	if n.Weights != nil {
		s.weights = e.data(n.Weights)
	}
	s.blocks = s.blocks[:0]
	s.total = grow(s.total, n.Groups.Len()-1)
	rows := s.rows()
	for g := range n.Groups.Len() - 1 {
		s.total[g] = 0
		end := int(n.Groups.Host[g+1])
		for lo := int(n.Groups.Host[g]); lo < end; lo += rows {
			b := normBlock{lo, min(lo+rows, end), g, 0}
			b.count = float64(b.hi - b.lo)
			if s.weights != nil {
				b.count = 0
				for _, w := range s.weights[b.lo:b.hi] {
					b.count += float64(w)
				}
			}
			s.blocks = append(s.blocks, b)
			s.total[g] += b.count
		}
	}
	s.moments = grow(s.moments, len(s.blocks)*2*s.f)
	s.sum = grow(s.sum, s.f)
	s.proj = grow(s.proj, s.f)
	return s
}

func (s *normState[T]) rows() int { return rowsPer(grain, s.f) }

func (s *normState[T]) release() {
	s.x = nil
	s.y = nil
	s.dy = nil
	s.dx = nil
	s.mean = nil
	s.weights = nil
}

func (e *engine[T]) NormOperands() (bias, weights bool) { return false, true }

func (e *engine[T]) NormForward(n *backend.Norm) {
	s := e.setNorm(n)
	defer s.release()
	e.pool.do((*normMomentsTask[T])(s), len(s.blocks), 1)

	// The moments of the blocks become those of the groups, block after block, in
	// float64.
	f := s.f
	variance := e.data(n.Var)
	gamma := e.data(n.Gamma)
	beta := e.data(n.Beta)
	groups := n.Groups.Len() - 1
	s.coef = aligned(s.coef, (groups+1)*f)
	copy(s.coef[groups*f:], beta)
	at := 0
	for g := range groups {
		m := s.sum
		m2 := s.proj
		clear(m)
		clear(m2)
		count := 0.0
		for ; at < len(s.blocks) && s.blocks[at].group == g; at++ {
			k := s.blocks[at].count
			addMoments(m, m2, count, s.moments[at*2*f:(at+1)*2*f], k)
			count += k
		}
		scale := s.coef[g*f : (g+1)*f]
		for j := range f {
			v := m2[j] / max(count, 1)
			s.mean[g*f+j], variance[g*f+j] = T(m[j]), T(v)
			scale[j] = T(float64(gamma[j]) / math.Sqrt(float64(variance[g*f+j])+n.Eps))
		}
	}
	e.pool.do((*normApplyTask[T])(s), len(s.blocks), 1)
	clear(s.y[int(n.Groups.Host[groups])*f:]) // padding
}

type normMomentsTask[T float] normState[T]

func (t *normMomentsTask[T]) run(lo, hi int) {
	s := (*normState[T])(t)
	f := s.f
	size := 0
	if s.weights != nil {
		size = s.rows() * f
	}
	w := s.take(size)
	mean := w.row[:f]
	squares := w.row[f:]
	for i := lo; i < hi; i++ {
		b := s.blocks[i]
		x := s.x[b.lo*f : b.hi*f]
		if s.weights == nil {
			simd.ColSums(mean, x)
			simd.Scale(mean, 1/T(b.count), mean)
			simd.ColSquares(squares, x, mean)
		} else {
			weighted := w.d[:len(x)]
			centred := w.c[:len(x)]
			simd.MulCol(weighted, x, s.weights[b.lo:b.hi])
			simd.ColSums(mean, weighted)
			simd.Scale(mean, 1/T(b.count), mean)
			simd.SubRow(centred, x, mean)
			simd.MulCol(weighted, centred, s.weights[b.lo:b.hi])
			simd.ColDots(squares, weighted, centred)
		}
		for j := range f {
			s.moments[i*2*f+j], s.moments[(i*2+1)*f+j] = float64(mean[j]), float64(squares[j])
		}
	}
	s.scratch.give(w)
}

type normApplyTask[T float] normState[T]

func (t *normApplyTask[T]) run(lo, hi int) {
	s := (*normState[T])(t)
	f := s.f
	beta := s.coef[len(s.coef)-f:]
	for i := lo; i < hi; i++ {
		b := s.blocks[i]
		y := s.y[b.lo*f : b.hi*f]
		simd.SubRow(y, s.x[b.lo*f:b.hi*f], s.mean[b.group*f:(b.group+1)*f])
		simd.AffineRow(y, y, s.coef[b.group*f:(b.group+1)*f], beta)
		if s.relu {
			simd.ReLU(y, y)
		}
	}
}

func (e *engine[T]) NormBackward(n *backend.Norm, g *backend.NormGradients) {
	s := e.setNorm(n)
	defer s.release()
	s.dy = e.data(g.DY)
	e.pool.do((*normSumsTask[T])(s), len(s.blocks), 1)

	f := s.f
	gamma := e.data(n.Gamma)
	variance := e.data(n.Var)
	dGamma := e.data(g.Gamma)
	dBeta := e.data(g.Beta)
	clear(dGamma)
	clear(dBeta)
	groups := n.Groups.Len() - 1
	s.coef = aligned(s.coef, groups*3*f)
	at := 0
	for v := range groups {
		clear(s.sum)
		clear(s.proj)
		for ; at < len(s.blocks) && s.blocks[at].group == v; at++ {
			x := s.moments[at*2*f : (at+1)*2*f]
			for j := range f {
				s.sum[j] += x[j]
				s.proj[j] += x[f+j]
			}
		}
		rows := max(s.total[v], 1)
		k1 := s.coef[3*v*f:][:f]
		k2 := s.coef[(3*v+1)*f:][:f]
		k3 := s.coef[(3*v+2)*f:][:f]
		for j := range f {
			rstd := 1 / math.Sqrt(float64(variance[v*f+j])+n.Eps)
			dGamma[j] += T(s.proj[j] * rstd)
			dBeta[j] += T(s.sum[j])
			a := float64(gamma[j]) * rstd
			k1[j], k2[j], k3[j] = T(a), T(-a*s.sum[j]/rows), T(-a*rstd*rstd*s.proj[j]/rows)
		}
	}
	if g.DX != nil {
		s.dx = e.data(g.DX)
		e.pool.do((*normBackwardTask[T])(s), len(s.blocks), 1)
		clear(s.dx[int(n.Groups.Host[groups])*f:])
	}
}

// gated returns the block's dy, through the ReLU if there is one, and x-μ.
func (s *normState[T]) gated(b normBlock, w *normScratch[T]) (dy, c []T) {
	f := s.f
	dy = s.dy[b.lo*f : b.hi*f]
	if s.relu {
		d := w.d[:len(dy)]
		simd.Gate(d, dy, s.y[b.lo*f:b.hi*f])
		dy = d
	}
	c = w.c[:len(dy)]
	simd.SubRow(c, s.x[b.lo*f:b.hi*f], s.mean[b.group*f:(b.group+1)*f])
	return dy, c
}

type normSumsTask[T float] normState[T]

func (t *normSumsTask[T]) run(lo, hi int) {
	s := (*normState[T])(t)
	f := s.f
	w := s.take(s.rows() * f)
	sum := w.row[:f]
	proj := w.row[f:]
	for i := lo; i < hi; i++ {
		dy, c := s.gated(s.blocks[i], w)
		simd.ColSums(sum, dy)
		simd.ColDots(proj, dy, c)
		for j := range f {
			s.moments[i*2*f+j], s.moments[(i*2+1)*f+j] = float64(sum[j]), float64(proj[j])
		}
	}
	s.scratch.give(w)
}

type normBackwardTask[T float] normState[T]

func (t *normBackwardTask[T]) run(lo, hi int) {
	s := (*normState[T])(t)
	f := s.f
	w := s.take(s.rows() * f)
	for i := lo; i < hi; i++ {
		b := s.blocks[i]
		dy, c := s.gated(b, w)
		k := s.coef[3*b.group*f:]
		dx := s.dx[b.lo*f : b.hi*f]
		if s.weights == nil {
			simd.CombineRow(dx, dy, k[:f], c, k[2*f:3*f], k[f:2*f])
		} else {
			simd.AffineRow(c, c, k[2*f:3*f], k[f:2*f])
			simd.MulCol(c, c, s.weights[b.lo:b.hi])
			simd.MulRow(dx, dy, k[:f])
			simd.Add(dx, dx, c)
		}
	}
	s.scratch.give(w)
}

func (e *engine[T]) TrackStatistics(
	runningMean, runningVar, mean, variance *tensor.Tensor, groups *backend.Indices, momentum float64,
) {
	backend.CheckTrack(runningMean, runningVar, mean, variance, groups)
	f := mean.Cols
	rm := e.data(runningMean)
	rv := e.data(runningVar)
	m := e.data(mean)
	v := e.data(variance)
	for g := range mean.Rows {
		n := float64(groups.Host[g+1] - groups.Host[g])
		if n == 0 {
			continue
		}
		unbiased := n / max(n-1, 1)
		simd.Axpby(rm, T(1-momentum), rm, T(momentum), m[g*f:(g+1)*f])
		simd.Axpby(rv, T(1-momentum), rv, T(momentum*unbiased), v[g*f:(g+1)*f])
	}
}

func (e *engine[T]) BiasReLU(y, x, b *tensor.Tensor) {
	backend.CheckRow("backend: BiasReLU", y, x, b)
	e.binary(y, x, b, e.k.biasReLU, x.Rows, x.Cols, 0)
}

func (e *engine[T]) BiasReLUBackward(dx, db, dy, y *tensor.Tensor) {
	backend.CheckSame("backend: BiasReLUBackward", dx, dy, y)
	backend.CheckColSums(db, dx)
	per := rowsPer(grain, dx.Cols)
	chunks := (dx.Rows + per - 1) / per
	e.partial = grow(e.partial, chunks*dx.Cols)
	t := &e.task
	t.dst = e.data(dx)
	t.a = e.data(dy)
	t.b = e.data(y)
	t.c = e.partial
	t.cols = dx.Cols
	t.n = per
	e.pool.do((*biasBackwardTask[T])(t), dx.Rows, per)
	simd.ColSums(e.data(db), e.partial)
}

type biasBackwardTask[T float] args[T]

func (t *biasBackwardTask[T]) run(lo, hi int) {
	dx := t.dst[lo*t.cols : hi*t.cols]
	simd.Gate(dx, t.a[lo*t.cols:hi*t.cols], t.b[lo*t.cols:hi*t.cols])
	c := lo / t.n * t.cols
	simd.ColSums(t.c[c:c+t.cols], dx)
}
