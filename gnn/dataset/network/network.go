// Package network reads large graphs, such as the protein interactions of a species,
// and cuts ego networks out of them, the samples to learn from.
package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Network is one large undirected graph, such as the protein interactions of a
// species, whose ego networks ([Network.Ego]) are the samples to learn from.
type Network struct {
	Name string
	// Ptr and Adj are the adjacency, as in [graph.Graph].
	Ptr, Adj []int32
	// Channels names the kinds of evidence for edges, in the order of the bits of
	// EdgeBits; there are at most [MaxChannels].
	Channels []string
	// EdgeBits has bit k set, for every entry of Adj, if channel k has evidence for it.
	EdgeBits []int32
	// Tasks names the columns of Labels; there may be none.
	Tasks []string
	// Labels [nodes×tasks] are 1 for yes, -1 for no, and 0 for unknown.
	Labels []int8
	// SelfLoops and Duplicates count the lines that loading dropped.
	SelfLoops, Duplicates int
}

// MaxChannels is how many channels edges can have, as in the data of Hu et al.
// (2020).
const MaxChannels = 7

// maxNodes bounds the node numbers of a network, so that one wrong line
// does not ask for all of the memory.
const maxNodes = 1 << 24

// Nodes returns the number of nodes.
func (n *Network) Nodes() int { return len(n.Ptr) - 1 }

// Open reads NAME_edges.csv and, if it is there, NAME_labels.csv from dir;
// either may be compressed and end in .csv.gz (NAME_edges.csv comes first).
//
// The table of edges lists each undirected edge once. It has the columns u and v, node
// numbers from 0, and one column for each channel, with 0 or 1. A column "score" is
// skipped. The table of labels has the column node and one for each task, with 1, 0 for
// no, or nothing for unknown; nodes that are not listed have no labels. Self-loops are
// dropped, and an edge that is listed again adds its channels.
//
// Errors about the contents are of type *[dataset.SyntaxError].
func Open(ctx context.Context, dir, name string) (*Network, error) {
	paths, err := Files(dir, name)
	if err != nil {
		return nil, err
	}
	n := &Network{Name: name}
	if err := n.readEdges(ctx, paths[0]); err != nil {
		return nil, err
	}
	if len(paths) > 1 {
		err = n.readLabels(ctx, paths[1])
	}
	return n, err
}

// Files returns the files that [Open] reads: that of the edges and, if there is one,
// that of the labels.
func Files(dir, name string) ([]string, error) {
	if err := dataset.CheckName(name); err != nil {
		return nil, err
	}
	edges, err := textfile.Find(dir, name+"_edges.csv", name+"_edges.csv.gz")
	if err != nil {
		return nil, err
	}
	labels, err := textfile.Find(dir, name+"_labels.csv", name+"_labels.csv.gz")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []string{edges}, nil
	case err != nil:
		return nil, err
	}
	return []string{edges, labels}, nil
}

// node parses a node number.
func node(c *textfile.Rows, field int) (int32, error) {
	v, err := strconv.ParseInt(c.Row[field], 10, 32)
	if err != nil || v < 0 || v >= maxNodes {
		return 0, c.Bad(field, fmt.Sprintf("want a node, 0 to %d", maxNodes-1))
	}
	return int32(v), nil
}

// edge is an edge of a network with the bits of its channels.
type edge struct{ i, j, bits int32 }

// readEdges reads the table of edges.
func (n *Network) readEdges(ctx context.Context, path string) error {
	var (
		edges   []edge
		nodes   int32
		channel []int // of every column after the second, or -1
	)
	header := func(c *textfile.Rows) error {
		if err := cmp.Or(c.Begins("u", "v"), c.Distinct()); err != nil {
			return err
		}
		for _, name := range c.Header[2:] {
			if name == "score" {
				channel = append(channel, -1)
				continue
			}
			if len(n.Channels) == MaxChannels {
				return c.BadHeader(name, fmt.Sprintf("more than %d channels", MaxChannels))
			}
			channel = append(channel, len(n.Channels))
			n.Channels = append(n.Channels, name)
		}
		return nil
	}
	err := textfile.ReadRows(ctx, path, nil, header, func(c *textfile.Rows) (err error) {
		e := edge{}
		e.i, err = node(c, 0)
		if err != nil {
			return err
		}
		e.j, err = node(c, 1)
		if err != nil {
			return err
		}
		for k, ch := range channel {
			switch {
			case ch < 0 || c.Row[2+k] == "0":
			case c.Row[2+k] == "1":
				e.bits |= 1 << ch
			default:
				return c.Bad(2+k, "want 0 or 1")
			}
		}
		nodes = max(nodes, e.i+1, e.j+1)
		if e.i == e.j {
			n.SelfLoops++
		} else {
			edges = append(edges, e, edge{e.j, e.i, e.bits})
		}
		return nil
	})
	if err == nil {
		n.link(edges, int(nodes))
	}
	return err
}

// link makes the adjacency of the edges, which are listed in both directions.
func (n *Network) link(edges []edge, nodes int) {
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.i, b.i), cmp.Compare(a.j, b.j))
	})
	n.Ptr = make([]int32, nodes+1)
	previous := edge{i: -1}
	for _, e := range edges {
		if e.i == previous.i && e.j == previous.j {
			n.EdgeBits[len(n.EdgeBits)-1] |= e.bits
			if e.i < e.j {
				n.Duplicates++
			}
			continue
		}
		n.Adj = append(n.Adj, e.j)
		n.EdgeBits = append(n.EdgeBits, e.bits)
		n.Ptr[e.i+1]++
		previous = e
	}
	for i := range nodes {
		n.Ptr[i+1] += n.Ptr[i]
	}
}

// readLabels reads the table of labels.
func (n *Network) readLabels(ctx context.Context, path string) error {
	labeled := make([]bool, n.Nodes())
	header := func(c *textfile.Rows) error {
		n.Tasks = c.Header[1:]
		n.Labels = make([]int8, n.Nodes()*len(n.Tasks))
		return cmp.Or(c.Begins("node"), c.Distinct())
	}
	return textfile.ReadRows(ctx, path, nil, header, func(c *textfile.Rows) error {
		i, err := node(c, 0)
		switch {
		case err != nil:
			return err
		case int(i) >= n.Nodes():
			return c.Bad(0, fmt.Sprintf("the edges have the nodes 0 to %d only", n.Nodes()-1))
		case labeled[i]:
			return c.Bad(0, "a node that was listed before")
		}
		labeled[i] = true
		for k := range n.Tasks {
			l, ok := labels[c.Row[1+k]]
			if !ok {
				return c.Bad(1+k, "want 1, 0 or nothing")
			}
			n.Labels[int(i)*len(n.Tasks)+k] = l
		}
		return nil
	})
}

// labels maps the texts of a table to labels.
var labels = map[string]int8{"1": 1, "0": -1, "": 0}

// EgoConfig says how much of the surroundings of a node its ego network holds.
type EgoConfig struct {
	// Radius is the largest distance from the centre; 0 means 2.
	Radius int
	// MaxNodes bounds the nodes, the centre included; 0 means 40, about the mean
	// size of the ego networks of Hu et al. (2020).
	MaxNodes int
}

// Ego returns the subgraph that the nodes around a center induce. The center comes first,
// then the nearest nodes. At the distance at which MaxNodes is reached, nodes are drawn at
// random; the draw depends on the seed and the center only. Edges keep their bits as
// labels, and every node has the second of two categories, as in the data of Hu et al.
func (n *Network) Ego(center int, c EgoConfig, seed uint64) *graph.Graph {
	c.Radius = cmp.Or(c.Radius, 2)
	c.MaxNodes = cmp.Or(c.MaxNodes, 40)
	rng := rand.New(rand.NewPCG(seed, uint64(center)))
	place := map[int32]int32{int32(center): 0}
	nodes := []int32{int32(center)}
	// Layer by layer, up to MaxNodes.
	layer := nodes
	for distance := 1; distance <= c.Radius && len(nodes) < c.MaxNodes && len(layer) > 0; distance++ {
		var next []int32
		for _, i := range layer {
			for _, j := range n.Adj[n.Ptr[i]:n.Ptr[i+1]] {
				if _, ok := place[j]; !ok {
					place[j] = -1
					next = append(next, j)
				}
			}
		}
		rng.Shuffle(len(next), func(a, b int) { next[a], next[b] = next[b], next[a] })
		sampled := min(len(next), c.MaxNodes-len(nodes))
		for _, j := range next[sampled:] {
			delete(place, j)
		}
		layer = next[:sampled]
		for _, j := range layer {
			place[j] = int32(len(nodes))
			nodes = append(nodes, j)
		}
	}
	// The induced subgraph.
	g := &graph.Graph{Ptr: make([]int32, 1, len(nodes)+1)}
	type entry struct{ place, bits int32 }
	var row []entry
	for _, i := range nodes {
		row = row[:0]
		for e := n.Ptr[i]; e < n.Ptr[i+1]; e++ {
			if p, ok := place[n.Adj[e]]; ok {
				row = append(row, entry{p, n.EdgeBits[e]})
			}
		}
		slices.SortFunc(row, func(a, b entry) int {
			return cmp.Compare(a.place, b.place)
		})
		for _, e := range row {
			g.Adj = append(g.Adj, e.place)
			g.EdgeLabel = append(g.EdgeLabel, e.bits)
		}
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
	}
	g.X = graph.Features{Width: 2, Category: make([]int32, len(nodes))}
	for i := range g.X.Category {
		g.X.Category[i] = 1
	}
	return g
}

// EgoNetworks returns [Network.Ego] of every node.
func (n *Network) EgoNetworks(c EgoConfig, seed uint64) []*graph.Graph {
	out := make([]*graph.Graph, n.Nodes())
	for i := range out {
		out[i] = n.Ego(i, c, seed)
	}
	return out
}
