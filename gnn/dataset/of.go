package dataset

import (
	"fmt"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
)

// Of returns a data set of graphs that a program has made. All need node features of one width: either
// categories, which become node labels 0, 1, …, or real numbers, which become attributes. The classes are
// 0 to the largest Class of a graph; edge labels are one column.
func Of(name string, graphs []*graph.Graph) (*Dataset, error) {
	if len(graphs) == 0 {
		return nil, fmt.Errorf("dataset: %s: want at least one graph", name)
	}
	if slices.Contains(graphs, nil) {
		return nil, fmt.Errorf("dataset: %s: graph %d is nil", name, slices.Index(graphs, nil))
	}
	first := &graphs[0].X
	d := &Dataset{Name: name, Graphs: graphs, FeatureWidth: first.Width}
	edges := LabelColumn{}
	for i, g := range graphs {
		switch {
		case g.Nodes() == 0:
			return nil, fmt.Errorf("dataset: %s: graph %d has no nodes", name, i)
		case g.X.Width != first.Width || g.X.OneHot() != first.OneHot():
			return nil, fmt.Errorf("dataset: %s: graph %d has features unlike those of graph 0", name, i)
		case g.Class < 0:
			return nil, fmt.Errorf("dataset: %s: graph %d has the class %d; want 0 or more", name, i, g.Class)
		}
		d.Classes = max(d.Classes, g.Class+1)
		if len(g.EdgeLabel) > 0 {
			edges.Width = max(edges.Width, 1+int(slices.Max(g.EdgeLabel)))
		}
	}
	for c := range d.Classes {
		d.ClassValues = append(d.ClassValues, c)
	}
	if edges.Width > 0 {
		edges.Distinct = edges.Width
		d.EdgeLabels = []LabelColumn{edges}
	}
	if first.OneHot() {
		d.NodeLabels = []LabelColumn{{Width: first.Width, Distinct: first.Width}}
	} else {
		d.NodeAttributes = first.Width
	}
	return d, nil
}
