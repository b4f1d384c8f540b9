// Package feature names what an encoder sees of a molecule: the one-hot features of its atoms
// and bonds, and what is standardised before they are computed. Package molecule computes them.
// Encoders and model files need only the names and sizes here, so they do not link the parser of
// SMILES.
package feature

import (
	"fmt"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
)

// The sizes of the columns of [Hu], the features of Hu et al. (2020). A node has the category
// atom·ChiralityTags + tag, where atom is the atomic number less 1. An edge has the label
// type·BondDirections + direction, with types single, double, triple and aromatic.
const (
	AtomTypes      = 120 // 0 to 117; 118 is a wildcard, 119 a masked atom
	ChiralityTags  = 3   // none, clockwise, counter-clockwise
	BondTypes      = 6   // 0 to 3; 4 is a self-loop, 5 a masked bond
	BondDirections = 3   // none, up, down
)

// Set is a set of categorical features: columns for every atom and columns for every bond. The
// category of a node, and the label of an edge, is a number with one digit for each column, the
// first digit being the most significant; see [graph.EdgeColumns].
type Set struct {
	Name         string
	Atoms, Bonds []Column
}

// Column is a categorical feature of atoms or bonds. Package molecule defines its categories.
type Column struct {
	Name string
	Size int // the number of categories
	Loop int // for bonds: the category of the self-loop that a layer adds to an atom
}

// Hu is the set of Hu et al.
var Hu = &Set{
	Name: "hu",
	Atoms: []Column{
		{Name: "element", Size: AtomTypes},
		{Name: "tag", Size: ChiralityTags},
	},
	Bonds: []Column{
		{Name: "order", Size: BondTypes, Loop: 4},
		{Name: "direction", Size: BondDirections},
	},
}

// Rich is a larger set, which distinguishes charges, hydrogens, radicals and isotopes. Each column
// has a category for values beyond its range.
var Rich = &Set{
	Name: "rich",
	Atoms: []Column{
		{Name: "element", Size: AtomTypes},
		{Name: "degree", Size: 8},        // 0 to 6, more
		{Name: "charge", Size: 8},        // -3 to 3, others
		{Name: "hydrogens", Size: 6},     // 0 to 4, more
		{Name: "aromatic", Size: 2},      // no, yes
		{Name: "atom in ring", Size: 2},  // no, yes
		{Name: "hybridisation", Size: 8}, // none or unknown, s, sp, sp², sp³, sp²d, sp³d, sp³d²
		{Name: "chirality", Size: 4},     // none, R, S, not tetrahedral; by ranks, not by the spelling
		{Name: "isotope", Size: 2},       // natural, specified
	},
	Bonds: []Column{
		// single, double, triple, aromatic, quadruple, dative; a self-loop
		{Name: "type", Size: 7, Loop: 6},
		{Name: "conjugated", Size: 2},   // no, yes
		{Name: "bond in ring", Size: 2}, // no, yes
		{Name: "stereo", Size: 3},       // none, E, Z
	},
}

// sets lists all sets.
var sets = []*Set{Hu, Rich}

// Names returns the names of all sets.
func Names() (names []string) {
	for _, s := range sets {
		names = append(names, s.Name)
	}
	return names
}

// ByName returns the set with this name; "" is [Hu]. An unknown name is an error.
func ByName(name string) (*Set, error) {
	for _, s := range sets {
		if name == s.Name || name == "" {
			return s, nil
		}
	}
	return nil, fmt.Errorf("feature: unknown set of atom features %q (have: %s)",
		name, strings.Join(Names(), ", "))
}

// NodeWidth returns the number of categories of a node.
func (s *Set) NodeWidth() int { return combinations(s.Atoms) }

// EdgeLabels returns the number of labels of an edge.
func (s *Set) EdgeLabels() int { return combinations(s.Bonds) }

func combinations(columns []Column) int {
	n := 1
	for _, c := range columns {
		n *= c.Size
	}
	return n
}

// EdgeColumns describes the columns that the label of an edge stands for.
func (s *Set) EdgeColumns() (e graph.EdgeColumns) {
	for _, b := range s.Bonds {
		e.Widths = append(e.Widths, b.Size)
		e.SelfLoop = append(e.SelfLoop, b.Loop)
	}
	return e
}

// Element returns the element of a node's category, its first digit.
func (s *Set) Element(category int32) int32 {
	return category / int32(combinations(s.Atoms[1:]))
}

// Masked returns the category of a masked atom.
func (s *Set) Masked() int32 { return (AtomTypes - 1) * int32(combinations(s.Atoms[1:])) }

// Standardisation is what is done to a molecule before its features are computed. The zero value
// leaves the molecule unchanged.
type Standardisation struct {
	// LargestFragment keeps only the largest fragment, which removes the counter-ions of salts.
	LargestFragment bool `json:"largest_fragment,omitempty"`
	// Neutralise removes charges by adding or removing hydrogens, as of acids and amines.
	Neutralise bool `json:"neutralise,omitempty"`
}
