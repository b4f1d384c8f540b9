package molecule

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxAtoms bounds the atoms of one molecule, including hydrogens that are written
// as atoms. The syntax is read in linear time. Perception takes little more for real
// molecules, and the bound keeps it to seconds for the worst strings.
const MaxAtoms = 4096

// A smilesReader reads the syntax of SMILES in one pass over the bytes, with a
// stack for the branches and a table of open rings. The only chemistry it knows is
// the parity of stereocentres, which depends on how the string is written.
type smilesReader struct {
	text string
	pos  int

	extension bool // only an extension, if anything, follows the text and a blank

	mol       Molecule
	columns   []int32 // for every atom
	degree    []int32 // for every atom, without the bonds that close rings
	branches  []branch
	closures  []closure
	digits    []digit
	lastDigit []int32 // for every atom: its last element of digits, or -1
	order     []int32 // closures by ring number

	open map[int32]int32 // for every open ring number: 1 + its closure
}

type branch struct {
	atom   int32
	column int
}

// bondSpec is a bond as written. Without an order, it is single or aromatic, depending on its atoms.
type bondSpec struct {
	typ     BondType
	ordered bool
	dir     Direction

	backward bool // a dative bond from the second atom to the first
}

// A closure is a pair of equal ring numbers. The second has not been read if end < 0.
type closure struct {
	number       int32
	begin, end   int32 // atoms
	first, later bondSpec
	column       int
	bond         int32
}

// A digit is the use of a ring number at an atom.
type digit struct {
	closure int32
	before  int32 // the previous digit of the atom, or -1
}

// An expectation says what may come next.
type expectation int8

const (
	anAtom     expectation = iota // at the start, after a dot, after the bond of a branch
	aBranch                       // after "(": an atom or a bond
	afterBond                     // an atom or a ring number
	afterAtoms                    // anything
)

// read parses the string. The molecule belongs to the reader. The caller must still run refuseRepeats
// and settleTags, which need its adjacency.
func (r *smilesReader) read(smiles string) (*Molecule, *problem) {
	r.reset(smiles)
	if err := r.chain(); err != nil {
		return nil, err
	}
	if !r.extension {
		return nil, r.problem(len(r.text),
			"a blank in a SMILES, behind which only an extension |…| may follow")
	}
	if err := r.closeRings(); err != nil {
		return nil, err
	}
	return &r.mol, nil
}

func (r *smilesReader) reset(smiles string) {
	notBlank := func(c rune) bool { return !isBlank(c) }
	start := strings.IndexFunc(smiles, notBlank)
	if start < 0 {
		start = len(smiles)
	}
	r.text = smiles[:start+len(beforeBlank(smiles[start:]))]
	r.pos = start
	r.extension = isExtension(strings.TrimFunc(smiles[len(r.text):], isBlank))
	r.mol.Atoms = r.mol.Atoms[:0]
	r.mol.Bonds = r.mol.Bonds[:0]
	r.columns = r.columns[:0]
	r.degree = r.degree[:0]
	r.lastDigit = r.lastDigit[:0]
	r.branches = r.branches[:0]
	r.closures = r.closures[:0]
	r.digits = r.digits[:0]
	if r.open == nil {
		r.open = map[int32]int32{}
	}
	clear(r.open)
}

func isBlank(c rune) bool { return c <= ' ' }

func beforeBlank(text string) string {
	if n := strings.IndexFunc(text, isBlank); n >= 0 {
		return text[:n]
	}
	return text
}

// isExtension reports whether the text after a SMILES is empty or begins with an extension of
// CXSMILES, which stands between two bars.
func isExtension(text string) bool {
	extension, bar := strings.CutPrefix(text, "|")
	return text == "" || bar && strings.Contains(extension, "|")
}

func (r *smilesReader) problem(pos int, format string, args ...any) *problem {
	return &problem{atom: -1, column: pos + 1, reason: fmt.Sprintf(format, args...)}
}

func (r *smilesReader) peek() byte {
	if r.pos < len(r.text) {
		return r.text[r.pos]
	}
	return 0
}

// what describes the next byte, for messages.
func (r *smilesReader) what() string {
	if r.pos >= len(r.text) {
		return "the end"
	}
	return character(r.text[r.pos:])
}

// character returns the first character of a text for messages: one that cannot be seen by its number.
func character(text string) string {
	c, size := utf8.DecodeRuneInString(text)
	switch {
	case c == utf8.RuneError && size == 1:
		return fmt.Sprintf("the byte 0x%02x", text[0])
	case c >= utf8.RuneSelf && !unicode.IsPrint(c):
		return fmt.Sprintf("%U", c)
	}
	return strconv.QuoteRune(c)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// chain reads atoms, bonds, branches and ring numbers up to the end.
func (r *smilesReader) chain() *problem {
	var bond bondSpec
	prev := int32(-1) // atom that the next bond starts from
	expect := anAtom
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		switch c {
		case '(':
			if expect != afterAtoms {
				return r.problem(r.pos, "a branch where an atom is expected")
			}
			r.branches = append(r.branches, branch{prev, r.pos})
			r.pos++
			expect = aBranch
			continue
		case ')':
			if expect != afterAtoms {
				return r.problem(r.pos, "a branch ends where an atom is expected")
			}
			if len(r.branches) == 0 {
				return r.problem(r.pos, "no branch is open")
			}
			prev = r.branches[len(r.branches)-1].atom
			r.branches = r.branches[:len(r.branches)-1]
			r.pos++
			continue
		case '.':
			if expect != afterAtoms {
				return r.problem(r.pos, "a dot where an atom is expected")
			}
			prev = -1
			r.pos++
			expect = anAtom
			continue
		case '-', '=', '#', '$', ':', '~', '/', '\\', '<':
			if c == '<' && !strings.HasPrefix(r.text[r.pos:], "<-") {
				break
			}
			if expect != afterAtoms && expect != aBranch {
				return r.problem(r.pos, "a bond where an atom is expected")
			}
			bond = r.bond(c)
			if expect == aBranch {
				expect = anAtom
			} else {
				expect = afterBond
			}
			continue
		}
		if isDigit(c) || c == '%' {
			if expect != afterAtoms && expect != afterBond {
				return r.problem(r.pos, "a ring number where an atom is expected")
			}
			if err := r.ringNumber(prev, bond); err != nil {
				return err
			}
			bond = bondSpec{}
			expect = afterAtoms
			continue
		}
		if err := r.appendAtom(prev, bond); err != nil {
			return err
		}
		prev = int32(len(r.mol.Atoms)) - 1
		bond = bondSpec{}
		expect = afterAtoms
	}
	if expect != afterAtoms {
		if len(r.mol.Atoms) == 0 {
			return r.problem(r.pos, "no atoms")
		}
		return r.problem(r.pos, "the string ends where an atom is expected")
	}
	if len(r.branches) > 0 {
		return r.problem(r.branches[len(r.branches)-1].column, "the branch is not closed")
	}
	return nil
}

// appendAtom reads an atom and bonds it to prev, unless that is negative.
func (r *smilesReader) appendAtom(prev int32, bond bondSpec) *problem {
	start := r.pos
	a, err := r.atom()
	if err != nil {
		return err
	}
	if len(r.mol.Atoms) == MaxAtoms {
		return r.problem(start, "more than %d atoms", MaxAtoms)
	}
	i := int32(len(r.mol.Atoms))
	a.first = prev < 0
	r.mol.Atoms = append(r.mol.Atoms, a)
	r.columns = append(r.columns, int32(start+1))
	r.degree = append(r.degree, 0)
	r.lastDigit = append(r.lastDigit, -1)
	if prev >= 0 {
		r.mol.Bonds = append(r.mol.Bonds, r.makeBond(prev, i, bond))
		r.degree[prev]++
		r.degree[i]++
	}
	return nil
}

// bondTypes has the orders of the bond symbols.
var bondTypes = [128]BondType{
	'-': Single,
	'=': Double,
	'#': Triple,
	'$': Quadruple,
	':': Aromatic,
	'~': AnyOrder,
}

func (r *smilesReader) bond(c byte) bondSpec {
	r.pos++
	switch c {
	case '<': // <-
		r.pos++
		return bondSpec{typ: Dative, ordered: true, backward: true}
	case '-', '=', '#', '$', ':', '~':
		if c == '-' && r.peek() == '>' {
			r.pos++
			return bondSpec{typ: Dative, ordered: true}
		}
		return bondSpec{typ: bondTypes[c], ordered: true}
	case '/':
		return bondSpec{dir: Up}
	}
	if r.peek() == '\\' { // a backslash that some program has escaped
		r.pos++
	}
	return bondSpec{dir: Down}
}

func (r *smilesReader) makeBond(begin, end int32, s bondSpec) Bond {
	b := Bond{
		Begin:     begin,
		End:       end,
		Type:      s.typ,
		Direction: s.dir,
	}
	if !s.ordered && r.mol.Atoms[begin].Aromatic && r.mol.Atoms[end].Aromatic {
		b.Type = Aromatic
	}
	b.aromatic = b.Type == Aromatic
	if s.backward {
		b.Begin = end
		b.End = begin
	}
	return b
}

// ringNumber reads a ring number at the atom, which opens or closes a ring bond.
func (r *smilesReader) ringNumber(atom int32, bond bondSpec) *problem {
	start := r.pos
	number, err := r.number()
	if err != nil {
		return err
	}
	r.adjustLateDigit(atom)
	k := r.open[number] - 1
	if k < 0 {
		k = int32(len(r.closures))
		r.closures = append(r.closures, closure{
			number: number,
			begin:  atom,
			end:    -1,
			first:  bond,
			column: start,
		})
		r.open[number] = k + 1
	} else {
		c := &r.closures[k]
		if c.begin == atom {
			return r.problem(start, "ring %d would bond an atom to itself", number)
		}
		c.end = atom
		c.later = bond
		c.column = start
		delete(r.open, number)
	}
	r.digits = append(r.digits, digit{closure: k, before: r.lastDigit[atom]})
	r.lastDigit[atom] = int32(len(r.digits) - 1)
	return nil
}

// number reads "7", "%17" or "%(12345)".
func (r *smilesReader) number() (int32, *problem) {
	c := r.text[r.pos]
	if c != '%' {
		r.pos++
		return int32(c - '0'), nil
	}
	digits := r.text[r.pos+1:]
	if len(digits) >= 2 && digits[0] >= '1' && digits[0] <= '9' && isDigit(digits[1]) {
		r.pos += 3
		return int32(digits[0]-'0')*10 + int32(digits[1]-'0'), nil
	}
	if strings.HasPrefix(digits, "(") {
		value := int32(0)
		for n := 1; n < len(digits) && n <= 6; n++ {
			if isDigit(digits[n]) {
				value = value*10 + int32(digits[n]-'0')
				continue
			}
			if digits[n] == ')' && n > 1 {
				r.pos += n + 2
				return value, nil
			}
			break
		}
	}
	return 0, r.problem(r.pos, "%% is not followed by a ring number: %%10 to %%99 or %%(0) to %%(99999)")
}

// adjustLateDigit inverts the tag of an atom whose ring number comes after a branch, as in C(F)1,
// and so later in the order of neighbours than settleTags assumes.
func (r *smilesReader) adjustLateDigit(atom int32) {
	if int(atom) == len(r.mol.Atoms)-1 {
		return
	}
	a := &r.mol.Atoms[atom]
	switch d := r.degree[atom]; {
	case d == 1, d == 2 && atom != 0, d == 3 && atom == 0:
		a.invert()
	}
}

// invert exchanges clockwise and counter-clockwise.
func (a *Atom) invert() {
	switch a.Chirality {
	case Clockwise:
		a.Chirality = CounterClockwise
	case CounterClockwise:
		a.Chirality = Clockwise
	}
}

// closeRings appends the bonds that close rings, in the order of their numbers.
func (r *smilesReader) closeRings() *problem {
	for i := range r.closures {
		if c := &r.closures[i]; c.end < 0 {
			return r.problem(c.column, "ring %d is not closed", c.number)
		}
	}
	// Digits refer to closures by position, so closures stay in place and their order is sorted.
	r.order = r.order[:0]
	for i := range r.closures {
		r.order = append(r.order, int32(i))
	}
	slices.SortStableFunc(r.order, func(a, b int32) int {
		return int(r.closures[a].number - r.closures[b].number)
	})
	for _, i := range r.order {
		c := &r.closures[i]
		c.bond = int32(len(r.mol.Bonds))
		// The first symbol counts unless it is missing or only a direction.
		if c.first.ordered {
			if c.first.dir == NoDirection {
				c.first.dir = c.later.dir.reversed()
			}
			r.mol.Bonds = append(r.mol.Bonds, r.makeBond(c.begin, c.end, c.first))
		} else {
			if c.later.dir == NoDirection {
				c.later.dir = c.first.dir.reversed()
			}
			r.mol.Bonds = append(r.mol.Bonds, r.makeBond(c.end, c.begin, c.later))
		}
	}
	return nil
}

// refuseRepeats fails for ring bonds between atoms that are bonded already. n is the
// adjacency of the molecule.
func (r *smilesReader) refuseRepeats(n *adjacency) *problem {
	if len(r.closures) == 0 {
		return nil
	}
	owner := resize(r.degree, len(r.mol.Atoms)) // 1 + the last atom that has this neighbour
	r.degree = owner
	chain := int32(len(r.mol.Bonds) - len(r.closures))
	for i := range r.mol.Atoms {
		for _, l := range n.of(int32(i)) {
			if owner[l.atom] == int32(i)+1 { // chain bonds come first, so this one closes a ring
				c := &r.closures[r.order[l.bond-chain]]
				return r.problem(c.column, "ring %d would bond two atoms that are bonded already",
					c.number)
			}
			owner[l.atom] = int32(i) + 1
		}
	}
	return nil
}

// settleTags makes the tags, which refer to the neighbours in the order of the
// string, refer to them in the order of the bonds. The two orders differ where an
// atom closes rings: its ring numbers stand before its branches, but their bonds
// come after all others.
func (r *smilesReader) settleTags(n *adjacency) {
	for i := range r.mol.Atoms {
		a := &r.mol.Atoms[i]
		if a.Chirality != Clockwise && a.Chirality != CounterClockwise {
			continue
		}
		var rings, inversions int
		for d := r.lastDigit[i]; d >= 0; d = r.digits[d].before {
			rings++
			bond := r.closures[r.digits[d].closure].bond
			for e := r.digits[d].before; e >= 0; e = r.digits[e].before {
				if r.closures[r.digits[e].closure].bond > bond {
					inversions++
				}
			}
		}
		links := n.of(int32(i))
		branches := len(links) - rings
		if !a.first {
			branches--
		}
		inversions += rings * branches
		// With three neighbours, a hydrogen or a lone pair is the fourth. At the
		// beginning of a string, the hydrogen comes after the atom, not before
		// it. Next to a ring number, a lone pair counts as the last neighbour.
		if len(links) == 3 {
			saturated := !slices.ContainsFunc(links, func(l link) bool {
				return r.mol.Bonds[l.bond].Type != Single
			})
			if a.first && a.explicit == 1 || a.explicit != 1 && rings == 1 && saturated {
				inversions++
			}
		}
		if inversions%2 == 1 {
			a.invert()
		}
	}
}

// atom reads an atom, in brackets or not.
func (r *smilesReader) atom() (Atom, *problem) {
	c := r.text[r.pos]
	if c == '[' {
		return r.bracket()
	}
	a := Atom{}
	text := r.text[r.pos:]
	switch {
	case c == '*':
	case strings.HasPrefix(text, "Br"), strings.HasPrefix(text, "Cl"):
		a.Z = symbol(text[0], text[1])
		r.pos++
	case strings.IndexByte("BCNOFPSI", c) >= 0:
		a.Z = symbol(c, 0)
	case aromaticSymbol(c) > 0:
		a.Z = aromaticSymbol(c)
		a.Aromatic = true
	case c == '>':
		return a, r.problem(r.pos,
			"a reaction, and not one molecule: want its reactants or its products alone")
	case strings.IndexByte("<!&,;@+", c) >= 0:
		return a, r.problem(r.pos, "%q has no meaning here: this is SMILES, and not SMARTS", c)
	case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
		return a, r.problem(r.pos, "%q is not an atom that may stand without brackets", c)
	default:
		return a, r.problem(r.pos, "%s is not an atom", character(text))
	}
	r.pos++
	return a, nil
}

// aromaticSymbol returns the element of an aromatic symbol of one letter, or 0.
func aromaticSymbol(c byte) int8 {
	if strings.IndexByte("bcnops", c) < 0 {
		return 0
	}
	return symbol(c-'a'+'A', 0)
}

// bracket reads [isotope symbol chirality hydrogens charge :map].
func (r *smilesReader) bracket() (Atom, *problem) {
	start := r.pos
	a := Atom{fixed: true}
	r.pos++
	if isDigit(r.peek()) {
		n, err := r.integer("isotope", math.MaxUint16)
		if err != nil {
			return a, err
		}
		a.Isotope = uint16(n)
	}
	if err := r.symbol(&a); err != nil {
		return a, err
	}
	// RDKit reads no tag of a hydrogen.
	if a.Z != 1 {
		if err := r.tag(&a); err != nil {
			return a, err
		}
	}
	err := r.hydrogens(&a)
	if err == nil {
		err = r.charge(&a)
	}
	if err == nil {
		err = r.mapNumber(&a)
	}
	if err != nil {
		return a, err
	}
	if r.peek() != ']' {
		if r.pos >= len(r.text) {
			return a, r.problem(start, "the bracket is not closed")
		}
		return a, r.problem(
			r.pos,
			"%s within a bracket; the order is isotope, symbol, chirality, hydrogens, charge, :map",
			r.what(),
		)
	}
	r.pos++
	return a, nil
}

// hydrogens reads the hydrogens of a bracket atom, if any.
func (r *smilesReader) hydrogens(a *Atom) *problem {
	if r.peek() != 'H' {
		return nil
	}
	r.pos++
	a.explicit = 1
	if !isDigit(r.peek()) {
		return nil
	}
	n, err := r.integer("number of hydrogens", mostHydrogens)
	a.explicit = int8(n)
	return err
}

// charge reads the charge of a bracket atom, if any.
func (r *smilesReader) charge(a *Atom) (err *problem) {
	sign := r.peek()
	if sign != '+' && sign != '-' {
		return nil
	}
	r.pos++
	n := int32(1)
	if r.peek() == sign {
		r.pos++
		n = 2
	} else if isDigit(r.peek()) {
		n, err = r.integer("charge", 99)
	}
	if sign == '-' {
		n = -n
	}
	a.Charge = int8(n)
	return err
}

// mapNumber reads the atom map number of a bracket atom, if any.
func (r *smilesReader) mapNumber(a *Atom) (err *problem) {
	if r.peek() != ':' {
		return nil
	}
	r.pos++
	if !isDigit(r.peek()) {
		return r.problem(r.pos, "%s where an atom map number is expected", r.what())
	}
	a.Map, err = r.integer("atom map number", math.MaxInt32)
	return err
}

// symbol reads the element symbol of a bracket atom.
func (r *smilesReader) symbol(a *Atom) *problem {
	c := r.peek()
	two := byte(0)
	if r.pos+1 < len(r.text) {
		two = r.text[r.pos+1]
	}
	switch {
	case c == '*':
		r.pos++
		return nil
	case c == '#': // RDKit's [#6] is [C]
		start := r.pos
		r.pos++
		n, err := r.integer("atomic number", maxZ)
		if err == nil && r.pos == start+1 {
			err = r.problem(r.pos, "%s where an atomic number is expected", r.what())
		}
		a.Z = int8(n)
		return err
	case strings.HasPrefix(r.text[r.pos:], "Uu") && r.pos+2 < len(r.text) &&
		systematicSymbol(r.text[r.pos+2]) > 0:
		a.Z = systematicSymbol(r.text[r.pos+2])
		r.pos += 3
		return nil
	case c >= 'A' && c <= 'Z':
		a.Z = symbol(c, two)
		if a.Z > 0 {
			r.pos += 2
			return nil
		}
		a.Z = symbol(c, 0)
		if a.Z > 0 {
			r.pos++
			return nil
		}
	case c >= 'a' && c <= 'z':
		a.Aromatic = true
		switch string([]byte{c, two}) {
		case "si", "as", "se", "te":
			a.Z = symbol(c-'a'+'A', two)
			r.pos += 2
			return nil
		}
		a.Z = aromaticSymbol(c)
		if a.Z > 0 {
			r.pos++
			return nil
		}
	default:
		return r.problem(r.pos, "%s where an element is expected", r.what())
	}
	return r.problem(r.pos, "%s does not begin the symbol of an element", r.what())
}

// systematicSymbol returns the element from 110 to 118 that was called Uun, Uuu, …
// Uuo before it had a name, by the last letter; 0 if there is none.
func systematicSymbol(c byte) int8 {
	if i := strings.IndexByte("nubtqphso", c); i >= 0 {
		return int8(110 + i)
	}
	return 0
}

// classes has the extended chirality classes with their numbers of permutations.
var classes = [...]struct {
	name         string
	tag          Chirality
	permutations int32
}{
	{"TH", CounterClockwise, 2},
	{"AL", tagAllene, 2},
	{"SP", tagSquarePlanar, 3},
	{"TB", tagTrigonalBipyramidal, 20},
	{"OH", tagOctahedral, 30},
}

// tag reads @, @@ and the extended classes.
func (r *smilesReader) tag(a *Atom) *problem {
	if r.peek() != '@' {
		return nil
	}
	r.pos++
	if r.peek() == '@' {
		r.pos++
		a.Chirality = Clockwise
		return nil
	}
	a.Chirality = CounterClockwise
	for _, c := range classes {
		if !strings.HasPrefix(r.text[r.pos:], c.name) {
			continue
		}
		r.pos += len(c.name)
		a.Chirality = c.tag
		if isDigit(r.peek()) {
			start := r.pos
			n, err := r.integer("permutation", math.MaxInt32)
			if err != nil {
				return err
			}
			if n > c.permutations {
				return r.problem(start, "chirality class %s has the permutations 1 to %d",
					c.name, c.permutations)
			}
			if c.name == "TH" && n == 2 {
				a.Chirality = Clockwise
			}
		}
		break
	}
	return nil
}

// integer reads a number without leading zeros.
func (r *smilesReader) integer(name string, largest int32) (int32, *problem) {
	start := r.pos
	n := int64(0)
	for isDigit(r.peek()) && n <= int64(largest) {
		if n == 0 && r.pos > start {
			return 0, r.problem(start, "the %s has a leading zero", name)
		}
		n = n*10 + int64(r.text[r.pos]-'0')
		r.pos++
	}
	if n > int64(largest) {
		return 0, r.problem(start, "the %s is larger than %d", name, largest)
	}
	return int32(n), nil
}
