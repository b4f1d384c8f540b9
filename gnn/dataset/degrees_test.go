package dataset_test

import (
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

func TestWithDegrees(t *testing.T) {
	// A star of four nodes with center 0, and 1→3 in one direction.
	g := &graph.Graph{Ptr: []int32{0, 3, 4, 5, 7}, Adj: []int32{1, 2, 3, 0, 0, 0, 1}, Directed: true,
		X: graph.Features{Width: 2, Category: []int32{1, 0, 0, 1}}, Class: 1}
	d := &dataset.Dataset{Name: "star", Graphs: []*graph.Graph{g}, Classes: 2, FeatureWidth: 2}
	e := d.WithDegrees(2)
	want := []float32{
		0, 1, 3, 0, 0, 1, // degree 3 counts as 2
		1, 0, 2, 0, 0, 1,
		1, 0, 1, 0, 1, 0,
		0, 1, 1, 0, 1, 0,
	}
	h := e.Graphs[0]
	if !slices.Equal(h.X.Dense, want) || h.X.Category != nil {
		t.Errorf("features %v, want %v", h.X.Dense, want)
	}
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	if e.FeatureWidth != 6 || h.Class != 1 || !h.Directed {
		t.Errorf("width %d, class %d, directed %v", e.FeatureWidth, h.Class, h.Directed)
	}
	if d.FeatureWidth != 2 || !d.Graphs[0].X.OneHot() {
		t.Error("the set itself changed")
	}
}

// TestDegreeCap: the widths of the literature's semi-supervised experiments.
func TestDegreeCap(t *testing.T) {
	for name, want := range map[string]int{"NCI1": 139, "PROTEINS": 106, "DD": 101, "COLLAB": 103, "REDDIT-BINARY": 13, "REDDIT-MULTI-5K": 13, "MUTAG": 109} {
		base := map[string]int{"NCI1": 37, "PROTEINS": 4, "DD": 89, "MUTAG": 7}[name]
		if base == 0 {
			base = 1
		}
		if got := base + dataset.DegreeCap(name) + 2; got != want {
			t.Errorf("%s: width %d, want %d", name, got, want)
		}
	}
}

// TestDegreesAsLabels: a star with a lonely node; from the limit on degrees are one label, and
// the set describes what its graphs have.
func TestDegreesAsLabels(t *testing.T) {
	star := &graph.Graph{Ptr: []int32{0, 3, 4, 5, 6, 6}, Adj: []int32{1, 2, 3, 0, 0, 0}, X: graph.Features{Width: 1, Category: make([]int32, 5)}}
	d := &dataset.Dataset{Name: "star", Graphs: []*graph.Graph{star}, Classes: 1, ClassValues: []int{0}, FeatureWidth: 1}
	for limit, want := range map[int][]int32{2: {2, 1, 1, 1, 0}, 400: {3, 1, 1, 1, 0}} {
		e := d.WithDegreesAsLabels(limit)
		if got := e.Graphs[0].X; got.Width != limit+1 || e.FeatureWidth != limit+1 || !slices.Equal(got.Category, want) {
			t.Errorf("limit %d: %v of width %d, want %v", limit, got.Category, got.Width, want)
		}
		if c, err := e.Columns(); err != nil || len(c.Labels) != 1 || c.Labels[0].Width-len(c.Labels[0].Unseen) != 3 {
			t.Errorf("limit %d: columns %+v, error %v", limit, c, err)
		}
	}
	if star.X.Width != 1 {
		t.Error("the graph itself has changed")
	}
}
