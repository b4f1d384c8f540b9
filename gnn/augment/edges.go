package augment

import (
	"math/bits"
	"math/rand/v2"

	"github.com/specmatch/specmatch/gnn/graph"
)

// EdgePerturbation removes ⌊r·E⌋ of the E edges and adds as many that the graph
// does not have; all such views are equally likely. If fewer edges than that
// are missing, it adds all of them. There are no self-loops, and removed edges do
// not come back. Where edges have categories, every added edge takes the category
// of a removed one.
//
// For an undirected graph E is the number of undirected edges, and the view is
// undirected too; for a directed graph it is the number of entries. O(n+E),
// with an expected O(log degree) per edge added.
type EdgePerturbation struct {
	// Ratio is r, in [0, 1].
	Ratio float64
}

// Name implements [Augmentation].
func (EdgePerturbation) Name() string { return string(PermE) }

// Append implements [Augmentation].
func (a EdgePerturbation) Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, ws *Workspace) {
	n := uint64(g.Nodes())
	edges := g.Entries()
	pairs := n*n - n
	if !g.Directed {
		edges /= 2
		pairs /= 2
	}
	k := Share(a.Ratio, edges)
	if k == 0 {
		dst.Append(g)
		return
	}
	drop := resize(&ws.edge, edges)
	choose(drop, k, rng)
	if !g.Directed {
		drop = ws.bothWays(g, drop)
	}
	ws.from = ws.from[:0]
	ws.to = ws.to[:0]
	add := int(min(uint64(k), pairs-uint64(edges)))
	if uint64(2*(edges+add)) <= pairs {
		ws.addByTrial(g, add, rng)
	} else { // pairs < 4·edges, so that walking them all is O(E)
		ws.addByList(g, add, int(pairs)-edges, rng)
	}
	perturb(dst, g, drop, !g.Directed, ws)
}

// bothWays turns marks of the undirected edges of a symmetric graph, numbered
// by their smaller and then their larger node, into marks of its entries.
func (ws *Workspace) bothWays(g *graph.Graph, edge []bool) []bool {
	entry := resize(&ws.drop, g.Entries())
	// next[j] is the number of the edge from j to its next larger neighbour.
	// Rows are visited in ascending order and are sorted, so that the edges of
	// j come up in order from both ends.
	next := resize(&ws.id, g.Nodes())
	number := int32(0)
	for i := range g.Nodes() {
		next[i] = number
		for k := g.Ptr[i]; k < g.Ptr[i+1]; k++ {
			if j := g.Adj[k]; int(j) < i {
				entry[k] = edge[next[j]]
				next[j]++
			} else {
				entry[k] = edge[number]
				number++
			}
		}
	}
	return entry
}

// addByTrial draws pairs of nodes until count new edges are found. At least
// half of the pairs must stay free throughout.
func (ws *Workspace) addByTrial(g *graph.Graph, count int, rng *rand.Rand) {
	// The hash set of added pairs has open addressing and is at most half full.
	size := uint(bits.Len(uint(2 * count)))
	table := resize(&ws.table, 1<<size)
	clear(table)
	n := uint32(g.Nodes())
	for count > 0 {
		i, j := rng.Uint32N(n), rng.Uint32N(n-1)
		if j >= i {
			j++ // all pairs i ≠ j are equally likely
		}
		if !g.Directed && j < i {
			i, j = j, i
		}
		if g.HasEdge(int(j), int(i)) {
			continue
		}
		key := uint64(i)<<32 | uint64(j) // not 0, as i ≠ j
		slot := key * 0x9e3779b97f4a7c15 >> (64 - size)
		for table[slot] != 0 && table[slot] != key {
			slot = (slot + 1) & (1<<size - 1)
		}
		if table[slot] == key {
			continue
		}
		table[slot] = key
		ws.add(int32(j), int32(i), !g.Directed)
		count--
	}
}

// addByList draws count of the free pairs by walking over all pairs; free is the
// number of free ones.
func (ws *Workspace) addByList(g *graph.Graph, count, free int, rng *rand.Rand) {
	mark := resize(&ws.pair, free)
	choose(mark, count, rng)
	for i := range g.Nodes() {
		row := g.Neighbors(i)
		for j := range g.Nodes() {
			switch {
			case len(row) > 0 && int(row[0]) == j:
				row = row[1:]
			case i == j, i > j && !g.Directed: // the latter is j's pair
			default:
				if mark[0] {
					ws.add(int32(j), int32(i), !g.Directed)
				}
				mark = mark[1:]
			}
		}
	}
}

// add notes the edge j→i, and its reverse if symmetric.
func (ws *Workspace) add(j, i int32, symmetric bool) {
	ws.from = append(ws.from, j)
	ws.to = append(ws.to, i)
	if symmetric {
		ws.from = append(ws.from, i)
		ws.to = append(ws.to, j)
	}
}

// labelAdded gives the edges of ws.from and ws.to the categories of marked
// entries, in order. symmetric says that every edge is marked, and added, together
// with its reverse. At least as many edges are marked as are added.
func (ws *Workspace) labelAdded(g *graph.Graph, drop []bool, symmetric bool) {
	ws.label = ws.label[:0]
	if g.EdgeLabel == nil {
		return
	}
	for i := range g.Nodes() {
		for k := g.Ptr[i]; k < g.Ptr[i+1] && len(ws.label) < len(ws.from); k++ {
			switch {
			case !drop[k] || symmetric && int(g.Adj[k]) < i:
			case symmetric:
				ws.label = append(ws.label, g.EdgeLabel[k], g.EdgeLabel[k])
			default:
				ws.label = append(ws.label, g.EdgeLabel[k])
			}
		}
	}
}

// perturb appends the graph without the marked entries and with the edges of
// ws.from and ws.to; for both see labelAdded.
func perturb(dst *graph.Batch, g *graph.Graph, drop []bool, symmetric bool, ws *Workspace) {
	dst.BeginGraph(g.X.Width)
	dst.Asymmetric = dst.Asymmetric || g.Directed
	base := int32(dst.Nodes())
	appendFeatures(dst, &g.X, nil, int(base))
	ws.labelAdded(g, drop, symmetric)
	sources, labels, end := ws.sortAdded(g.Nodes())
	offset := int32(0)
	labelled := g.EdgeLabel != nil
	add := func() { // the next of the added edges
		dst.Adj = append(dst.Adj, base+sources[offset])
		if labelled {
			dst.EdgeLabel = append(dst.EdgeLabel, labels[offset])
		}
		offset++
	}
	for i := range g.Nodes() {
		for k := g.Ptr[i]; k < g.Ptr[i+1]; k++ {
			if drop[k] {
				continue
			}
			for offset < end[i] && sources[offset] < g.Adj[k] {
				add()
			}
			dst.Adj = append(dst.Adj, base+g.Adj[k])
			if labelled {
				dst.EdgeLabel = append(dst.EdgeLabel, g.EdgeLabel[k])
			}
		}
		for offset < end[i] {
			add()
		}
		dst.Ptr = append(dst.Ptr, int32(len(dst.Adj)))
	}
	dst.EndGraph()
}

// sortAdded sorts the added edges by target and then by source, by counting:
// those with target i are sources[end[i-1]:end[i]], ascending. labels are their
// categories, if there are any.
func (ws *Workspace) sortAdded(n int) (sources, labels, end []int32) {
	m := len(ws.from)
	source := resize(&ws.byFrom, m)
	target := resize(&ws.byFromTo, m)
	label := resize(&ws.byFromLabel, len(ws.label))
	end = ws.starts(n, ws.from)
	for k, j := range ws.from {
		place := end[j]
		source[place] = j
		target[place] = ws.to[k]
		if len(label) > 0 {
			label[place] = ws.label[k]
		}
		end[j]++
	}
	sources = resize(&ws.sorted, m)
	labels = resize(&ws.sortedLabel, len(label))
	end = ws.starts(n, target)
	for k, i := range target {
		sources[end[i]] = source[k]
		if len(label) > 0 {
			labels[end[i]] = label[k]
		}
		end[i]++
	}
	return sources, labels, end
}

// starts returns where the run of each of the keys 0..n-1 starts when keys are
// sorted.
func (ws *Workspace) starts(n int, keys []int32) []int32 {
	place := resize(&ws.end, n)
	clear(place)
	for _, k := range keys {
		place[k]++
	}
	sum := int32(0)
	for k, c := range place {
		place[k] = sum
		sum += c
	}
	return place
}
