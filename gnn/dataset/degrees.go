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
// GraphCL's semi-supervised code expands them ([graph.Graph.WithDegrees]). The degrees
// are features from then on: augmentations leave them as they were in the whole graph.
// The graphs share all else with d. It panics if limit is negative or the set has
// degrees already.
func (d *Dataset) WithDegrees(limit int) *Dataset {
	if limit < 0 || d.DegreeColumns > 0 {
		panic(fmt.Sprintf("dataset: WithDegrees(%d) of a set with %d columns of degrees", limit, d.DegreeColumns))
	}
	e := *d
	e.DegreeColumns = limit + 2
	e.FeatureWidth = d.FeatureWidth + e.DegreeColumns
	e.Graphs = make([]*graph.Graph, len(d.Graphs))
	for k, g := range d.Graphs {
		e.Graphs[k] = g.WithDegrees(limit)
	}
	return &e
}
