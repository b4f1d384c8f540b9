package cpu

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"gonum.org/v1/gonum/blas"
)

// This file computes the losses of fused_contrast.go in memory that is linear in the
// batch: nothing of the size of S is kept, and backward computes S again.
//
// The graphs are cut into K blocks. A tile is the similarities of the graphs of block I
// with those of block J ≥ I, in both views. S is symmetric, so a tile serves the rows of
// both blocks: this halves the products and exponentials, and so pays for computing
// them again. In round r of K, block I meets block (r-I) mod K. No block is in two tiles
// of a round, so the tiles of a round may add to the rows of their blocks in
// parallel, and a row gets its terms in the order of the rounds. The passes are:
//
//	Z of NT-Xent, and the first digit of both θ
//	the other digits
//	degrees
//	L_G and w
//	backward: dU

// tileGraphs is the number of graphs in a block: the matrices of a tile then fit the
// second-level cache.
const tileGraphs = 128

// tiledState is what losses in tiles add to a contrastState.
type tiledState[T float] struct {
	visit  visitTile[T]
	round  int
	sums   []float64 // of the pass, one for each row of S
	search [2]search // of θ
}

// visitTile does the work of a pass for the tile of blocks i ≤ j.
type visitTile[T float] func(
	s *contrastState[T], w *contrastScratch[T], i, j int,
)

// A rowBlock is rows lo..lo+n-1 of U.
type rowBlock struct{ lo, n int }

// block returns the rows of block i in view v.
func (s *contrastState[T]) block(i, v int) rowBlock {
	lo := i * tileGraphs
	return rowBlock{lo: v*s.n + lo, n: min(tileGraphs, s.n-lo)}
}

// tileBlocks returns the number of blocks.
func (s *contrastState[T]) tileBlocks() int {
	return (s.n + tileGraphs - 1) / tileGraphs
}

// part returns the block's rows of a column x.
func part[T any](x []T, b rowBlock) []T {
	return x[b.lo : b.lo+b.n]
}

// tiles makes a pass over all tiles, with the sums of rows starting at 0.
func (e *engine[T]) tiles(visit visitTile[T]) {
	s := &e.contrast
	s.visit = visit
	s.sums = grow(s.sums, 2*s.n)
	clear(s.sums)
	blocks := s.tileBlocks()
	for s.round = range blocks {
		e.pool.share((*contrastTileTask[T])(s), blocks, 1)
	}
}

type contrastTileTask[T float] contrastState[T]

// run visits the tiles of the round whose first block is one of lo..hi-1.
func (t *contrastTileTask[T]) run(lo, hi int) {
	s := (*contrastState[T])(t)
	blocks := s.tileBlocks()
	for i := lo; i < hi; i++ {
		j := (s.round - i + blocks) % blocks
		if i > j {
			continue
		}
		w := s.scratch.take()
		w.rows = aligned(w.rows, tileGraphs)
		size := s.block(i, 0).n * s.block(j, 0).n
		for k := range w.tiles {
			w.tiles[k] = aligned(w.tiles[k], tileGraphs*tileGraphs)[:size]
		}
		s.visit(s, w, i, j)
		s.scratch.give(w)
	}
}

// forwardTiles makes the passes of the forward call.
func (e *engine[T]) forwardTiles(c *backend.Contrast) {
	s := &e.contrast
	anchors := 2 * s.n
	if c.CrossView {
		anchors = s.n
	}
	s.terms = grow(s.terms, 2*s.n)
	pairs := s.n * (s.n - 1) / 2
	var weight float64 // of the second order statistic in θ
	if c.Match && pairs > 0 {
		var k int
		k, weight = backend.PercentilePosition(pairs, c.Percentile)
		start := newSearch(8*e.precision.Bytes(), k, weight != 0)
		s.search = [2]search{start, start}
	}

	// NT-Xent, and the first digit of both θ.
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

	// The other digits.
	s.theta = [2]T{}
	if pairs > 0 {
		for s.learn() {
			e.tiles((*contrastState[T]).digitTile)
		}
		for v := range s.theta {
			low := s.k.ofKey(s.search[v].prefix[0])
			high := s.k.ofKey(s.search[v].prefix[1])
			s.theta[v] = interpolate(low, high, weight)
		}
	}

	// The degrees, then L_G and w.
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
		r := float64(s.r[i])
		s.w[i] = T(2 * u * r * r)
	}
	e.data(c.LossG)[0] = T(sum(s.terms))
}

// learn adds up the counts of the workers, and reports whether θ has another digit.
func (s *contrastState[T]) learn() (unknown bool) {
	var total *[2]digitCounts
	for _, w := range s.scratch.free {
		switch {
		case w.counts == nil:
		case total == nil:
			total = w.counts
		default:
			total[0].add(&w.counts[0])
			total[1].add(&w.counts[1])
			clear(w.counts[:])
		}
	}
	s.search[0].learn(&total[0])
	return s.search[1].learn(&total[1])
}

// similarities sets x [a.n×b.n] to S of rows a and b.
func (s *contrastState[T]) similarities(x []T, a, b rowBlock) {
	s.k.exact.multiplyNT(x, s.u[a.lo*s.d:], s.u[b.lo*s.d:], a.n, b.n, s.d)
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
	within := s.c.LossC != nil && !s.c.CrossView // NT-Xent needs the pairs of a view
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
// a and, if symmetric, to those of b.
func (s *contrastState[T]) addExp(
	w *contrastScratch[T], x []T, a, b rowBlock, symmetric bool,
) {
	tau := s.c.Temperature
	for k := range a.n {
		row := rowOf(x, k, b.n)
		s.sums[a.lo+k] += float64(simd.ExpSum(
			row, T(1/tau), row, T(-1/tau),
		))
	}
	if symmetric {
		simd.ColSums(w.rows[:b.n], x)
		s.addTo(b, w.rows)
	}
}

// addTo adds x to the sums of the block's rows.
func (s *contrastState[T]) addTo(b rowBlock, x []T) {
	for k, v := range x[:b.n] {
		s.sums[b.lo+k] += float64(v)
	}
}

// digitTile counts a further digit of θ.
func (s *contrastState[T]) digitTile(w *contrastScratch[T], i, j int) {
	for v := range 2 {
		a, b := s.block(i, v), s.block(j, v)
		s.similarities(w.tiles[0], a, b)
		s.count(w, w.tiles[0], v, a, b)
	}
}

// count counts the digits of the similarities x of rows a and b of view v, above the
// diagonal if that is in x.
func (s *contrastState[T]) count(
	w *contrastScratch[T], x []T, v int, a, b rowBlock,
) {
	if w.counts == nil {
		w.counts = new([2]digitCounts)
	}
	counts := &w.counts[v]
	if a != b {
		s.k.countDigits(counts, x, &s.search[v])
		return
	}
	for k := range a.n {
		s.k.countDigits(counts, rowOf(x, k, a.n)[k+1:], &s.search[v])
	}
}

// weigh turns the similarities x of blocks i and j in view v into their part of A.
func (s *contrastState[T]) weigh(x []T, v, i, j int) {
	kappa := T(s.c.Kappa)
	simd.Affine(x, kappa, x, -kappa*s.theta[v])
	simd.Sigmoid(x, x)
	if i == j {
		fillDiagonal(x, s.block(i, v).n, 0)
	}
}

// degreeTile adds to the degrees.
func (s *contrastState[T]) degreeTile(w *contrastScratch[T], i, j int) {
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		x := w.tiles[0]
		s.similarities(x, a, b)
		s.weigh(x, v, i, j)
		for k := range a.n {
			s.sums[a.lo+k] += float64(simd.Sum(rowOf(x, k, b.n)))
		}
		if i != j {
			simd.ColSums(w.rows[:b.n], x)
			s.addTo(b, w.rows)
		}
	}
}

// normalize sets m to the part of M that belongs to the weights x of rows a and b.
func (s *contrastState[T]) normalize(m, x []T, a, b rowBlock) {
	simd.MulRow(m, x, part(s.r, b))
	simd.MulCol(m, m, part(s.r, a))
}

// matchTile adds to L_G, and to the sums of w.
func (s *contrastState[T]) matchTile(w *contrastScratch[T], i, j int) {
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		x := w.tiles[v]
		s.similarities(x, a, b)
		s.weigh(x, v, i, j)
		s.normalize(x, x, a, b)
	}
	diff := w.tiles[2]
	simd.Sub(diff, w.tiles[0], w.tiles[1])
	loss := float64(simd.SumSquares(diff))
	if i != j {
		loss *= 2 // for the tile of j and i, its transpose
	}
	s.terms[i] += loss
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		m := w.tiles[v]
		for k := range a.n {
			s.sums[a.lo+k] += float64(simd.Dot(
				rowOf(diff, k, b.n), rowOf(m, k, b.n),
			))
		}
		if i != j {
			simd.ColDots(w.rows[:b.n], diff, m)
			s.addTo(b, w.rows)
		}
		simd.Scale(diff, -1, diff) // M_2-M_1 for view 2
	}
}

// backwardTile adds to dU. Tiles 0 and 1 of the scratch become the views' parts of
// G + Gᵀ, 2 and 3 those of A, 4 and 5 those of M.
func (s *contrastState[T]) backwardTile(w *contrastScratch[T], i, j int) {
	if s.alphaC != 0 {
		s.crossBackward(w, s.block(i, 0), s.block(j, 1))
		if i != j {
			s.crossBackward(w, s.block(j, 0), s.block(i, 1))
		}
	}
	within := s.alphaC != 0 && !s.c.CrossView
	if s.alphaG == 0 && !within {
		return
	}

	// The weights of both views, and the part of NT-Xent.
	for v := range 2 {
		a := s.block(i, v)
		b := s.block(j, v)
		g := w.tiles[v]
		x := w.tiles[2+v]
		s.similarities(g, a, b)
		if s.alphaG != 0 {
			copy(x, g)
			s.weigh(x, v, i, j)
			s.normalize(w.tiles[4+v], x, a, b)
		}
		if !within {
			clear(g)
			continue
		}
		if i == j {
			fillDiagonal(g, a.n, T(math.Inf(-1)))
		}
		s.expGradient(w, g, a, b)
	}

	// The Laplacian's part.
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
func (s *contrastState[T]) crossBackward(
	w *contrastScratch[T], a, b rowBlock,
) {
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
func (s *contrastState[T]) expGradient(
	w *contrastScratch[T], g []T, a, b rowBlock,
) {
	tau := s.c.Temperature
	simd.ExpSum(g, T(1/tau), g, T(-1/tau))
	scale := w.rows[:b.n]
	for k := range a.n {
		row := rowOf(g, k, b.n)
		simd.Affine(
			scale, s.alphaC, part(s.invZ, b), s.alphaC*s.invZ[a.lo+k],
		)
		simd.Mul(row, row, scale)
	}
}

// matchGradient adds the Laplacian's part of G + Gᵀ to g, for weights x, the part diff of
// M_1-M_2 and its factor 4 or -4.
func (s *contrastState[T]) matchGradient(
	w *contrastScratch[T], g, x, diff []T, factor T, a, b rowBlock,
) {
	r := part(s.r, b)
	wb := part(s.w, b)
	h := w.rows[:b.n]
	for k := range a.n {
		row := rowOf(x, k, b.n)
		simd.Mul(h, rowOf(diff, k, b.n), r)
		simd.Axpby(h, factor*s.r[a.lo+k], h, -1, wb)
		simd.Affine(h, s.alphaG, h, -s.alphaG*s.w[a.lo+k])
		simd.Mul(h, h, row)
		simd.Affine(row, -1, row, 1)
		simd.Mul(h, h, row)
		gk := rowOf(g, k, b.n)
		simd.Add(gk, gk, h)
	}
}

// addGradient adds g·U to rows a of dU and, if symmetric, gᵀ·U to rows b.
func (s *contrastState[T]) addGradient(
	g []T, a, b rowBlock, symmetric bool,
) {
	d := s.d
	ua := s.u[a.lo*d:]
	ub := s.u[b.lo*d:]
	s.k.exact(
		blas.NoTrans, blas.NoTrans, a.n, d, b.n,
		1, g, b.n, ub, d, 1, s.du[a.lo*d:], d,
	)
	if symmetric {
		s.k.exact(
			blas.Trans, blas.NoTrans, b.n, d, a.n,
			1, g, b.n, ua, d, 1, s.du[b.lo*d:], d,
		)
	}
}
