package model_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor"
)

// TestSilentNetwork: where the linear model has the whole share, a network whose head is 0 is not computed, and the
// predictions have the bits that they have with it. Neither do the bits depend on what models share.
func TestSilentNetwork(t *testing.T) {
	for _, kind := range []model.Kind{model.Regression, model.Binary, model.Classes} {
		be := cpu.New(tensor.Float32)
		rng := rand.New(rand.NewPCG(3, 4))
		e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 2}.New(be, rng)
		if err != nil {
			t.Fatal(err)
		}
		numbers := &model.Numbers{Features: []string{"descriptors"}, Size: 3, Hidden: 5, Linear: true}
		m := model.NewPredictorBeside(e, model.Head{Kind: kind, Outputs: 2}, numbers, 0, rng)
		be.Upload(m.Beside.Linear.W.Value, []float64{1, -2, 0.5, 3, -1, 0.25})
		be.Upload(m.Beside.Linear.Share.Value, []float64{1})
		var graphs []*graph.Graph
		for i := range 300 { // heads see some at a time
			graphs = append(graphs, &graph.Graph{
				Ptr:       []int32{0, 1, 2},
				Adj:       []int32{1, 0},
				EdgeLabel: []int32{0, 0},
				X:         graph.Features{Width: 120 * 3, Category: []int32{0, 3}},
				Globals:   []float32{float32(i), -2, float32(i % 7)},
			})
		}
		with, err := m.Predict(t.Context(), graphs)
		if err != nil {
			t.Fatal(err)
		}
		shared, err := m.Sharing(new(model.Shared)).Predict(t.Context(), graphs)
		if err != nil || !slices.Equal(with, shared) {
			t.Errorf("%s: shared logarithms give other predictions, %v", kind, err)
		}
		for _, p := range []*autodiff.Param{m.Head.W, m.Head.B} {
			be.Fill(p.Value, 0)
		}
		be.Fill(m.Beside.Hidden.W.Value, 1e30) // what is computed by it would not be finite
		without, err := m.Predict(t.Context(), graphs)
		if err != nil || !slices.Equal(with, without) {
			t.Errorf("%s: %v with the network, %v without, %v", kind, with, without, err)
		}
		shared, err = m.Sharing(new(model.Shared)).Predict(t.Context(), graphs)
		if err != nil || !slices.Equal(with, shared) {
			t.Errorf("%s: shared logarithms give other predictions without the network, %v", kind, err)
		}
		be.Close()
	}
}
