package graph

import (
	"fmt"
	"math"
	"slices"
)

// FromEdges returns the undirected graph of n nodes, numbered from 0. Each edge is a pair of
// nodes. As in the graphs of package dataset, self-loops are dropped, and an edge that is listed
// twice, in either direction, counts once. x has the features of the nodes; the zero Features
// stand for the constant 1. Invalid numbers or features are an error.
func FromEdges(n int, edges [][2]int, x Features) (*Graph, error) {
	return fromEdges(n, edges, x, false)
}

// FromDirectedEdges is [FromEdges] for edges source → target, which keep their direction.
func FromDirectedEdges(n int, edges [][2]int, x Features) (*Graph, error) {
	return fromEdges(n, edges, x, true)
}

func fromEdges(n int, edges [][2]int, x Features, directed bool) (*Graph, error) {
	if n < 0 || n >= math.MaxInt32 || len(edges) > math.MaxInt32/2 {
		return nil, fmt.Errorf("graph: %d nodes and %d edges; want 0 to %d and at most %d",
			n, len(edges), math.MaxInt32-1, math.MaxInt32/2)
	}
	if x.Width == 0 && x.Category == nil && x.Dense == nil {
		x = Features{Width: 1, Category: make([]int32, n)}
	}
	if err := x.validate(n); err != nil {
		return nil, err
	}
	// With the target in the upper half, keys sort into rows.
	keys := make([]uint64, 0, 2*len(edges))
	for k, e := range edges {
		for _, i := range e {
			if i < 0 || i >= n {
				return nil, fmt.Errorf("graph: edge %d, %d→%d: node %d is outside 0..%d",
					k, e[0], e[1], i, n-1)
			}
		}
		if e[0] == e[1] {
			continue
		}
		keys = append(keys, uint64(e[1])<<32|uint64(e[0]))
		if !directed {
			keys = append(keys, uint64(e[0])<<32|uint64(e[1]))
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	g := &Graph{Ptr: make([]int32, n+1), Adj: make([]int32, len(keys)), X: x}
	for p, key := range keys {
		g.Ptr[key>>32+1]++
		g.Adj[p] = int32(uint32(key))
	}
	for i := range n {
		g.Ptr[i+1] += g.Ptr[i]
	}
	g.Directed = directed && !g.Symmetric()
	return g, nil
}
