package dataset_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

// renumbered returns a graph whose node permutation[i] is node i of g.
func renumbered(t *testing.T, g *graph.Graph, permutation []int) *graph.Graph {
	t.Helper()
	type entry struct {
		source, target int
		label          int32
	}
	n := g.Nodes()
	var entries []entry
	for target := range n {
		for k := g.Ptr[target]; k < g.Ptr[target+1]; k++ {
			e := entry{source: permutation[g.Adj[k]], target: permutation[target]}
			if g.EdgeLabel != nil {
				e.label = g.EdgeLabel[k]
			}
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return (a.target-b.target)*n + a.source - b.source })
	h := &graph.Graph{Ptr: make([]int32, n+1), Directed: g.Directed, Class: g.Class, X: graph.Features{Width: g.X.Width}}
	for _, e := range entries {
		h.Ptr[e.target+1]++
		h.Adj = append(h.Adj, int32(e.source))
		if g.EdgeLabel != nil {
			h.EdgeLabel = append(h.EdgeLabel, e.label)
		}
	}
	for i := range n {
		h.Ptr[i+1] += h.Ptr[i]
	}
	if g.X.OneHot() {
		h.X.Category = make([]int32, n)
	} else {
		h.X.Dense = make([]float32, n*g.X.Width)
	}
	for i, p := range permutation {
		if g.X.OneHot() {
			h.X.Category[p] = g.X.Category[i]
		} else {
			copy(h.X.Dense[p*g.X.Width:(p+1)*g.X.Width], g.X.Dense[i*g.X.Width:])
		}
	}
	if err := h.Validate(); err != nil {
		t.Fatal(err)
	}
	return h
}

func copies(t *testing.T, graphs ...*graph.Graph) [][]int {
	t.Helper()
	c, err := dataset.FindCopies(t.Context(), graphs)
	if err != nil {
		t.Fatal(err)
	}
	return c.Groups
}

func edges(t *testing.T, n int, pairs ...[2]int) *graph.Graph {
	t.Helper()
	g, err := graph.FromEdges(n, pairs, graph.Features{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func cycles(lengths ...int) (n int, pairs [][2]int) {
	for _, length := range lengths {
		for i := range length {
			pairs = append(pairs, [2]int{n + i, n + (i+1)%length})
		}
		n += length
	}
	return n, pairs
}

// TestFindCopies: every renumbered graph is found, and one that differs in an edge, its direction or label,
// or in a feature is none.
func TestFindCopies(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	set := dataset.Default()
	var graphs []*graph.Graph
	var want [][]int
	for k, g := range set.Graphs[:60:60] {
		h := *g
		switch k % 4 {
		case 1: // dense features
			h.X = graph.Features{Width: g.X.Width, Dense: slices.Clone(g.X.Materialize(g.Nodes()))}
			h.X.Dense[0] = float32(k)
		case 2: // labels of edges, the same in both directions
			h.EdgeLabel = make([]int32, len(g.Adj))
			for i := range g.Nodes() {
				for e := g.Ptr[i]; e < g.Ptr[i+1]; e++ {
					h.EdgeLabel[e] = int32(i^int(g.Adj[e])) % 3
				}
			}
		case 3: // edges in one direction
			var pairs [][2]int
			for i := range g.Nodes() {
				for _, j := range g.Neighbors(i) {
					if int(j) < i {
						pairs = append(pairs, [2]int{i, int(j)})
					}
				}
			}
			d, err := graph.FromDirectedEdges(g.Nodes(), pairs, g.X)
			if err != nil {
				t.Fatal(err)
			}
			h = *d
		}
		want = append(want, []int{2 * k, 2*k + 1})
		graphs = append(graphs, &h, renumbered(t, &h, rng.Perm(h.Nodes())))
	}
	if got := copies(t, graphs...); !cmp.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
	for k := 0; k < len(graphs); k += 2 {
		g := graphs[k]
		other := *graphs[k+1]
		switch {
		case g.EdgeLabel != nil:
			other.EdgeLabel = slices.Clone(other.EdgeLabel)
			other.EdgeLabel[0] += 7
		case g.Directed:
			other.Ptr, other.Adj = graph.TransposeCSR(g.Ptr, g.Adj, g.Nodes())
			other.X = g.X
			other.Directed = true
			if len(copies(t, g, &other)) > 0 && !slices.Equal(g.Ptr, other.Ptr) {
				continue // some are isomorphic to their reverse
			}
		case g.X.OneHot():
			other.X.Category = slices.Clone(other.X.Category)
			other.X.Category[0] = (other.X.Category[0] + 1) % int32(other.X.Width)
		default:
			other.X.Dense = slices.Clone(other.X.Dense)
			other.X.Dense[1] += 0.5
		}
		if got := copies(t, g, &other); got != nil {
			t.Errorf("graph %d and one that differs: %v", k/2, got)
		}
	}
}

// TestFindCopiesIsExact: graphs that the refinement cannot tell apart are.
func TestFindCopiesIsExact(t *testing.T) {
	graphOf := func(n int, pairs [][2]int) *graph.Graph { return edges(t, n, pairs...) }
	hexagon := graphOf(cycles(6))
	triangles := graphOf(cycles(3, 3))
	other := graphOf(6, [][2]int{{0, 2}, {2, 4}, {4, 1}, {1, 3}, {3, 5}, {5, 0}})
	if got := copies(t, hexagon, triangles, other); !cmp.Equal(got, [][]int{{0, 2}}) {
		t.Errorf("a hexagon, two triangles, a hexagon: %v", got)
	}
	// Rook's graph and Shrikhande's, both strongly regular with the parameters (16, 6, 2, 2).
	var rook, shrikhande [][2]int
	for i := range 16 {
		for j := range i {
			rows := (i/4 - j/4 + 4) % 4
			columns := (i%4 - j%4 + 4) % 4
			if rows == 0 || columns == 0 {
				rook = append(rook, [2]int{i, j})
			}
			if rows == 0 && columns%2 == 1 || columns == 0 && rows%2 == 1 || rows == columns && rows%2 == 1 {
				shrikhande = append(shrikhande, [2]int{i, j})
			}
		}
	}
	if got := copies(t, edges(t, 16, rook...), edges(t, 16, shrikhande...)); len(rook) != 48 || len(shrikhande) != 48 || got != nil {
		t.Errorf("%d and %d edges, copies %v", len(rook), len(shrikhande), got)
	}
	// Large symmetric graphs take no longer than others, and copies of them are found.
	rng := rand.New(rand.NewPCG(3, 4))
	var star, clique [][2]int
	for i := range 3000 {
		star = append(star, [2]int{0, i + 1})
	}
	for i := range 200 {
		for j := range i {
			clique = append(clique, [2]int{i, j})
		}
	}
	start := time.Now()
	for name, g := range map[string]*graph.Graph{
		"star": edges(t, 3001, star...), "clique": edges(t, 200, clique...), "cycles": graphOf(cycles(50, 50, 50, 49, 51)),
		"no edges": edges(t, 100), "one node": edges(t, 1),
	} {
		if got := copies(t, g, renumbered(t, g, rng.Perm(g.Nodes()))); !cmp.Equal(got, [][]int{{0, 1}}) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("symmetric graphs take %v", d)
	}
}

// TestCopies: copies are counted, with those of other classes and those across parts.
func TestCopies(t *testing.T) {
	c := &dataset.Copies{Groups: [][]int{{0, 3, 5}, {1, 4}}}
	if c.Graphs() != 3 || c.Conflicts([]int{1, 0, 0, 1, 0, 1}) != 0 || c.Conflicts([]int{1, 0, 0, 1, 1, 0}) != 2 {
		t.Errorf("%d copies, %d conflicts", c.Graphs(), c.Conflicts([]int{1, 0, 0, 1, 1, 0}))
	}
	if got := c.Shared([]int{0, 2, 6}, []int{5, 1, 3, 4, 7}); !slices.Equal(got, []int{5, 3}) {
		t.Errorf("shared %v", got)
	}
	if got := c.Shared([]int{4, 7}, []int{1, 2}); !slices.Equal(got, []int{1}) {
		t.Errorf("shared %v", got)
	}
	folds := []dataset.Fold{{Train: []int{4, 7}, Test: []int{1, 2}}, {Train: []int{0, 1}, Test: []int{3, 4, 5}}}
	if n := c.CountShared(folds); n != 4 {
		t.Errorf("%d shared in two folds", n)
	}
	labelled := edges(t, 2, [2]int{0, 1})
	labelled.EdgeLabel = make([]int32, labelled.Entries())
	plain := dataset.WithoutEdgeLabels([]*graph.Graph{labelled})
	if plain[0].EdgeLabel != nil || labelled.EdgeLabel == nil {
		t.Error("labels of edges are not removed, or from the graph itself")
	}
	if got := copies(t, labelled, plain[0]); got != nil {
		t.Errorf("edges with the label 0 and without labels: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dataset.FindCopies(ctx, dataset.Default().Graphs); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
