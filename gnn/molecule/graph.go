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
// direction. Hydrogens, charges and the like are left out. A wildcard has the atom
// category 118, which is no element's; Hu et al. refuse it. A dative bond is a single one.
//
// Stereocentres that are not tetrahedral and quadruple bonds have no category: the
// error is a [*CategoryError].
func (m *Molecule) Graph() (*graph.Graph, error) {
	var n adjacency
	n.reset(m)
	g := &graph.Graph{
		Ptr: n.ptr,
		X:   graph.Features{Width: graph.AtomTypes * graph.ChiralityTags, Category: make([]int32, len(m.Atoms))},
		Adj: make([]int32, len(n.links)), EdgeLabel: make([]int32, len(n.links)),
	}
	for i := range m.Atoms {
		a := &m.Atoms[i]
		if a.Chirality > CounterClockwise {
			return nil, &CategoryError{fmt.Sprintf("atom %d has a chirality other than tetrahedral, which is no category", i)}
		}
		atom := int32(a.Z) - 1
		if a.Z == 0 {
			atom = maxZ
		}
		g.X.Category[i] = atom*graph.ChiralityTags + int32(a.Chirality)
	}
	for k := range m.Bonds {
		b := &m.Bonds[k]
		if b.Type == Quadruple {
			return nil, &CategoryError{fmt.Sprintf("the bond between atoms %d and %d is quadruple, which is no category", b.Begin, b.End)}
		}
	}
	for i := range int32(len(m.Atoms)) {
		slices.SortFunc(n.of(i), func(x, y link) int { return int(x.atom - y.atom) })
	}
	for k, l := range n.links {
		b := &m.Bonds[l.bond]
		typ := b.Type
		if typ == Dative {
			typ = Single
		}
		g.Adj[k], g.EdgeLabel[k] = l.atom, int32(typ)*graph.BondDirections+int32(b.Direction)
	}
	return g, nil
}
