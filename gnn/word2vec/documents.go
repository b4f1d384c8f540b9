package word2vec

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/kernel"
	"github.com/specmatch/specmatch/gnn/random"
)

// Subtrees returns graph2vec's documents: the WL colors of all nodes of a graph after
// 0, 1, …, rounds rounds, those of an earlier round first. Isolated nodes have colors in
// every round.
func Subtrees(graphs []*graph.Graph, rounds int) Corpus {
	r := kernel.Refine(graphs, rounds)
	words := 0
	first := make([]int32, len(r.Sizes)) // word of a round's color 0
	for t, n := range r.Sizes {
		first[t] = int32(words)
		words += n
	}
	return Corpus{Docs: len(graphs), Words: words, Doc: func(i int, buf []int32) []int32 {
		for t, colors := range r.Colors {
			for _, c := range colors[r.Ptr[i]:r.Ptr[i+1]] {
				buf = append(buf, first[t]+c)
			}
		}
		return buf
	}}
}

// Runs returns the documents of deep graph kernels (P. Yanardag, S. V. N.
// Vishwanathan, KDD 2015): the colors of a graph in every round, each repeated as often
// as it occurs. Words are the columns of the rounds side by side.
func Runs(rounds []*kernel.Sparse) Corpus {
	joined := kernel.Join(rounds...)
	return Corpus{Docs: joined.Rows(), Words: joined.Width, Doc: func(i int, buf []int32) []int32 {
		columns, counts := joined.Row(i)
		for k, c := range columns {
			for range int(counts[k]) {
				buf = append(buf, c)
			}
		}
		return buf
	}}
}

// WalkConfig describes the walks of node2vec.
type WalkConfig struct {
	PerNode int // walks that begin at every node
	Length  int // nodes of a walk, the first included
	// P and Q > 0 bias a step that came from t and stands at v: to x with weight
	// 1/P if x = t, 1 if x is a neighbour of t, 1/Q otherwise. With both 1 the walk
	// is a plain one.
	P, Q float64
	Seed uint64
}

// Walks returns node2vec's documents: walks over the nodes of all graphs, each graph
// with words of its own, node i of graph g being word first[g]+i. Walk k of all nodes
// comes before walk k+1; a walk at a node without neighbours ends there.
//
// The next node is drawn by rejection from the neighbours, in no more memory than the
// graph itself, where node2vec's tables take Σ degree² numbers.
func Walks(graphs []*graph.Graph, c WalkConfig) (corpus Corpus, first []int) {
	first = make([]int, len(graphs)+1)
	for k, g := range graphs {
		first[k+1] = first[k] + g.Nodes()
	}
	nodes := first[len(graphs)]
	owner := make([]int32, 0, nodes)
	for k, g := range graphs {
		for range g.Nodes() {
			owner = append(owner, int32(k))
		}
	}
	return Corpus{Docs: nodes * c.PerNode, Words: nodes, Doc: func(i int, buf []int32) []int32 {
		g := owner[i%nodes]
		base := first[g]
		rng := random.Stream(c.Seed, purposeWalk, 0, i)
		return c.walk(graphs[g], i%nodes-base, int32(base), rng, buf)
	}}, first
}

// walk appends the nodes of a walk from a node on, each plus base.
func (c WalkConfig) walk(g *graph.Graph, node int, base int32, rng *rand.Rand, buf []int32) []int32 {
	previous := -1
	for step := 0; ; step++ {
		buf = append(buf, base+int32(node))
		neighbors := g.Neighbors(node)
		if step == c.Length-1 || len(neighbors) == 0 {
			return buf
		}
		next := int(neighbors[rng.IntN(len(neighbors))])
		for previous >= 0 && !c.accept(g, previous, next, rng) {
			next = int(neighbors[rng.IntN(len(neighbors))])
		}
		previous = node
		node = next
	}
}

// accept reports whether a step to next is taken after one that came from previous, with a
// probability in proportion to its weight.
func (c WalkConfig) accept(g *graph.Graph, previous, next int, rng *rand.Rand) bool {
	if c.P == 1 && c.Q == 1 {
		return true
	}
	weight := 1 / c.Q
	switch {
	case next == previous:
		weight = 1 / c.P
	case g.HasEdge(previous, next):
		weight = 1
	}
	return rng.Float64()*max(1/c.P, 1, 1/c.Q) < weight
}

// LongWalkConfig describes the walks of sub2vec.
type LongWalkConfig struct {
	Length int // steps of the one walk of a graph
	// Structural replaces nodes by their degree over the number of nodes, in eight
	// classes, and makes the walk two of half the steps.
	Structural bool
	Seed       uint64
}

// degreeClasses are the lower ends of the classes of degree/nodes but the first.
var degreeClasses = [...]float64{.05, .1, .15, .2, .25, .5, .75}

// LongWalks returns sub2vec's documents, one random walk per graph from a random node.
// Words are nodes, numbered from 0 in every graph, so that equal words of two graphs
// have nothing in common but their number; or classes of degrees. A walk that begins
// at a node without neighbours stays there.
//
// The walks are not kept but drawn anew for every epoch, the same ones each time.
func LongWalks(graphs []*graph.Graph, c LongWalkConfig) Corpus {
	words := len(degreeClasses) + 1
	if !c.Structural {
		words = 0
		for _, g := range graphs {
			words = max(words, g.Nodes())
		}
	}
	return Corpus{Docs: len(graphs), Words: words, Doc: func(i int, buf []int32) []int32 {
		rng := random.Stream(c.Seed, purposeLongWalk, 0, i)
		g := graphs[i]
		begin := len(buf)
		if !c.Structural {
			return longWalk(g, c.Length, rng, buf)
		}
		head := c.Length / 2
		buf = longWalk(g, head, rng, buf)
		buf = longWalk(g, c.Length-head, rng, buf)
		for k, v := range buf[begin:] {
			buf[begin+k] = degreeClass(len(g.Neighbors(int(v))), g.Nodes())
		}
		return buf
	}}
}

func longWalk(g *graph.Graph, length int, rng *rand.Rand, buf []int32) []int32 {
	node := rng.IntN(g.Nodes())
	for range length {
		buf = append(buf, int32(node))
		if neighbors := g.Neighbors(node); len(neighbors) > 0 {
			node = int(neighbors[rng.IntN(len(neighbors))])
		}
	}
	return buf
}

func degreeClass(degree, nodes int) int32 {
	ratio := float64(degree) / float64(nodes)
	class := int32(0)
	for _, low := range degreeClasses {
		if ratio > low {
			class++
		}
	}
	return class
}
