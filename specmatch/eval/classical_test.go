package eval_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/specmatch/specmatch/gnn/classical"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
)

// What WL kernels see of a set, and what a guess does.
func ExampleClassical() {
	ctx, ds := context.Background(), dataset.Default()
	var c eval.Classical
	var err error
	for _, m := range classical.Methods() {
		if m.Name == "wl" {
			if c.Features, err = m.Features(ctx, ds.Graphs, classical.Defaults()); err != nil {
				log.Fatal(err)
			}
		}
	}
	r, err := c.Evaluate(ctx, eval.GraphCL, ds.Labels(), 3, 0, eval.Options{})
	if err != nil {
		log.Fatal(err)
	}
	outer, err := dataset.StratifiedKFold(ds.Labels(), 3, true, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("WL %.0f %%, the most frequent class %.0f %%\n", 100*r.Mean, 100*eval.Majority(ds.Labels(), outer))
	// Output: WL 91 %, the most frequent class 32 %
}

// TestMajority: the lowest of the most frequent classes of the training part.
func TestMajority(t *testing.T) {
	y := []int{2, 2, 1, 1, 0, 1}
	folds := []dataset.Fold{{Train: []int{0, 1, 2, 3}, Test: []int{4, 5}}, {Train: []int{0, 1, 4}, Test: []int{2, 3}}}
	if a := eval.Majority(y, folds); a != 0.25 {
		t.Errorf("%v, want half of the first fold and nothing of the second", a)
	}
}
