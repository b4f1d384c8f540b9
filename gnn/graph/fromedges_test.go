package graph_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// A graph comes from its edges. Features are optional.
func ExampleFromEdges() {
	triangle, err := graph.FromEdges(3, [][2]int{{0, 1}, {1, 2}, {2, 0}}, graph.Features{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("neighbours of node 0:", triangle.Neighbors(0))
	_, err = graph.FromEdges(3, [][2]int{{0, 1}, {1, 3}}, graph.Features{})
	fmt.Println(err)
	// Output:
	// neighbours of node 0: [1 2]
	// graph: edge 1, 1→3: node 3 is outside 0..2
}

// TestFromEdges: whatever the order, the directions and the repetitions, the graph
// is valid and has the edges of the list and no others.
func TestFromEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		n := 1 + rng.IntN(9)
		edges := make([][2]int, rng.IntN(20))
		has := map[[2]int]bool{}
		for k := range edges {
			e := [2]int{rng.IntN(n), rng.IntN(n)}
			edges[k] = e
			has[e] = e[0] != e[1]
		}
		for _, directed := range []bool{false, true} {
			make := graph.FromEdges
			if directed {
				make = graph.FromDirectedEdges
			}
			g, err := make(n, edges, graph.Features{})
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Validate(); err != nil {
				t.Fatalf("%v: %v", edges, err)
			}
			if g.Directed == g.Symmetric() || g.Nodes() != n || g.X.Width != 1 {
				t.Fatalf("directed %v, symmetric %v, %d nodes, width %d", g.Directed, g.Symmetric(), g.Nodes(), g.X.Width)
			}
			for i := range n {
				for j := range n {
					want := has[[2]int{j, i}] || !directed && has[[2]int{i, j}]
					if g.HasEdge(j, i) != want {
						t.Fatalf("%v, directed %v: edge %d→%d is %v", edges, directed, j, i, !want)
					}
				}
			}
		}
	}
	x := graph.Features{Width: 2, Category: []int32{1, 0}}
	g, err := graph.FromEdges(2, nil, x)
	if err != nil || !slices.Equal(g.X.Category, x.Category) || g.X.Width != 2 {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := graph.FromEdges(0, nil, graph.Features{}); err != nil || g.Validate() != nil || g.Nodes() != 0 {
		t.Errorf("the empty graph: %+v, %v", g, err)
	}
}

func TestFromEdgesRefuses(t *testing.T) {
	for _, c := range []struct {
		n     int
		edges [][2]int
		x     graph.Features
		want  string
	}{
		{-1, nil, graph.Features{}, "-1 nodes"},
		{math.MaxInt32, nil, graph.Features{}, "2147483647 nodes"},
		{2, [][2]int{{0, 1}, {-1, 0}}, graph.Features{}, "edge 1, -1→0: node -1 is outside 0..1"},
		{0, [][2]int{{0, 0}}, graph.Features{}, "node 0 is outside 0..-1"},
		{2, nil, graph.Features{Width: 2}, "0 categories for 2 nodes"},
		{2, nil, graph.Features{Width: 1, Category: []int32{0, 1}}, "node 1 has category 1"},
		{2, nil, graph.Features{Width: 2, Dense: make([]float32, 3)}, "3 feature values for 2 nodes"},
	} {
		_, err := graph.FromEdges(c.n, c.edges, c.x)
		wantError(t, err, c.want)
	}
}
