package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
)

// graphStats are the statistics of a synthetic data set of molecule-like
// graphs: those of the PyTorch script that the benchmark is compared with.
type graphStats struct {
	graphs         int
	meanN, stdN    float64
	minN, maxN     int
	edgesPerNode   float64 // undirected
	labels         int
	labelExponent  float64 // P(label k) ∝ (1+k)^-exponent
	reach, ringGap int     // a tree edge goes back 1..reach nodes; a ring closes ringGap nodes
	bonds          int     // types of bonds; with them, labels are types of atoms
}

var nci1Like = graphStats{
	graphs: 4110, meanN: 29.87, stdN: 13.5, minN: 3, maxN: 111, edgesPerNode: 32.3 / 29.87,
	labels: 37, labelExponent: 1.6, reach: 3, ringGap: 5,
}

var zincLike = graphStats{
	graphs: 4000, meanN: 26.6, stdN: 6, minN: 6, maxN: 50, edgesPerNode: 28.9 / 26.6,
	labels: graph.AtomTypes, labelExponent: 1.6, reach: 3, ringGap: 5, bonds: 3,
}

// generate draws the data set: a random tree with bounded degree plus a few
// ring-closing edges.
func (s graphStats) generate(rng *rand.Rand) []*graph.Graph {
	cumulative := make([]float64, s.labels)
	sum := 0.0
	for k := range cumulative {
		sum += math.Pow(float64(1+k), -s.labelExponent)
		cumulative[k] = sum
	}
	graphs := make([]*graph.Graph, s.graphs)
	for g := range graphs {
		n := int(math.Round(s.meanN + s.stdN*rng.NormFloat64()))
		n = min(max(n, s.minN), s.maxN)
		edges := map[[2]int]int32{} // labels
		add := func(i, j int) {
			edges[[2]int{i, j}] = 0
			if s.bonds > 0 {
				edges[[2]int{i, j}] = graph.BondDirections * rng.Int32N(int32(s.bonds))
			}
		}
		for i := 1; i < n; i++ {
			add(max(0, i-1-rng.IntN(s.reach)), i)
		}
		extra := int(math.Round(float64(n)*s.edgesPerNode)) - (n - 1)
		for range max(extra, 0) {
			i := rng.IntN(n)
			if j := min(n-1, i+s.ringGap); i != j {
				add(i, j)
			}
		}
		rows := make([][]int32, n)
		for e := range edges {
			rows[e[0]] = append(rows[e[0]], int32(e[1]))
			rows[e[1]] = append(rows[e[1]], int32(e[0]))
		}
		out := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: s.labels}}
		for i, row := range rows {
			slices.Sort(row)
			out.Adj = append(out.Adj, row...)
			for _, j := range row {
				if s.bonds > 0 {
					out.EdgeLabel = append(out.EdgeLabel, edges[[2]int{min(i, int(j)), max(i, int(j))}])
				}
			}
			out.Ptr = append(out.Ptr, int32(len(out.Adj)))
			label, _ := slices.BinarySearch(cumulative, rng.Float64()*sum)
			out.X.Category = append(out.X.Category, int32(min(label, s.labels-1)))
		}
		if s.bonds > 0 { // all atoms are without chirality
			out.X.Width *= graph.ChiralityTags
			for i := range out.X.Category {
				out.X.Category[i] *= graph.ChiralityTags
			}
		}
		graphs[g] = out
	}
	return graphs
}
