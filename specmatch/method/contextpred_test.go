package method

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/train"
)

// longPaths and their roots in each step are those of golden.py, which draws none.
var (
	longPaths = [][]int32{{0, 1, 2, 3}, {4, 5, 0}, {1, 2, 3, 4, 5, 0}, {2, 2, 4}}
	longRoots = [][]int32{{3, 2, 0, 2}, {0, 2, 0, 2}, {1, 2, 5, 1}}
)

// TestContextPredictionGolden has the neighbourhoods of the semi-supervised regime.
func TestContextPredictionGolden(t *testing.T) {
	be := newFloat64()
	p := newContextPrediction(newTable(be), newTable(be), ContextPrediction{Hops: 2, Inner: 1, Outer: 1 + ContextLayers})
	wave(p)
	source := func(step int) *rand.Rand { return rand.New(rand.NewPCG(3, uint64(step))) }
	for step, want := range longRoots {
		var roots []int32
		rng := source(step)
		for _, path := range longPaths {
			roots = append(roots, rng.Int32N(int32(len(path))))
		}
		if !slices.Equal(roots, want) {
			t.Fatalf("step %d: the roots are %v, golden.py has %v", step, roots, want)
		}
	}
	steps := train.NewMinimizer(be, p, 0.05)
	checkGolden(t, "contextpred", steps, p, func(step int) *autodiff.Var {
		return p.Loss(tableGraphs(longPaths), steps.Tape, source(step))
	})
}

// TestContextPredictionDirected: the subgraphs of directed graphs are directed, so that gradients go against the arcs.
func TestContextPredictionDirected(t *testing.T) {
	be := newFloat64()
	p := newContextPrediction(newTable(be), newTable(be), ContextPrediction{Hops: 2, Inner: 0, Outer: 3})
	var b graph.Batch
	b.Reset(tableRows)
	for range 2 {
		b.Append(&graph.Graph{
			Ptr:      []int32{0, 1, 2, 3, 3}, // a chain whose arcs have no reverse
			Adj:      []int32{1, 2, 3},
			X:        graph.Features{Width: tableRows, Category: []int32{0, 1, 2, 3}},
			Directed: true,
		})
	}
	b.EndView()
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	rng := rand.New(rand.NewPCG(1, 1))
	for p.near.Graphs() == 0 || len(p.near.Adj) == 0 {
		p.Loss(&b, tape, rng)
	}
	for name, part := range map[string]*graph.Batch{"neighbourhoods": &p.near, "contexts": &p.far} {
		if err := part.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
