package cpu

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"gonum.org/v1/gonum/blas"
)

// This file has the losses of fused_contrast.go in memory that is linear in the batch:
// nothing of the size of S is kept, and backward computes S again.
//
// The graphs are cut into K blocks. A tile is the similarities of the graphs of block I
// with those of block J ≥ I, in both views. As S is symmetric a tile serves the rows of
// both blocks, which halves the products and exponentials and so pays for computing
// them again. In round r of K, block I meets block (r-I) mod K. No block is in two tiles
// of a round, so the tiles of a round may add to the rows of their blocks in
// parallel, and a row gets its terms in the order of the rounds. The passes are:
//
//	Z of NT-Xent, and the first digit of both θ
//	the other digits
//	degrees
//	L_G and w
//	backward: dU

// tileGraphs is the number of graphs of a block, so that the matrices of a tile fit the
// second-level cache.
const tileGraphs = 128

// tiledState is what a contrastState needs besides for losses in tiles.
type tiledState[T float] struct {
	visit  func(s *contrastState[T], w *contrastScratch[T], i, j int) // a tile
	round  int
	sums   []float64 // of the pass, one for each row of S
	search [2]search // of θ
}

// A rowBlock is rows lo..lo+n-1 of U.
type rowBlock struct{ lo, n int }

func (s *contrastState[T]) block(i, v int) rowBlock {
	return rowBlock{v*s.n + i*tileGraphs, min(tileGraphs, s.n-i*tileGraphs)}
}

func (e *engine[T]) tiles(visit func(s *contrastState[T], w *contrastScratch[T], i, j int)) {
	s := &e.contrast
	s.visit = visit
	s.sums = grow(s.sums, 2*s.n)
	clear(s.sums)
	blocks := (s.n + tileGraphs - 1) / tileGraphs
	for s.round = range blocks {
		e.pool.share((*contrastTileTask[T])(s), blocks, 1)
	}
}

type contrastTileTask[T float] contrastState[T]

// run visits the tiles of the round whose first block is one of lo..hi-1.
func (t *contrastTileTask[T]) run(lo, hi int) {
	s := (*contrastState[T])(t)
	blocks := (s.n + tileGraphs - 1) / tileGraphs
	for i := lo; i < hi; i++ {
		if j := (s.round - i + blocks) % blocks; i <= j {
			w := s.scratch.take()
			w.rows = aligned(w.rows, tileGraphs)
			for k := range w.tiles {
				w.tiles[k] = aligned(w.tiles[k], tileGraphs*tileGraphs)[:s.block(i, 0).n*s.block(j, 0).n]
			}
			s.visit(s, w, i, j)
			s.scratch.give(w)
		}
	}
}

func (e *engine[T]) forwardTiles(c *backend.Contrast) {
	s := &e.contrast
	anchors := 2 * s.n
	if c.CrossView {
		anchors = s.n
	}
	s.terms = grow(s.terms, 2*s.n)
	pairs := s.n * (s.n - 1) / 2
	var k int
	var second float64
	if c.Match && pairs > 0 {
		k, second = backend.PercentilePosition(pairs, c.Percentile)
		one := newSearch(8*e.precision.Bytes(), k, second != 0)
		s.search = [2]search{one, one}
	}
	e.tiles((*contrastState[T]).firstTile)
	if c.LossC != nil {
		clear(s.invZ)
		for i, z := range s.sums[:anchors] {
			s.invZ[i] = T(1 / z)
			s.terms[i] += math.Log(z)
		}
		e.data(c.LossC)[0] = T(c.Scale * sum(s.terms[:anchors]))
	}
	if !c.Match {
		return
	}
	s.theta = [2]T{}
	if pairs > 0 {
		for s.learn() {
			e.tiles((*contrastState[T]).digitTile)
		}
		for v := range s.theta {
			s.theta[v] = interpolate(
				s.k.ofKey(s.search[v].prefix[0]), s.k.ofKey(s.search[v].prefix[1]), second,
			)
		}
	}
	e.tiles((*contrastState[T]).degreeTile)
	for i, degree := range s.sums {
		s.r[i] = 0
		if !(degree < s.least) {
			s.r[i] = T(1 / math.Sqrt(degree))
		}
	}
	clear(s.terms)
	e.tiles((*contrastState[T]).matchTile)
	for i, u := range s.sums {
		s.w[i] = T(2 * u * float64(s.r[i]) * float64(s.r[i]))
	}
	e.data(c.LossG)[0] = T(sum(s.terms))
}

// learn adds up what the workers have counted, and reports whether θ has another digit.
func (s *contrastState[T]) learn() (more bool) {
	var all *[2]digitCounts
	for _, w := range s.scratch.free {
		switch {
		case w.counts == nil:
		case all == nil:
			all = w.counts
		default:
			all[0].add(&w.counts[0])
			all[1].add(&w.counts[1])
			clear(w.counts[:])
		}
	}
	s.search[0].learn(&all[0])
	return s.search[1].learn(&all[1])
}

// similarities sets x [a.n×b.n] to S of rows a and b.
func (s *contrastState[T]) similarities(x []T, a, b rowBlock) {
	d := s.d
	s.k.exact(blas.NoTrans, blas.Trans, a.n, b.n, d, 1, s.u[a.lo*d:], d, s.u[b.lo*d:], d, 0, x, b.n)
}

// fillDiagonal sets the diagonal of x [n×n].
func fillDiagonal[T float](x []T, n int, v T) {
	for i := 0; i < len(x); i += n + 1 {
		x[i] = v
	}
}

// firstTile adds to Z and counts the first digit of θ.
func (s *contrastState[T]) firstTile(w *contrastScratch[T], i, j int) {
	if s.c.LossC != nil {
		s.crossTile(w, s.block(i, 0), s.block(j, 1))
		if i != j {
			s.crossTile(w, s.block(j, 0), s.block(i, 1))
		}
	}
	within := s.c.LossC != nil && !s.c.CrossView
	if !within && !s.c.Match {
		return
	}
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		x := w.tiles[0]
		s.similarities(x, a, b)
		if s.c.Match {
			s.count(w, x, v, a, b)
		}
		if !within {
			continue
		}
		if i == j {
			fillDiagonal(x, a.n, T(math.Inf(-1)))
		}
		s.addExp(w, x, a, b, i != j)
	}
}

// crossTile adds the similarities of rows a of view 1 with rows b of view 2 to Z.
func (s *contrastState[T]) crossTile(w *contrastScratch[T], a, b rowBlock) {
	x := w.tiles[0]
	s.similarities(x, a, b)
	if a.lo+s.n == b.lo {
		for k := range a.n {
			positive := float64(x[k*a.n+k])
			s.terms[a.lo+k] = (1 - positive) / s.c.Temperature
			s.terms[b.lo+k] = s.terms[a.lo+k]
		}
		if s.c.CrossView {
			fillDiagonal(x, a.n, T(math.Inf(-1)))
		}
	}
	s.addExp(w, x, a, b, !s.c.CrossView)
}

// addExp adds the exponentials of the similarities x of rows a and b to the sums of
// a and, with both, to those of b.
func (s *contrastState[T]) addExp(w *contrastScratch[T], x []T, a, b rowBlock, both bool) {
	for k := range a.n {
		row := x[k*b.n : (k+1)*b.n]
		s.sums[a.lo+k] += float64(simd.ExpSum(row, T(1/s.c.Temperature), row, T(-1/s.c.Temperature)))
	}
	if both {
		simd.ColSums(w.rows[:b.n], x)
		s.addTo(b, w.rows)
	}
}

func (s *contrastState[T]) addTo(b rowBlock, x []T) {
	for k, v := range x[:b.n] {
		s.sums[b.lo+k] += float64(v)
	}
}

func (s *contrastState[T]) digitTile(w *contrastScratch[T], i, j int) {
	for v := range 2 {
		a, b := s.block(i, v), s.block(j, v)
		s.similarities(w.tiles[0], a, b)
		s.count(w, w.tiles[0], v, a, b)
	}
}

// count counts the digits of the similarities x of rows a and b of view v, above the
// diagonal if that is in x.
func (s *contrastState[T]) count(w *contrastScratch[T], x []T, v int, a, b rowBlock) {
	if w.counts == nil {
		w.counts = new([2]digitCounts)
	}
	if a != b {
		s.k.countDigits(&w.counts[v], x, &s.search[v])
		return
	}
	for k := range a.n {
		s.k.countDigits(&w.counts[v], x[k*a.n+k+1:(k+1)*a.n], &s.search[v])
	}
}

// weights turns the similarities x of blocks i and j in view v into those of A.
func (s *contrastState[T]) weights(x []T, v, i, j int) {
	kappa := T(s.c.Kappa)
	simd.Affine(x, kappa, x, -kappa*s.theta[v])
	simd.Sigmoid(x, x)
	if i == j {
		fillDiagonal(x, s.block(i, v).n, 0)
	}
}

func (s *contrastState[T]) degreeTile(w *contrastScratch[T], i, j int) {
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		x := w.tiles[0]
		s.similarities(x, a, b)
		s.weights(x, v, i, j)
		for k := range a.n {
			s.sums[a.lo+k] += float64(simd.Sum(x[k*b.n : (k+1)*b.n]))
		}
		if i != j {
			simd.ColSums(w.rows[:b.n], x)
			s.addTo(b, w.rows)
		}
	}
}

// normalize sets m to the part of M_v of weights x.
func (s *contrastState[T]) normalize(m, x []T, a, b rowBlock) {
	simd.MulRow(m, x, s.r[b.lo:b.lo+b.n])
	simd.MulCol(m, m, s.r[a.lo:a.lo+a.n])
}

// matchTile adds to L_G, and to the sums of w.
func (s *contrastState[T]) matchTile(w *contrastScratch[T], i, j int) {
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		x := w.tiles[v]
		s.similarities(x, a, b)
		s.weights(x, v, i, j)
		s.normalize(x, x, a, b)
	}
	diff := w.tiles[2]
	simd.Sub(diff, w.tiles[0], w.tiles[1])
	loss := float64(simd.SumSquares(diff))
	if i != j {
		loss *= 2
	}
	s.terms[i] += loss
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		m := w.tiles[v]
		for k := range a.n {
			s.sums[a.lo+k] += float64(simd.Dot(diff[k*b.n:(k+1)*b.n], m[k*b.n:(k+1)*b.n]))
		}
		if i != j {
			simd.ColDots(w.rows[:b.n], diff, m)
			s.addTo(b, w.rows)
		}
		simd.Scale(diff, -1, diff) // M_2-M_1 for view 2
	}
}

func (s *contrastState[T]) backwardTile(w *contrastScratch[T], i, j int) {
	if s.alphaC != 0 {
		s.crossBackward(w, s.block(i, 0), s.block(j, 1))
		if i != j {
			s.crossBackward(w, s.block(j, 0), s.block(i, 1))
		}
	}
	if s.alphaG == 0 && (s.alphaC == 0 || s.c.CrossView) {
		return
	}
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		g := w.tiles[v]
		x := w.tiles[2+v]
		s.similarities(g, a, b)
		if s.alphaG != 0 {
			copy(x, g)
			s.weights(x, v, i, j)
			s.normalize(w.tiles[4+v], x, a, b)
		}
		if s.alphaC == 0 || s.c.CrossView {
			clear(g)
			continue
		}
		if i == j {
			fillDiagonal(g, a.n, T(math.Inf(-1)))
		}
		s.expGradient(w, g, a, b)
	}
	diff := w.tiles[4]
	if s.alphaG != 0 {
		simd.Sub(diff, diff, w.tiles[5])
	}
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		g := w.tiles[v]
		if s.alphaG != 0 {
			s.matchGradient(w, g, w.tiles[2+v], diff, T(4-8*v), a, b)
		}
		s.addGradient(g, a, b, i != j)
	}
}

// crossBackward adds the gradient through the similarities of rows a of view 1 with
// rows b of view 2.
func (s *contrastState[T]) crossBackward(w *contrastScratch[T], a, b rowBlock) {
	g := w.tiles[0]
	s.similarities(g, a, b)
	positives := a.lo+s.n == b.lo
	anchors := T(2)
	if s.c.CrossView {
		anchors = 1
	}
	if positives && s.c.CrossView {
		fillDiagonal(g, a.n, T(math.Inf(-1)))
	}
	s.expGradient(w, g, a, b)
	if positives {
		for k := range a.n {
			g[k*a.n+k] -= anchors * s.alphaC
		}
	}
	s.addGradient(g, a, b, true)
}

// expGradient turns the similarities g of rows a and b into the part of G + Gᵀ that
// comes through Z.
func (s *contrastState[T]) expGradient(w *contrastScratch[T], g []T, a, b rowBlock) {
	simd.ExpSum(g, T(1/s.c.Temperature), g, T(-1/s.c.Temperature))
	scale := w.rows[:b.n]
	for k := range a.n {
		row := g[k*b.n : (k+1)*b.n]
		simd.Affine(scale, s.alphaC, s.invZ[b.lo:b.lo+b.n], s.alphaC*s.invZ[a.lo+k])
		simd.Mul(row, row, scale)
	}
}

// matchGradient adds the Laplacian's part of G + Gᵀ to g, for weights x, the part diff of
// M_1-M_2 and its factor 4 or -4.
func (s *contrastState[T]) matchGradient(w *contrastScratch[T], g, x, diff []T, factor T, a, b rowBlock) {
	r := s.r[b.lo : b.lo+b.n]
	wb := s.w[b.lo : b.lo+b.n]
	h := w.rows[:b.n]
	for k := range a.n {
		row := x[k*b.n : (k+1)*b.n]
		simd.Mul(h, diff[k*b.n:(k+1)*b.n], r)
		simd.Axpby(h, factor*s.r[a.lo+k], h, -1, wb)
		simd.Affine(h, s.alphaG, h, -s.alphaG*s.w[a.lo+k])
		simd.Mul(h, h, row)
		simd.Affine(row, -1, row, 1)
		simd.Mul(h, h, row)
		gk := g[k*b.n : (k+1)*b.n]
		simd.Add(gk, gk, h)
	}
}

// addGradient adds g·U to rows a of dU and, with both, gᵀ·U to rows b.
func (s *contrastState[T]) addGradient(g []T, a, b rowBlock, both bool) {
	d := s.d
	s.k.exact(blas.NoTrans, blas.NoTrans, a.n, d, b.n, 1, g, b.n, s.u[b.lo*d:], d, 1, s.du[a.lo*d:], d)
	if both {
		s.k.exact(blas.Trans, blas.NoTrans, b.n, d, a.n, 1, g, b.n, s.u[a.lo*d:], d, 1, s.du[b.lo*d:], d)
	}
}
