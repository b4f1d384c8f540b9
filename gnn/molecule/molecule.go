package molecule

import (
	"fmt"
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// Chirality is the tag of a stereocentre: the direction in which its neighbours
// turn, as seen from the first, in the order of the molecule's bonds. The values
// are the categories of Hu et al.
type Chirality int8

const (
	Unspecified      Chirality = iota // no stereocentre, or one of unknown configuration
	Clockwise                         // the neighbours after the first turn clockwise
	CounterClockwise                  // … counter-clockwise
	Other                             // square planar, trigonal bipyramidal or octahedral
)

// Working values of a tag, which [Parser.Parse] replaces before it returns.
const (
	tagAllene Chirality = iota + 4
	tagSquarePlanar
	tagTrigonalBipyramidal
	tagOctahedral
)

// BondType is the order of a bond. The first four values are the categories of
// Hu et al.
type BondType int8

const (
	Single BondType = iota
	Double
	Triple
	Aromatic
	Quadruple // [Molecule.Graph] refuses it
	Dative    // the first atom gives both electrons; a single bond to [Molecule.Graph]
	AnyOrder  // ~; adds nothing to valences; a dative bond to [Molecule.GraphOf]
)

// halves has twice the order of a bond, for the sum of a valence.
var halves = [...]int32{
	Single:    2,
	Double:    4,
	Triple:    6,
	Aromatic:  3,
	Quadruple: 8,
	Dative:    2,
	AnyOrder:  0,
}

// halvesAt returns what the bond adds to twice the valence of one of its atoms. A dative bond adds
// nothing to the valence of the atom that gives.
func (b *Bond) halvesAt(atom int32) int32 {
	if b.Type == Dative && b.Begin == atom {
		return 0
	}
	return halves[b.Type]
}

// Direction says on which side of a neighbouring double bond a single bond
// lies, as seen from its first atom. The values are the categories of Hu et al.
type Direction int8

const (
	NoDirection Direction = iota
	Up                    // "/", RDKit's ENDUPRIGHT
	Down                  // "\", RDKit's ENDDOWNRIGHT
)

func (d Direction) reversed() Direction {
	switch d {
	case Up:
		return Down
	case Down:
		return Up
	}
	return d
}

// Atom is a node of the molecular graph.
type Atom struct {
	Z         int8      // atomic number; 0 is the wildcard *
	Charge    int8      // formal charge
	Hydrogens int8      // hydrogens that are not atoms of the graph
	Chirality Chirality // tag of the stereocentre
	Aromatic  bool
	Isotope   uint16 // mass number; 0 if not given
	Map       int32  // atom map number; 0 if not given

	Degree        int16 // neighbours that are atoms of the graph
	Hybridisation Hybridisation
	InRing        bool

	fixed    bool // bracket atom: its hydrogens are as written
	explicit int8 // hydrogens that are written in the bracket or were atoms
	implicit int8 // hydrogens that fill up the valence
	radicals int8 // unpaired electrons
	first    bool // first in the string or after a dot
	valence  int16
	code     cipCode
	turn     Chirality // the tag relative to ranks that no spelling changes
}

// Bond is an edge of the molecular graph.
type Bond struct {
	Begin, End int32 // atoms; Direction is seen from Begin
	Type       BondType
	Direction  Direction
	Conjugated bool
	InRing     bool

	aromatic bool     // written as aromatic, then perceived as aromatic
	kekule   BondType // of an aromatic bond: its order in a Kekulé structure
	stereo   bondStereo
	ref      [2]int32 // the neighbours at Begin and End that stereo refers to
}

// Kekule returns the type of the bond in a Kekulé structure, where an aromatic bond is single or double.
func (b *Bond) Kekule() BondType {
	if b.Type == Aromatic {
		return b.kekule
	}
	return b.Type
}

// Molecule is a molecular graph. Atoms are in the order of the string. Bonds
// are in the order of the string, but those that close rings come last, by ring
// number. RDKit numbers both in the same way.
type Molecule struct {
	Atoms []Atom
	Bonds []Bond
	// Kept says of each atom of the string, hydrogens that are no atoms aside, whether the molecule has it. It is empty
	// if the molecule has all of them. Others are those of fragments that the parser dropped.
	Kept []bool

	ringPtr, ringAtoms, ringBonds []int32 // see Ring
}

// Clone returns a copy that shares no memory.
func (m *Molecule) Clone() *Molecule {
	return &Molecule{
		Atoms:     slices.Clone(m.Atoms),
		Bonds:     slices.Clone(m.Bonds),
		Kept:      slices.Clone(m.Kept),
		ringPtr:   slices.Clone(m.ringPtr),
		ringAtoms: slices.Clone(m.ringAtoms),
		ringBonds: slices.Clone(m.ringBonds),
	}
}

// Error says why a SMILES string is not a molecule.
type Error struct {
	SMILES string // shortened
	Column int    // byte of the string where the problem is, from 1
	Reason string
}

// Error returns `molecule: "SMILES": column: reason`.
func (e *Error) Error() string {
	return fmt.Sprintf("molecule: %q: column %d: %s", e.SMILES, e.Column, e.Reason)
}

// Parser turns SMILES into molecules. It keeps its memory between calls, so
// that a long list of strings costs almost no allocations. The zero Parser is
// ready for use. Two goroutines must not use one Parser at once.
type Parser struct {
	// Release2022 selects the valences of RDKit 2022.09, which differ for metals and ions. The
	// data sets and splits of Hu et al. depend on them.
	Release2022 bool
	// Standard says how molecules are standardised. Dropped fragments are not checked, but for more than 99
	// hydrogens at an atom.
	Standard feature.Standardisation

	reader    smilesReader
	molfile   molfileReader
	perceiver perceiver
	scaffold  Molecule
	part      Molecule // of Without

	stereoAtoms, stereoBonds []bool // of Stereogenic
}

// Parse reads one molecule, as RDKit's MolFromSmiles does; see the package
// comment. Blanks around the string are ignored. An extension of CXSMILES,
// between bars and after a blank, is ignored, as is everything after it. Other
// text after a blank is an error. The molecule belongs to the parser, and the
// next call overwrites it; [Molecule.Clone] keeps it. An error is an [*Error].
func (p *Parser) Parse(smiles string) (*Molecule, error) {
	r := &p.reader
	v := &p.perceiver
	m, err := r.read(smiles)
	if err == nil {
		v.reset(m)
		err = r.refuseRepeats(&v.adjacency)
	}
	if err == nil {
		r.settleTags(&v.adjacency)
		err = p.settle(m, r.columns)
	}
	if err != nil {
		return nil, &Error{SMILES: shorten(r.text), Column: err.column, Reason: err.reason}
	}
	return m, nil
}

// settle does the steps that all notations share: it removes hydrogens, standardises and perceives
// the molecule of the perceiver. places are the columns or lines of its atoms, for errors.
func (p *Parser) settle(m *Molecule, places []int32) *problem {
	v := &p.perceiver
	v.release2022 = p.Release2022
	m.Kept = m.Kept[:0]
	removed, err := v.removeHydrogens()
	if removed {
		places = compact(places, v.keep)
		v.reset(m)
	}
	if err == nil && p.Standard.LargestFragment && v.largestFragment() {
		places = compact(places, v.keep)
		m.Kept = append(m.Kept, v.keep...)
		v.reset(m)
	}
	if err == nil {
		err = v.perceive(p.Standard.Neutralise)
	}
	if err != nil && err.atom >= 0 {
		err.column = int(places[err.atom])
	}
	return err
}

// Parse is [Parser.Parse] for a single string.
func Parse(smiles string) (*Molecule, error) { return new(Parser).Parse(smiles) }

// A problem is an error under construction: at an atom or, if atom < 0, at a column or line.
type problem struct {
	atom   int32
	column int
	reason string
}

func atomProblem(atom int32, format string, args ...any) *problem {
	return &problem{atom: atom, reason: fmt.Sprintf(format, args...)}
}

func shorten(s string) string {
	const longest = 80
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}

func compact[T any](s []T, keep []bool) []T {
	n := 0
	for i, k := range keep {
		if k {
			s[n] = s[i]
			n++
		}
	}
	return s[:n]
}

// resize returns a slice of n zeros, in the memory of s if it suffices.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	s = s[:n]
	clear(s)
	return s
}
