package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

func TestEdgeCounts(t *testing.T) {
	b := graph.Collate(path(), path())
	columns := graph.EdgeColumns{Widths: []int{3, 2}, SelfLoop: []int{2, 0}}
	b.EdgeLabel = []int32{0, 0, 3, 3, 1, 1, -1, 5} // (0,0) (0,0) (1,1) (1,1) (0,1) (0,1) none (2,1)
	want := []float32{
		1, 0, 1, 2, 0,
		1, 1, 1, 2, 1,
		0, 1, 1, 1, 1,
		1, 0, 1, 1, 1,
		1, 0, 1, 1, 1,
		0, 0, 2, 1, 1,
	}
	for range 2 { // the second time in used memory
		if got := b.EdgeCounts(columns); !slices.Equal(got, want) {
			t.Errorf("counts %v, want %v", got, want)
		}
	}
	want = []float32{
		0, 0, 1, 2, // the self-loop is 4; then bits 0, 1, 2 and the number
		1, 1, 1, 3,
		1, 1, 1, 2,
		1, 0, 1, 2,
		1, 0, 1, 2,
		1, 0, 2, 2,
	}
	if got := b.EdgeBitCounts(3, 4); !slices.Equal(got, want) {
		t.Errorf("bits %v, want %v", got, want)
	}
}

// TestEdgeCountsAreSums: a product with tables is the sum of their rows.
func TestEdgeCountsAreSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	columns := graph.EdgeColumns{Widths: []int{4, 3, 2}, SelfLoop: []int{3, 0, 1}}
	for range 20 {
		g := random(rng, 9, 0.4, true, 2)
		for range g.Adj {
			g.EdgeLabel = append(g.EdgeLabel, rng.Int32N(24))
		}
		b := graph.Collate(g)
		counts := b.EdgeCounts(columns)
		var tables [9]float32
		for k := range tables {
			tables[k] = float32(rng.IntN(100))
		}
		for i := range g.Nodes() {
			want := tables[3] + tables[4] + tables[8]
			for k := g.Ptr[i]; k < g.Ptr[i+1]; k++ {
				v := g.EdgeLabel[k]
				want += tables[v/6] + tables[4+v/2%3] + tables[7+v%2]
			}
			got := float32(0)
			for k, n := range counts[9*i : 9*i+9] {
				got += n * tables[k]
			}
			if got != want {
				t.Fatalf("node %d: %v, want %v", i, got, want)
			}
		}
	}
}

func TestEdgeCountsMisuse(t *testing.T) {
	labels := func(v ...int32) *graph.Batch {
		b := graph.Collate(path())
		b.EdgeLabel = v
		return b
	}
	columns := graph.EdgeColumns{Widths: []int{3, 2}, SelfLoop: []int{2, 0}}
	for want, f := range map[string]func(){
		"graph: EdgeCounts: 4 edges without labels":      func() { labels().EdgeCounts(columns) },
		"graph: EdgeBitCounts: 4 edges without labels":   func() { labels().EdgeBitCounts(3, 0) },
		"graph: EdgeCounts: label 6 is outside 0..5":     func() { labels(0, 0, 6, 0).EdgeCounts(columns) },
		"graph: EdgeCounts: label -2 is outside 0..5":    func() { labels(0, 0, -2, 0).EdgeCounts(columns) },
		"graph: EdgeBitCounts: label 8 is outside 0..7":  func() { labels(0, 0, 8, 0).EdgeBitCounts(3, 0) },
		"graph: EdgeBitCounts: label -2 is outside 0..7": func() { labels(0, 0, -2, 0).EdgeBitCounts(3, 0) },
	} {
		func() {
			defer func() {
				if r := recover(); fmt.Sprint(r) != want {
					t.Errorf("panic %v, want %q", r, want)
				}
			}()
			f()
		}()
	}
	// No edges, no labels: nothing is missing.
	single := graph.Collate(&graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: 1, Category: []int32{0}}})
	if got := single.EdgeCounts(columns); !slices.Equal(got, []float32{0, 0, 1, 1, 0}) {
		t.Errorf("a node alone: %v", got)
	}
}
