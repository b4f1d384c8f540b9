package augment_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
)

// ring returns the cycle of n nodes.
func ring(n int) *graph.Graph {
	g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: 1, Category: make([]int32, n)}}
	for i := range n {
		a, b := (i+n-1)%n, (i+1)%n
		g.Adj = append(g.Adj, int32(min(a, b)), int32(max(a, b)))
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
	}
	return g
}

// A training loop: the policy of a data set, two views of every graph, batches
// prepared in the background.
func Example() {
	graphs := []*graph.Graph{ring(10), ring(15), ring(20), ring(25), ring(30)}

	policy, _ := augment.PolicyFor("NCI1") // random2: node dropping or subgraph
	view, err := augment.ParsePolicy(policy, augment.ImplIntended, 0.2)
	if err != nil {
		panic(err)
	}
	loader := augment.Loader{
		Graphs:   graphs,
		Batch:    2,
		Order:    augment.Sequential,
		Collator: augment.Collator{Views: []augment.Augmentation{view, view}, Seed: 1},
	}
	for samples, batch := range loader.Epoch(context.Background(), 0) {
		fmt.Printf("samples %v: %d views, %d graphs\n", samples, batch.Views(), batch.Graphs())
	}
	// Output:
	// samples [0 1]: 2 views, 4 graphs
	// samples [2 3]: 2 views, 4 graphs
	// samples [4]: 2 views, 2 graphs
}

// One view of one graph: a ring of ten nodes loses two, neighbours as it happens.
func ExampleNodeDropping() {
	var batch graph.Batch
	var ws augment.Workspace
	rng := rand.New(rand.NewPCG(1, 2))
	augment.NodeDropping{Ratio: 0.2}.Append(&batch, ring(10), rng, &ws)
	batch.EndView()
	fmt.Println(batch.Nodes(), "nodes,", len(batch.Adj)/2, "edges,", batch.Validate())
	// Output: 8 nodes, 7 edges, <nil>
}
