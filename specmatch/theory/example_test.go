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
