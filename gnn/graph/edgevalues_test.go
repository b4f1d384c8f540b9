package graph_test

import (
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// TestEdgeColumns: edges have either labels or weights, and a label that the model has not seen is named.
func TestEdgeColumns(t *testing.T) {
	labels := &graph.LabelValues{Min: 2, Width: 3, Unseen: []int{3}}
	for want, edges := range map[string]graph.EdgeValues{
		"":                              {Labels: labels},
		"need either labels or weights": {},
		"either labels or weights":      {Labels: labels, Weights: true},
		"column 1 of the labels has 0":  {Labels: &graph.LabelValues{}},
	} {
		err := graph.Columns{Edges: &edges}.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", edges, err, want)
		}
	}
	g, err := graph.FromEdges(2, [][2]int{{0, 1}}, graph.Features{Width: 1, Category: make([]int32, 2)})
	if err != nil {
		t.Fatal(err)
	}
	columns := graph.Columns{Edges: &graph.EdgeValues{Labels: labels}}
	for label, want := range map[int32]string{0: "", 1: "an edge has the label 3, which the model has not seen", 2: ""} {
		g.EdgeLabel = []int32{label, label}
		err := columns.CheckSeen(g)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("label %d: %v; want %q", label, err, want)
		}
	}
}
