package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/specmatch/specmatch/gnn/graph"
)

// graphCodes are undirected graphs of one-hot nodes and labelled edges, encoded
// one after another in about 90 bytes for a molecule. A graph is its number of
// nodes and then, for every node, its category, the number of its neighbours
// among the nodes before and, for each of them, the distance in node numbers
// less 1 and the edge's label.
type graphCodes struct {
	Graphs, Nodes, Entries int
	Width                  int // of the features
	code                   []byte
}

// appendGraph appends the code of a graph.
func appendGraph(code []byte, g *graph.Graph) []byte {
	code = binary.AppendUvarint(code, uint64(g.Nodes()))
	for i := range g.Nodes() {
		row := g.Neighbors(i)
		before := 0
		for before < len(row) && int(row[before]) < i {
			before++
		}
		code = binary.AppendUvarint(code, uint64(g.X.Category[i]))
		code = binary.AppendUvarint(code, uint64(before))
		for k, j := range row[:before] {
			code = binary.AppendUvarint(code, uint64(i)-uint64(j)-1)
			code = binary.AppendUvarint(code, uint64(g.EdgeLabel[int(g.Ptr[i])+k]))
		}
	}
	return code
}

var errCode = errors.New("the encoded graphs are damaged")

// decode returns the graphs, whose slices are parts of common arrays.
func (c *graphCodes) decode() ([]*graph.Graph, error) {
	bad := func(what string) error { return fmt.Errorf("dataset: %w: %s", errCode, what) }
	// No graph takes less than a byte for a node and two for an entry, so that
	// the sizes cannot ask for more memory than the code justifies.
	if c.Graphs < 0 || c.Nodes < 0 || c.Entries < 0 || c.Graphs > len(c.code) || c.Nodes > len(c.code) || c.Entries > len(c.code) {
		return nil, bad("impossible sizes")
	}
	var (
		graphs   = make([]graph.Graph, c.Graphs)
		out      = make([]*graph.Graph, c.Graphs)
		ptr      = make([]int32, c.Nodes+c.Graphs)
		category = make([]int32, c.Nodes)
		adj      = make([]int32, c.Entries)
		label    = make([]int32, c.Entries)
		code     = c.code
		next     []int32 // of every node: where its next entry goes
	)
	number := func() int {
		v, n := binary.Uvarint(code)
		if n <= 0 || v > 1<<31-1 {
			code = nil
			return -1
		}
		code = code[n:]
		return int(v)
	}
	for k := range graphs {
		n := number()
		if n < 0 || n > len(category) {
			return nil, bad(fmt.Sprintf("graph %d", k))
		}
		g := &graphs[k]
		out[k] = g
		g.Ptr, ptr = ptr[:n+1:n+1], ptr[n+1:]
		g.X.Width = c.Width
		g.X.Category, category = category[:n:n], category[n:]
		body := code
		for pass := range 2 { // first the degrees, then the entries
			code = body
			for i := range n {
				cat, before := number(), number()
				if cat < 0 || cat >= c.Width || before < 0 || before > i {
					return nil, bad(fmt.Sprintf("node %d of graph %d", i, k))
				}
				g.X.Category[i] = int32(cat)
				for last := -1; before > 0; before-- {
					j, l := i-1-number(), number()
					if j <= last || j >= i || l < 0 {
						return nil, bad(fmt.Sprintf("an edge of node %d of graph %d", i, k))
					}
					last = j
					if pass == 0 {
						g.Ptr[i+1]++
						g.Ptr[j+1]++
						continue
					}
					// Neighbours before i come first, in order; i itself comes
					// behind what node j has.
					g.Adj[next[i]], g.EdgeLabel[next[i]] = int32(j), int32(l)
					g.Adj[next[j]], g.EdgeLabel[next[j]] = int32(i), int32(l)
					next[i]++
					next[j]++
				}
			}
			if pass == 0 {
				for i := range n {
					g.Ptr[i+1] += g.Ptr[i]
				}
				e := int(g.Ptr[n])
				if e > len(adj) {
					return nil, bad(fmt.Sprintf("graph %d", k))
				}
				g.Adj, adj = adj[:e:e], adj[e:]
				g.EdgeLabel, label = label[:e:e], label[e:]
				next = append(next[:0], g.Ptr[:n]...)
			}
		}
	}
	if len(code) > 0 || len(adj) > 0 || len(category) > 0 {
		return nil, bad("there is more than the sizes say")
	}
	return out, nil
}
