package cpu

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
	"gonum.org/v1/gonum/blas"
)

// This file has both losses of contrastive training in one call. They are functions
// of the similarities S = U·Uᵀ, which are computed once, in panels of a hundred rows
// that become e^(s/τ) while they are in cache; the diagonal blocks, which the
// Laplacian loss needs, are copied out on the way.
//
// Backward, S is symmetric, so dU = (G + Gᵀ)·U with G = ∂L/∂S, and G + Gᵀ is
// cheap to write down row by row:
//
//	NT-Xent    (c/τ)·(E_ij·(1/Z_i + 1/Z_j) - 2·[j = p(i)])
//	Laplacian  κ·A(1-A)∘(4·D_ij·r_i·r_j - w_i - w_j), D = ±(M_1-M_2),
//	           w_i = 2·r_i²·Σ_k D_ik·M_ik
//
// A panel of it is made in cache, multiplied by U, and forgotten: one product
// instead of six, and nothing but E and A of the size of S is ever stored.

// contrastRows is the number of rows of a panel: with a batch of 512, half a
// megabyte.
const contrastRows = 128

type contrastState[T float] struct {
	k          *kernels[T]
	c          *backend.Contrast
	n, d       int
	u, e, invZ []T
	a          [2][]T // A_1 and A_2
	r, w       []T
	theta      [2]T
	least      float64 // degree of a node that is not isolated
	du         []T
	alphaC     T         // of NT-Xent's part of G + Gᵀ
	alphaG     T         // of the Laplacian's part
	terms      []float64 // of the losses, one for each row
	scratch    freeList[contrastScratch[T]]
	tiledState[T]
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

func (e *engine[T]) ContrastTiles() bool { return true }

// release drops the references to the operands.
func (s *contrastState[T]) release() {
	s.c = nil
	s.u = nil
	s.e = nil
	s.invZ = nil
	s.r = nil
	s.w = nil
	s.du = nil
	s.a = [2][]T{}
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

type contrastForwardTask[T float] contrastState[T]

// run computes rows lo..hi-1 of S, keeps the diagonal blocks, and turns them
// into E.
func (t *contrastForwardTask[T]) run(lo, hi int) {
	s := (*contrastState[T])(t)
	n := s.n
	m := 2 * s.n
	d := s.d
	s.k.exact(blas.NoTrans, blas.Trans, hi-lo, m, d, 1, s.u[lo*d:], d, s.u, d, 0, s.e[lo*m:], m)
	tau := s.c.Temperature
	for i := lo; i < hi; i++ {
		row := s.e[i*m : (i+1)*m]
		if s.c.Match {
			v := i / n
			copy(s.a[v][(i-v*n)*n:(i-v*n+1)*n], row[v*n:(v+1)*n])
		}
		positive := float64(row[(i+n)%m])
		row[i] = T(math.Inf(-1))
		z := simd.ExpSum(row, T(1/tau), row, T(-1/tau))
		s.invZ[i] = 1 / z
		s.terms[i] = math.Log(float64(z)) + (1-positive)/tau
	}
}

type contrastThresholdTask[T float] contrastState[T]

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
		row := s.a[v][k*n : (k+1)*n]
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

// run sets the loss of rows lo..hi-1 and w.
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
		u1 := float64(simd.Dot(diff, m1))
		u2 := float64(simd.Dot(diff, m2))
		s.terms[i] = float64(simd.SumSquares(diff))
		s.w[i] = T(2 * u1 * float64(s.r[i]) * float64(s.r[i]))
		s.w[n+i] = T(-2 * u2 * float64(s.r[n+i]) * float64(s.r[n+i]))
	}
	s.scratch.give(w)
}

func (s *contrastState[T]) difference(i int, m1, m2, diff []T) {
	n := s.n
	simd.Mul(m1, s.a[0][i*n:(i+1)*n], s.r[:n])
	simd.Scale(m1, s.r[i], m1)
	simd.Mul(m2, s.a[1][i*n:(i+1)*n], s.r[n:])
	simd.Scale(m2, s.r[n+i], m2)
	simd.Sub(diff, m1, m2)
}

func (e *engine[T]) ContrastBackward(c *backend.Contrast, dc, dg, du *tensor.Tensor) {
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

func (t *contrastBackwardTask[T]) run(lo, hi int) {
	s := (*contrastState[T])(t)
	n := s.n
	m := 2 * s.n
	d := s.d
	w := s.scratch.take()
	w.panel = aligned(w.panel, (hi-lo)*m)
	w.rows = aligned(w.rows, 4*n)
	tmp := w.rows[:n]
	for i := lo; i < hi; i++ {
		row := w.panel[(i-lo)*m : (i-lo+1)*m]
		if s.alphaC != 0 {
			simd.Affine(row, s.alphaC, s.invZ, s.alphaC*s.invZ[i])
			simd.Mul(row, row, s.e[i*m:(i+1)*m])
			row[(i+n)%m] -= 2 * s.alphaC
		} else {
			clear(row)
		}
		if s.alphaG == 0 {
			continue
		}
		v := i / n
		k := i - v*n
		half := row[v*n : (v+1)*n]
		r := s.r[v*n : (v+1)*n]
		wv := s.w[v*n : (v+1)*n]
		diff := w.rows[n : 2*n]
		s.difference(k, w.rows[2*n:3*n], w.rows[3*n:4*n], diff)
		sign := T(1 - 2*v)
		simd.Mul(diff, diff, r)
		simd.Axpby(diff, 4*sign*r[k], diff, -1, wv)
		simd.Affine(diff, s.alphaG, diff, -s.alphaG*wv[k])
		// A - A², zero on the diagonal as A is.
		a := s.a[v][k*n : (k+1)*n]
		simd.Mul(tmp, a, a)
		simd.Sub(tmp, a, tmp)
		simd.Mul(diff, diff, tmp)
		simd.Add(half, half, diff)
	}
	s.k.exact(blas.NoTrans, blas.NoTrans, hi-lo, d, m, 1, w.panel, m, s.u, d, 0, s.du[lo*d:], d)
	s.scratch.give(w)
}
