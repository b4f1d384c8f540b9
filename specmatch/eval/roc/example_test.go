package roc_test

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/specmatch/eval/roc"
)

func ExampleMeanAUC() {
	missing := math.NaN()
	scores := []float64{
		0.1, 2,
		0.4, 1,
		0.35, 3,
		0.8, 1,
	}
	labels := []float64{
		0, 1,
		0, missing,
		1, 1,
		1, 1,
	}
	auc, skipped, err := roc.MeanAUC(scores, labels, 2)
	fmt.Println(auc, skipped, err)
	// Output:
	// 0.75 1 <nil>
}
