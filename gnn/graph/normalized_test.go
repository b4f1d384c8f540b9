package graph_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// TestNormalized compares with the formula on dense matrices, on batches with
// self-loops, repeated and one-directed edges, and isolated nodes.
func TestNormalized(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	b := new(graph.Batch)
	for trial := range 40 {
		directed := trial%2 == 1
		b.Reset(2)
		for range 3 {
			b.Append(random(rng, rng.IntN(8), rng.Float64(), directed, 2))
		}
		b.EndView()
		if trial%4 >= 2 { // a self-loop at every third node, and some edges twice
			ptr, adj := []int32{0}, []int32{}
			for i := range b.Nodes() {
				loop := i%3 == 0
				for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
					if loop && int(j) > i {
						adj, loop = append(adj, int32(i)), false
					}
					adj = append(adj, j)
					if (i+int(j))%4 == 0 {
						adj = append(adj, j)
					}
				}
				if loop {
					adj = append(adj, int32(i))
				}
				ptr = append(ptr, int32(len(adj)))
			}
			b.Ptr, b.Adj, b.Multigraph = ptr, adj, true
		}
		if err := b.Validate(); err != nil {
			t.Fatal(err)
		}
		n := b.Nodes()
		want, degree := make([]float64, n*n), make([]float64, n)
		for i := range n {
			want[i*n+i] = 1
			degree[i]++
			for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
				if int(j) != i {
					want[i*n+int(j)]++
					degree[j]++
				}
			}
		}
		for i := range n {
			for j := range n {
				want[i*n+j] /= math.Sqrt(degree[i] * degree[j])
			}
		}
		a, at := b.Normalized()
		for i := range n {
			for j := range n {
				if x := entry(a, i, j); math.Abs(x-want[i*n+j]) > 1e-15 {
					t.Fatalf("trial %d: entry (%d, %d) is %v, want %v", trial, i, j, x, want[i*n+j])
				}
				if x := entry(at, j, i); math.Abs(x-want[i*n+j]) > 1e-15 {
					t.Fatalf("trial %d: entry (%d, %d) of the transpose is %v, want %v", trial, j, i, x, want[i*n+j])
				}
			}
		}
	}
}

// entry returns entry (i, j): the sum of what row i lists for column j.
func entry(m graph.Weighted, i, j int) (x float64) {
	for k := m.Ptr[i]; k < m.Ptr[i+1]; k++ {
		if int(m.Col[k]) == j {
			x += m.Val[k]
		}
	}
	return x
}
