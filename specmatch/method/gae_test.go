package method

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/train"
)

func TestReconstructionGolden(t *testing.T) {
	tape := autodiff.NewTape(newFloat64())
	defer tape.Reset()
	z := tape.Matrix(3, 2, []float64{1, 0, .5, .5, -1, 1})
	nearly(t, "loss", reconstruction(z, tableGraphs([][]int32{{0, 0, 0}})).Float(), 0.49349528, 5e-9)
	// A graph of one node does not count, nor do self-loops and repeated edges.
	more := tape.Matrix(4, 2, []float64{1, 0, .5, .5, -1, 1, 7, 7})
	b := graph.Collate(
		&graph.Graph{Ptr: []int32{0, 3, 5, 7}, Adj: []int32{0, 1, 1, 0, 2, 1, 2}, X: graph.Features{Width: 1, Category: make([]int32, 3)}},
		&graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: 1, Category: make([]int32, 1)}})
	nearly(t, "loss with a lonely node", reconstruction(more, b).Float(), 0.49349528, 5e-9)
}

func newTableAutoencoder() *Autoencoder {
	m := goldenModel(newFloat64())
	return &Autoencoder{m.Encoder, m.Head}
}

func TestGAEGolden(t *testing.T) {
	m := newTableAutoencoder()
	steps := train.NewMinimizer(m.Parameters()[0].Backend(), m, 0.05)
	checkGolden(t, "gae", steps, m, func(int) *autodiff.Var {
		return m.Loss(tableGraphs(rawPaths), steps.Tape, nil)
	})
}

func TestGAEGradients(t *testing.T) {
	m := newTableAutoencoder()
	checkGradients(t, m.Parameters()[0].Backend(), m.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
		return m.Loss(tableGraphs(rawPaths), tape, nil)
	})
}

// TestGAEPermutation: the order of the graphs of a batch does not matter, and one
// node has nothing to tell.
func TestGAEPermutation(t *testing.T) {
	m := newTableAutoencoder()
	tape := autodiff.NewTape(m.Parameters()[0].Backend())
	defer tape.Reset()
	loss := func(paths ...[]int32) float64 { return m.Loss(tableGraphs(paths), tape, nil).Float() }
	nearly(t, "loss", loss(rawPaths[2], rawPaths[0], rawPaths[1]), loss(rawPaths...), 1e-13)
	if m.Loss(tableGraphs([][]int32{{1}, {2}}), tape, nil) != nil {
		t.Error("a loss of single nodes")
	}
}

// TestInducedFeatures: a part of a graph has its nodes' features, one-hot or not.
func TestInducedFeatures(t *testing.T) {
	dense := graph.Features{Width: 2, Dense: []float32{1, 2, 3, 4, 5, 6}}
	b := graph.Collate(&graph.Graph{Ptr: []int32{0, 1, 3, 4}, Adj: []int32{1, 0, 2, 1}, X: dense})
	part := new(graph.Batch)
	part.Reset(2)
	for range 2 {
		induced(part, b, 0, []int32{1, 0, 1}, make([]int32, 3), func(d int32) bool { return d == 1 })
	}
	if d := cmp.Diff([]float32{1, 2, 5, 6, 1, 2, 5, 6}, part.X.Dense); d != "" {
		t.Error(d)
	}
}
