package molecule

import (
	"fmt"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
)

// CategoryError reports an atom or a bond for which the network has no category.
type CategoryError struct{ Reason string }

func (e *CategoryError) Error() string { return "molecule: " + e.Reason }

// Graph returns the molecule as Hu et al. feed it to a network: atoms are nodes
// with the category (Z-1)·[graph.ChiralityTags] + tag, of AtomTypes·ChiralityTags in
// all, and bonds are a pair of edges with the label type·[graph.BondDirections] +
// direction. Hydrogens, charges and the like are left out.
//
// Wildcard atoms, stereocentres that are not tetrahedral and quadruple bonds
// have no category: the error is a [*CategoryError].
func (m *Molecule) Graph() (*graph.Graph, error) {
	n := len(m.Atoms)
	g := &graph.Graph{
		Ptr: make([]int32, n+2),
		X:   graph.Features{Width: graph.AtomTypes * graph.ChiralityTags, Category: make([]int32, n)},
	}
	for i := range m.Atoms {
		a := &m.Atoms[i]
		if a.Z == 0 {
			return nil, &CategoryError{fmt.Sprintf("atom %d is a wildcard, which is no category", i)}
		}
		if a.Chirality > CounterClockwise {
			return nil, &CategoryError{fmt.Sprintf("atom %d has a chirality other than tetrahedral, which is no category", i)}
		}
		g.X.Category[i] = (int32(a.Z)-1)*graph.ChiralityTags + int32(a.Chirality)
	}
	for k := range m.Bonds {
		b := &m.Bonds[k]
		if b.Type > Aromatic {
			return nil, &CategoryError{fmt.Sprintf("the bond between atoms %d and %d is quadruple, which is no category", b.Begin, b.End)}
		}
		g.Ptr[b.Begin+2]++
		g.Ptr[b.End+2]++
	}
	for i := 2; i < len(g.Ptr); i++ {
		g.Ptr[i] += g.Ptr[i-1]
	}
	// A row's entries as source·64 + label, which sort by source.
	entries := make([]int32, 2*len(m.Bonds))
	put := func(at, source, label int32) {
		entries[g.Ptr[at+1]] = source<<6 | label
		g.Ptr[at+1]++
	}
	for k := range m.Bonds {
		b := &m.Bonds[k]
		label := int32(b.Type)*graph.BondDirections + int32(b.Direction)
		put(b.Begin, b.End, label)
		put(b.End, b.Begin, label)
	}
	g.Ptr = g.Ptr[:n+1]
	g.Adj, g.EdgeLabel = make([]int32, len(entries)), make([]int32, len(entries))
	for i := range n {
		slices.Sort(entries[g.Ptr[i]:g.Ptr[i+1]])
	}
	for k, e := range entries {
		g.Adj[k], g.EdgeLabel[k] = e>>6, e&63
	}
	return g, nil
}
