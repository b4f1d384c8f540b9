package augment

import (
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
)

// NodeDropping removes ⌊r·n⌋ of the n nodes with all their edges; all sets of
// that size are equally likely. The view is the subgraph induced by the others,
// in their order. At least one node stays. O(n+E).
type NodeDropping struct {
	// Ratio is r, in [0, 1].
	Ratio float64
}

// Name implements [Augmentation].
func (NodeDropping) Name() string { return string(DropN) }

// Append implements [Augmentation].
func (a NodeDropping) Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, ws *Workspace) {
	n := g.Nodes()
	k := min(Share(a.Ratio, n), n-1)
	if k <= 0 {
		dst.Append(g)
		return
	}
	keep := resize(&ws.node, n)
	choose(keep, n-k, rng)
	induce(dst, g, ws.marked(keep), true, ws)
}

// Subgraph keeps ⌊(1-r)·n⌋+1 of the n nodes (n if that is more) and the edges
// between them. It grows from a random node: the next node is drawn uniformly
// from all nodes that have an edge into those taken so far, and from all nodes
// left if there is none. So in a connected graph the view is connected. Nodes
// keep their order. O(n+E).
//
// Growing from the whole frontier is what GraphCL's paper and its code for
// proteins do; see [GraphCLUnsupervised] for what the rest of its code does.
type Subgraph struct {
	// Ratio is r, in [0, 1]: the fraction of nodes that is removed.
	Ratio float64
}

// Name implements [Augmentation].
func (Subgraph) Name() string { return string(Sub) }

// Append implements [Augmentation].
func (a Subgraph) Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, ws *Workspace) {
	checkRatio(a.Ratio)
	n := g.Nodes()
	size := Share(1-a.Ratio, n) + 1
	if size >= n {
		dst.Append(g)
		return
	}
	// A node is visited when it enters the frontier, and kept when it leaves it.
	keep := resize(&ws.node, n)
	visited := resize(&ws.seen, n)
	clear(keep)
	clear(visited)
	frontier := ws.frontier[:0]
	unreached := ws.rest[:0]

	v := int32(rng.Uint32N(uint32(n)))
	visited[v] = true
	for {
		keep[v] = true
		size--
		if size == 0 {
			break
		}
		for _, j := range g.Neighbors(int(v)) {
			if !visited[j] {
				visited[j] = true
				frontier = append(frontier, j)
			}
		}
		if len(frontier) > 0 {
			v, frontier = draw(frontier, rng)
			continue
		}
		// A component is used up. unreached lists the nodes that were not visited
		// when the first one was; those visited since are discarded when drawn,
		// each once, so that all jumps together cost O(n).
		if len(unreached) == 0 {
			for i, s := range visited {
				if !s {
					unreached = append(unreached, int32(i))
				}
			}
		}
		for v, unreached = draw(unreached, rng); visited[v]; {
			v, unreached = draw(unreached, rng)
		}
		visited[v] = true
	}
	ws.frontier = frontier
	ws.rest = unreached
	induce(dst, g, ws.marked(keep), true, ws)
}

// draw takes a random element out of s, which does not keep its order.
func draw(s []int32, rng *rand.Rand) (int32, []int32) {
	k := rng.Uint32N(uint32(len(s)))
	end := len(s) - 1
	v := s[k]
	s[k] = s[end]
	return v, s[:end]
}

// marked returns the marked nodes, ascending. The loop has no branch: with
// a random fifth of the nodes marked, mispredictions would cost more than all
// else.
func (ws *Workspace) marked(mark []bool) []int32 {
	list := resize(&ws.list, len(mark))
	k := 0
	for i, m := range mark {
		list[k] = int32(i)
		one := 0
		if m {
			one = 1
		}
		k += one
	}
	return list[:k]
}

// number gives the listed nodes consecutive numbers from base on and all other
// nodes of 0..n-1 the number -1.
func (ws *Workspace) number(n int, nodes []int32, base int32) []int32 {
	id := resize(&ws.id, n)
	for i := range id {
		id[i] = -1
	}
	for k, v := range nodes {
		id[v] = base + int32(k)
	}
	return id
}

// induce appends the subgraph of the given distinct nodes, in that order.
// ascending says that they are sorted.
func induce(dst *graph.Batch, g *graph.Graph, nodes []int32, ascending bool, ws *Workspace) {
	dst.BeginGraph(g.X.Width)
	dst.Asymmetric = dst.Asymmetric || g.Directed
	base := dst.Nodes()
	appendFeatures(dst, &g.X, nodes, base)
	id := ws.number(g.Nodes(), nodes, int32(base))

	ptr := slices.Grow(dst.Ptr, len(nodes))
	offset := len(dst.Adj)
	adj := slices.Grow(dst.Adj, len(g.Adj))
	adj = adj[:cap(adj)]
	if g.EdgeLabel != nil {
		dst.EdgeLabel = ws.inducedLabels(dst.EdgeLabel, g, nodes, id, ascending)
	}
	for _, v := range nodes {
		start := offset
		for _, j := range g.Adj[g.Ptr[v]:g.Ptr[v+1]] {
			// Write always, advance if the node stays: no branch, as above.
			k := id[j]
			adj[offset] = k
			offset += int(^uint32(k) >> 31)
		}
		if !ascending {
			slices.Sort(adj[start:offset])
		}
		ptr = append(ptr, int32(offset))
	}
	dst.Ptr = ptr
	dst.Adj = adj[:offset]
	dst.EndGraph()
}

// inducedLabels appends the edge labels of the subgraph of the given nodes to
// dst, in the order in which induce lists its edges.
func (ws *Workspace) inducedLabels(
	dst []int32, g *graph.Graph, nodes, id []int32, ascending bool,
) []int32 {
	for _, v := range nodes {
		ws.row = ws.row[:0]
		for k := g.Ptr[v]; k < g.Ptr[v+1]; k++ {
			if j := id[g.Adj[k]]; j >= 0 {
				ws.row = append(ws.row, int64(j)<<32|int64(g.EdgeLabel[k]))
			}
		}
		if !ascending {
			slices.Sort(ws.row) // by source
		}
		for _, x := range ws.row {
			dst = append(dst, int32(x))
		}
	}
	return dst
}

// appendFeatures appends the features of the given nodes, or of all if nodes is
// nil, to a batch that has base nodes so far.
func appendFeatures(dst *graph.Batch, x *graph.Features, nodes []int32, base int) {
	switch {
	case x.OneHot() && dst.X.OneHot():
		if nodes == nil {
			dst.X.Category = append(dst.X.Category, x.Category...)
			return
		}
		cat := slices.Grow(dst.X.Category, len(nodes))[:base+len(nodes)]
		for k, v := range nodes {
			cat[base+k] = x.Category[v]
		}
		dst.X.Category = cat
	case nodes == nil && !x.OneHot():
		dst.Densify(base)
		dst.X.Dense = append(dst.X.Dense, x.Dense...)
	default:
		dst.Densify(base)
		n := len(nodes)
		w := x.Width
		if nodes == nil {
			n = len(x.Category)
		}
		dst.X.Dense = slices.Grow(dst.X.Dense, n*w)[:(base+n)*w]
		for k := range n {
			v := k
			if nodes != nil {
				v = int(nodes[k])
			}
			x.Row(dst.X.Dense[(base+k)*w:(base+k+1)*w], v)
		}
	}
}
