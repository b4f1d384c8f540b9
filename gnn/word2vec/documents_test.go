package word2vec

import (
	"math"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/kernel"
)

func build(n int, edges ...[2]int32) *graph.Graph {
	rows := make([][]int32, n)
	for _, e := range edges {
		rows[e[0]] = append(rows[e[0]], e[1])
		rows[e[1]] = append(rows[e[1]], e[0])
	}
	g := &graph.Graph{Ptr: make([]int32, 1, n+1), X: graph.Features{Width: 1, Category: make([]int32, n)}}
	for _, r := range rows {
		slices.Sort(r)
		g.Adj = append(g.Adj, r...)
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
	}
	return g
}

// TestSubtrees: a path of three and an edge with an isolated node.
func TestSubtrees(t *testing.T) {
	graphs := []*graph.Graph{build(3, [2]int32{0, 1}, [2]int32{1, 2}), build(3, [2]int32{0, 1})}
	c := Subtrees(graphs, 1)
	// Degrees 1 2 1 and 1 1 0 are names 0 1 0 and 0 0 2; behind those, (1|2) (2|1,1)
	// (1|2) and (1|1) (1|1) (0|).
	for i, want := range [][]int32{{0, 1, 0, 3, 4, 3}, {0, 0, 2, 5, 5, 6}} {
		if got := c.Doc(i, nil); !slices.Equal(got, want) {
			t.Errorf("document %d: %v, want %v", i, got, want)
		}
	}
	if c.Words != 7 || c.Docs != 2 {
		t.Errorf("%d documents of %d words", c.Docs, c.Words)
	}
	runs := Runs(kernel.Refine(graphs, 1).Counts())
	if got, want := runs.Doc(1, nil), []int32{0, 0, 2, 5, 5, 6}; !slices.Equal(got, want) || runs.Words != 7 {
		t.Errorf("runs %v of %d words, want %v", got, runs.Words, want)
	}
	if got, want := runs.Doc(0, []int32{9}), []int32{9, 0, 0, 1, 3, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
}

// TestBias: at node 1, having come from 0, the neighbours are 0 itself, 2, which 0
// knows, and 3, which it does not: weights 2, 1 and ½ for p = ½ and q = 2.
func TestBias(t *testing.T) {
	g := build(4, [2]int32{0, 1}, [2]int32{1, 2}, [2]int32{0, 2}, [2]int32{1, 3})
	corpus, first := Walks([]*graph.Graph{build(2), g}, WalkConfig{PerNode: 60000, Length: 3, P: 0.5, Q: 2, Seed: 1})
	if corpus.Words != 6 || !slices.Equal(first, []int{0, 2, 6}) {
		t.Fatalf("%d words, graphs begin at %v", corpus.Words, first)
	}
	count, all := map[int32]float64{}, 0.0
	for i := range corpus.Docs {
		w := corpus.Doc(i, nil)
		if i%6 < 2 {
			if !slices.Equal(w, []int32{int32(i % 6)}) {
				t.Fatalf("walk %v from an isolated node", w)
			}
			continue
		}
		if len(w) != 3 || int(w[0]) != i%6 {
			t.Fatalf("walk %v from node %d", w, i%6)
		}
		if w[0] == 2 && w[1] == 3 {
			count[w[2]]++
			all++
		}
	}
	for node, want := range map[int32]float64{2: .571429, 4: .285714, 5: .142857} {
		if got := count[node] / all; math.Abs(got-want) > 0.01 {
			t.Errorf("on to node %d with frequency %.4f, want %.4f", node-2, got, want)
		}
	}
	again, _ := Walks([]*graph.Graph{build(2), g}, WalkConfig{PerNode: 60000, Length: 3, P: 0.5, Q: 2, Seed: 1})
	other, _ := Walks([]*graph.Graph{build(2), g}, WalkConfig{PerNode: 60000, Length: 3, P: 0.5, Q: 2, Seed: 2})
	same := 0
	for i := range 1000 {
		w := corpus.Doc(i, nil)
		if !slices.Equal(w, again.Doc(i, nil)) {
			t.Fatal("a seed gives two walks")
		}
		if slices.Equal(w, other.Doc(i, nil)) {
			same++
		}
	}
	if same > 900 {
		t.Errorf("two seeds share %d of 1000 walks", same)
	}
}

func TestLongWalks(t *testing.T) {
	star := build(5, [2]int32{0, 1}, [2]int32{0, 2}, [2]int32{0, 3}, [2]int32{0, 4})
	c := LongWalks([]*graph.Graph{star, build(2)}, LongWalkConfig{Length: 1000, Seed: 4})
	walk := c.Doc(0, nil)
	if len(walk) != 1000 || c.Words != 5 {
		t.Fatalf("%d steps, %d words", len(walk), c.Words)
	}
	for i, v := range walk[1:] {
		if (v == 0) == (walk[i] == 0) {
			t.Fatalf("from %d to %d", walk[i], v)
		}
	}
	if w := c.Doc(1, nil); len(w) != 1000 || !slices.Equal(w, slices.Repeat(w[:1], 1000)) {
		t.Error("a walk leaves an isolated node")
	}
	// The hub has 4/5 of all nodes, a leaf 1/5: classes (.75, 1] and (.15, .2].
	s := LongWalks([]*graph.Graph{star}, LongWalkConfig{Length: 11, Structural: true, Seed: 4})
	words := s.Doc(0, []int32{77})
	if len(words) != 12 || words[0] != 77 || s.Words != 8 {
		t.Fatalf("words %v of %d", words, s.Words)
	}
	for _, w := range words[1:] {
		if w != 7 && w != 3 {
			t.Errorf("a word %d", w)
		}
	}
	for _, c := range []struct {
		degree int
		want   int32
	}{{0, 0}, {5, 0}, {6, 1}, {15, 2}, {25, 4}, {26, 5}, {50, 5}, {75, 6}, {76, 7}, {99, 7}} {
		if got := degreeClass(c.degree, 100); got != c.want {
			t.Errorf("degree %d of 100 nodes: class %d, want %d", c.degree, got, c.want)
		}
	}
}
