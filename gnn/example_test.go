package gnn_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Encode a batch of three small graphs. The first two are the same triangle
// with a tail, numbered differently; the third is a path.
func ExampleGIN() {
	// Row i of the adjacency lists the sources of the edges that end in node i.
	tail := &graph.Graph{ // 0-1, 0-2, 1-2, 2-3
		Ptr: []int32{0, 2, 4, 7, 8},
		Adj: []int32{1, 2, 0, 2, 0, 1, 3, 2},
		X:   graph.Features{Width: 2, Category: []int32{0, 0, 0, 1}},
	}
	renumbered := &graph.Graph{ // 0-1, 1-2, 1-3, 2-3
		Ptr: []int32{0, 1, 4, 6, 8},
		Adj: []int32{1, 0, 2, 3, 1, 3, 1, 2},
		X:   graph.Features{Width: 2, Category: []int32{1, 0, 0, 0}},
	}
	path := &graph.Graph{ // 0-1, 1-2
		Ptr: []int32{0, 1, 3, 4},
		Adj: []int32{1, 0, 2, 1},
		X:   graph.Features{Width: 2, Category: []int32{0, 0, 1}},
	}

	be := cpu.New(tensor.Float64)
	encoder := gnn.NewGIN(be, gnn.GINConfig{In: 2, Hidden: 8, Layers: 3}, rand.New(rand.NewPCG(1, 1)))
	tape := autodiff.NewInference(be)
	defer tape.Reset()
	batch := gnn.NewBatch(tape, graph.Collate(tail, renumbered, path))
	h := encoder.Forward(batch, nn.Eval)

	fmt.Printf("%d nodes in, %d embeddings of width %d out\n", batch.Host.Nodes(), h.Rows(), h.Cols())
	distance := func(i, j int) float64 {
		d := h.SliceRows(i, i+1).Sub(h.SliceRows(j, j+1))
		return d.Dot(d).Sqrt().Float()
	}
	fmt.Println("the same graph, renumbered, is at the same place:", distance(0, 1) < 1e-12)
	fmt.Println("another graph is not:", distance(0, 2) > 0.1)
	// Output:
	// 11 nodes in, 3 embeddings of width 24 out
	// the same graph, renumbered, is at the same place: true
	// another graph is not: true
}
