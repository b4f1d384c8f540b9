package graph_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// fill refills a batch with random trees, some of them stars, in two views.
func fill(b *graph.Batch, rng *rand.Rand) {
	b.Reset(2)
	for range 2 {
		for range 1 + rng.IntN(4) {
			b.BeginGraph(2)
			first, n, star := b.Nodes(), 1+rng.IntN(10), rng.IntN(2) == 0
			adj := make([][]int32, n)
			for i := 1; i < n; i++ {
				j := 0
				if !star {
					j = rng.IntN(i)
				}
				adj[i], adj[j] = append(adj[i], int32(first+j)), append(adj[j], int32(first+i))
			}
			for i := range n {
				b.Adj = append(b.Adj, adj[i]...)
				for _, j := range adj[i] { // both directions of an edge alike; -1 among them
					b.EdgeLabel = append(b.EdgeLabel, max(int32(first+i), j)%3-1)
				}
				b.Ptr = append(b.Ptr, int32(len(b.Adj)))
				b.X.Category = append(b.X.Category, int32(min(i, 1)))
			}
			b.EndGraph()
		}
		b.EndView()
	}
}

// checkLayers holds the layers of a batch against Â, or A + I and the labels of edges:
// the same sums over neighbours, for any values that are equal where colors are.
func checkLayers(t *testing.T, b *graph.Batch, sight graph.Sight, layers []*graph.ColorLayer, last []int32) {
	t.Helper()
	m, _ := b.Normalized()
	n := b.Nodes()
	labels := make([]string, n)
	if sight == graph.Labelled {
		m = graph.Weighted{Ptr: []int32{0}}
		for i := range n {
			m.Col = append(append(m.Col, int32(i)), b.Adj[b.Ptr[i]:b.Ptr[i+1]]...)
			m.Ptr = append(m.Ptr, int32(len(m.Col)))
			labels[i] = fmt.Sprint(slices.Sorted(slices.Values(b.EdgeLabel[b.Ptr[i]:b.Ptr[i+1]])))
		}
		m.Val = slices.Repeat([]float64{1}, len(m.Col))
	}
	// color[i] is the color of node i in the layer at hand, from the last one backwards.
	color := slices.Clone(last)
	for k := len(layers) - 1; k >= 0; k-- {
		l := layers[k]
		weight := make([]float64, len(l.Node))
		for i, c := range color {
			weight[c]++
			if weight[c] == 1 && l.Node[c] != int32(i) {
				t.Fatalf("layer %d: color %d begins with node %d, not %d", k, c, i, l.Node[c])
			}
		}
		if !slices.Equal(l.Weight, weight) {
			t.Fatalf("layer %d: weights %v, want %v", k, l.Weight, weight)
		}
		if k == 0 {
			return
		}
		before := make([]int32, n)
		for i, c := range color {
			before[i] = c
			if !l.Same {
				before[i] = l.Before[c]
			}
		}
		for i, c := range color {
			if labels[i] != labels[l.Node[c]] {
				t.Fatalf("layer %d: the edges of color %d have labels %s and %s", k, c, labels[i], labels[l.Node[c]])
			}
		}
		from := len(layers[k-1].Node)
		if len(l.Sources.Ptr) != len(l.Node)+1 || len(l.Transpose.Ptr) != from+1 || len(l.Transpose.Col) != len(l.Sources.Col) {
			t.Fatalf("layer %d: %d×%d from %d and %d pointers", k, len(l.Node), from, len(l.Sources.Ptr), len(l.Transpose.Ptr))
		}
		for i, c := range color {
			want := make([]float64, from)
			for e := m.Ptr[i]; e < m.Ptr[i+1]; e++ {
				want[before[m.Col[e]]] += m.Val[e]
			}
			for f, w := range want {
				there, back := entry(l.Sources, int(c), f), entry(l.Transpose, f, int(c))
				if math.Abs(there-w) > 1e-15 || there != back {
					t.Fatalf("layer %d: color %d sees color %d by %v, transposed %v, want %v", k, c, f, there, back, w)
				}
			}
		}
		color = before
	}
}

// TestColorLayers refills one batch, whose memory then holds what was there before.
func TestColorLayers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var b graph.Batch
	lengths := map[int]int{}
	for k := range 400 {
		fill(&b, rng)
		sight := []graph.Sight{graph.Normalized, graph.Labelled}[k%2]
		layers, last := b.ColorLayers(graph.Layering{Sight: sight, Rounds: 4, Share: 0.9, Leave: 0.6})
		lengths[len(layers)]++
		if len(layers) > 0 {
			checkLayers(t, &b, sight, layers, last)
		}
	}
	for _, n := range []int{0, 1, 2, 5} {
		if lengths[n] == 0 {
			t.Errorf("never %d layers: %v", n, lengths)
		}
	}
}

// TestConstant: a constant batch computes its layers once, for the same arguments, and
// until it is Reset.
func TestConstant(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var b graph.Batch
	fill(&b, rng)
	b.Constant = true
	layers, _ := b.ColorLayers(graph.Layering{Sight: graph.Normalized, Rounds: 3, Share: 1})
	if len(layers) != 4 {
		t.Fatalf("%d layers", len(layers))
	}
	if n := testing.AllocsPerRun(10, func() { b.ColorLayers(graph.Layering{Sight: graph.Normalized, Rounds: 3, Share: 1}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	weight := &layers[0].Weight[0]
	*weight = 1e9 // which shows whether it is computed anew
	if layers, _ := b.ColorLayers(graph.Layering{Sight: graph.Normalized, Rounds: 3, Share: 1}); layers[0].Weight[0] != 1e9 {
		t.Error("computed twice")
	}
	b.Constant = false
	if layers, _ := b.ColorLayers(graph.Layering{Sight: graph.Normalized, Rounds: 3, Share: 1}); layers[0].Weight[0] == 1e9 {
		t.Error("kept by a batch that may change")
	}
	b.Constant = true
	layers, last := b.ColorLayers(graph.Layering{Sight: graph.Normalized, Rounds: 2, Share: 1})
	if len(layers) != 3 {
		t.Errorf("%d layers after another number of rounds", len(layers))
	}
	checkLayers(t, &b, graph.Normalized, layers, last)
	if layers, _ := b.ColorLayers(graph.Layering{Sight: graph.Normalized, Rounds: 2, Share: 0}); len(layers) != 0 {
		t.Errorf("%d layers of a share that none has", len(layers))
	}
	if layers, last = b.ColorLayers(graph.Layering{Sight: graph.Labelled, Rounds: 2, Share: 1}); len(layers) != 3 {
		t.Errorf("%d layers by labels", len(layers))
	}
	checkLayers(t, &b, graph.Labelled, layers, last)
	fill(&b, rng)
	if b.Constant {
		t.Error("constant after Reset")
	}
	layers, last = b.ColorLayers(graph.Layering{Sight: graph.Normalized, Rounds: 2, Share: 1})
	checkLayers(t, &b, graph.Normalized, layers, last)
	b.Constant = true
	fill(&b, rng)
	b.Constant = true
	layers, last = b.ColorLayers(graph.Layering{Sight: graph.Normalized, Rounds: 2, Share: 1})
	checkLayers(t, &b, graph.Normalized, layers, last)
}
