package cpu

import (
	"math"

	"github.com/specmatch/specmatch/backend/cpu/simd"
)

// This file holds what the fused layers share. Graphs are closed under message
// passing, so a layer can be computed block by block of whole graphs, each in one
// go while it is in cache. Only batch norm needs the sums over all blocks of a
// view.
//
// Blocks depend on the graphs only. Each is computed by one worker, and its
// contributions to a sum are stored apart and added in the order of the blocks:
// equal bits for any number of workers.

// graphBlock is the graphs g0..g1-1 of one view, which are the nodes lo..hi-1.
type graphBlock struct{ g0, g1, lo, hi, view int }

// nodesOf returns the rows of x, which is f wide, that belong to the block's nodes.
func nodesOf[T any](x []T, b graphBlock, f int) []T {
	return x[b.lo*f : b.hi*f]
}

// graphsOf returns the rows of x, which is f wide, that belong to the block's graphs.
func graphsOf[T any](x []T, b graphBlock, f int) []T {
	return x[b.g0*f : b.g1*f]
}

// rowOf returns row i of x, which is f wide.
func rowOf[T any](x []T, i, f int) []T {
	return x[i*f : (i+1)*f]
}

// graphBlocks is a batch in blocks, and the batch norm of a layer on them.
type graphBlocks[T float] struct {
	graphs, views []int32 // delimit the nodes of the graphs and of the views
	blocks        []graphBlock
	running       bool      // batch norm uses running statistics
	moments       []float64 // [blocks × 2F]: mean and squared deviations
	coef          []T       // rows of F numbers for each view: the affine maps of batch norm
	partial       []T       // [blocks × …]: contributions to the gradients
	total         []T
	sum, proj     []float64
}

// aligned is [grow] for memory that vectors run over: it starts on a cache line.
func aligned[T float](s []T, n int) []T {
	if cap(s) < n {
		return alignedSlice[T](n + n/2)[:n]
	}
	return s[:n]
}

// cut cuts the graphs into blocks of about rows nodes. A larger graph is a block
// by itself.
func (s *graphBlocks[T]) cut(views []int32, rows int) {
	s.views = views
	s.blocks = s.blocks[:0]
	view := 0
	graphs := len(s.graphs) - 1
	for g := 0; g < graphs; {
		lo := int(s.graphs[g])
		for view+2 < len(views) && int(views[view+1]) <= lo {
			view++
		}
		limit := min(int(views[view+1]), lo+rows)
		b := graphBlock{
			g0:   g,
			g1:   g + 1,
			lo:   lo,
			hi:   int(s.graphs[g+1]),
			view: view,
		}
		for b.g1 < graphs && int(s.graphs[b.g1+1]) <= limit {
			b.g1++
			b.hi = int(s.graphs[b.g1])
		}
		s.blocks = append(s.blocks, b)
		g = b.g1
	}
}

// nodes returns the number of nodes; later rows are padding.
func (s *graphBlocks[T]) nodes() int {
	return int(s.graphs[len(s.graphs)-1])
}

// viewCount returns the number of views.
func (s *graphBlocks[T]) viewCount() int {
	return len(s.views) - 1
}

// mergeRows returns the column sums of the partial results [blocks×n].
func (s *graphBlocks[T]) mergeRows(n int) []T {
	s.total = aligned(s.total, n)
	simd.ColSums(s.total, s.partial[:len(s.blocks)*n])
	return s.total
}

// setMoments sets the moments of block i, whose rows are x. mean holds the column
// sums on entry; squares is scratch.
func (s *graphBlocks[T]) setMoments(i int, x, mean, squares []T) {
	simd.Scale(mean, 1/T(s.blocks[i].hi-s.blocks[i].lo), mean)
	simd.ColSquares(squares, x, mean)
	storePair(s.moments, i, mean, squares)
}

// storePair stores two rows of block i, one behind the other, in float64.
func storePair[T float](dst []float64, i int, first, second []T) {
	f := len(first)
	pair := rowOf(dst, i, 2*f)
	for j := range f {
		pair[j] = float64(first[j])
		pair[f+j] = float64(second[j])
	}
}

// addMoments adds the means and squared deviations x of the columns of n rows to
// m and m2, which describe count rows (Chan, Golub and LeVeque 1983).
func addMoments(m, m2 []float64, count float64, x []float64, n float64) {
	f := len(m)
	total := count + n
	for j := range f {
		delta := x[j] - m[j]
		m[j] += delta * (n / total)
		m2[j] += x[f+j] + delta*delta*(count*n/total)
	}
}

// statistics merges the moments of the blocks into the means and biased variances
// [V×F] of the views, block after block, in float64.
func (s *graphBlocks[T]) statistics(mean, variance []T, f int) {
	s.sum = grow(s.sum, f)
	s.proj = grow(s.proj, f)
	m := s.sum
	m2 := s.proj
	i := 0
	for v := range s.viewCount() {
		clear(m)
		clear(m2)
		count := 0.0
		for ; i < len(s.blocks) && s.blocks[i].view == v; i++ {
			n := float64(s.blocks[i].hi - s.blocks[i].lo)
			if n == 0 {
				continue
			}
			addMoments(m, m2, count, rowOf(s.moments, i, 2*f), n)
			count += n
		}
		for j := range f {
			mean[v*f+j] = T(m[j])
			variance[v*f+j] = T(m2[j] / max(count, 1))
		}
	}
}

// viewRow returns the row of a view's statistics.
func (s *graphBlocks[T]) viewRow(statistics []T, view, f int) []T {
	if s.running {
		view = 0
	}
	return rowOf(statistics, view, f)
}

// affine sets coef to two rows for each view, scale and shift: batch norm is
// scale·x + shift.
func (s *graphBlocks[T]) affine(
	gamma, beta, mean, variance []T, eps float64,
) {
	f := len(gamma)
	s.coef = aligned(s.coef, s.viewCount()*2*f)
	for v := range s.viewCount() {
		mu := s.viewRow(mean, v, f)
		sigma2 := s.viewRow(variance, v, f)
		scale := rowOf(s.coef, 2*v, f)
		shift := rowOf(s.coef, 2*v+1, f)
		for j := range f {
			k := float64(gamma[j]) / math.Sqrt(float64(sigma2[j])+eps)
			scale[j] = T(k)
			shift[j] = T(float64(beta[j]) - k*float64(mu[j]))
		}
	}
}

// normGradients reads Σdy and Σdy∘(x-μ) from the front of every block's partial
// results, which are stride apart. It computes the gradients of γ and β, and sets
// coef to three rows for each view: dx = k1·dy + k2 + k3·x.
func (s *graphBlocks[T]) normGradients(
	dGamma, dBeta, gamma, mean, variance []T, eps float64, stride int,
) {
	f := len(gamma)
	s.coef = aligned(s.coef, s.viewCount()*3*f)
	clear(dGamma)
	clear(dBeta)
	s.sum = grow(s.sum, f)
	s.proj = grow(s.proj, f)
	i := 0
	for v := range s.viewCount() {
		// The sums of the view.
		clear(s.sum)
		clear(s.proj)
		for ; i < len(s.blocks) && s.blocks[i].view == v; i++ {
			p := s.partial[i*stride:][:2*f]
			for j := range f {
				s.sum[j] += float64(p[j])
				s.proj[j] += float64(p[f+j])
			}
		}

		// The coefficients of its gradient.
		n := float64(s.views[v+1] - s.views[v])
		mu := s.viewRow(mean, v, f)
		sigma2 := s.viewRow(variance, v, f)
		k1 := rowOf(s.coef, 3*v, f)
		k2 := rowOf(s.coef, 3*v+1, f)
		k3 := rowOf(s.coef, 3*v+2, f)
		for j := range f {
			rstd := 1 / math.Sqrt(float64(sigma2[j])+eps)
			dGamma[j] += T(s.proj[j] * rstd)
			dBeta[j] += T(s.sum[j])
			a := float64(gamma[j]) * rstd
			k1[j] = T(a)
			k2[j] = 0
			k3[j] = 0
			if !s.running && n > 0 {
				c := -a * rstd * rstd * s.proj[j] / n
				k3[j] = T(c)
				k2[j] = T(-a*s.sum[j]/n - c*float64(mu[j]))
			}
		}
	}
}

// blockRows are the rows of a sparse matrix that belong to a block.
type blockRows struct{ ptr, adj []int32 }

// local sets w to the block's rows of a matrix, with the block's first node as 0.
func (w *blockRows) local(ptr, adj []int32, b graphBlock) {
	first := ptr[b.lo]
	adj = adj[first:ptr[b.hi]]
	w.ptr = grow(w.ptr, b.hi-b.lo+1)
	w.adj = grow(w.adj, len(adj))
	for i, p := range ptr[b.lo : b.hi+1] {
		w.ptr[i] = p - first
	}
	lo := int32(b.lo)
	for k, j := range adj {
		w.adj[k] = j - lo
	}
}
