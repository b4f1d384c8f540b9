package molecule

import (
	"fmt"
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// Chirality is the tag of a stereocentre: the sense in which its neighbours,
// taken in the order of the molecule's bonds, turn as seen from the first. Its
// values are the categories of Hu et al.
type Chirality int8

const (
	Unspecified      Chirality = iota // no stereocentre, or one of unknown configuration
	Clockwise                         // the neighbours after the first turn clockwise
	CounterClockwise                  // … counter-clockwise
	Other                             // square planar, trigonal bipyramidal or octahedral
)

// Working values of a tag, gone once [Parser.Parse] has returned.
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
	Quadruple // not known to the network: [Molecule.Graph] refuses it
	Dative    // both electrons are those of the first atom; to the network a single bond
	AnyOrder  // ~, of unknown order, without a part in valences; to the network a dative bond
)

// halves is twice the order of a bond, as valences are summed.
var halves = [...]int32{
	Single:    2,
	Double:    4,
	Triple:    6,
	Aromatic:  3,
	Quadruple: 8,
	Dative:    2,
	AnyOrder:  0,
}

// halvesAt is what the bond adds to twice the valence of one of its atoms: a dative bond
// adds nothing to that of the atom that gives.
func (b *Bond) halvesAt(atom int32) int32 {
	if b.Type == Dative && b.Begin == atom {
		return 0
	}
	return halves[b.Type]
}

// Direction says on which side of a neighbouring double bond a single bond
// lies, seen from its first atom to its second. The values are the categories
// of Hu et al.
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
	explicit int8 // hydrogens written in the bracket, or that had been atoms
	implicit int8 // hydrogens that fill up the valence
	radicals int8 // unpaired electrons
	first    bool // first of the string, or after a dot
	valence  int16
	code     cipCode
}

// Bond is an edge of the molecular graph.
type Bond struct {
	Begin, End int32 // atoms; Direction is seen from Begin
	Type       BondType
	Direction  Direction
	Conjugated bool
	InRing     bool

	aromatic bool // perceived, or written as, aromatic
	stereo   bondStereo
	ref      [2]int32 // the neighbours that stereo speaks of, at Begin and End
}

// Molecule is a molecular graph. Atoms are in the order of the string; bonds
// are in the order of the string with those that close rings last, by ring
// number: both as RDKit numbers them.
type Molecule struct {
	Atoms []Atom
	Bonds []Bond

	ringPtr, ringAtoms, ringBonds []int32 // see Ring
}

// Clone returns a copy that shares no memory.
func (m *Molecule) Clone() *Molecule {
	return &Molecule{
		Atoms:     slices.Clone(m.Atoms),
		Bonds:     slices.Clone(m.Bonds),
		ringPtr:   slices.Clone(m.ringPtr),
		ringAtoms: slices.Clone(m.ringAtoms),
		ringBonds: slices.Clone(m.ringBonds),
	}
}

// Error says why a SMILES string is not a molecule.
type Error struct {
	SMILES string // shortened
	Column int    // 1-based byte of the string that the reason is about
	Reason string
}

// Error returns `molecule: "SMILES": column: reason`.
func (e *Error) Error() string {
	return fmt.Sprintf("molecule: %q: column %d: %s", e.SMILES, e.Column, e.Reason)
}

// Parser turns SMILES into molecules. It keeps its memory between calls, so
// that a long list of strings costs next to no allocations. The zero Parser is
// ready for use; it must not be used by two goroutines at once.
type Parser struct {
	// Release2022 makes valences those that RDKit 2022.09 allows, which differ in metals and
	// ions: the data sets and splits of Hu et al. depend on them.
	Release2022 bool
	// Standard is what is done to a molecule after its syntax and before its perception. What
	// is left out of it is not checked.
	Standard feature.Standardisation

	reader    smilesReader
	molfile   molfileReader
	perceiver perceiver
	scaffold  Molecule
	canon     canon
}

// Parse reads one molecule, as RDKit's MolFromSmiles does: see the package
// comment. Blanks around the string are ignored. An extension of CXSMILES,
// between bars and behind a blank, is not read, nor is what follows it. Other
// text behind a blank is an error. The molecule is the parser's own and is
// overwritten by the next call; [Molecule.Clone] keeps it. An error is an
// [*Error].
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

// settle does with a molecule, to which the perceiver is set, what is the same for all
// notations. places are the columns of its atoms, or the lines, of which an error has one.
func (p *Parser) settle(m *Molecule, places []int32) *problem {
	v := &p.perceiver
	v.release2022 = p.Release2022
	if v.removeHydrogens() {
		places = compact(places, v.keep)
		v.reset(m)
	}
	if p.Standard.LargestFragment && v.largestFragment() {
		places = compact(places, v.keep)
		v.reset(m)
	}
	err := v.perceive(p.Standard.Neutralise)
	if err != nil && err.atom >= 0 {
		err.column = int(places[err.atom])
	}
	return err
}

// Parse is [Parser.Parse] for a single string.
func Parse(smiles string) (*Molecule, error) { return new(Parser).Parse(smiles) }

// A problem is an error in the making: at an atom, or at a column, or line, if atom < 0.
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

// resize returns a slice of n zeros, in the memory of s if that suffices.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	s = s[:n]
	clear(s)
	return s
}
