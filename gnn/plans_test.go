package gnn_test

import (
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// TestReplacedFeatures: layers on features that replace those of the graphs do not take nodes
// for equal that were so before.
func TestReplacedFeatures(t *testing.T) {
	b := views([]*graph.Graph{star(t, 9, 2), star(t, 40, 0), star(t, 9, 2)}, 1, 2)
	features := make([]float64, 2*b.Nodes())
	for i := range features {
		features[i] = float64(i*i%11) - 4
	}
	for name, encode := range map[string]func(opts ...autodiff.Option) encoded{
		"GIN":    replaced(b, features, func() encoder { return newGIN(cpu.New(tensor.Float64), gnn.GINConfig{In: 2, Hidden: 5, Layers: 2}) }),
		"ResGCN": replaced(b, features, func() encoder { return resGCN(gnn.ResGCNConfig{In: 2, Hidden: 5, Layers: 3})(cpu.New(tensor.Float64)) }),
	} {
		want, got := encode(autodiff.Composed()), encode()
		checkClose(t, name+": embeddings", got.h, want.h, 1e-11)
		checkClose(t, name+": gradients", got.grads, want.grads, 1e-11)
	}
}

// replaced returns a training pass of a new encoder on the batch with other features.
func replaced(b *graph.Batch, features []float64, newEncoder func() encoder) func(opts ...autodiff.Option) encoded {
	return func(opts ...autodiff.Option) encoded {
		e := newEncoder()
		tape := autodiff.NewTape(e.Parameters()[0].Backend(), opts...)
		defer tape.Reset()
		batch := gnn.NewBatch(tape, b)
		batch.SetFeatures(tape.Matrix(b.Nodes(), 2, features))
		return passOn(tape, e, batch, nn.Train)
	}
}

// TestExplicitSums: an explicit readout by sums has the bits of the sums over Nodes; the same bits
// are in files of vectors that earlier versions wrote.
func TestExplicitSums(t *testing.T) {
	be := cpu.New(tensor.Float32)
	b := views(randomGraphs(t, 5, 2, false, false, 60, 70, 80, 33), 2, 2)
	e := newGIN(be, gnn.GINConfig{In: 2, Hidden: 8, Layers: 3, Readout: "all:sum"})
	tape := autodiff.NewInference(be)
	defer tape.Reset()
	batch := gnn.NewBatch(tape, b)
	want := e.Readout(batch, e.Nodes(batch, nn.Eval), nn.Eval).Data()
	if got := e.Forward(batch, nn.Eval).Data(); !slices.Equal(got, want) {
		t.Errorf("the readout all:sum has other bits than the sums over nodes")
	}
}
