package dataset

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// MoleculeStats describes synthetic molecule-like graphs, which have the size and shape of those
// of a real set and need no file. There is nothing to learn from them.
type MoleculeStats struct {
	Graphs             int
	MeanNodes, Std     float64 // of the number of nodes, which is normal, cut off at the bounds
	MinNodes, MaxNodes int
	EdgesPerNode       float64 // undirected
	Labels             int
	LabelExponent      float64 // P(label k) ∝ (1+k)^-exponent
	// an edge of the tree goes back 1..Reach nodes; a ring closes RingGap nodes
	Reach, RingGap int
	Bonds          int // types of bonds; with them, labels are types of atoms
}

// NCI1Like has the statistics of NCI1.
var NCI1Like = MoleculeStats{
	Graphs:        4110,
	MeanNodes:     29.87,
	Std:           13.5,
	MinNodes:      3,
	MaxNodes:      111,
	EdgesPerNode:  32.3 / 29.87,
	Labels:        37,
	LabelExponent: 1.6,
	Reach:         3,
	RingGap:       5,
}

// ZINCLike has the statistics of molecules of ZINC, with the types of atoms and bonds that chem
// encoders read.
var ZINCLike = MoleculeStats{
	Graphs:        4000,
	MeanNodes:     26.6,
	Std:           6,
	MinNodes:      6,
	MaxNodes:      50,
	EdgesPerNode:  28.9 / 26.6,
	Labels:        feature.AtomTypes,
	LabelExponent: 1.6,
	Reach:         3,
	RingGap:       5,
	Bonds:         3,
}

// Generate draws the graphs: each is a random tree with bounded degree and a few edges that
// close rings.
func (s MoleculeStats) Generate(rng *rand.Rand) []*graph.Graph {
	cumulative := make([]float64, s.Labels)
	sum := 0.0
	for k := range cumulative {
		sum += math.Pow(float64(1+k), -s.LabelExponent)
		cumulative[k] = sum
	}
	graphs := make([]*graph.Graph, s.Graphs)
	for g := range graphs {
		n := int(math.Round(s.MeanNodes + s.Std*rng.NormFloat64()))
		n = min(max(n, s.MinNodes), s.MaxNodes)
		// The tree, and the edges that close rings.
		edges := map[[2]int]int32{} // labels
		add := func(i, j int) {
			edges[[2]int{i, j}] = 0
			if s.Bonds > 0 {
				edges[[2]int{i, j}] = feature.BondDirections * rng.Int32N(int32(s.Bonds))
			}
		}
		for i := 1; i < n; i++ {
			add(max(0, i-1-rng.IntN(s.Reach)), i)
		}
		extra := int(math.Round(float64(n)*s.EdgesPerNode)) - (n - 1)
		for range max(extra, 0) {
			i := rng.IntN(n)
			if j := min(n-1, i+s.RingGap); i != j {
				add(i, j)
			}
		}
		// The adjacency, and labels of nodes.
		rows := make([][]int32, n)
		for e := range edges {
			rows[e[0]] = append(rows[e[0]], int32(e[1]))
			rows[e[1]] = append(rows[e[1]], int32(e[0]))
		}
		out := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: s.Labels}}
		for i, row := range rows {
			slices.Sort(row)
			out.Adj = append(out.Adj, row...)
			for _, j := range row {
				if s.Bonds > 0 {
					out.EdgeLabel = append(out.EdgeLabel, edges[[2]int{min(i, int(j)), max(i, int(j))}])
				}
			}
			out.Ptr = append(out.Ptr, int32(len(out.Adj)))
			label, _ := slices.BinarySearch(cumulative, rng.Float64()*sum)
			out.X.Category = append(out.X.Category, int32(min(label, s.Labels-1)))
		}
		if s.Bonds > 0 { // all atoms are without chirality
			out.X.Width *= feature.ChiralityTags
			for i := range out.X.Category {
				out.X.Category[i] *= feature.ChiralityTags
			}
		}
		graphs[g] = out
	}
	return graphs
}
