package classical_test

import (
	"context"
	"fmt"
	"log"

	"github.com/specmatch/specmatch/gnn/classical"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
)

// graph2vec's vectors of a data set, and what a support vector machine makes of them in
// three-fold cross-validation.
func ExampleMethod_Features() {
	ctx, ds := context.Background(), dataset.Default()
	o := classical.Defaults()
	o.Dim, o.Epochs = 16, 10
	for _, m := range classical.Methods() {
		if m.Name != "graph2vec" {
			continue
		}
		f, err := m.Features(ctx, ds.Graphs, o)
		if err != nil {
			log.Fatal(err)
		}
		r, err := eval.GraphCL.Accuracy(ctx, f.X, ds.Labels(), 3, 0, eval.Options{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Title, len(f.X)/f.Dim, "vectors; better than chance:", r.Mean > 1/float64(ds.Classes))
	}
	// Output: graph2vec 240 vectors; better than chance: true
}
