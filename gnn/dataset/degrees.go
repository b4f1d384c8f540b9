package dataset

import (
	"fmt"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
)

// DegreeCap returns the largest degree that gets a column of its own in the
// semi-supervised experiments of GraphCL: 10 for DD and the REDDIT sets, whose
// degrees vary widely, and 100 for all others.
func DegreeCap(name string) int {
	name = strings.ToUpper(name)
	if name == "DD" || strings.HasPrefix(name, "REDDIT") {
		return 10
	}
	return 100
}

// WithDegrees returns the set with the node degrees behind the features, as
// GraphCL's semi-supervised code expands them: row i becomes
//
//	[ x_i | d_i | one-hot of min(d_i, limit) ]
//
// of width FeatureWidth + 1 + (limit+1), where d_i is the number of edges that
// leave node i. The degrees are features from then on: augmentations leave them
// as they were in the whole graph. The graphs share all else with d. It panics if
// limit is negative or the set has degrees already.
func (d *Dataset) WithDegrees(limit int) *Dataset {
	if limit < 0 || d.DegreeColumns > 0 {
		panic(fmt.Sprintf("dataset: WithDegrees(%d) of a set with %d columns of degrees", limit, d.DegreeColumns))
	}
	e := *d
	e.DegreeColumns = limit + 2
	e.FeatureWidth = d.FeatureWidth + e.DegreeColumns
	e.Graphs = make([]*graph.Graph, len(d.Graphs))
	for k, g := range d.Graphs {
		e.Graphs[k] = withDegrees(g, d.FeatureWidth, limit)
	}
	return &e
}

func withDegrees(g *graph.Graph, width, limit int) *graph.Graph {
	degree := make([]int, g.Nodes())
	for _, j := range g.Adj {
		degree[j]++
	}
	h := *g
	wide := width + limit + 2
	h.X = graph.Features{Width: wide, Dense: make([]float32, g.Nodes()*wide)}
	for i, n := range degree {
		row := h.X.Dense[i*wide : (i+1)*wide]
		g.X.Row(row[:width], i)
		row[width] = float32(n)
		row[width+1+min(n, limit)] = 1
	}
	return &h
}
