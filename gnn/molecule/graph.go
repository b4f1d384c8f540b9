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

// Graph returns the molecule as Hu et al. feed it to a network, with the categories
// [feature.Hu]. Hydrogens, charges and the like are left out. A wildcard has the atom
// category 118, which is no element's; Hu et al. refuse it. A dative bond is a single one.
//
// Stereocentres that are not tetrahedral and quadruple bonds have no category: the
// error is a [*CategoryError].
func (m *Molecule) Graph() (*graph.Graph, error) { return m.GraphOf(feature.Hu) }

// GraphOf returns the molecule as a network is to see it: atoms are nodes and bonds are pairs
// of edges, with these categories. Where there is none the error is a [*CategoryError].
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
	if i, reason := m.categories(g.X.Category, c.Atoms, atomColumns); reason != "" {
		return nil, &CategoryError{fmt.Sprintf("atom %d %s, which is no category", i, reason)}
	}
	if k, reason := m.categories(labels, c.Bonds, bondColumns); reason != "" {
		b := &m.Bonds[k]
		return nil, &CategoryError{
			fmt.Sprintf("the bond between atoms %d and %d %s, which is no category", b.Begin, b.End, reason),
		}
	}
	for i := range int32(len(m.Atoms)) {
		slices.SortFunc(n.of(i), func(x, y link) int { return int(x.atom - y.atom) })
	}
	for k, l := range n.links {
		g.Adj[k], g.EdgeLabel[k] = l.atom, labels[l.bond]
	}
	return g, nil
}

// categories sets dst to the categories of all columns together. Where there is none it
// returns the place and the reason.
func (m *Molecule) categories(
	dst []int32, columns []feature.Column, table map[string]column,
) (index int, reason string) {
	for _, c := range columns {
		rule := table[c.Name]
		for i := range dst {
			v := rule.category(m, i)
			if v < 0 || v >= c.Size {
				return i, cmp.Or(rule.beyond, fmt.Sprintf("has %d for its %s", v, c.Name))
			}
			dst[i] = dst[i]*int32(c.Size) + int32(v)
		}
	}
	return 0, ""
}

// column is what the categories of a column of atoms or bonds are.
type column struct {
	category func(m *Molecule, i int) int // of atom or bond i
	beyond   string                       // what one is that is not below the size of the column
}

var atomColumns = map[string]column{
	"element": {category: func(m *Molecule, i int) int {
		if z := int(m.Atoms[i].Z); z > 0 {
			return z - 1
		}
		return maxZ // a wildcard
	}},
	"degree": {category: func(m *Molecule, i int) int {
		return min(int(m.Atoms[i].Degree), 7)
	}},
	"charge": {category: chargeCategory},
	"hydrogens": {category: func(m *Molecule, i int) int {
		return min(int(m.Atoms[i].Hydrogens), 5)
	}},
	"aromatic":     {category: func(m *Molecule, i int) int { return yes(m.Atoms[i].Aromatic) }},
	"atom in ring": {category: func(m *Molecule, i int) int { return yes(m.Atoms[i].InRing) }},
	"hybridisation": {category: func(m *Molecule, i int) int {
		return int(m.Atoms[i].Hybridisation)
	}},
	"chirality": {category: func(m *Molecule, i int) int { return int(m.Atoms[i].Chirality) }},
	"isotope": {category: func(m *Molecule, i int) int {
		return yes(m.Atoms[i].Isotope > 0)
	}},
	"tag": {func(m *Molecule, i int) int {
		return int(m.Atoms[i].Chirality)
	}, "has a chirality other than tetrahedral"},
}

var bondColumns = map[string]column{
	"order": {func(m *Molecule, k int) int {
		switch t := m.Bonds[k].Type; t {
		case Dative, AnyOrder:
			return int(Single)
		case Quadruple:
			return feature.BondTypes
		default:
			return int(t)
		}
	}, "is quadruple"},
	"direction": {category: func(m *Molecule, k int) int { return int(m.Bonds[k].Direction) }},
	"type": {category: func(m *Molecule, k int) int {
		return int(min(m.Bonds[k].Type, Dative))
	}},
	"conjugated":   {category: func(m *Molecule, k int) int { return yes(m.Bonds[k].Conjugated) }},
	"bond in ring": {category: func(m *Molecule, k int) int { return yes(m.Bonds[k].InRing) }},
	"stereo": {category: func(m *Molecule, k int) int {
		return strings.IndexByte("\x00EZ", m.Bonds[k].CIP())
	}},
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

func chargeCategory(m *Molecule, i int) int {
	const most = 3
	if q := int(m.Atoms[i].Charge); -most <= q && q <= most {
		return q + most
	}
	return 2*most + 1
}
