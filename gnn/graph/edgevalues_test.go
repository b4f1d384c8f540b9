package graph_test

import (
	"strings"
	"testing"
	"time"

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

// TestCheckSeen: the first node with an unseen label is named, also where far more values are unseen than there are
// nodes.
func TestCheckSeen(t *testing.T) {
	million := graph.LabelValues{Min: 5, Width: 1 << 20}
	for v := 6; v < 5+million.Width-1; v++ {
		million.Unseen = append(million.Unseen, v)
	}
	highest := int32(million.Width - 1)
	three := graph.LabelValues{Min: 2, Width: 3, Unseen: []int{3}}
	many := make([]int32, 1<<16)
	start := time.Now()
	for want, c := range map[string]struct {
		columns graph.Columns
		x       graph.Features
	}{
		"": {
			graph.Columns{Labels: []graph.LabelValues{million}},
			graph.Features{Width: million.Width, Category: append(many, highest)},
		},
		"node 2 has the label 9, which": {
			graph.Columns{Labels: []graph.LabelValues{million}},
			graph.Features{Width: million.Width, Category: []int32{0, highest, 4, 1}},
		},
		"node 1 has the label 3, which": {
			graph.Columns{Attributes: 1, Labels: []graph.LabelValues{three, three}},
			graph.Features{Width: 7, Dense: []float32{1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0}},
		},
	} {
		g := &graph.Graph{X: c.x}
		nodes := len(c.x.Category) + len(c.x.Dense)/c.x.Width
		g.Ptr = make([]int32, nodes+1)
		err := c.columns.CheckSeen(g)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if spent := time.Since(start); spent > 10*time.Second {
		t.Errorf("the check took %v", spent)
	}
}
