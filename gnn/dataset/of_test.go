package dataset_test

import (
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Make a data set of graphs of one's own: a triangle and a path, with two real numbers for each node.
func ExampleOf() {
	features := graph.Features{Width: 2, Dense: []float32{1, 0.5, 2, 0.25, 3, 0.125}}
	triangle, err := graph.FromEdges(3, [][2]int{{0, 1}, {1, 2}, {2, 0}}, features)
	if err != nil {
		log.Fatal(err)
	}
	path, err := graph.FromEdges(3, [][2]int{{0, 1}, {1, 2}}, features)
	if err != nil {
		log.Fatal(err)
	}
	path.Class = 1
	set, err := dataset.Of("shapes", []*graph.Graph{triangle, path})
	if err != nil {
		log.Fatal(err)
	}
	columns, err := set.Columns()
	fmt.Println(set.Classes, "classes,", columns.Width(), "features,", err)
	// Output: 2 classes, 2 features, <nil>
}

// TestOf: a set of graphs says what it is, and refuses what is no set.
func TestOf(t *testing.T) {
	pair := func(x graph.Features) *graph.Graph {
		g, err := graph.FromEdges(2, [][2]int{{0, 1}}, x)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	labels := pair(graph.Features{Width: 4, Category: []int32{3, 0}})
	numbers := pair(graph.Features{Width: 4, Dense: make([]float32, 8)})
	labels.EdgeLabel = []int32{2, 2}
	set, err := dataset.Of("own", []*graph.Graph{labels, labels})
	if err != nil {
		t.Fatal(err)
	}
	f := columns(t, set)
	if len(f.Labels) != 1 || f.Labels[0].Width != 4 || set.EdgeCategories() != 3 {
		t.Errorf("%+v, %d categories of edges", f, set.EdgeCategories())
	}
	negative := pair(numbers.X)
	negative.Class = -1
	for want, graphs := range map[string][]*graph.Graph{
		"want at least one graph":                      nil,
		"graph 1 is nil":                               {labels, nil},
		"graph 1 has features unlike those of graph 0": {labels, numbers},
		"graph 0 has the class -1":                     {negative},
	} {
		if _, err := dataset.Of("own", graphs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
