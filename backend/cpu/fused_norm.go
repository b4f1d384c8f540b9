package cpu

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
)

// This file computes batch norm, its running statistics, and bias with ReLU, in one
// call each. As primitives batch norm is a dozen passes over the N×F activations. Here a
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
// Blocks depend on shapes only. Their contributions to a sum are stored apart and
// added in the order of the blocks: equal bits for any number of workers.

// normBlock is the rows lo..hi-1 of a group; count is their total weight.
type normBlock struct {
	lo, hi, group int
	count         float64
}

type normState[T float] struct {
	normOperands[T]
	f                int
	coef             []T // rows of f numbers for each group
	blocks           []normBlock
	moments          []float64 // [blocks × 2f]
	sum, proj, total []float64
	scratch          freeList[normScratch[T]]
}

// normOperands are the operands of the call in progress.
type normOperands[T float] struct {
	relu               bool
	x, y, dy, dx, mean []T
	weights            []T // nil: all 1
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
	s.normOperands = normOperands[T]{
		relu:    n.ReLU,
		x:       e.data(n.X),
		y:       e.data(n.Y),
		mean:    e.data(n.Mean),
		weights: e.optional(n.Weights),
	}
	s.blocks = s.blocks[:0]
	groups := n.Groups.Len() - 1
	s.total = grow(s.total, groups)
	rows := s.rows()
	for g := range groups {
		s.total[g] = 0
		end := int(n.Groups.Host[g+1])
		for lo := int(n.Groups.Host[g]); lo < end; lo += rows {
			b := normBlock{lo: lo, hi: min(lo+rows, end), group: g}
			b.count = s.weight(b)
			s.blocks = append(s.blocks, b)
			s.total[g] += b.count
		}
	}
	s.moments = grow(s.moments, len(s.blocks)*2*s.f)
	s.sum = grow(s.sum, s.f)
	s.proj = grow(s.proj, s.f)
	return s
}

// rows returns the number of rows of a block.
func (s *normState[T]) rows() int {
	return rowsPer(grain, s.f)
}

// weight returns the total weight of the block's rows.
func (s *normState[T]) weight(b normBlock) float64 {
	if s.weights == nil {
		return float64(b.hi - b.lo)
	}
	total := 0.0
	for _, w := range s.weights[b.lo:b.hi] {
		total += float64(w)
	}
	return total
}

// release drops the references to the operands.
func (s *normState[T]) release() {
	s.normOperands = normOperands[T]{}
}

func (e *engine[T]) NormOperands() (bias, weights bool) {
	return false, true
}

func (e *engine[T]) NormForward(n *backend.Norm) {
	s := e.setNorm(n)
	defer s.release()
	e.pool.do((*normMomentsTask[T])(s), len(s.blocks), 1)

	// The moments of the blocks become those of the groups, block after block, in
	// float64.
	f := s.f
	variance := e.data(n.Var)
	gamma := e.data(n.Gamma)
	groups := n.Groups.Len() - 1
	s.coef = aligned(s.coef, (groups+1)*f)
	copy(s.coef[groups*f:], e.data(n.Beta))
	i := 0
	m := s.sum
	m2 := s.proj
	for g := range groups {
		clear(m)
		clear(m2)
		count := 0.0
		for ; i < len(s.blocks) && s.blocks[i].group == g; i++ {
			k := s.blocks[i].count
			addMoments(m, m2, count, rowOf(s.moments, i, 2*f), k)
			count += k
		}
		scale := rowOf(s.coef, g, f)
		mean := rowOf(s.mean, g, f)
		sigma2 := rowOf(variance, g, f)
		for j := range f {
			mean[j] = T(m[j])
			sigma2[j] = T(m2[j] / max(count, 1))
			scale[j] = T(
				float64(gamma[j]) / math.Sqrt(float64(sigma2[j])+n.Eps),
			)
		}
	}
	e.pool.do((*normApplyTask[T])(s), len(s.blocks), 1)
	clear(s.y[int(n.Groups.Host[groups])*f:]) // padding
}

// normMomentsTask sets the moments of blocks lo..hi-1.
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
			weights := s.weights[b.lo:b.hi]
			simd.MulCol(weighted, x, weights)
			simd.ColSums(mean, weighted)
			simd.Scale(mean, 1/T(b.count), mean)
			simd.SubRow(centred, x, mean)
			simd.MulCol(weighted, centred, weights)
			simd.ColDots(squares, weighted, centred)
		}
		storePair(s.moments, i, mean, squares)
	}
	s.scratch.give(w)
}

// normApplyTask computes y in blocks lo..hi-1.
type normApplyTask[T float] normState[T]

func (t *normApplyTask[T]) run(lo, hi int) {
	s := (*normState[T])(t)
	f := s.f
	beta := s.coef[len(s.coef)-f:]
	for _, b := range s.blocks[lo:hi] {
		y := s.y[b.lo*f : b.hi*f]
		simd.SubRow(y, s.x[b.lo*f:b.hi*f], rowOf(s.mean, b.group, f))
		simd.AffineRow(y, y, rowOf(s.coef, b.group, f), beta)
		if s.relu {
			simd.ReLU(y, y)
		}
	}
}

func (e *engine[T]) NormBackward(
	n *backend.Norm, g *backend.NormGradients,
) {
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
	i := 0
	for v := range groups {
		// The sums of the group, block after block.
		clear(s.sum)
		clear(s.proj)
		for ; i < len(s.blocks) && s.blocks[i].group == v; i++ {
			x := rowOf(s.moments, i, 2*f)
			for j := range f {
				s.sum[j] += x[j]
				s.proj[j] += x[f+j]
			}
		}

		// The coefficients of its gradient.
		rows := max(s.total[v], 1)
		k1 := rowOf(s.coef, 3*v, f)
		k2 := rowOf(s.coef, 3*v+1, f)
		k3 := rowOf(s.coef, 3*v+2, f)
		for j := range f {
			rstd := 1 / math.Sqrt(float64(variance[v*f+j])+n.Eps)
			dGamma[j] += T(s.proj[j] * rstd)
			dBeta[j] += T(s.sum[j])
			a := float64(gamma[j]) * rstd
			k1[j] = T(a)
			k2[j] = T(-a * s.sum[j] / rows)
			k3[j] = T(-a * rstd * rstd * s.proj[j] / rows)
		}
	}
	if g.DX != nil {
		s.dx = e.data(g.DX)
		e.pool.do((*normBackwardTask[T])(s), len(s.blocks), 1)
		clear(s.dx[int(n.Groups.Host[groups])*f:])
	}
}

// gated returns the block's dy, through the ReLU if there is one, and x-μ.
func (s *normState[T]) gated(
	b normBlock, w *normScratch[T],
) (dy, centred []T) {
	f := s.f
	dy = s.dy[b.lo*f : b.hi*f]
	if s.relu {
		d := w.d[:len(dy)]
		simd.Gate(d, dy, s.y[b.lo*f:b.hi*f])
		dy = d
	}
	centred = w.c[:len(dy)]
	simd.SubRow(centred, s.x[b.lo*f:b.hi*f], rowOf(s.mean, b.group, f))
	return dy, centred
}

// normSumsTask sets Σdy and Σdy∘(x-μ) of blocks lo..hi-1, in place of their moments.
type normSumsTask[T float] normState[T]

func (t *normSumsTask[T]) run(lo, hi int) {
	s := (*normState[T])(t)
	w := s.take(s.rows() * s.f)
	sum := w.row[:s.f]
	proj := w.row[s.f:]
	for i := lo; i < hi; i++ {
		dy, centred := s.gated(s.blocks[i], w)
		simd.ColSums(sum, dy)
		simd.ColDots(proj, dy, centred)
		storePair(s.moments, i, sum, proj)
	}
	s.scratch.give(w)
}

// normBackwardTask computes dx in blocks lo..hi-1.
type normBackwardTask[T float] normState[T]

func (t *normBackwardTask[T]) run(lo, hi int) {
	s := (*normState[T])(t)
	f := s.f
	w := s.take(s.rows() * f)
	for _, b := range s.blocks[lo:hi] {
		dy, centred := s.gated(b, w)
		k1 := rowOf(s.coef, 3*b.group, f)
		k2 := rowOf(s.coef, 3*b.group+1, f)
		k3 := rowOf(s.coef, 3*b.group+2, f)
		dx := s.dx[b.lo*f : b.hi*f]
		if s.weights == nil {
			simd.CombineRow(dx, dy, k1, centred, k3, k2)
		} else {
			simd.AffineRow(centred, centred, k3, k2)
			simd.MulCol(centred, centred, s.weights[b.lo:b.hi])
			simd.MulRow(dx, dy, k1)
			simd.Add(dx, dx, centred)
		}
	}
	s.scratch.give(w)
}

func (e *engine[T]) TrackStatistics(
	runningMean, runningVar, mean, variance *tensor.Tensor,
	groups *backend.Indices,
	momentum float64,
) {
	backend.CheckTrack(runningMean, runningVar, mean, variance, groups)
	f := mean.Cols
	rm := e.data(runningMean)
	rv := e.data(runningVar)
	m := e.data(mean)
	v := e.data(variance)
	keep := T(1 - momentum)
	for g := range mean.Rows {
		n := float64(groups.Host[g+1] - groups.Host[g])
		if n == 0 {
			continue
		}
		unbiased := n / max(n-1, 1)
		simd.Axpby(rm, keep, rm, T(momentum), rowOf(m, g, f))
		simd.Axpby(rv, keep, rv, T(momentum*unbiased), rowOf(v, g, f))
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
	chunk := lo / t.n
	lo *= t.cols
	hi *= t.cols
	dx := t.dst[lo:hi]
	simd.Gate(dx, t.a[lo:hi], t.b[lo:hi])
	simd.ColSums(rowOf(t.c, chunk, t.cols), dx)
}
