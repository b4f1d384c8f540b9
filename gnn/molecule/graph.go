package molecule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// CategoryError reports an atom or a bond for which the network has no category.
type CategoryError struct{ Reason string }

func (e *CategoryError) Error() string { return "molecule: " + e.Reason }

// Graph returns the molecule as Hu et al. feed it to a network, with the features
// [feature.Hu]. It drops hydrogens, charges and the like. A wildcard has the atom
// category 118, which is no element's; Hu et al. refuse it. Dative bonds and bonds
// of any order are single bonds.
//
// Stereocentres that are not tetrahedral and quadruple bonds have no category. The
// error is then a [*CategoryError].
func (m *Molecule) Graph() (*graph.Graph, error) { return m.GraphOf(feature.Hu) }

// GraphOf returns the molecule as a graph with these features: atoms are nodes, and bonds are pairs
// of edges. An atom or bond without a category is a [*CategoryError].
func (m *Molecule) GraphOf(c *feature.Set) (*graph.Graph, error) {
	var n adjacency
	n.reset(m)
	g := &graph.Graph{
		Ptr:       n.ptr,
		X:         graph.Features{Width: c.NodeWidth(), Category: make([]int32, len(m.Atoms))},
		Adj:       make([]int32, len(n.links)),
		EdgeLabel: make([]int32, len(n.links)),
	}
	labels := make([]int32, len(m.Bonds))
	if i, reason := categories(g.X.Category, m.Atoms, c.Atoms, atomColumns); reason != "" {
		return nil, &CategoryError{fmt.Sprintf("atom %d %s, which is no category", i, reason)}
	}
	if k, reason := categories(labels, m.Bonds, c.Bonds, bondColumns); reason != "" {
		b := &m.Bonds[k]
		return nil, &CategoryError{
			fmt.Sprintf("the bond between atoms %d and %d %s, which is no category",
				b.Begin, b.End, reason),
		}
	}
	for i := range int32(len(m.Atoms)) {
		slices.SortFunc(n.of(i), func(x, y link) int { return int(x.atom - y.atom) })
	}
	for k, l := range n.links {
		g.Adj[k] = l.atom
		g.EdgeLabel[k] = labels[l.bond]
	}
	return g, nil
}

// categories sets dst to the combined categories of all columns, for all atoms or all bonds. If one
// has no category, it returns its index and the reason.
func categories[T Atom | Bond](
	dst []int32, things []T, columns []feature.Column, table map[string]column[T],
) (index int, reason string) {
	for _, c := range columns {
		rule := table[c.Name]
		for i := range dst {
			v := rule.category(&things[i])
			if v < 0 || v >= c.Size {
				return i, cmp.Or(rule.beyond, fmt.Sprintf("has %d for its %s", v, c.Name))
			}
			dst[i] = dst[i]*int32(c.Size) + int32(v)
		}
	}
	return 0, ""
}

// column defines the categories of a column of atoms or bonds.
type column[T Atom | Bond] struct {
	category func(thing *T) int
	beyond   string // describes a category beyond the size of the column
}

var atomColumns = map[string]column[Atom]{
	"element": {category: func(a *Atom) int {
		if a.Z > 0 {
			return int(a.Z) - 1
		}
		return maxZ // a wildcard
	}},
	"degree":        {category: func(a *Atom) int { return min(int(a.Degree), 7) }},
	"charge":        {category: chargeCategory},
	"hydrogens":     {category: func(a *Atom) int { return min(int(a.Hydrogens), 5) }},
	"aromatic":      {category: func(a *Atom) int { return yes(a.Aromatic) }},
	"atom in ring":  {category: func(a *Atom) int { return yes(a.InRing) }},
	"hybridisation": {category: func(a *Atom) int { return int(a.Hybridisation) }},
	"chirality":     {category: func(a *Atom) int { return int(a.turn) }},
	"isotope":       {category: func(a *Atom) int { return yes(a.Isotope > 0) }},
	"tag": {
		category: func(a *Atom) int { return int(a.Chirality) },
		beyond:   "has a chirality other than tetrahedral",
	},
}

var bondColumns = map[string]column[Bond]{
	"order":        {category: orderCategory, beyond: "is quadruple"},
	"direction":    {category: func(b *Bond) int { return int(b.Direction) }},
	"type":         {category: func(b *Bond) int { return int(min(b.Type, Dative)) }},
	"conjugated":   {category: func(b *Bond) int { return yes(b.Conjugated) }},
	"bond in ring": {category: func(b *Bond) int { return yes(b.InRing) }},
	"stereo": {category: func(b *Bond) int {
		return strings.IndexByte("\x00EZ", b.CIP())
	}},
}

func orderCategory(b *Bond) int {
	switch b.Type {
	case Dative, AnyOrder:
		return int(Single)
	case Quadruple:
		return feature.BondTypes
	}
	return int(b.Type)
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

func chargeCategory(a *Atom) int {
	const largest = 3
	if q := int(a.Charge); -largest <= q && q <= largest {
		return q + largest
	}
	return 2*largest + 1
}
