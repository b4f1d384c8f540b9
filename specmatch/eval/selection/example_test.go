package selection_test

import (
	"fmt"

	"github.com/specmatch/specmatch/specmatch/eval/selection"
)

// A setting after two epochs, with two seeds and two folds.
func ExampleRows() {
	epochs := []selection.Candidate{
		{Name: "graphcl", Test: [][]float64{{84, 80}, {60, 76}}, Inner: [][]float64{{81, 79}, {77, 80}}},
		{Name: "graphcl", Test: [][]float64{{80, 90}, {70, 70}}, Inner: [][]float64{{80, 82}, {78, 79}}},
	}
	for _, r := range selection.Rows([][]selection.Candidate{epochs}) {
		fmt.Printf("%-31s %.1f\n", r.Label, r.Mean())
	}
	// Output:
	// graphcl, last epoch             77.5
	// epoch by validation             80.0
	// oracle: best epoch of the mean  77.5
	// oracle: best epoch of each seed 77.5
	// oracle: best epoch of each fold 80.0
}
