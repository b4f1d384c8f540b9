package graph

import (
	"fmt"
	"strings"
)

// The categories of molecules of Hu et al. (2020), which package molecule makes and
// the encoder gnn.ChemGIN takes: a node has the category
// atom·ChiralityTags + tag with atom the atomic number less 1, an edge the label
// type·BondDirections + direction with types single, double, triple and aromatic.
const (
	AtomTypes      = 120 // 0 to 117; 118 is a wildcard, 119 a masked atom
	ChiralityTags  = 3   // none, clockwise, counter-clockwise
	BondTypes      = 6   // 0 to 3; 4 is a self-loop, 5 a masked bond
	BondDirections = 3   // none, up, down
)

// Categories are what an encoder sees of a molecule: columns of categories for every atom and
// every bond. The category of a node, and the label of an edge, has one digit for each column,
// the first being the most significant; see [EdgeColumns]. Package molecule says what a
// category is.
type Categories struct {
	Name         string
	Atoms, Bonds []CategoryColumn
}

// CategoryColumn is a property of atoms or bonds.
type CategoryColumn struct {
	Name string
	Size int // the number of categories
	Loop int // of bonds: that of the self-loop that a layer adds to an atom
}

// Hu are the categories of Hu et al.
var Hu = &Categories{
	Name:  "hu",
	Atoms: []CategoryColumn{{Name: "element", Size: AtomTypes}, {Name: "tag", Size: ChiralityTags}},
	Bonds: []CategoryColumn{{Name: "order", Size: BondTypes, Loop: 4}, {Name: "direction", Size: BondDirections}},
}

// Rich are categories of more properties, which tell charges, hydrogens, radicals and isotopes.
// What lies beyond the range of a column is a category of its own.
var Rich = &Categories{
	Name: "rich",
	Atoms: []CategoryColumn{
		{Name: "element", Size: AtomTypes},
		{Name: "degree", Size: 8},        // 0 to 6, more
		{Name: "charge", Size: 8},        // -3 to 3, others
		{Name: "hydrogens", Size: 6},     // 0 to 4, more
		{Name: "aromatic", Size: 2},      // no, yes
		{Name: "atom in ring", Size: 2},  // no, yes
		{Name: "hybridisation", Size: 8}, // none or unknown, s, sp, sp², sp³, sp²d, sp³d, sp³d²
		{Name: "chirality", Size: 4},     // none, clockwise, counter-clockwise, not tetrahedral
		{Name: "isotope", Size: 2},       // as it occurs, or named
	},
	Bonds: []CategoryColumn{
		{Name: "type", Size: 7, Loop: 6}, // single, double, triple, aromatic, quadruple, dative; a self-loop
		{Name: "conjugated", Size: 2},    // no, yes
		{Name: "bond in ring", Size: 2},  // no, yes
		{Name: "stereo", Size: 3},        // none, E, Z
	},
}

// allCategories are those that there are.
var allCategories = []*Categories{Hu, Rich}

// CategoryNames are the names of all categories.
func CategoryNames() (names []string) {
	for _, c := range allCategories {
		names = append(names, c.Name)
	}
	return names
}

// CategoriesOf returns the categories of a name; "" are [Hu].
func CategoriesOf(name string) (*Categories, error) {
	for _, c := range allCategories {
		if name == c.Name || name == "" {
			return c, nil
		}
	}
	have := strings.Join(CategoryNames(), ", ")
	return nil, fmt.Errorf("graph: categories of molecules %q are unknown (have: %s)", name, have)
}

// Nodes returns the number of categories of a node.
func (c *Categories) Nodes() int { return combinations(c.Atoms) }

// Edges returns the number of labels of an edge.
func (c *Categories) Edges() int { return combinations(c.Bonds) }

func combinations(columns []CategoryColumn) int {
	n := 1
	for _, c := range columns {
		n *= c.Size
	}
	return n
}

// EdgeColumns describes the labels of edges.
func (c *Categories) EdgeColumns() (e EdgeColumns) {
	for _, b := range c.Bonds {
		e.Widths, e.SelfLoop = append(e.Widths, b.Size), append(e.SelfLoop, b.Loop)
	}
	return e
}

// Element returns the first digit of a node's category, its element.
func (c *Categories) Element(category int32) int32 {
	return category / int32(combinations(c.Atoms[1:]))
}

// Masked is the category of a node whose atom is hidden.
func (c *Categories) Masked() int32 { return (AtomTypes - 1) * int32(combinations(c.Atoms[1:])) }

// Standard is what is done to a molecule before it becomes a graph, by the rules of package
// molecule. The zero value leaves it as it stands.
type Standard struct {
	// LargestFragment leaves out all fragments but the largest: of a salt, the counter-ion.
	LargestFragment bool `json:"largest_fragment,omitempty"`
	// Neutralise takes charges off that hydrogens can take off, as of acids and amines.
	Neutralise bool `json:"neutralise,omitempty"`
}
