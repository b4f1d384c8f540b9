package eval_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/eval"
)

// The accuracy of embeddings of two classes under GraphCL's protocol, in ten folds, over
// three seeds that decide the folds.
func ExampleProtocol_Accuracy() {
	rng := rand.New(rand.NewPCG(1, 2))
	var embeddings []float64 // [100×2]
	var classes []int
	for i := range 100 {
		class := i % 2
		classes = append(classes, class)
		embeddings = append(embeddings, rng.NormFloat64()+1.5*float64(class), rng.NormFloat64())
	}

	var runs []float64
	for seed := range uint32(3) {
		result, err := eval.GraphCL.Accuracy(context.Background(), embeddings, classes, 10, seed, eval.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		runs = append(runs, 100*result.Mean)
	}
	mean, std := stat.MeanStdDev(runs, nil)
	fmt.Printf("accuracy: %.2f ± %.2f\n", mean, std)
	// Output:
	// accuracy: 82.67 ± 1.15
}
