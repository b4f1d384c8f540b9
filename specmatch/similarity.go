package specmatch

import (
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// SimilarityGraph is the graph that the embeddings of one view induce over a
// batch of n graphs, on the host in float64. It is what [LaplacianMatch] compares,
// for inspection.
type SimilarityGraph struct {
	N         int
	S         []float64 // [n×n] similarities
	Threshold float64   // θ
	A         []float64 // [n×n] edge weights, zero on the diagonal
	Degrees   []float64 // [n]
}

// Graph returns the similarity graph of the embeddings z [n×d], row-major. With
// n = 1 it has no edge. [StraightThrough] has the edges of [Hard]. Graph panics
// unless n ≥ 1 and z has n·d numbers.
func (c LaplacianMatch) Graph(z []float64, n, d int) *SimilarityGraph {
	if n < 1 || len(z) != n*d {
		panic(&tensor.ShapeError{Op: "specmatch: LaplacianMatch.Graph", Have: fmt.Sprintf("%d numbers", len(z)), Want: fmt.Sprintf("want embeddings [%d×%d] of at least one graph", n, d)})
	}
	return c.graph(cosines(unitRows(z, n, d), n, d), n)
}

// graph returns the similarity graph with the given cosines [n×n].
func (c LaplacianMatch) graph(cos []float64, n int) *SimilarityGraph {
	g := &SimilarityGraph{N: n, S: slices.Clone(cos), A: make([]float64, n*n), Degrees: make([]float64, n)}
	if n < 2 {
		return g
	}
	upper := upperTriangle(g.S, n)
	slices.Sort(upper)
	g.Threshold = c.Threshold
	if !c.FixedThreshold {
		g.Threshold = percentile(upper, c.Percentile)
	}
	kappa := c.Kappa
	if c.Adjacency == SpreadSigmoid {
		_, std := meanStd(upper)
		kappa /= math.Sqrt(std*std + spreadFloor)
	}
	for i := range n {
		for j := range n {
			if i == j {
				continue
			}
			centred := g.S[i*n+j] - g.Threshold
			a := 0.0
			switch {
			case c.Adjacency == Sigmoid || c.Adjacency == SpreadSigmoid:
				a = 1 / (1 + math.Exp(-kappa*centred))
			case centred > 0:
				a = 1
			}
			g.A[i*n+j] = a
			g.Degrees[i] += a
		}
	}
	return g
}

// Laplacian returns I - D^-½·A·D^-½ or, for randomWalk, I - D^-1·A [n×n],
// row-major. An isolated node, see [LaplacianMatch], has 1 on the diagonal
// and 0 elsewhere.
func (g *SimilarityGraph) Laplacian(randomWalk bool) []float64 {
	r := make([]float64, g.N)
	for i, d := range g.Degrees {
		if d >= backend.LeastDegree(tensor.Float64) {
			r[i] = 1 / math.Sqrt(d)
		}
	}
	l := make([]float64, g.N*g.N)
	for i := range g.N {
		for j := range g.N {
			scale := r[i] * r[j]
			if randomWalk {
				scale = r[i] * r[i]
			}
			l[i*g.N+j] = -g.A[i*g.N+j] * scale
		}
		l[i*g.N+i] = 1
	}
	return l
}

// cosines returns U·Uᵀ [n×n] of unit rows U [n×d].
func cosines(u []float64, n, d int) []float64 {
	s := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			dot := 0.0
			for k := range d {
				dot += u[i*d+k] * u[j*d+k]
			}
			s[i*n+j], s[j*n+i] = dot, dot
		}
	}
	return s
}

// upperTriangle returns the entries i < j of s [n×n].
func upperTriangle(s []float64, n int) []float64 {
	upper := make([]float64, 0, n*(n-1)/2)
	for i := range n {
		upper = append(upper, s[i*n+i+1:(i+1)*n]...)
	}
	return upper
}

// meanStd returns the mean and the standard deviation of a population.
func meanStd(x []float64) (mean, std float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / float64(len(x)))
}

// percentile is [backend.Backend.UpperPercentile] of sorted values.
func percentile(sorted []float64, p float64) float64 {
	k, w := backend.PercentilePosition(len(sorted), p)
	if w == 0 {
		return sorted[k]
	}
	return sorted[k] + w*(sorted[k+1]-sorted[k])
}

// unitRows returns the rows of z [n×d] divided by their norms.
func unitRows(z []float64, n, d int) []float64 {
	u := make([]float64, n*d)
	for i := range n {
		norm := 0.0
		for _, v := range z[i*d : (i+1)*d] {
			norm += v * v
		}
		norm = max(math.Sqrt(norm), 1e-12)
		for j := range d {
			u[i*d+j] = z[i*d+j] / norm
		}
	}
	return u
}
