package gnn_test

import (
	"context"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// withEdges returns graphs with labels of edges 0 to 2 or with weights.
func withEdges(t *testing.T, weights, dense, directed bool) []*graph.Graph {
	t.Helper()
	gs := randomGraphs(t, 3, 4, dense, directed, 5, 7, 1, 4, 6, 3)
	rng := newRand(4)
	for _, g := range gs {
		label := map[[2]int32]int32{}
		g.EdgeLabel = []int32{}
		for i := range int32(g.Nodes()) {
			for _, j := range g.Adj[g.Ptr[i]:g.Ptr[i+1]] {
				v := rng.Int32N(3)
				if weights {
					v = graph.WeightLabel(float32(rng.NormFloat64()))
				}
				if old, ok := label[[2]int32{j, i}]; ok && !directed {
					v = old
				}
				label[[2]int32{i, j}] = v
				g.EdgeLabel = append(g.EdgeLabel, v)
			}
		}
	}
	return gs
}

// TestGINEdges: a layer adds, for each edge that ends in a node, the row of its label, or its weight times
// the only row. The gradients are those of finite differences.
func TestGINEdges(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
		for _, weights := range []bool{false, true} {
			for _, dense := range []bool{false, true} {
				a := gnn.Architecture{Kind: gnn.KindGIN, In: 4, Hidden: 3, Layers: 1, EdgeLabels: 3}
				if weights {
					a.EdgeLabels, a.Weights = 0, true
				}
				e, err := a.New(be, newRand(1))
				if err != nil {
					t.Fatal(err)
				}
				conv := e.(*gnn.GIN).Convs[0]
				gs := withEdges(t, weights, dense, true)
				b := graph.Collate(gs...)
				tape := autodiff.NewTape(be, opts...)
				got := conv.Forward(gnn.NewBatch(tape, b), nil).Data()
				table := tape.Param(conv.Edges.Rows.Table).Data()
				x := make([]float64, b.Nodes()*4)
				rows := b.X.Materialize(b.Nodes())
				for i := range b.Nodes() {
					for k := range 4 {
						x[i*4+k] = float64(rows[i*4+k])
					}
					for p := b.Ptr[i]; p < b.Ptr[i+1]; p++ {
						row, scale := table, float64(graph.LabelWeight(b.EdgeLabel[p]))
						if !weights {
							row, scale = table[b.EdgeLabel[p]*4:], 1
						}
						for k := range 4 {
							x[i*4+k] += float64(rows[int(b.Adj[p])*4+k]) + scale*row[k]
						}
					}
				}
				want := conv.MLP.Forward(tape.Matrix(b.Nodes(), 4, x)).Data()
				checkClose(t, "a layer", got, want, max(tol, 1e-6)) // the sums of weights are float32
				tape.Reset()
			}
		}
	})
	be := ref.New()
	for _, weights := range []bool{false, true} {
		e := newGIN(be, gnn.GINConfig{In: 4, Hidden: 3, Layers: 2})
		e.ReadEdges(be, gnn.EdgeInput{Labels: map[bool]int{false: 3}[weights], Weights: weights}, newRand(1))
		b := twoViews(withEdges(t, weights, true, false))
		if err := gradcheck.Params(be, func(tape *autodiff.Tape) *autodiff.Var {
			return e.Forward(gnn.NewBatch(tape, b), nn.Train)
		}, e.Parameters(), gradcheck.Options{}); err != nil {
			t.Error(err)
		}
	}
}

// TestEdgesTell: graphs that differ in their labels or weights of edges only have different vectors.
func TestEdgesTell(t *testing.T) {
	be := ref.New()
	for _, a := range []gnn.Architecture{
		{Kind: gnn.KindGIN, In: 4, Hidden: 3, Layers: 2, EdgeLabels: 3},
		{Kind: gnn.KindGIN, In: 4, Hidden: 3, Layers: 2, Weights: true},
	} {
		g := withEdges(t, a.Weights, false, false)[1]
		other := *g
		other.EdgeLabel = make([]int32, len(g.EdgeLabel))
		bare := *g
		bare.EdgeLabel = nil
		e, err := a.New(be, newRand(1))
		if err != nil {
			t.Fatal(err)
		}
		h, err := gnn.Embed(context.Background(), be, e, []*graph.Graph{g, &other, g}, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := e.Width()
		same, different := true, false
		for k := range w {
			same = same && h[k] == h[2*w+k]
			different = different || h[k] != h[w+k]
		}
		if !same || !different {
			t.Errorf("%+v: equal graphs have equal vectors: %v; others have others: %v", a, same, different)
		}
		if err := a.Accepts(g); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
		if err := a.Accepts(&bare); err == nil {
			t.Errorf("%+v accepts a graph without labels", a)
		}
	}
}
