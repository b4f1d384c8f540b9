package augment

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
)

// Augmentation makes random views of graphs. Augmentations are values without
// state: one may be used by any number of goroutines.
type Augmentation interface {
	// Name is the short name that [ParsePolicy] reads.
	Name() string
	// Append appends one view of g to dst, which must be empty or of g's
	// feature width. All randomness comes from rng. ws is memory to work in;
	// no two goroutines may use one at the same time.
	Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, ws *Workspace)
}

// Workspace is the memory that augmentations work in, which grows to what the
// largest graph needs and is then reused. The zero Workspace is ready. It must
// not be copied after its first use.
type Workspace struct {
	pcg rand.PCG
	rng *rand.Rand

	// Marks of nodes, of undirected edges, of entries of Graph.Adj and of pairs
	// of nodes.
	node, seen, edge, drop, pair []bool

	id       []int32 // the number of every node in the batch, -1 if it is dropped
	list     []int32 // nodes that stay
	frontier []int32
	rest     []int32

	from, to []int32  // edges to add
	label    []int32  // their categories, if edges have some
	table    []uint64 // hash set of them
	// The same sorted, see sortAdded.
	byFrom, byFromTo, byFromLabel, sorted, sortedLabel, end []int32

	row []int64 // the entries of a node: source and category

	mean []float64
}

// Stream does what [random.Stream] does, without an allocation: it restarts the
// workspace's generator. The result is valid until the next call.
func (ws *Workspace) Stream(seed uint64, p random.Purpose, epoch, index int) *rand.Rand {
	ws.pcg.Seed(random.State(seed, p, epoch, index))
	if ws.rng == nil {
		ws.rng = rand.New(&ws.pcg)
	}
	return ws.rng
}

// Share returns ⌊ratio·n⌋ for ratio as it is written in decimals: 29 for 0.29
// of 100, where the product of floating-point numbers is below 29. It panics if
// ratio is not in [0, 1].
func Share(ratio float64, n int) int {
	checkRatio(ratio)
	return int(ratio*float64(n) + 1e-9)
}

func checkRatio(ratio float64) {
	if !(ratio >= 0 && ratio <= 1) {
		panic(fmt.Sprintf("augment: ratio %v is outside [0, 1]", ratio))
	}
}

// Choice draws one of its augmentations for every graph, each with equal
// probability; one that is listed twice is drawn twice as often. An empty
// Choice panics when it is used.
type Choice []Augmentation

// Name implements [Augmentation]: the names of the parts, joined by commas.
func (c Choice) Name() string {
	names := make([]string, len(c))
	for i, a := range c {
		names[i] = a.Name()
	}
	return strings.Join(names, ",")
}

// Append implements [Augmentation].
func (c Choice) Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, ws *Workspace) {
	if len(c) == 0 {
		panic("augment: Choice of nothing")
	}
	c[rng.Uint32N(uint32(len(c)))].Append(dst, g, rng, ws)
}

// Identity leaves the graph as it is.
type Identity struct {
	// SelfLoops adds the self-loops that GraphCL's unsupervised loader adds: to
	// every node with a smaller number than the last node that has an edge.
	// With the version of its GNN library that GraphCL pins, the network keeps
	// them, so that GIN's sum over {i} ∪ neighbours counts node i twice. This
	// is the graph that GraphCL's code trains on as its first view and
	// evaluates on, while [GraphCLUnsupervised] removes self-loops from the
	// second view.
	SelfLoops bool
}

// Name implements [Augmentation].
func (Identity) Name() string { return string(None) }

// Append implements [Augmentation]. It draws nothing.
func (a Identity) Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, ws *Workspace) {
	if a.SelfLoops {
		GraphCLUnsupervised{Op: None}.Append(dst, g, rng, ws)
		return
	}
	dst.Append(g)
}

// resize returns a slice of n elements in the memory of *s, growing it if
// necessary. The elements have any value.
func resize[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n+n/2)
	}
	*s = (*s)[:n]
	return *s
}

// choose marks k of the elements of mark and clears the others; all subsets
// of k are equally likely. It takes O(len(mark)) with at most two expected
// draws per element that is chosen, or per element that is not if those are
// fewer.
func choose(mark []bool, k int, rng *rand.Rand) {
	n := uint32(len(mark))
	few := 2*k <= len(mark)
	left := k
	if few {
		clear(mark)
	} else {
		for i := range mark {
			mark[i] = true
		}
		left = len(mark) - k
	}
	for left > 0 {
		if i := rng.Uint32N(n); mark[i] != few {
			mark[i] = few
			left--
		}
	}
}
