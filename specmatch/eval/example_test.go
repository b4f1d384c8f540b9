package eval_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
)

// Embeddings of two classes, evaluated as GraphCL does, over three seeds that
// decide the outer folds.
func ExampleEvaluate() {
	rng := rand.New(rand.NewPCG(1, 2))
	var data eval.Data
	data.Dim = 2
	for i := range 100 {
		class := i % 2
		data.Y = append(data.Y, class)
		data.X = append(data.X, rng.NormFloat64()+1.5*float64(class), rng.NormFloat64())
	}

	var runs []float64
	for seed := range uint32(3) {
		outer, err := dataset.StratifiedKFold(data.Y, 10, true, seed)
		if err != nil {
			fmt.Println(err)
			return
		}
		res, err := eval.Evaluate(context.Background(), eval.GraphCL, data, outer, eval.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		runs = append(runs, 100*res.Mean)
	}
	mean, std := stat.MeanStdDev(runs, nil)
	fmt.Printf("accuracy: %.2f ± %.2f\n", mean, std)
	// Output:
	// accuracy: 82.67 ± 1.15
}
