package cpu

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
)

// This file computes both losses of contrastive training in one call. They are
// functions of the similarities S = U·Uᵀ, which are computed once, in panels of a
// hundred rows that become e^(s/τ) while they are in cache. The Laplacian loss needs
// the diagonal blocks, which are copied out on the way.
//
// Backward, S is symmetric, so dU = (G + Gᵀ)·U with G = ∂L/∂S, and G + Gᵀ is
// cheap to compute row by row:
//
//	NT-Xent    (c/τ)·(E_ij·(1/Z_i + 1/Z_j) - 2·[j = p(i)])
//	Laplacian  κ·A(1-A)∘(4·D_ij·r_i·r_j - w_i - w_j), D = ±(M_1-M_2),
//	           w_i = 2·r_i²·Σ_k D_ik·M_ik
//
// A panel of it is made in cache, multiplied by U, and dropped: one product
// instead of six, and only E and A, of the size of S, are ever stored.

// contrastRows is the number of rows of a panel: with a batch of 512, half a
// megabyte.
const contrastRows = 128

type contrastState[T float] struct {
	contrastOperands[T]
	k       *kernels[T]
	n, d    int
	theta   [2]T
	least   float64   // degree below which a node is isolated
	alphaC  T         // factor of NT-Xent's part of G + Gᵀ
	alphaG  T         // factor of the Laplacian's part
	terms   []float64 // of the losses, one for each row
	scratch freeList[contrastScratch[T]]
	tiledState[T]
}

// contrastOperands are the operands of the call in progress.
type contrastOperands[T float] struct {
	c          *backend.Contrast
	u, e, invZ []T
	a          [2][]T // A_1 and A_2
	r, w       []T
	du         []T
}

// contrastScratch is the memory of one worker.
type contrastScratch[T float] struct {
	panel, rows []T
	tiles       [6][]T
	counts      *[2]digitCounts // of the views
}

func (e *engine[T]) setContrast(c *backend.Contrast) *contrastState[T] {
	s := &e.contrast
	s.n, s.d = backend.CheckContrast(c)
	s.k = &e.k
	s.c = c
	s.u = e.data(c.U)
	if c.LossC != nil {
		s.invZ = e.data(c.InvZ)
	}
	if c.Match {
		s.least = backend.LeastDegree(e.precision)
		s.r = e.data(c.R)
		s.w = e.data(c.W)
	}
	if c.E != nil {
		s.e = e.data(c.E)
		if c.Match {
			s.a = [2][]T{e.data(c.A1), e.data(c.A2)}
		}
	}
	return s
}

func (e *engine[T]) ContrastTiles() bool {
	return true
}

// release drops the references to the operands.
func (s *contrastState[T]) release() {
	s.contrastOperands = contrastOperands[T]{}
	s.visit = nil
}

func (e *engine[T]) ContrastForward(c *backend.Contrast) {
	s := e.setContrast(c)
	defer s.release()
	if c.E == nil {
		e.forwardTiles(c)
		return
	}
	m := 2 * s.n
	s.terms = grow(s.terms, m)
	e.pool.do((*contrastForwardTask[T])(s), m, contrastRows)
	e.data(c.LossC)[0] = T(c.Scale * sum(s.terms))
	if !c.Match {
		return
	}
	e.pool.share((*contrastThresholdTask[T])(s), 2, 1)
	rows := rowsPer(costly, s.n)
	e.pool.do((*contrastGraphTask[T])(s), m, rows)
	e.pool.do((*contrastMatchTask[T])(s), s.n, rows)
	e.data(c.LossG)[0] = T(sum(s.terms[:s.n]))
}

func sum(x []float64) (total float64) {
	for _, v := range x {
		total += v
	}
	return total
}

// view returns the view of row i, its number k in the view, and the view's part of
// a row of S.
func (s *contrastState[T]) view(i int, row []T) (v, k int, part []T) {
	v = i / s.n
	return v, i - v*s.n, rowOf(row, v, s.n)
}

type contrastForwardTask[T float] contrastState[T]

// run computes rows lo..hi-1 of S, keeps the diagonal blocks, and turns them
// into E.
func (t *contrastForwardTask[T]) run(lo, hi int) {
	s := (*contrastState[T])(t)
	n := s.n
	m := 2 * n
	s.k.exact.multiplyNT(s.e[lo*m:], s.u[lo*s.d:], s.u, hi-lo, m, s.d)
	tau := s.c.Temperature
	for i := lo; i < hi; i++ {
		row := rowOf(s.e, i, m)
		if s.c.Match {
			v, k, part := s.view(i, row)
			copy(rowOf(s.a[v], k, n), part)
		}
		positive := float64(row[(i+n)%m])
		row[i] = T(math.Inf(-1))
		z := simd.ExpSum(row, T(1/tau), row, T(-1/tau))
		s.invZ[i] = 1 / z
		s.terms[i] = math.Log(float64(z)) + (1-positive)/tau
	}
}

type contrastThresholdTask[T float] contrastState[T]

// run sets θ of views lo..hi-1.
func (t *contrastThresholdTask[T]) run(lo, hi int) {
	s := (*contrastState[T])(t)
	for v := lo; v < hi; v++ {
		s.theta[v] = upperPercentile(s.k, s.a[v], s.n, s.c.Percentile, nil)
	}
}

type contrastGraphTask[T float] contrastState[T]

// run turns similarities into the adjacency and its d^-½.
func (t *contrastGraphTask[T]) run(lo, hi int) {
	s := (*contrastState[T])(t)
	n := s.n
	kappa := T(s.c.Kappa)
	for i := lo; i < hi; i++ {
		v := i / n
		k := i - v*n
		row := rowOf(s.a[v], k, n)
		simd.Affine(row, kappa, row, -kappa*s.theta[v])
		simd.Sigmoid(row, row)
		row[k] = 0
		s.r[i] = 0
		if degree := float64(simd.Sum(row)); !(degree < s.least) {
			s.r[i] = T(1 / math.Sqrt(degree))
		}
	}
}

type contrastMatchTask[T float] contrastState[T]

// run sets the loss of rows lo..hi-1 of M_1 - M_2, and w of both views.
func (t *contrastMatchTask[T]) run(lo, hi int) {
	s := (*contrastState[T])(t)
	n := s.n
	w := s.scratch.take()
	w.rows = aligned(w.rows, 3*n)
	m1 := w.rows[:n]
	m2 := w.rows[n : 2*n]
	diff := w.rows[2*n : 3*n]
	for i := lo; i < hi; i++ {
		s.difference(i, m1, m2, diff)
		s.terms[i] = float64(simd.SumSquares(diff))
		u1 := float64(simd.Dot(diff, m1))
		r1 := float64(s.r[i])
		s.w[i] = T(2 * u1 * r1 * r1)
		u2 := float64(simd.Dot(diff, m2))
		r2 := float64(s.r[n+i])
		s.w[n+i] = T(-2 * u2 * r2 * r2)
	}
	s.scratch.give(w)
}

// difference sets m1, m2 and diff to row i of M_1, M_2 and M_1 - M_2.
func (s *contrastState[T]) difference(i int, m1, m2, diff []T) {
	n := s.n
	simd.Mul(m1, rowOf(s.a[0], i, n), s.r[:n])
	simd.Scale(m1, s.r[i], m1)
	simd.Mul(m2, rowOf(s.a[1], i, n), s.r[n:])
	simd.Scale(m2, s.r[n+i], m2)
	simd.Sub(diff, m1, m2)
}

func (e *engine[T]) ContrastBackward(
	c *backend.Contrast, dc, dg, du *tensor.Tensor,
) {
	backend.CheckSame("backend: ContrastBackward", du, c.U)
	s := e.setContrast(c)
	defer s.release()
	s.du = e.data(du)
	s.alphaC = 0
	s.alphaG = 0
	if dc != nil {
		s.alphaC = T(float64(e.data(dc)[0]) * c.Scale / c.Temperature)
	}
	if dg != nil {
		s.alphaG = T(float64(e.data(dg)[0]) * c.Kappa)
	}
	if c.E == nil {
		clear(s.du)
		e.tiles((*contrastState[T]).backwardTile)
		return
	}
	e.pool.do((*contrastBackwardTask[T])(s), 2*s.n, contrastRows)
}

type contrastBackwardTask[T float] contrastState[T]

// run sets rows lo..hi-1 of dU.
func (t *contrastBackwardTask[T]) run(lo, hi int) {
	s := (*contrastState[T])(t)
	n := s.n
	m := 2 * n
	w := s.scratch.take()
	w.panel = aligned(w.panel, (hi-lo)*m)
	w.rows = aligned(w.rows, 4*n)
	for i := lo; i < hi; i++ {
		row := rowOf(w.panel, i-lo, m)
		if s.alphaC != 0 {
			simd.Affine(row, s.alphaC, s.invZ, s.alphaC*s.invZ[i])
			simd.Mul(row, row, rowOf(s.e, i, m))
			row[(i+n)%m] -= 2 * s.alphaC
		} else {
			clear(row)
		}
		if s.alphaG != 0 {
			s.addMatchGradient(row, i, w.rows)
		}
	}
	s.k.exact.multiply(s.du[lo*s.d:], w.panel, s.u, hi-lo, s.d, m)
	s.scratch.give(w)
}

// addMatchGradient adds the Laplacian's part of row i of G + Gᵀ to row. scratch holds
// four rows of n elements.
func (s *contrastState[T]) addMatchGradient(row []T, i int, scratch []T) {
	n := s.n
	v, k, part := s.view(i, row)
	r := rowOf(s.r, v, n)
	wv := rowOf(s.w, v, n)
	product := rowOf(scratch, 0, n)
	diff := rowOf(scratch, 1, n)
	s.difference(k, rowOf(scratch, 2, n), rowOf(scratch, 3, n), diff)
	sign := T(1 - 2*v)
	simd.Mul(diff, diff, r)
	simd.Axpby(diff, 4*sign*r[k], diff, -1, wv)
	simd.Affine(diff, s.alphaG, diff, -s.alphaG*wv[k])
	// A - A², zero on the diagonal as A is.
	a := rowOf(s.a[v], k, n)
	simd.Mul(product, a, a)
	simd.Sub(product, a, product)
	simd.Mul(diff, diff, product)
	simd.Add(part, part, diff)
}
