package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// split takes graph g of a batch out again.
func split(b *graph.Batch, g int) *graph.Graph {
	lo, hi := b.GraphPtr[g], b.GraphPtr[g+1]
	out := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: b.X.Width}}
	for i := lo; i < hi; i++ {
		for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
			out.Adj = append(out.Adj, j-lo)
		}
		out.Ptr = append(out.Ptr, int32(len(out.Adj)))
	}
	if b.X.OneHot() {
		out.X.Category = b.X.Category[lo:hi]
	} else {
		out.X.Dense = b.X.Dense[int(lo)*b.X.Width : int(hi)*b.X.Width]
	}
	return out
}

func equalGraphs(t *testing.T, got, want *graph.Graph) {
	t.Helper()
	if !slices.Equal(got.Ptr, want.Ptr) || !slices.Equal(got.Adj, want.Adj) {
		t.Fatalf("adjacency %v %v, want %v %v", got.Ptr, got.Adj, want.Ptr, want.Adj)
	}
	n := want.Nodes()
	if g, w := got.X.Materialize(n), want.X.Materialize(n); !slices.Equal(g, w) {
		t.Fatalf("features %v, want %v", g, w)
	}
}

// TestCollateThenSplit is the defining property of a batch: the graphs come out
// as they went in, whatever mixture of features they have.
func TestCollateThenSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var reused graph.Batch
	for range 100 {
		var graphs []*graph.Graph
		directed, someDense := false, false
		for range 1 + rng.IntN(6) {
			g := random(rng, 1+rng.IntN(8), rng.Float64(), rng.IntN(4) == 0, 5)
			if rng.IntN(4) == 0 {
				g = dense(rng, g)
				someDense = true
			}
			directed = directed || g.Directed
			graphs = append(graphs, g)
		}
		reused.Reset(5)
		for _, g := range graphs {
			reused.Append(g)
		}
		reused.EndView()
		for _, b := range []*graph.Batch{graph.Collate(graphs...), &reused} {
			if err := b.Validate(); err != nil {
				t.Fatal(err)
			}
			if b.Graphs() != len(graphs) || b.Views() != 1 || b.Asymmetric != directed || b.X.OneHot() == someDense {
				t.Fatalf("%d graphs in %d views, asymmetric %v, one-hot %v; want %d in 1, %v, %v",
					b.Graphs(), b.Views(), b.Asymmetric, b.X.OneHot(), len(graphs), directed, !someDense)
			}
			for k, g := range graphs {
				equalGraphs(t, split(b, k), g)
			}
		}
	}
}

// TestTranspose compares with the definition and undoes it: CSRᵀᵀ = CSR.
func TestTranspose(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		n := 1 + rng.IntN(15)
		g := random(rng, n, rng.Float64(), true, 2)
		b := graph.Collate(g)
		ptr, adj := b.Transpose()
		tr := &graph.Graph{Ptr: ptr, Adj: adj, Directed: true, X: g.X}
		if err := tr.Validate(); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range n {
				if g.HasEdge(j, i) != tr.HasEdge(i, j) {
					t.Fatalf("edge %d→%d: %v, its reverse in the transpose: %v", j, i, g.HasEdge(j, i), tr.HasEdge(i, j))
				}
			}
		}
		ptr2, adj2 := graph.TransposeCSR(ptr, adj, n)
		if !slices.Equal(ptr2, g.Ptr) || !slices.Equal(adj2, g.Adj) {
			t.Fatalf("transposed twice: %v %v, want %v %v", ptr2, adj2, g.Ptr, g.Adj)
		}
	}
	b := graph.Collate(path())
	if ptr, adj := b.Transpose(); &ptr[0] != &b.Ptr[0] || &adj[0] != &b.Adj[0] {
		t.Error("the transpose of a symmetric batch is not the batch's own slices")
	}
}

func TestBatchViews(t *testing.T) {
	var b graph.Batch
	if b.Nodes() != 0 || b.Graphs() != 0 || b.Views() != 0 {
		t.Errorf("the zero batch has %d nodes, %d graphs, %d views", b.Nodes(), b.Graphs(), b.Views())
	}
	for range 2 {
		b.Append(path())
		b.Append(path())
		b.EndView()
	}
	if want := []int32{0, 2, 4}; !slices.Equal(b.ViewPtr, want) || b.Views() != 2 {
		t.Errorf("ViewPtr = %v in %d views, want %v in 2", b.ViewPtr, b.Views(), want)
	}
	if want := []int32{0, 3, 6, 9, 12}; !slices.Equal(b.GraphPtr, want) {
		t.Errorf("GraphPtr = %v, want %v", b.GraphPtr, want)
	}
	if err := b.Validate(); err != nil {
		t.Error(err)
	}
}

func TestBatchRefusesAnotherWidth(t *testing.T) {
	defer func() {
		want := "graph: Batch: feature width 3 appended to a batch of width 2"
		if r := recover(); r != want {
			t.Errorf("panic %v, want %q", r, want)
		}
	}()
	b := graph.Collate(path())
	g := path()
	g.X.Width = 3
	b.Append(g)
}

func TestBatchRefusesMissingLabels(t *testing.T) {
	defer func() {
		want := "graph: Batch: 4 edge labels for 8 entries: only some of the graphs have them"
		if r := recover(); r != want {
			t.Errorf("panic %v, want %q", r, want)
		}
	}()
	g := path()
	g.EdgeLabel = []int32{0, 0, 1, 1}
	graph.Collate(g, path())
}

func TestDensify(t *testing.T) {
	var b graph.Batch
	b.Append(path())
	b.Densify(3)
	if want := []float32{1, 0, 0, 1, 1, 0}; b.X.OneHot() || !slices.Equal(b.X.Dense, want) {
		t.Fatalf("Densify made %v, want %v", b.X.Dense, want)
	}
	b.Densify(3) // already dense
	b.Append(path())
	b.EndView()
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	// The memory now holds ones; a second life must not see them, nor the flags.
	b.Asymmetric, b.Multigraph = true, true
	b.Reset(2)
	if !b.X.OneHot() || b.Asymmetric || b.Multigraph || b.Nodes() != 0 || b.Graphs() != 0 || b.Views() != 0 || len(b.Adj) != 0 {
		t.Fatalf("after Reset: %+v", b)
	}
	g := path()
	g.X.Category = []int32{1, 1, 1}
	b.Append(g)
	b.Densify(3)
	if want := []float32{0, 1, 0, 1, 0, 1}; !slices.Equal(b.X.Dense, want) {
		t.Errorf("Densify in used memory made %v, want %v", b.X.Dense, want)
	}
}

func TestBatchReuseDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	sparse := random(rng, 20, 0.2, false, 6)
	matrix := dense(rng, sparse)
	var b graph.Batch
	round := func() {
		b.Reset(6) // one-hot, then dense in the middle of the batch, then one-hot again
		b.Append(sparse)
		b.Append(matrix)
		b.Append(sparse)
		b.EndView()
		b.Reset(6)
		b.Append(sparse)
		b.EndView()
	}
	round()
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("a round in a used batch makes %v allocations", n)
	}
}

func TestBatchValidate(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(b *graph.Batch)
		want  string
	}{
		{"untouched", func(b *graph.Batch) {}, ""},
		{"self-loop", func(b *graph.Batch) { b.Adj[0] = 0; b.Asymmetric = true }, ""},
		{"repeated source, said so", func(b *graph.Batch) { b.Adj[2] = 0; b.Asymmetric, b.Multigraph = true, true }, ""},
		{"asymmetric, said so", func(b *graph.Batch) { b.Adj[0] = 2; b.Asymmetric = true }, ""},
		{"no view closed yet", func(b *graph.Batch) { b.ViewPtr = []int32{0} }, ""},
		{"zero batch", func(b *graph.Batch) { *b = graph.Batch{} }, "Ptr is empty"},
		{"Ptr starts late", func(b *graph.Batch) { b.Ptr[0] = 1 }, "Ptr runs from 1"},
		{"Ptr ends late", func(b *graph.Batch) { b.Ptr[6] = 9 }, "to 9, want 0 to 8"},
		{"Ptr beyond Adj in the middle", func(b *graph.Batch) { b.Ptr[2] = 90 }, "decreases at 2"},
		{"source out of range", func(b *graph.Batch) { b.Adj[7] = 6 }, "outside 0..5"},
		{"repeated source", func(b *graph.Batch) { b.Adj[2] = 0; b.Asymmetric = true }, "twice"},
		{"row not sorted", func(b *graph.Batch) { b.Adj[1], b.Adj[2] = 2, 0; b.Multigraph = true }, "not ascending"},
		{"edge between graphs", func(b *graph.Batch) { b.Adj[7] = 1; b.Asymmetric = true }, "leaves graph 1"},
		{"no graph", func(b *graph.Batch) { b.GraphPtr = nil }, "GraphPtr is empty"},
		{"a graph too few", func(b *graph.Batch) { b.GraphPtr = []int32{0, 3} }, "GraphPtr runs from 0 to 3, want 0 to 6"},
		{"GraphPtr beyond the nodes in the middle", func(b *graph.Batch) { b.GraphPtr[1] = 60 }, "GraphPtr decreases"},
		{"a view too few", func(b *graph.Batch) { b.ViewPtr = []int32{0, 1} }, "ViewPtr runs from 0 to 1, want 0 to 2"},
		{"ViewPtr decreases", func(b *graph.Batch) { b.ViewPtr = []int32{0, 2, 1, 2} }, "ViewPtr decreases at 1"},
		{"asymmetric", func(b *graph.Batch) { b.Adj[0] = 2 }, "marked symmetric"},
		{"asymmetric with symmetric degrees", func(b *graph.Batch) {
			// 0←1←2←0: every row and every column has one entry.
			*b = *graph.Collate(&graph.Graph{Ptr: []int32{0, 1, 2, 3}, Adj: []int32{1, 2, 0}, X: b.X})
			b.X.Category = b.X.Category[:3]
		}, "marked symmetric"},
		{"edge from the next graph's first node", func(b *graph.Batch) { b.Adj[3] = 3; b.Asymmetric = true }, "edge 3→2 leaves graph 0"},
		{"edge labels of the wrong number", func(b *graph.Batch) { b.EdgeLabel = []int32{0} }, "1 edge labels for 8"},
		{"too few categories", func(b *graph.Batch) { b.X.Category = b.X.Category[:5] }, "5 categories for 6"},
		{"matrix of the wrong size", func(b *graph.Batch) { b.Densify(6); b.X.Dense = b.X.Dense[1:] }, "11 feature values"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := graph.Collate(path(), path())
			c.spoil(b)
			err := b.Validate()
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

func ExampleCollate() {
	edge := &graph.Graph{ // 0–1, atoms C and O
		Ptr: []int32{0, 1, 2}, Adj: []int32{1, 0},
		X: graph.Features{Width: 2, Category: []int32{0, 1}},
	}
	path := &graph.Graph{ // 0–1–2, all C
		Ptr: []int32{0, 1, 3, 4}, Adj: []int32{1, 0, 2, 1},
		X: graph.Features{Width: 2, Category: []int32{0, 0, 0}},
	}
	b := graph.Collate(edge, path)
	fmt.Println("nodes of graph 1:", b.GraphPtr[1], "to", b.GraphPtr[2]-1)
	fmt.Println("neighbours of node 3:", b.Adj[b.Ptr[3]:b.Ptr[4]])
	fmt.Println("categories:", b.X.Category)
	// Output:
	// nodes of graph 1: 2 to 4
	// neighbours of node 3: [2 4]
	// categories: [0 1 0 0 0]
}
