package graph_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// random returns a graph of n nodes in which every possible edge exists with
// probability p, with one-hot features of the given width.
func random(rng *rand.Rand, n int, p float64, directed bool, width int) *graph.Graph {
	has := make([][]bool, n)
	for i := range has {
		has[i] = make([]bool, n)
	}
	for i := range n {
		for j := range i {
			has[i][j] = rng.Float64() < p
			has[j][i] = has[i][j]
			if directed {
				has[j][i] = rng.Float64() < p
			}
		}
	}
	g := &graph.Graph{Ptr: []int32{0}, Directed: directed, X: graph.Features{Width: width}}
	for i := range n {
		for j := range n {
			if has[i][j] {
				g.Adj = append(g.Adj, int32(j))
			}
		}
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
		g.X.Category = append(g.X.Category, rng.Int32N(int32(width)))
	}
	return g
}

// dense returns the graph with its features as a matrix of random numbers.
func dense(rng *rand.Rand, g *graph.Graph) *graph.Graph {
	d := *g
	d.X = graph.Features{Width: g.X.Width, Dense: make([]float32, g.Nodes()*g.X.Width)}
	for k := range d.X.Dense {
		d.X.Dense[k] = rng.Float32()
	}
	return &d
}

// path returns the path 0–1–2 with categories 0, 1, 0: valid, and easy to break.
func path() *graph.Graph {
	return &graph.Graph{
		Ptr: []int32{0, 1, 3, 4},
		Adj: []int32{1, 0, 2, 1},
		X:   graph.Features{Width: 2, Category: []int32{0, 1, 0}},
	}
}

// wantError fails unless err mentions the given words.
func wantError(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	if !strings.Contains(err.Error(), words) {
		t.Fatalf("error %q, want one with %q", err, words)
	}
}

func TestGraphQueries(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		directed := rng.IntN(2) == 0
		n := 1 + rng.IntN(12)
		g := random(rng, n, rng.Float64(), directed, 3)
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		symmetric := true
		entries := 0
		for i := range n {
			for j := range n {
				want := slices.Contains(g.Neighbors(i), int32(j))
				if got := g.HasEdge(j, i); got != want {
					t.Fatalf("HasEdge(%d, %d) = %v with row %v", j, i, got, g.Neighbors(i))
				}
				if want {
					entries++
					symmetric = symmetric && slices.Contains(g.Neighbors(j), int32(i))
				}
			}
		}
		if got := g.Symmetric(); got != symmetric {
			t.Errorf("Symmetric() = %v, want %v", got, symmetric)
		}
		if g.Nodes() != n || g.Entries() != entries {
			t.Errorf("%d nodes and %d entries, want %d and %d", g.Nodes(), g.Entries(), n, entries)
		}
	}
}

func TestGraphValidate(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(g *graph.Graph)
		want  string // words of the error; empty if the graph is valid
	}{
		{"untouched", func(g *graph.Graph) {}, ""},
		{"no edge", func(g *graph.Graph) { g.Ptr, g.Adj = []int32{0, 0, 0, 0}, nil }, ""},
		{"no node", func(g *graph.Graph) { g.Ptr, g.Adj, g.X.Category = []int32{0}, nil, nil }, ""},
		{"edge labels", func(g *graph.Graph) { g.EdgeLabel = []int32{0, 0, 1, 1} }, ""},
		{"dense features", func(g *graph.Graph) { g.X = graph.Features{Width: 2, Dense: make([]float32, 6)} }, ""},
		{"one direction, said so", func(g *graph.Graph) {
			g.Ptr, g.Adj, g.Directed = []int32{0, 0, 2, 3}, []int32{0, 2, 1}, true
		}, ""},
		{"empty Ptr", func(g *graph.Graph) { g.Ptr = nil }, "Ptr is empty"},
		{"Ptr starts late", func(g *graph.Graph) { g.Ptr[0] = 1 }, "runs from 1"},
		{"Ptr ends early", func(g *graph.Graph) { g.Ptr[3] = 3 }, "to 3, want 0 to 4"},
		{"Ptr decreases", func(g *graph.Graph) { g.Ptr[1], g.Ptr[2] = 3, 1 }, "decreases at 1"},
		{"Ptr beyond Adj in the middle", func(g *graph.Graph) { g.Ptr[1] = 9 }, "decreases at 1"},
		{"source too large", func(g *graph.Graph) { g.Adj[2] = 3 }, "outside 0..2"},
		{"source negative", func(g *graph.Graph) { g.Adj[1] = -1 }, "outside 0..2"},
		{"self-loop", func(g *graph.Graph) { g.Adj[0] = 0 }, "self-loop at node 0"},
		{"row not sorted", func(g *graph.Graph) { g.Adj[1], g.Adj[2] = 2, 0 }, "not ascending"},
		{"edge twice", func(g *graph.Graph) { g.Adj[2] = 0 }, "twice"},
		{"one direction", func(g *graph.Graph) { g.Ptr, g.Adj = []int32{0, 0, 2, 3}, []int32{0, 2, 1} }, "lacks its reverse"},
		{"edge labels of the wrong number", func(g *graph.Graph) { g.EdgeLabel = []int32{0} }, "1 edge labels for 4"},
		{"negative class", func(g *graph.Graph) { g.Class = -1 }, "class -1"},
		{"no width", func(g *graph.Graph) { g.X.Width = 0 }, "width 0"},
		{"too few categories", func(g *graph.Graph) { g.X.Category = g.X.Category[:2] }, "2 categories for 3"},
		{"category too large", func(g *graph.Graph) { g.X.Category[1] = 2 }, "category 2"},
		{"category negative", func(g *graph.Graph) { g.X.Category[1] = -1 }, "category -1"},
		{"matrix of the wrong size", func(g *graph.Graph) { g.X = graph.Features{Width: 2, Dense: make([]float32, 5)} }, "5 feature values"},
		{"both kinds of features", func(g *graph.Graph) { g.X.Dense = make([]float32, 6) }, "both"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := path()
			c.spoil(g)
			err := g.Validate()
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, c.want)
		})
	}
}

func TestFeatures(t *testing.T) {
	onehot := graph.Features{Width: 3, Category: []int32{2, 0}}
	want := []float32{0, 0, 1, 1, 0, 0}
	if got := onehot.Materialize(2); !slices.Equal(got, want) {
		t.Errorf("Materialize = %v, want %v", got, want)
	}
	matrix := graph.Features{Width: 3, Dense: want}
	if got := matrix.Materialize(2); &got[0] != &want[0] {
		t.Error("Materialize copied a dense matrix")
	}
	if !onehot.OneHot() || matrix.OneHot() {
		t.Errorf("OneHot() = %v, %v, want true, false", onehot.OneHot(), matrix.OneHot())
	}
	for _, f := range []graph.Features{onehot, matrix} {
		for i := range 2 {
			row := []float32{7, 7, 7} // must be overwritten, zeros too
			f.Row(row, i)
			if !slices.Equal(row, want[3*i:3*i+3]) {
				t.Errorf("Row(%d) = %v, want %v", i, row, want[3*i:3*i+3])
			}
		}
	}
}
