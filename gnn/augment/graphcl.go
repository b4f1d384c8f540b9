package augment

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
)

// Op names one of GraphCL's augmentations, as in its command lines.
type Op string

// The augmentations by name.
const (
	None  Op = "none"
	DropN Op = "dropN"
	PermE Op = "permE"
	MaskN Op = "maskN"
	Sub   Op = "subgraph"
)

// GraphCLUnsupervised is an augmentation as the code for GraphCL's unsupervised
// results performs it (folder unsupervised_TU, at commit b4d7501), which differs
// from the description in its paper. Let n be the number of nodes and m the number
// of entries, counting the self-loops of [Identity].SelfLoops, which its loader adds
// to every graph.
//
//   - dropN: all entries of ⌊r·n⌋ random nodes are removed; r = 0.1.
//   - permE: ⌊r·m⌋ random entries are removed, each direction of an edge and each
//     self-loop on its own, and none are added; r = 0.1. The view is asymmetric.
//   - subgraph: a random seed and up to ⌊r·n⌋ of its neighbours stay; r = 0.2.
//     The candidates are the seed's neighbours and, if it has a self-loop, the
//     seed; one is drawn at a time, n times at most, and skipped if it was
//     drawn before. Since the set of candidates never grows, the view is a star
//     of about three nodes, together with the edges between them.
//   - maskN: as [AttributeMasking]; r = 0.1.
//   - none: nothing.
//
// For a directed graph the neighbours are the sources of a node's entries.
// GraphCL fails where nothing remains of a graph. Here, the seed then stays, or else the
// first node that was not dropped.
type GraphCLUnsupervised struct {
	Op Op
	// Ratio is r, in [0, 1].
	Ratio float64
	// Strip runs the post-processing of GraphCL's training loop: nodes without
	// an entry, a self-loop included, are deleted; then the self-loops are. So
	// an isolated node survives if it had a self-loop, and the last node of the
	// graph never has one. The loop does so for dropN, subgraph and the random
	// policies, but not for permE and maskN by themselves. Without it, dropped
	// nodes remain as isolated nodes and self-loops stay.
	Strip bool
}

// Name implements [Augmentation].
func (a GraphCLUnsupervised) Name() string { return string(a.Op) }

// Append implements [Augmentation]. It panics if Op is unknown.
func (a GraphCLUnsupervised) Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, ws *Workspace) {
	n := g.Nodes()
	m := g.Entries()
	// Entry k of g.Adj has mark k, the self-loop of node i mark m+i.
	loops := loopNodes(g)
	drop := resize(&ws.drop, m+loops)
	clear(drop)
	var masked []bool
	keeper := 0 // the node that stays if nothing else does
	switch a.Op {
	case None:
	case DropN:
		keep, _ := ws.chooseNodes(a.Ratio, n, rng)
		for i, gone := range keep {
			keep[i] = !gone
		}
		keeper = max(slices.Index(keep, true), 0)
		dropOutside(g, keep, drop)
	case PermE:
		choose(drop, Share(a.Ratio, m+loops), rng)
	case Sub:
		if n > 0 {
			keeper = int(ws.star(g, Share(a.Ratio, n)+1, loops, rng)[0])
			dropOutside(g, ws.node, drop)
		}
	case MaskN:
		masked, _ = ws.chooseNodes(a.Ratio, n, rng)
	default:
		panic(fmt.Sprintf("augment: GraphCLUnsupervised has no augmentation %q", a.Op))
	}
	ws.appendEntries(dst, g, drop, a.Strip, keeper)
	if a.Op == PermE && slices.Contains(drop[:m], true) {
		dst.Asymmetric = true
	}
	for i, yes := range masked {
		if yes && ws.id[i] >= 0 {
			noise(dst, int(ws.id[i]), rng)
		}
	}
}

// loopNodes returns how many nodes get a self-loop: those before the last one
// that has an edge.
func loopNodes(g *graph.Graph) int {
	end := 0
	for i := range g.Nodes() {
		if row := g.Neighbors(i); len(row) > 0 {
			end = max(end, i, int(row[len(row)-1]))
		}
	}
	return end
}

// dropOutside marks the entries that have an end outside of keep.
func dropOutside(g *graph.Graph, keep, drop []bool) {
	for i := range g.Nodes() {
		for k := g.Ptr[i]; k < g.Ptr[i+1]; k++ {
			drop[k] = !keep[i] || !keep[g.Adj[k]]
		}
	}
	for i := range drop[len(g.Adj):] {
		drop[len(g.Adj)+i] = !keep[i]
	}
}

// star draws a seed and, from its neighbours, up to size-1 other nodes. It
// returns them in the order drawn and marks them in ws.node. Nodes below loops
// are their own neighbours.
func (ws *Workspace) star(g *graph.Graph, size, loops int, rng *rand.Rand) []int32 {
	n := g.Nodes()
	keep := resize(&ws.node, n)
	clear(keep)
	seed := int32(rng.Uint32N(uint32(n)))
	keep[seed] = true
	nodes := append(ws.list[:0], seed)
	row := g.Neighbors(int(seed))
	candidates := len(row)
	if int(seed) < loops {
		candidates++
	}
	for range n {
		if len(nodes) == size || candidates == 0 {
			break
		}
		v := seed
		if k := int(rng.Uint32N(uint32(candidates))); k < len(row) {
			v = row[k]
		}
		if !keep[v] {
			keep[v] = true
			nodes = append(nodes, v)
		}
	}
	ws.list = nodes
	return nodes
}

// appendEntries appends the graph with self-loops less the marked entries. With
// strip, nodes without an entry are deleted first and self-loops afterwards;
// keeper stays if nothing else does. ws.id then says where every node went.
func (ws *Workspace) appendEntries(
	dst *graph.Batch, g *graph.Graph, drop []bool, strip bool, keeper int,
) {
	n := g.Nodes()
	m := g.Entries()
	loop := drop[m:]
	// A node stays if it has an entry or a self-loop.
	stays := resize(&ws.seen, n)
	for i := range stays {
		stays[i] = !strip || i < len(loop) && !loop[i]
	}
	for i := range n {
		for k := g.Ptr[i]; k < g.Ptr[i+1]; k++ {
			if !drop[k] {
				stays[i] = true
				stays[g.Adj[k]] = true
			}
		}
	}
	if n > 0 && !slices.Contains(stays, true) {
		stays[keeper] = true
	}

	// The remaining nodes, row by row, with the self-loop at its place.
	dst.BeginGraph(g.X.Width)
	dst.Asymmetric = dst.Asymmetric || g.Directed
	base := dst.Nodes()
	nodes := ws.marked(stays)
	id := ws.number(n, nodes, int32(base))
	appendFeatures(dst, &g.X, nodes, base)
	labelled := g.EdgeLabel != nil
	for _, i := range nodes {
		self := !strip && int(i) < len(loop) && !loop[i]
		for k := g.Ptr[i]; k <= g.Ptr[i+1]; k++ {
			end := k == g.Ptr[i+1]
			if self && (end || g.Adj[k] > i) {
				self = false
				dst.Adj = append(dst.Adj, id[i])
				if labelled {
					dst.EdgeLabel = append(dst.EdgeLabel, -1)
				}
			}
			if !end && !drop[k] {
				dst.Adj = append(dst.Adj, id[g.Adj[k]])
				if labelled {
					dst.EdgeLabel = append(dst.EdgeLabel, g.EdgeLabel[k])
				}
			}
		}
		dst.Ptr = append(dst.Ptr, int32(len(dst.Adj)))
	}
	dst.EndGraph()
}

// GraphCLSemi is an augmentation as the code for GraphCL's semi-supervised
// results performs it (folder semisupervised_TU, at commit b4d7501); r = 0.2.
// Let n be the number of nodes and m the number of entries.
//
//   - dropN: as [NodeDropping].
//   - permE: ⌊r·m⌋ random entries are removed, each direction of an edge on its own,
//     and ⌊r·m⌋ random pairs of nodes are added, in one direction, whether or not
//     the edge exists. The view is asymmetric and may list an edge twice, which
//     then counts twice.
//   - subgraph: the star of [GraphCLUnsupervised] without self-loops, in the
//     order drawn.
//   - maskN: the features of ⌊r·n⌋ random nodes become the mean over all nodes
//     of the graph.
//   - none: nothing.
//
// Self-loops that this code makes are dropped, because the GCN that follows
// removes the self-loops of its input. The means that maskN writes stay in the view
// here. GraphCL's code writes those of the first view into the data set itself, so
// that more and more nodes are masked for good.
type GraphCLSemi struct {
	Op Op
	// Ratio is r, in [0, 1].
	Ratio float64
}

// Name implements [Augmentation].
func (a GraphCLSemi) Name() string { return string(a.Op) }

// Append implements [Augmentation]. It panics if Op is unknown.
func (a GraphCLSemi) Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, ws *Workspace) {
	n := g.Nodes()
	m := g.Entries()
	if n == 0 {
		dst.Append(g)
		return
	}
	switch a.Op {
	case None:
		dst.Append(g)
	case DropN:
		NodeDropping{a.Ratio}.Append(dst, g, rng, ws)
	case PermE:
		k := Share(a.Ratio, m)
		drop := resize(&ws.drop, m)
		choose(drop, k, rng)
		ws.from = ws.from[:0]
		ws.to = ws.to[:0]
		for range k {
			j := rng.Uint32N(uint32(n))
			i := rng.Uint32N(uint32(n))
			if i != j {
				ws.add(int32(j), int32(i), false)
			}
		}
		perturb(dst, g, drop, false, ws)
		if k > 0 {
			dst.Asymmetric = true
			dst.Multigraph = true
		}
	case Sub:
		induce(dst, g, ws.star(g, Share(a.Ratio, n)+1, 0, rng), false, ws)
	case MaskN:
		base := dst.Nodes()
		dst.Append(g)
		if mark, k := ws.chooseNodes(a.Ratio, n, rng); k > 0 {
			dst.Densify(dst.Nodes())
			w := dst.X.Width
			ws.maskByMean(dst.X.Dense[base*w:], w, mark)
		}
	default:
		panic(fmt.Sprintf("augment: GraphCLSemi has no augmentation %q", a.Op))
	}
}

// maskByMean replaces the marked rows of x by the mean of all rows.
func (ws *Workspace) maskByMean(x []float32, width int, mark []bool) {
	mean := resize(&ws.mean, width)
	clear(mean)
	for i := range mark {
		for c, v := range x[i*width : (i+1)*width] {
			mean[c] += float64(v)
		}
	}
	for i, yes := range mark {
		if yes {
			for c, v := range mean {
				x[i*width+c] = float32(v / float64(len(mark)))
			}
		}
	}
}
