package gnn_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
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

// Classify the nodes of one graph, as papers in a network of citations: three communities
// with noisy features, of which a tenth of the nodes has a label to learn from.
func ExampleGCNConv() {
	const nodes, classes, features, labelled = 300, 3, 16, 30
	rng := rand.New(rand.NewPCG(1, 1))
	class, all := make([]int, nodes), make([]int32, nodes)
	x := graph.Features{Width: features}
	var edges [][2]int
	for i := range nodes {
		class[i], all[i] = i%classes, int32(i)
		for j := range features {
			mean := 0.0
			if j%classes == class[i] {
				mean = 0.4
			}
			x.Dense = append(x.Dense, float32(mean+rng.NormFloat64()))
		}
		for j := range i { // a paper of the own class is cited five times as often as another
			if p := rng.Float64(); p < 0.01 || i%classes == j%classes && p < 0.05 {
				edges = append(edges, [2]int{i, j})
			}
		}
	}
	g, err := graph.FromEdges(nodes, edges, x)
	if err != nil {
		fmt.Println(err)
		return
	}

	be := cpu.New(tensor.Float64)
	first, second := gnn.NewGCNConv(be, "first", features, 16, rng), gnn.NewGCNConv(be, "second", 16, classes, rng)
	adam := optim.NewAdam(be, append(first.Parameters(), second.Parameters()...), 0.01)
	adam.Config.WeightDecay = 5e-3
	logits := func(tape *autodiff.Tape) *autodiff.Var { // [nodes×classes]
		b := gnn.NewBatch(tape, graph.Collate(g))
		return second.Forward(b, first.Forward(b, b.Features()).ReLU())
	}
	tape := autodiff.NewTape(be)
	for range 100 {
		tape.Backward(nn.CrossEntropy(logits(tape).GatherRows(all[:labelled]), class[:labelled]))
		adam.Step()
		tape.Reset()
	}

	y := logits(tape).Data()
	right := map[bool]int{} // by whether the label was used
	for i := range nodes {
		best := 0
		for c := range classes {
			if y[i*classes+c] > y[i*classes+best] {
				best = c
			}
		}
		if best == class[i] {
			right[i < labelled]++
		}
	}
	fmt.Printf("train accuracy %d %%\n", 100*right[true]/labelled)
	fmt.Printf("test accuracy %d %%\n", 100*right[false]/(nodes-labelled))
	// Output:
	// train accuracy 100 %
	// test accuracy 85 %
}
