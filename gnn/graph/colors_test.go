package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// numbered returns the numbers of keys in the order in which they first come.
func numbered(keys []string) []int32 {
	number, dst := map[string]int32{}, make([]int32, len(keys))
	for i, k := range keys {
		if _, ok := number[k]; !ok {
			number[k] = int32(len(number))
		}
		dst[i] = number[k]
	}
	return dst
}

// TestColors compares the refinement with one that spells out what it hashes, on
// batches with directed and repeated edges, loops, equal graphs and two views, from a
// table that has to grow.
func TestColors(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, dense := range []bool{false, true} {
		b := new(graph.Batch)
		for v := range 2 {
			for range 12 {
				n := 1 + rng.IntN(12)
				b.BeginGraph(2)
				if dense {
					b.Densify(0)
				}
				first := int32(b.Nodes())
				for range n {
					for range rng.IntN(4) {
						b.Adj = append(b.Adj, first+int32(rng.IntN(n)))
					}
					b.Ptr = append(b.Ptr, int32(len(b.Adj)))
					if dense {
						b.X.Dense = append(b.X.Dense, float32(rng.IntN(2)), float32(v))
					} else {
						b.X.Category = append(b.X.Category, int32(rng.IntN(2)))
					}
				}
				b.EndGraph()
			}
			b.EndView()
		}
		n := b.Nodes()
		values, keys := make([]float64, n), make([]string, n)
		for i := range n {
			values[i] = float64(rng.IntN(2)) / 3
			x := make([]float32, 2)
			b.X.Row(x, i)
			keys[i] = fmt.Sprint(i >= int(b.GraphPtr[b.ViewPtr[1]]), x, values[i])
		}
		var c graph.Colors
		c.Begin(0)
		own := make([]int32, n)
		c.Features(own, b, values)
		for round := range 5 {
			if want := numbered(keys); !slices.Equal(own, want) || c.Len() != int(slices.Max(want))+1 {
				t.Fatalf("dense %v, round %d: %d colors %v, want %v", dense, round, c.Len(), own, want)
			}
			for i := range n {
				var around []int
				for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
					around = append(around, int(own[j]))
				}
				slices.Sort(around)
				keys[i] = fmt.Sprint(own[i], around)
			}
			next, count := make([]int32, n), c.Len()
			c.Begin(count)
			c.Refine(next, own, count, b.Ptr, b.Adj, nil)
			own = next
		}
	}
}
