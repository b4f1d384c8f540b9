package augment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// molecules returns graphs with the statistics of NCI1: a random tree in which
// every node hangs on one of the three before it, and a few edges that close
// rings; nodes ~ N(29.87, 13.5²) clipped to 3..111, 32.3 undirected edges on
// average, 37 categories with frequencies ∝ 1/rank^1.6.
func molecules(count int, seed uint64) []*graph.Graph {
	const labels = 37
	rng := rand.New(rand.NewPCG(seed, 0))
	var below [labels]float64 // cumulative frequencies
	sum := 0.0
	for c := range below {
		sum += math.Pow(float64(c+1), -1.6)
		below[c] = sum
	}
	graphs := make([]*graph.Graph, count)
	for k := range graphs {
		n := int(min(max(math.Round(29.87+13.5*rng.NormFloat64()), 3), 111))
		row := make([][]int32, n)
		join := func(i, j int) {
			if i != j && !slices.Contains(row[i], int32(j)) {
				row[i] = append(row[i], int32(j))
				row[j] = append(row[j], int32(i))
			}
		}
		for i := 1; i < n; i++ {
			join(max(0, i-1-rng.IntN(3)), i)
		}
		for range int(math.Round(float64(n)*32.3/29.87)) - (n - 1) {
			i := rng.IntN(n)
			join(i, min(n-1, i+5))
		}
		g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: labels}}
		for i := range row {
			slices.Sort(row[i])
			g.Adj = append(g.Adj, row[i]...)
			g.Ptr = append(g.Ptr, int32(len(g.Adj)))
			c, _ := slices.BinarySearch(below[:], rng.Float64()*sum)
			g.X.Category = append(g.X.Category, int32(c))
		}
		graphs[k] = g
	}
	return graphs
}

// BenchmarkCollate512 makes two views of 512 molecules, a training step's worth.
func BenchmarkCollate512(b *testing.B) {
	for _, c := range []struct {
		name    string
		workers int
		views   []Augmentation
	}{
		{"dropN+subgraph/1worker", 1, []Augmentation{NodeDropping{0.2}, Subgraph{0.2}}},
		{"dropN+subgraph/2workers", 2, []Augmentation{NodeDropping{0.2}, Subgraph{0.2}}},
		{"random2/1worker", 1, slices.Repeat([]Augmentation{Choice{NodeDropping{0.2}, Subgraph{0.2}}}, 2)},
		{"permE+permE/1worker", 1, slices.Repeat([]Augmentation{EdgePerturbation{0.2}}, 2)},
		{"maskN+maskN/1worker", 1, slices.Repeat([]Augmentation{AttributeMasking{0.2}}, 2)},
		{"none+none/1worker", 1, slices.Repeat([]Augmentation{Identity{}}, 2)},
		{"graphcl-unsupervised-random4/1worker", 1, slices.Repeat([]Augmentation{mustPolicy(Random4, ImplUnsupervised)}, 2)},
		{"graphcl-semi-random4/1worker", 1, slices.Repeat([]Augmentation{mustPolicy(Random4, ImplSemi)}, 2)},
	} {
		b.Run(c.name, func(b *testing.B) {
			graphs := molecules(4110, 1)
			order := rand.New(rand.NewPCG(2, 2)).Perm(len(graphs))
			col := Collator{Views: c.views, Seed: 1, Workers: c.workers}
			var dst graph.Batch
			col.Collate(&dst, graphs, order[:512], 0)
			b.ReportAllocs()
			k := 0
			for b.Loop() {
				at := k % 8 * 512
				col.Collate(&dst, graphs, order[at:at+512], k/8)
				k++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/view")
		})
	}
}

func mustPolicy(policy string, impl Impl) Augmentation {
	a, err := ParsePolicy(policy, impl, 0)
	if err != nil {
		panic(err)
	}
	return a
}
