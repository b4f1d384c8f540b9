package augment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// labelled gives every entry j→i of a tagged graph the category i·64 + j.
func labelled(g *graph.Graph) *graph.Graph {
	h := *g
	h.EdgeLabel = []int32{}
	for i := range g.Nodes() {
		for _, j := range g.Neighbors(i) {
			h.EdgeLabel = append(h.EdgeLabel, int32(64*i)+j)
		}
	}
	return &h
}

func labelledAll(gs []*graph.Graph) (out []*graph.Graph) {
	for _, g := range gs {
		out = append(out, labelled(g))
	}
	return out
}

// TestEdgeLabels: edges take their categories along, self-loops that are made
// have none, and an added edge has that of a removed one.
func TestEdgeLabels(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	var ws Workspace
	for trial := range 150 {
		directed := trial%2 == 1
		g := labelled(randomGraph(rng, 2+rng.IntN(tagWidth-2), []float64{0.1, 0.3, 0.9}[trial%3], directed))
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, a := range everything(0.3) {
			var b graph.Batch
			// A graph in front, so that a category is not its place by chance.
			b.Append(labelled(complete(3)))
			a.Append(&b, g, rng, &ws)
			if err := b.Validate(); err != nil {
				t.Fatalf("%#v: %v", a, err)
			}
			if len(b.EdgeLabel) != len(b.Adj) {
				t.Fatalf("%#v: %d labels for %d entries", a, len(b.EdgeLabel), len(b.Adj))
			}
			v := extract(&b, 1, false)
			if slices.Contains(v.nodes, -1) {
				continue // masked rows do not tell which nodes they are
			}
			removed := slices.Clone(g.EdgeLabel)
			var added []int32
			for k, e := range v.edges {
				label := b.EdgeLabel[6+k]
				own := int32(64*e[1] + e[0])
				switch {
				case e[0] == e[1] && label == -1:
				case e[0] == e[1]:
					t.Fatalf("%#v: self-loop with category %d", a, label)
				case label == own:
					if at := slices.Index(removed, own); at >= 0 {
						removed = slices.Delete(removed, at, at+1)
					}
				default:
					added = append(added, label)
				}
			}
			for _, label := range added {
				at := slices.Index(removed, label)
				if at < 0 && !directed { // its reverse has the same
					at = slices.Index(removed, label%64*64+label/64)
				}
				if at < 0 {
					t.Fatalf("%#v: an added edge has category %d, which is not that of a removed one", a, label)
				}
				removed = slices.Delete(removed, at, at+1)
			}
			if name := fmt.Sprint(a.Name()); len(added) > 0 && !slices.Contains([]string{"permE", "dropN,permE,maskN,subgraph"}, name) {
				t.Fatalf("%s changed categories", name)
			}
		}
	}
}

func TestEdgeLabelsOfSomeGraphs(t *testing.T) {
	g := complete(3)
	for _, gs := range [][]*graph.Graph{{g, labelled(g)}, {labelled(g), g}} {
		wantPanic(t, "graph: Batch: 6 edge labels for 12 entries: only some of the graphs have them", func() { graph.Collate(gs...) })
		// One worker sees the first kind only, the other the second.
		many := append(slices.Repeat(gs[:1], 200), slices.Repeat(gs[1:], 200)...)
		c := Collator{Views: []Augmentation{Identity{}}, Workers: 2}
		wantPanic(t, "augment: Collator: 1200 edge labels for 2400 entries: only some of the graphs have them", func() { c.Collate(new(graph.Batch), many, indices(400), 0) })
	}
	// A graph without edges goes with both.
	single := tagged(1, false, nil)
	graph.Collate(single, g, single)
	graph.Collate(single, labelled(g), single)
}
