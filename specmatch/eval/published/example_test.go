package published_test

import (
	"fmt"

	"github.com/specmatch/specmatch/specmatch/eval/published"
)

// What the literature has on a set, measured as GraphCL's script measures.
func Example() {
	for _, r := range published.Table1.Under("graphcl")[:3] {
		if v, ok := r.Values["MUTAG"]; ok {
			fmt.Printf("%s: %.2f ± %.2f\n", r.Name, v[0], v[1])
		}
	}
	// Output:
	// GraphCL, published: 86.80 ± 1.34
	// InfoGraph, published: 89.01 ± 1.13
	// JOAO, published: 87.35 ± 1.02
}
