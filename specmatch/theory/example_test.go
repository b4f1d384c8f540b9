package theory_test

import (
	"fmt"

	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/theory"
)

// Both theorems for two views of four graphs.
func Example() {
	z1 := []float64{1, 0, 0, .8, .6, 0, 0, 1, 0, 0, .6, .8}
	z2 := []float64{.6, .8, 0, .8, 0, .6, 0, 1, 0, 0, 0, 1}
	match := specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Percentile: 50}
	v1, err := theory.NewView(z1, 4, 3, match)
	if err != nil {
		panic(err)
	}
	v2, err := theory.NewView(z2, 4, 3, match)
	if err != nil {
		panic(err)
	}
	gap, bound := theory.AlignmentGap(v1, v2, 0.2), theory.Alignment(v1, v2, 0.2, 1)
	fmt.Printf("Theorem 4.2: L_G = %.2f, c = %.2f: %.1f ≤ %.1f\n", theory.LossG(v1, v2), bound.C, gap.Fixed, bound.Right)

	u, err := theory.Uniformity([]*theory.View{v1, v2}, 2)
	if err != nil {
		panic(err)
	}
	fmt.Printf("Theorem 4.3: %.2f ≤ %.2f, where the right side says nothing\n", u.Unif, u.Right)
	// Output:
	// Theorem 4.2: L_G = 3.59, c = 4.58: 6.1 ≤ 82.1
	// Theorem 4.3: -1.90 ≤ 0.23, where the right side says nothing
}

// Both theorems over pairs of draws of the augmentations, in numbers for a table.
func ExampleMeasure() {
	match := specmatch.LaplacianMatch{Adjacency: specmatch.Sigmoid, Percentile: 50, Kappa: 10}
	var views []*theory.View
	for _, z := range [][]float64{{1, 0, .8, .6, 0, 1, .6, .8}, {.6, .8, .8, .6, 0, 1, 0, 1}, {1, 0, 1, 0, 0, 1, .6, .8}, {.8, .6, 1, 0, 0, 1, 0, 1}} {
		v, err := theory.NewView(z, 4, 2, match)
		if err != nil {
			panic(err)
		}
		views = append(views, v)
	}
	gaps := []theory.Gap{theory.AlignmentGap(views[0], views[1], 0.2), theory.AlignmentGap(views[2], views[3], 0.2)}
	q, err := theory.Measure(views, gaps, 0.2, 2, []float64{1})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%v pairs: left side %.1f, right side %.1f\n", q["pairs"], q["gap_fixed"], q[theory.AtTime("right", 1)])
	fmt.Printf("%v of %v draws connected: E[L_G] %.2f\n", q["connected"], q["draws"], q["expected_loss_g"])
	// Output:
	// 2 pairs: left side 4.0, right side 29.2
	// 4 of 4 draws connected: E[L_G] 0.29
}
