package kernel

import "github.com/specmatch/specmatch/gnn/graph"

// Pairs counts the edges of every graph by the colors of their two ends and, where edges
// have labels, by their label: a matrix with a column for every kind of edge that occurs.
// Colors are those of [Refine] before the first round, categories or degrees. An
// undirected edge counts twice, once in each direction.
func Pairs(graphs []*graph.Graph) *Sparse {
	type kind struct{ low, high, edge int32 }
	number := make(map[kind]int32)
	// One round of counts, with the entries of Adj in the place of nodes.
	r := &Refinement{Ptr: make([]int, len(graphs)+1)}
	var colors []int32
	for k, g := range graphs {
		for i := range g.Nodes() {
			a := startLabel(g, i)
			for e := g.Ptr[i]; e < g.Ptr[i+1]; e++ {
				b := startLabel(g, int(g.Adj[e]))
				key := kind{low: min(a, b), high: max(a, b)}
				if g.EdgeLabel != nil {
					key.edge = g.EdgeLabel[e]
				}
				colors = append(colors, colorOf(number, key))
			}
		}
		r.Ptr[k+1] = len(colors)
	}
	r.add(colors, len(number))
	return r.Counts()[0]
}

// Dense returns the row-major matrix [N×Width].
func (m *Sparse) Dense() []float64 {
	d := make([]float64, m.Rows()*m.Width)
	for i := range m.Rows() {
		index, value := m.Row(i)
		for k, c := range index {
			d[i*m.Width+int(c)] = value[k]
		}
	}
	return d
}
