package model_test

import (
	"math"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
)

// explained is a model of molecules without features next to it, and molecules.
func explained(t *testing.T, head *model.Head) (*model.Trained, []*graph.Graph) {
	t.Helper()
	a := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 6, Layers: 2}
	return trainedModel(t, backend.Backend(ref.New()), a, head)
}

// TestExplain: contributions add up to the difference from the mean, on the scale that the head names, and the
// prediction is the model's.
func TestExplain(t *testing.T) {
	for scale, head := range map[string]*model.Head{
		"": {
			Kind: model.Regression, Outputs: 1, Tasks: []string{"y"}, Mean: []float64{2.5}, Std: []float64{0.1},
		},
		"ln": {
			Kind: model.Regression, Outputs: 2, Tasks: []string{"y", "z"},
			Mean: []float64{0.5, 1}, Std: []float64{1, 2}, Scales: []model.Scale{{Log: true}, {Log: true}},
		},
		"log-odds": {
			Kind: model.Regression, Outputs: 1, Tasks: []string{"y"},
			Mean: []float64{0.5}, Std: []float64{1}, Scales: []model.Scale{{Low: -1, High: 3}},
		},
		"log-odds of a class": {Kind: model.Binary, Outputs: 2, Tasks: []string{"y", "z"}, Prior: []float64{0.2, 0.5}},
		"ln of a class":       {Kind: model.Classes, Outputs: 3, Prior: []float64{0.2, 0.3, 0.5}},
	} {
		m, graphs := explained(t, head)
		predictions, err := m.Predict(t.Context(), graphs)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range graphs {
			why, err := m.Explain(t.Context(), g)
			if err != nil || len(why.Parts) != g.Nodes()*head.Outputs {
				t.Fatalf("%q: %d contributions of %d nodes, %v", scale, len(why.Parts), g.Nodes(), err)
			}
			for k := range head.Outputs {
				sum := why.Mean[k]
				for v := range g.Nodes() {
					sum += why.Parts[v*head.Outputs+k]
				}
				if math.Abs(sum-why.Prediction[k]) > 1e-9 {
					t.Errorf("%q: the sum is %v, and the prediction %v", scale, sum, why.Prediction[k])
				}
				mean := head.Predicted(k, why.Mean[k])
				if want := head.Ignorant()[k]; head.Kind == model.Regression && math.Abs(mean-want) > 1e-9 {
					t.Errorf("%q: the mean is %v, want %v", scale, mean, want)
				}
				predicted := head.Predicted(k, why.Prediction[k])
				if want := predictions[i*head.Outputs+k]; math.Abs(predicted-want) > 1e-9*max(1, math.Abs(want)) {
					t.Errorf("%q: explains the prediction %v, and %v is the model's", scale, predicted, want)
				}
			}
		}
		if name := head.Additive(0); name != scale && name+" of a class" != scale {
			t.Errorf("the scale %q is named %q", scale, name)
		}
	}
}

// ring returns a ring of nodes with a tail of one node at each of them.
func ring(n int) *graph.Graph {
	g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: 360}}
	for v := range int32(2 * n) {
		var row []int32
		if int(v) < n {
			row = []int32{(v + 1) % int32(n), (v + int32(n) - 1) % int32(n), v + int32(n)}
		} else {
			row = []int32{v - int32(n)}
		}
		slices.Sort(row)
		g.Adj = append(g.Adj, row...)
		g.EdgeLabel = append(g.EdgeLabel, make([]int32, len(row))...)
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
		g.X.Category = append(g.X.Category, 15)
	}
	return g
}

// TestExplainAlike: nodes that nothing tells apart have equal contributions.
func TestExplainAlike(t *testing.T) {
	m, _ := explained(t, heads[3])
	why, err := m.Explain(t.Context(), ring(5))
	if err != nil {
		t.Fatal(err)
	}
	for v, value := range why.Parts {
		if want := why.Parts[v/5*5]; value != want {
			t.Errorf("node %d contributes %v, and node %d, which is alike, %v", v, value, v/5*5, want)
		}
	}
	if why.Parts[0] == why.Parts[5] {
		t.Errorf("nodes of the ring contribute as much as those of the tails, %v", why.Parts[0])
	}
}

// TestExplainOrders: what is left of a graph is connected, breaks at most one group, and there is a bounded number
// of such pieces, for large graphs, too.
func TestExplainOrders(t *testing.T) {
	m, _ := explained(t, heads[3])
	for _, n := range []int{12, 300} {
		g := ring(n)
		whole := model.NodesOf(g)
		parts := whole
		for v := range whole.Nodes { // pairs of nodes of the ring, with their tails
			parts.Groups = append(parts.Groups, v%n/2)
		}
		pieces := 0
		sizes := map[int]bool{}
		parts.Without = func(removed []int) *graph.Graph {
			pieces++
			sizes[len(removed)] = true
			piece := whole.Without(removed)
			if !connected(piece) {
				t.Errorf("a piece of %d nodes is not connected", piece.Nodes())
			}
			left := make([]int, n/2) // of each group
			for _, v := range removed {
				left[v%n/2]++
			}
			broken := 0
			for _, k := range left {
				if k%4 != 0 {
					broken++
				}
			}
			if broken > 1 {
				t.Errorf("a piece of %d nodes breaks %d groups", piece.Nodes(), broken)
			}
			return piece
		}
		_, err := model.Explain(t.Context(), []*model.Trained{m}, g, parts)
		if err != nil || pieces < 8*min(2*n-1, 60) || pieces > 8*128 || len(sizes) != pieces/8 {
			t.Errorf("%d pieces of %d sizes, %v", pieces, len(sizes), err)
		}
	}
}

// connected reports whether a graph has one component.
func connected(g *graph.Graph) bool {
	reached := map[int32]bool{0: true}
	for next := []int32{0}; len(next) > 0; next = next[1:] {
		for _, j := range g.Neighbors(int(next[0])) {
			if !reached[j] {
				reached[j] = true
				next = append(next, j)
			}
		}
	}
	return len(reached) == g.Nodes()
}

// TestExplainSmallest: a graph without edges has contributions, and one without nodes none.
func TestExplainSmallest(t *testing.T) {
	m, _ := explained(t, heads[3])
	for n := range 3 {
		g := &graph.Graph{
			Ptr:       make([]int32, n+1),
			EdgeLabel: []int32{},
			X:         graph.Features{Width: 360, Category: make([]int32, n)},
		}
		why, err := m.Explain(t.Context(), g)
		if err != nil || len(why.Parts) != n {
			t.Fatalf("%d nodes have the contributions %v, %v", n, why.Parts, err)
		}
		sum := 0.0
		for _, v := range why.Parts {
			sum += v
		}
		if difference := why.Prediction[0] - why.Mean[0]; n > 0 && math.Abs(sum-difference) > 1e-9 {
			t.Errorf("the contributions of %d nodes add up to %v, want %v", n, sum, difference)
		}
	}
}
