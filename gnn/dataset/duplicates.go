package dataset

import (
	"context"
	"math"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
)

// Copies says which graphs of a set are the same but for the numbers of their nodes.
type Copies struct {
	// Groups are the graphs that have copies, by their position, ascending; those of a group are
	// the same graph. Groups are in the order of their first graph.
	Groups [][]int
}

// FindCopies finds the graphs that are isomorphic: some numbering of the nodes gives them the same
// edges, directions, features and labels of edges. Classes and targets may differ. Graphs that the
// Weisfeiler-Lehman refinement tells apart are not compared; the others are, exactly, but for a few
// highly regular ones whose comparison would take too long, which count as different. A cancelled ctx
// ends the search.
func FindCopies(ctx context.Context, graphs []*graph.Graph) (*Copies, error) {
	type group struct {
		refined *refinedGraph
		members []int
	}
	byHash := map[uint64][]*group{}
	var groups []*group
	for i, g := range graphs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		refined := refine(g)
		hash := refined.hash()
		k := slices.IndexFunc(byHash[hash], func(candidate *group) bool {
			return isomorphic(candidate.refined, refined)
		})
		if k >= 0 {
			same := byHash[hash][k]
			same.members = append(same.members, i)
			continue
		}
		first := &group{refined, []int{i}}
		byHash[hash] = append(byHash[hash], first)
		groups = append(groups, first)
	}
	c := new(Copies)
	for _, same := range groups {
		if len(same.members) > 1 {
			c.Groups = append(c.Groups, same.members)
		}
	}
	return c, nil
}

// Graphs returns how many graphs repeat an earlier one.
func (c *Copies) Graphs() (n int) {
	for _, group := range c.Groups {
		n += len(group) - 1
	}
	return n
}

// Conflicts returns how many groups of copies have more than one class.
func (c *Copies) Conflicts(labels []int) (n int) {
	for _, group := range c.Groups {
		if slices.ContainsFunc(group, func(i int) bool { return labels[i] != labels[group[0]] }) {
			n++
		}
	}
	return n
}

// Shared returns the graphs of a part that also stand in the training set, in the order of part. A graph
// that is itself in both counts, too.
func (c *Copies) Shared(train, part []int) (shared []int) {
	first := map[int]int{} // the first graph of the group of a graph
	for _, group := range c.Groups {
		for _, i := range group {
			first[i] = group[0]
		}
	}
	representative := func(i int) int {
		if r, ok := first[i]; ok {
			return r
		}
		return i
	}
	trained := map[int]bool{}
	for _, i := range train {
		trained[representative(i)] = true
	}
	for _, i := range part {
		if trained[representative(i)] {
			shared = append(shared, i)
		}
	}
	return shared
}

// CountShared returns how many graphs of the test parts of some folds also stand in the training part of
// their fold.
func (c *Copies) CountShared(folds []Fold) (n int) {
	for _, fold := range folds {
		n += len(c.Shared(fold.Train, fold.Test))
	}
	return n
}

// WithoutEdgeLabels returns the graphs as encoders see them that do not read labels of edges. They share
// their arrays with the given ones.
func WithoutEdgeLabels(graphs []*graph.Graph) []*graph.Graph {
	plain := make([]*graph.Graph, len(graphs))
	for i, g := range graphs {
		unlabelled := *g
		unlabelled.EdgeLabel = nil
		plain[i] = &unlabelled
	}
	return plain
}

// refinedGraph is a graph with the colours that the Weisfeiler-Lehman refinement gives its nodes. They
// depend on nothing but the graph, so that those of two graphs can be compared.
type refinedGraph struct {
	*graph.Graph
	colors []uint64
	// ptr and adj are the neighbours of every node, whatever the direction of the edges.
	ptr, adj []int32
}

// refine colours the nodes of a graph, round by round until no colour splits.
func refine(g *graph.Graph) *refinedGraph {
	n := g.Nodes()
	r := &refinedGraph{
		Graph:  g,
		colors: make([]uint64, n),
		ptr:    g.Ptr,
		adj:    g.Adj,
	}
	if g.Directed {
		r.ptr, r.adj = symmetrized(g)
	}
	for i := range n {
		r.colors[i] = featureHash(g, i)
	}
	next := make([]uint64, n)
	for count := distinct(r.colors); ; {
		for i := range n {
			next[i] = r.environment(i)
		}
		r.colors, next = next, r.colors
		refined := distinct(r.colors)
		if refined <= count {
			return r
		}
		count = refined
	}
}

// environment returns the colour of a node in the next round: a hash of its colour and of the multiset of
// its edges, their labels and the colours at their other ends.
func (r *refinedGraph) environment(node int) uint64 {
	sum := mixHash(r.colors[node])
	for _, neighbor := range r.adj[r.ptr[node]:r.ptr[node+1]] {
		incoming := r.edge(int(neighbor), node)
		outgoing := incoming
		if r.Directed {
			outgoing = r.edge(node, int(neighbor))
		}
		sum += mixHash(r.colors[neighbor] ^ mixHash(uint64(incoming)<<32^uint64(uint32(outgoing))))
	}
	return mixHash(sum)
}

// noEdge is what edge returns where there is none. Labels are no smaller than -1.
const noEdge = -2

// edge returns the label of the edge source→target, 0 where edges have none.
func (r *refinedGraph) edge(source, target int) int64 {
	k, ok := slices.BinarySearch(r.Neighbors(target), int32(source))
	switch {
	case !ok:
		return noEdge
	case r.EdgeLabel == nil:
		return 0
	}
	return int64(r.EdgeLabel[int(r.Ptr[target])+k])
}

// symmetrized returns the neighbours of the nodes of a directed graph in either direction.
func symmetrized(g *graph.Graph) (ptr, adj []int32) {
	outPtr, outgoing := graph.TransposeCSR(g.Ptr, g.Adj, g.Nodes())
	ptr = []int32{0}
	for i := range g.Nodes() {
		row := slices.Concat(g.Neighbors(i), outgoing[outPtr[i]:outPtr[i+1]])
		slices.Sort(row)
		adj = append(adj, slices.Compact(row)...)
		ptr = append(ptr, int32(len(adj)))
	}
	return ptr, adj
}

// hash returns a number that isomorphic graphs have in common.
func (r *refinedGraph) hash() uint64 {
	sum := mixHash(uint64(r.Entries()))
	for _, color := range r.colors {
		sum += mixHash(color)
	}
	return mixHash(sum ^ uint64(r.X.Width)<<32)
}

// featureHash returns a hash of the features of a node.
func featureHash(g *graph.Graph, node int) uint64 {
	if g.X.OneHot() {
		return mixHash(uint64(g.X.Category[node]))
	}
	h := uint64(0)
	for k, v := range g.X.Dense[node*g.X.Width : (node+1)*g.X.Width] {
		if v != 0 {
			h += mixHash(uint64(k)<<32 | uint64(math.Float32bits(v)))
		}
	}
	return mixHash(h)
}

// mixHash is the finalizer of SplitMix64, a bijection.
func mixHash(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func distinct(colors []uint64) int {
	set := make(map[uint64]struct{}, len(colors))
	for _, color := range colors {
		set[color] = struct{}{}
	}
	return len(set)
}

// maxTries bounds how many pairs of nodes a comparison of two graphs tries, beyond a hundred for each
// node.
const maxTries = 1 << 17

// isomorphic reports whether some numbering makes two graphs of the same hash the same. It maps the nodes
// of a to those of b one after the other, neighbours of mapped nodes first, and goes back where no node
// of b fits.
func isomorphic(a, b *refinedGraph) bool {
	n := a.Nodes()
	if n != b.Nodes() || a.Entries() != b.Entries() || a.X.Width != b.X.Width ||
		a.X.OneHot() != b.X.OneHot() || (a.EdgeLabel == nil) != (b.EdgeLabel == nil) {
		return false
	}
	ofColor := map[uint64][]int32{} // the nodes of b
	for v, color := range b.colors {
		ofColor[color] = append(ofColor[color], int32(v))
	}
	order, parent := a.searchOrder(ofColor)
	m := newMapping(a, b)
	cursor := make([]int, n+1) // the next candidate at every depth
	tries := maxTries + 100*n
	for depth := 0; depth < n; {
		u := order[depth]
		candidates := ofColor[a.colors[u]]
		if p := parent[depth]; p != unmapped {
			v := m.image[p]
			candidates = b.adj[b.ptr[v]:b.ptr[v+1]]
		}
		// The next candidate that fits.
		found := false
		for !found && cursor[depth] < len(candidates) {
			v := candidates[cursor[depth]]
			cursor[depth]++
			if m.preimage[v] != unmapped || a.colors[u] != b.colors[v] {
				continue
			}
			tries--
			if tries < 0 {
				return false
			}
			found = m.fits(int(u), int(v))
			if found {
				m.image[u] = v
				m.preimage[v] = u
			}
		}
		if found {
			depth++
			cursor[depth] = 0
			continue
		}
		// None does: go back to the node before.
		depth--
		if depth < 0 {
			return false
		}
		back := order[depth]
		m.preimage[m.image[back]] = unmapped
		m.image[back] = unmapped
	}
	return true
}

// searchOrder returns the nodes in an order in which each but the first of a component follows one of its
// neighbours, its parent. A component begins with a node of the rarest colour.
func (r *refinedGraph) searchOrder(ofColor map[uint64][]int32) (order, parent []int32) {
	n := r.Nodes()
	starts := make([]int32, n)
	for i := range starts {
		starts[i] = int32(i)
	}
	slices.SortStableFunc(starts, func(i, j int32) int {
		return len(ofColor[r.colors[i]]) - len(ofColor[r.colors[j]])
	})
	visited := make([]bool, n)
	visit := func(node, before int32) {
		if !visited[node] {
			visited[node] = true
			order = append(order, node)
			parent = append(parent, before)
		}
	}
	for _, start := range starts {
		first := len(order)
		visit(start, unmapped)
		for k := first; k < len(order); k++ {
			node := order[k]
			for _, neighbor := range r.adj[r.ptr[node]:r.ptr[node+1]] {
				visit(neighbor, node)
			}
		}
	}
	return order, parent
}

// unmapped stands for no node.
const unmapped = -1

// mapping is a part of an isomorphism: image maps nodes of a to nodes of b, and preimage those of b to
// those of a.
type mapping struct {
	a, b            *refinedGraph
	image, preimage []int32
}

func newMapping(a, b *refinedGraph) *mapping {
	n := a.Nodes()
	return &mapping{
		a:        a,
		b:        b,
		image:    slices.Repeat([]int32{unmapped}, n),
		preimage: slices.Repeat([]int32{unmapped}, n),
	}
}

// fits reports whether node u of a may be mapped to node v of b: their features are equal, and so are
// their edges to the nodes that are mapped.
func (m *mapping) fits(u, v int) bool {
	if !equalFeatures(m.a, u, m.b, v) {
		return false
	}
	mapped := 0
	for _, neighbor := range m.a.adj[m.a.ptr[u]:m.a.ptr[u+1]] {
		w := m.image[neighbor]
		if w == unmapped {
			continue
		}
		mapped++
		if m.a.edge(u, int(neighbor)) != m.b.edge(v, int(w)) ||
			m.a.edge(int(neighbor), u) != m.b.edge(int(w), v) {
			return false
		}
	}
	for _, neighbor := range m.b.adj[m.b.ptr[v]:m.b.ptr[v+1]] {
		if m.preimage[neighbor] != unmapped {
			mapped--
		}
	}
	return mapped == 0
}

func equalFeatures(a *refinedGraph, u int, b *refinedGraph, v int) bool {
	if a.X.OneHot() {
		return a.X.Category[u] == b.X.Category[v]
	}
	width := a.X.Width
	return slices.Equal(a.X.Dense[u*width:(u+1)*width], b.X.Dense[v*width:(v+1)*width])
}
