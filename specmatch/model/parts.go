package model

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
)

const (
	// mostOrders is the number of orders in which a graph grows. Twice as many take twice the time, and bring the
	// correlation of the contributions of atoms to logP with the true ones from 0.74 to 0.75.
	mostOrders = 8
	// mostSteps bounds the steps of an order. In larger graphs, several parts join at once, and share what changes.
	mostSteps = 128
)

// Parts are what [Explain] takes a graph apart into: its nodes, or groups of them.
type Parts struct {
	// Nodes are those of each part. Each node of the graph is in one part.
	Nodes [][]int
	// Groups has the group of each part: an order completes a group before it begins another one, so that few
	// groups are broken. Nil is one group.
	Groups []int
	// Without returns the graph without some nodes, or nil if there is no such graph. It does not keep the slice.
	Without func(nodes []int) *graph.Graph
	// Complete fills in the numbers of the graphs that Without has returned. It is nil if they are there already.
	Complete func()
}

// NodesOf returns the nodes of a graph as its parts. What is left without some has their features, and the
// numbers of the whole graph.
func NodesOf(g *graph.Graph) Parts {
	parts := Parts{Without: func(nodes []int) *graph.Graph { return without(g, nodes) }}
	for v := range g.Nodes() {
		parts.Nodes = append(parts.Nodes, []int{v})
	}
	return parts
}

// step says that some parts join the others of a graph.
type step struct {
	parts         []int
	before, after int // places of the graphs
}

// steps returns the graphs of all orders, of which the first is the whole graph, and their steps. They depend on
// the graph alone.
func (p Parts) steps(whole *graph.Graph) (graphs []*graph.Graph, steps []step) {
	rng := rand.New(rand.NewPCG(uint64(len(p.Nodes)), 0))
	graphs = []*graph.Graph{whole}
	if len(p.Nodes) == 0 {
		return graphs, nil
	}
	neighbors := p.neighbors(whole)
	stride := (len(p.Nodes) + mostSteps - 1) / mostSteps
	groups := p.Groups
	if groups == nil {
		groups = make([]int, len(p.Nodes))
	}
	starts := rng.Perm(len(p.Nodes))
	for k := range mostOrders {
		order := grow(neighbors, groups, starts[k%len(starts)], rng)
		var removed []int
		after := 0
		end := len(order)
		for i := len(order) - 1; i > 0; i-- {
			removed = append(removed, p.Nodes[order[i]]...)
			if i%stride != 0 {
				continue
			}
			before := p.Without(removed)
			if before == nil { // these parts join together with the one before
				continue
			}
			steps = append(steps, step{
				parts:  order[i:end],
				before: len(graphs),
				after:  after,
			})
			after = len(graphs)
			end = i
			graphs = append(graphs, before)
		}
	}
	return graphs, steps
}

// neighbors returns the parts that edges join to each part.
func (p Parts) neighbors(g *graph.Graph) [][]int {
	part := make([]int, g.Nodes())
	for k, nodes := range p.Nodes {
		for _, v := range nodes {
			part[v] = k
		}
	}
	neighbors := make([][]int, len(p.Nodes))
	for v := range part {
		for _, j := range g.Neighbors(v) {
			target := part[v]
			source := part[j]
			neighbors[target] = append(neighbors[target], source)
			neighbors[source] = append(neighbors[source], target)
		}
	}
	for k := range neighbors {
		slices.Sort(neighbors[k])
		neighbors[k] = slices.Compact(neighbors[k])
	}
	return neighbors
}

// grow returns a random order of all parts, from a first one. As long as there is one, each is a neighbour of those
// before it, and among these one of the same group as the last.
func grow(neighbors [][]int, groups []int, first int, rng *rand.Rand) (order []int) {
	reached := make([]bool, len(neighbors))
	var next []int // reached, but not yet in the order
	reach := func(part int) {
		if !reached[part] {
			reached[part] = true
			next = append(next, part)
		}
	}
	reach(first)
	group := groups[first]
	var choices []int                     // places in next of parts of the group
	beginners := rng.Perm(len(neighbors)) // of the components that no edge joins to the first
	for len(order) < len(neighbors) {
		for len(next) == 0 {
			reach(beginners[0])
			beginners = beginners[1:]
		}
		choices = choices[:0]
		for k, part := range next {
			if groups[part] == group {
				choices = append(choices, k)
			}
		}
		k := rng.IntN(len(next))
		if len(choices) > 0 {
			k = choices[rng.IntN(len(choices))]
		}
		part := next[k]
		group = groups[part]
		next[k] = next[len(next)-1]
		next = next[:len(next)-1]
		order = append(order, part)
		for _, j := range neighbors[part] {
			reach(j)
		}
	}
	return order
}

// equalise replaces the contributions of parts that are alike by their mean: those whose nodes have the same colors
// of the Weisfeiler-Lehman refinement. Edges of directed graphs count by what they point to as well, which these
// colors ignore. Such graphs stay as they are.
func (p Parts) equalise(g *graph.Graph, values []float64, outputs int) {
	if g.Directed {
		return
	}
	colors := stableColors(g)
	alike := map[string][]int{}
	for k, nodes := range p.Nodes {
		ofPart := make([]int32, len(nodes))
		for i, v := range nodes {
			ofPart[i] = colors[v]
		}
		slices.Sort(ofPart)
		key, _ := binary.Append(nil, binary.LittleEndian, ofPart)
		alike[string(key)] = append(alike[string(key)], k)
	}
	for _, class := range alike {
		for output := range outputs {
			sum := 0.0
			for _, k := range class {
				sum += values[k*outputs+output]
			}
			for _, k := range class {
				values[k*outputs+output] = sum / float64(len(class))
			}
		}
	}
}

// stableColors refines the colors of the nodes of a graph, which begin with their features, until none is split.
func stableColors(g *graph.Graph) []int32 {
	colors := make([]int32, g.Nodes())
	next := make([]int32, g.Nodes())
	numbers := map[string]int32{}
	for i := range colors {
		var key []byte
		if g.X.OneHot() {
			key, _ = binary.Append(nil, binary.LittleEndian, g.X.Category[i])
		} else {
			key, _ = binary.Append(nil, binary.LittleEndian, g.X.Dense[i*g.X.Width:(i+1)*g.X.Width])
		}
		number, ok := numbers[string(key)]
		if !ok {
			number = int32(len(numbers))
			numbers[string(key)] = number
		}
		colors[i] = number
	}
	var refinement graph.Colors
	for count := len(numbers); ; count = refinement.Len() {
		refinement.Begin(len(colors))
		refinement.Refine(next, colors, count, g.Ptr, g.Adj, g.EdgeLabel)
		copy(colors, next)
		if refinement.Len() == count {
			return colors
		}
	}
}

// without returns the graph without some nodes and their edges.
func without(g *graph.Graph, nodes []int) *graph.Graph {
	place := make([]int32, g.Nodes()) // of the nodes that stay; -1 of others
	for _, v := range nodes {
		place[v] = -1
	}
	count := int32(0)
	for v := range place {
		if place[v] == 0 {
			place[v] = count
			count++
		}
	}
	out := &graph.Graph{
		Ptr:      []int32{0},
		Directed: g.Directed,
		Globals:  g.Globals,
		X:        graph.Features{Width: g.X.Width},
		Class:    g.Class,
	}
	if g.EdgeLabel != nil {
		out.EdgeLabel = []int32{}
	}
	for v := range place {
		if place[v] < 0 {
			continue
		}
		for k := g.Ptr[v]; k < g.Ptr[v+1]; k++ {
			j := place[g.Adj[k]]
			if j < 0 {
				continue
			}
			out.Adj = append(out.Adj, j)
			if g.EdgeLabel != nil {
				out.EdgeLabel = append(out.EdgeLabel, g.EdgeLabel[k])
			}
		}
		out.Ptr = append(out.Ptr, int32(len(out.Adj)))
		if g.X.OneHot() {
			out.X.Category = append(out.X.Category, g.X.Category[v])
		} else {
			out.X.Dense = append(out.X.Dense, g.X.Dense[v*g.X.Width:(v+1)*g.X.Width]...)
		}
	}
	return out
}
