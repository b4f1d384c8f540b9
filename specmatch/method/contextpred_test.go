package method

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
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
