package dataset

import (
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

func TestSyntheticStatistics(t *testing.T) {
	for _, c := range []struct {
		stats        MoleculeStats
		nodes, edges [2]float64 // bounds of the means; clipping adds to the nodes
		labels       int32      // of the edges
	}{
		{NCI1Like, [2]float64{29, 31.5}, [2]float64{30, 34}, 0},
		{ZINCLike, [2]float64{26, 27.2}, [2]float64{27.5, 30}, 9},
	} {
		graphs := c.stats.Generate(rand.New(rand.NewPCG(1, 1)))
		nodes, entries := 0, 0
		seen := map[int32]bool{}
		for _, g := range graphs {
			if err := g.Validate(); err != nil {
				t.Fatal(err)
			}
			nodes += g.Nodes()
			entries += g.Entries()
			for _, v := range g.EdgeLabel {
				if seen[v] = true; v%feature.BondDirections != 0 || v >= c.labels {
					t.Fatalf("edge label %d", v)
				}
			}
		}
		n := float64(len(graphs))
		if mean := float64(nodes) / n; mean < c.nodes[0] || mean > c.nodes[1] {
			t.Errorf("%.2f nodes a graph, want %v", mean, c.nodes)
		}
		if mean := float64(entries) / 2 / n; mean < c.edges[0] || mean > c.edges[1] {
			t.Errorf("%.2f edges a graph, want %v", mean, c.edges)
		}
		if len(seen) != c.stats.Bonds {
			t.Errorf("%d types of bonds, want %d", len(seen), c.stats.Bonds)
		}
	}
}
