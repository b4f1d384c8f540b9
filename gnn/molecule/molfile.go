package molecule

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// LineError says why a molfile is not a molecule.
type LineError struct {
	Line   int // of the molfile, from 1
	Reason string
}

// Error returns "molecule: line: reason".
func (e *LineError) Error() string {
	return fmt.Sprintf("molecule: line %d: %s", e.Line, e.Reason)
}

// ParseMolfile reads one molecule from a molfile in version V2000 or V3000, up to its line M  END, as
// RDKit's MolFromMolBlock does. It reads elements, charges, isotopes, radicals and valences of
// atoms, and single, double, triple, aromatic (4) and dative (9) bonds. Hydrogens that are atoms
// are treated as in SMILES. D and T are isotopes of hydrogen; *, R, R# and R1 to R99 are wildcards.
// The number of an R group is the isotope of its wildcard.
// Queries are refused: lists of atoms, bonds of several orders and the like.
//
// Configurations come from the coordinates. In two dimensions, wedges give those of atoms. In three
// dimensions, atoms with four neighbours, or three and a hydrogen that is no atom, have
// configurations. A double bond has one unless it is crossed or next to a wavy bond. Parities, the
// chiral flag and groups of relative configurations are ignored. Centres that are not tetrahedral
// have no configuration. Repeating units count once.
//
// The molecule belongs to the parser, like that of [Parser.Parse]. An error is a [*LineError].
func (p *Parser) ParseMolfile(text string) (*Molecule, error) {
	r := &p.molfile
	v := &p.perceiver
	err := r.read(text)
	if err == nil {
		v.reset(&r.mol)
		err = r.finish(v)
	}
	if err == nil {
		err = p.settle(&r.mol, r.lines)
	}
	if err != nil {
		return nil, &LineError{Line: err.column, Reason: err.reason}
	}
	return &r.mol, nil
}

type molfileReader struct {
	rest string
	line int // number of the last line

	mol     Molecule
	lines   []int32 // for every atom
	places  []point
	valence []int8  // for every atom, as written; 0 if it is not
	drawn   []drawn // for every bond
	numbers map[string]int32
	charged bool // whether a line of charges or radicals has been read

	directions directions
}

type drawn int8

const (
	plain   drawn = iota
	wedge         // the second atom is above the plane
	dash          // … below it
	wavy          // either
	crossed       // a double bond of unknown configuration
)

// bondOrders has the orders by their numbers in a molfile.
var bondOrders = map[int]BondType{
	1: Single,
	2: Double,
	3: Triple,
	4: Aromatic,
	9: Dative,
}

// queryBonds describes the other numbers.
var queryBonds = map[int]string{
	5: "single or double",
	6: "single or aromatic",
	7: "double or aromatic",
	8: "of any order",
}

func (r *molfileReader) problem(format string, args ...any) *problem {
	return &problem{atom: -1, column: r.line, reason: fmt.Sprintf(format, args...)}
}

func (r *molfileReader) next() (string, bool) {
	if r.rest == "" {
		return "", false
	}
	var line string
	line, r.rest, _ = strings.Cut(r.rest, "\n")
	r.line++
	return strings.TrimSuffix(line, "\r"), true
}

// read parses the text into atoms, bonds and the marks of the drawing.
func (r *molfileReader) read(text string) *problem {
	r.rest = text
	r.line = 0
	r.charged = false
	r.mol.Atoms = r.mol.Atoms[:0]
	r.mol.Bonds = r.mol.Bonds[:0]
	r.lines = r.lines[:0]
	r.places = r.places[:0]
	r.valence = r.valence[:0]
	r.drawn = r.drawn[:0]
	var line string
	for range 4 {
		var ok bool
		line, ok = r.next()
		if !ok {
			return r.problem("the molfile ends before its counts, in its fourth line")
		}
	}
	atoms, err := r.number(line, 0, 3, "number of atoms", 0, 999)
	if err != nil {
		return err
	}
	bonds, err := r.number(line, 3, 6, "number of bonds", 0, 999)
	if err != nil {
		return err
	}
	version := ""
	if len(line) > 35 {
		version = field(line, 34, 39)
	}
	switch version {
	case "", "V2000":
		err = r.read2000(atoms, bonds)
	case "V3000":
		err = r.read3000()
	default:
		err = r.problem("the version is %q, want V2000 or V3000", version)
	}
	switch {
	case err != nil:
		return err
	case len(r.mol.Atoms) == 0:
		return r.problem("no atoms")
	}
	return nil
}

// field returns the bytes from begin to end of a line, without surrounding blanks.
func field(line string, begin, end int) string {
	return strings.TrimSpace(line[min(begin, len(line)):min(end, len(line))])
}

// number reads an integer in columns of a line; blank is 0.
func (r *molfileReader) number(
	line string, begin, end int, name string, least, largest int,
) (int, *problem) {
	return r.whole(field(line, begin, end), name, least, largest)
}

func (r *molfileReader) whole(text, name string, least, largest int) (int, *problem) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > largest {
		return 0, r.problem("the %s is %q, want a whole number from %d to %d",
			name, shorten(text), least, largest)
	}
	return n, nil
}

func (r *molfileReader) place(texts [3]string) (p point, err *problem) {
	for i, text := range texts {
		x, bad := strconv.ParseFloat(text, 64)
		if bad != nil || math.IsNaN(x) || math.Abs(x) > 1e9 {
			return p, r.problem("%q is not a coordinate", shorten(text))
		}
		p[i] = x
	}
	return p, nil
}

func (r *molfileReader) atomOf(text string) (int32, *problem) {
	n, err := r.whole(text, "number of an atom", 1, len(r.mol.Atoms))
	if err == nil && text == "" {
		err = r.problem("the number of an atom is missing")
	}
	return int32(n) - 1, err
}

func (r *molfileReader) add(a Atom, place point, valence int) *problem {
	if len(r.mol.Atoms) == MaxAtoms {
		return r.problem("more than %d atoms", MaxAtoms)
	}
	r.mol.Atoms = append(r.mol.Atoms, a)
	r.lines = append(r.lines, int32(r.line))
	r.places = append(r.places, place)
	r.valence = append(r.valence, int8(valence))
	return nil
}

// element sets the element of an atom from its symbol in a molfile.
func (r *molfileReader) element(a *Atom, text string) *problem {
	switch text {
	case "*", "R", "R#":
		return nil
	case "D", "T":
		a.Z = 1
		a.Isotope = 2
		if text == "T" {
			a.Isotope = 3
		}
		return nil
	case "A", "AH", "Q", "QH", "X", "XH", "M", "MH", "L":
		return r.problem("%q stands for several elements: this is a query, and not a molecule", text)
	}
	if digits, ok := strings.CutPrefix(text, "R"); ok && len(digits) <= 2 {
		if n, err := strconv.ParseUint(digits, 10, 8); err == nil {
			a.Isotope = uint16(n) // as in RDKit
			return nil
		}
	}
	if strings.ContainsAny(text, "[],") {
		return r.problem("%q is a list of elements: this is a query, and not a molecule", shorten(text))
	}
	if n := len(text); n == 1 || n == 2 {
		second := byte(0)
		if n == 2 {
			second = text[1] | 0x20 // some programs write CL
		}
		if c := text[0]; c >= 'A' && c <= 'Z' {
			a.Z = symbol(c, second)
		}
	}
	if a.Z == 0 {
		return r.problem("%q is not an element", shorten(text))
	}
	return nil
}

// radical sets the unpaired electrons from the code of a molfile.
func (a *Atom) radical(n int) { a.radicals = [...]int8{0, 2, 1, 2}[n] }

func (r *molfileReader) bond(order int, begin, end string, d drawn) *problem {
	typ, ok := bondOrders[order]
	if !ok {
		if name, ok := queryBonds[order]; ok {
			return r.problem("a bond that is %s: this is a query, and not a molecule", name)
		}
		return r.problem("a bond of type %d, want 1, 2, 3, 4 (aromatic) or 9 (dative)", order)
	}
	i, err := r.atomOf(begin)
	if err != nil {
		return err
	}
	j, err := r.atomOf(end)
	if err != nil {
		return err
	}
	if i == j {
		return r.problem("a bond from an atom to itself")
	}
	if typ == Aromatic {
		r.mol.Atoms[i].Aromatic, r.mol.Atoms[j].Aromatic = true, true
	}
	r.mol.Bonds = append(r.mol.Bonds, Bond{
		Begin:    i,
		End:      j,
		Type:     typ,
		aromatic: typ == Aromatic,
	})
	r.drawn = append(r.drawn, d)
	return nil
}

// read2000 reads what follows the line of counts in version V2000.
func (r *molfileReader) read2000(atoms, bonds int) *problem {
	for range atoms {
		line, ok := r.next()
		if !ok || len(line) < 32 {
			return r.problem("want a line for each of %d atoms", atoms)
		}
		if err := r.atom2000(line); err != nil {
			return err
		}
	}
	for range bonds {
		line, ok := r.next()
		if !ok || len(line) < 9 {
			return r.problem("want a line for each of %d bonds", bonds)
		}
		if err := r.bond2000(line); err != nil {
			return err
		}
	}
	return r.properties()
}

// fields2000 are the numbers in a line of an atom in version V2000.
var fields2000 = [...]struct {
	begin, end        int // columns
	name              string
	smallest, largest int
}{
	{34, 36, "mass difference", -18, 99},
	{36, 39, "charge", 0, 7},
	{42, 45, "number of hydrogens", 0, 0},
	{48, 51, "valence", 0, 15},
	{60, 63, "atom map number", 0, 999},
}

// atom2000 reads the line of an atom in version V2000.
func (r *molfileReader) atom2000(line string) *problem {
	place, err := r.place([3]string{field(line, 0, 10), field(line, 10, 20), field(line, 20, 30)})
	if err != nil {
		return err
	}
	var a Atom
	if err := r.element(&a, field(line, 31, 34)); err != nil {
		return err
	}
	var values [len(fields2000)]int
	for i, f := range fields2000 {
		values[i], err = r.number(line, f.begin, f.end, f.name, f.smallest, f.largest)
		if err != nil {
			return err
		}
	}
	if d := values[0]; d != 0 {
		a.Isotope = uint16(max(0, int(elements[a.Z].isotope)+d))
	}
	if c := values[1]; c != 0 {
		a.Charge = int8(4 - c)
	}
	a.Map = int32(values[4])
	return r.add(a, place, values[3])
}

// marks2000 has the marks of a bond by their numbers in version V2000.
var marks2000 = map[int]drawn{
	1: wedge,
	3: crossed,
	4: wavy,
	6: dash,
}

// bond2000 reads the line of a bond in version V2000.
func (r *molfileReader) bond2000(line string) *problem {
	order, err := r.number(line, 6, 9, "type of a bond", 0, 99)
	if err != nil {
		return err
	}
	mark, err := r.number(line, 9, 12, "stereo of a bond", 0, 99)
	if err != nil {
		return err
	}
	if topology, err := r.number(line, 15, 18, "topology of a bond", 0, 99); err != nil ||
		topology != 0 {
		return r.problem("the topology of a bond is given: this is a query, and not a molecule")
	}
	return r.bond(order, field(line, 0, 3), field(line, 3, 6), marks2000[mark])
}

// properties reads the lines after the bonds, up to M  END.
func (r *molfileReader) properties() *problem {
	for {
		line, ok := r.next()
		if !ok {
			return r.problem(`there is no line "M  END"`)
		}
		kind := field(line, 0, 6)
		switch {
		case kind == "M  END":
			return nil
		case kind == "M  CHG", kind == "M  RAD", kind == "M  ISO", kind == "M  RGP":
			if err := r.property(kind[3:], line); err != nil {
				return err
			}
		case slices.Contains([]string{"M  ALS", "M  SUB", "M  UNS", "M  RBC", "M  LIN", "M  MRV"}, kind):
			return r.problem("%q: this is a query, and not a molecule", kind)
		case kind == "M  ZBO", kind == "M  ZCH", kind == "M  HYD":
			return r.problem("%q: bonds of order zero are not read", kind)
		case strings.HasPrefix(line, "A  "), strings.HasPrefix(line, "G  "):
			// an alias, in the next line
			r.next()
		case strings.HasPrefix(line, "S  SKP"):
			n, err := r.number(line, 6, 9, "number of lines", 0, 999)
			if err != nil {
				return err
			}
			for range n {
				r.next()
			}
		}
	}
}

// property reads pairs of an atom and a value.
func (r *molfileReader) property(kind, line string) *problem {
	n, err := r.number(line, 6, 9, "number of entries", 0, 99)
	if err != nil {
		return err
	}
	// These lines replace the charges of the lines of atoms.
	if (kind == "CHG" || kind == "RAD") && !r.charged {
		r.charged = true
		for i := range r.mol.Atoms {
			r.mol.Atoms[i].Charge = 0
		}
	}
	for k := range n {
		i, err := r.atomOf(field(line, 9+8*k, 13+8*k))
		if err != nil {
			return err
		}
		if err := r.set(&r.mol.Atoms[i], kind, field(line, 13+8*k, 17+8*k)); err != nil {
			return err
		}
	}
	return nil
}

// set sets the charge, the isotope, the number of the R group or the unpaired electrons of an atom.
func (r *molfileReader) set(a *Atom, kind, text string) *problem {
	switch kind {
	case "CHG":
		n, err := r.whole(text, "charge", -15, 15)
		a.Charge = int8(n)
		return err
	case "RAD":
		n, err := r.whole(text, "radical", 0, 3)
		if err == nil {
			a.radical(n)
		}
		return err
	case "RGP":
		n, err := r.whole(text, "number of an R group", 0, math.MaxUint16)
		a.Isotope = uint16(n) // as in RDKit
		return err
	}
	n, err := r.whole(text, "isotope", 0, 999)
	a.Isotope = uint16(n)
	return err
}

// next3000 returns a line of version V3000 without its prefix, joined with its continuation lines.
func (r *molfileReader) next3000() (string, *problem) {
	var whole string
	for {
		line, ok := r.next()
		if !ok {
			return "", r.problem("the molfile ends before M  V30 END CTAB")
		}
		text, ok := strings.CutPrefix(line, "M  V30 ")
		if !ok {
			return "", r.problem(`want a line that begins with "M  V30 "`)
		}
		text, continued := strings.CutSuffix(text, "-")
		whole += text
		if !continued {
			return strings.TrimSpace(whole), nil
		}
	}
}

// read3000 reads what follows the line of counts in version V3000.
func (r *molfileReader) read3000() *problem {
	r.numbers = map[string]int32{}
	block := ""
	for {
		line, err := r.next3000()
		if err != nil {
			return err
		}
		words := split3000(line)
		name, _ := strings.CutPrefix(line, "BEGIN ")
		switch {
		case line == "END CTAB":
			return r.properties()
		case block == "" && strings.HasPrefix(line, "BEGIN "):
			name = strings.Fields(name)[0]
			if name != "CTAB" {
				block = name
			}
		case block != "" && strings.HasPrefix(line, "END "):
			block = ""
		case block == "ATOM":
			err = r.atom3000(words)
		case block == "BOND":
			err = r.bond3000(words)
		case block == "" && strings.HasPrefix(line, "LINKNODE"):
			err = r.problem("a link node: this is a query, and not a molecule")
		case block == "TEMPLATE":
			err = r.problem("templates of monomers are not read")
		}
		if err != nil {
			return err
		}
	}
}

// split3000 returns the words of a line. Blanks within quotes or brackets do not separate words.
func split3000(line string) (words []string) {
	depth := 0
	quoted := false
	begin := 0
	for i := range len(line) + 1 {
		switch {
		case i == len(line), line[i] == ' ' && depth == 0 && !quoted:
			if i > begin {
				words = append(words, line[begin:i])
			}
			begin = i + 1
		case line[i] == '"':
			quoted = !quoted
		case line[i] == '(' || line[i] == '[':
			depth++
		case (line[i] == ')' || line[i] == ']') && depth > 0:
			depth--
		}
	}
	return words
}

// atom3000 reads "number element x y z map", and then pairs such as CHG=1.
func (r *molfileReader) atom3000(words []string) *problem {
	if len(words) < 6 {
		return r.problem("want the number of an atom, its element, three coordinates and a map number")
	}
	var a Atom
	if strings.HasPrefix(words[1], "NOT") {
		return r.problem("%q is a list of elements: this is a query, and not a molecule",
			shorten(words[1]))
	}
	if err := r.element(&a, strings.Trim(words[1], `"`)); err != nil {
		return err
	}
	place, err := r.place([3]string(words[2:5]))
	if err != nil {
		return err
	}
	number, err := r.whole(words[5], "atom map number", 0, math.MaxInt32)
	if err != nil {
		return err
	}
	a.Map = int32(number)
	valence := 0
	for _, w := range words[6:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "CHG", "RAD":
			err = r.set(&a, key, value)
		case "MASS":
			err = r.set(&a, "ISO", value)
		case "RGROUPS": // their count and the groups; the last one counts
			groups := strings.Fields(strings.Trim(value, "()"))
			if len(groups) > 1 {
				err = r.set(&a, "RGP", groups[len(groups)-1])
			}
		case "VAL":
			valence, err = r.whole(value, "valence", -1, 14)
			if valence == -1 {
				valence = noValence
			}
		case "HCOUNT", "SUBST", "UNSAT", "RBCNT":
			if value != "0" {
				err = r.problem("%q: this is a query, and not a molecule", shorten(w))
			}
		}
		if err != nil {
			return err
		}
	}
	if _, ok := r.numbers[words[0]]; ok {
		return r.problem("there are two atoms %q", shorten(words[0]))
	}
	r.numbers[words[0]] = int32(len(r.mol.Atoms))
	return r.add(a, place, valence)
}

// noValence is how a molfile writes the valence 0.
const noValence = 15

// bond3000 reads "number order begin end", and then pairs such as CFG=1.
func (r *molfileReader) bond3000(words []string) *problem {
	if len(words) < 4 {
		return r.problem("want the number of a bond, its type and two atoms")
	}
	order, err := r.whole(words[1], "type of a bond", 0, 99)
	if err != nil {
		return err
	}
	var ends [2]string
	for i, w := range words[2:4] {
		number, ok := r.numbers[w]
		if !ok {
			return r.problem("there is no atom %q", shorten(w))
		}
		ends[i] = strconv.Itoa(int(number) + 1)
	}
	d := plain
	for _, w := range words[4:] {
		switch key, value, _ := strings.Cut(w, "="); key {
		case "CFG":
			d = map[string]drawn{"1": wedge, "2": wavy, "3": dash}[value]
			if d == wavy && order == 2 {
				d = crossed
			}
		case "TOPO":
			if value != "0" {
				return r.problem("%q: this is a query, and not a molecule", shorten(w))
			}
		}
	}
	return r.bond(order, ends[0], ends[1], d)
}

// finish completes the atoms. v must know all bonds.
func (r *molfileReader) finish(v *perceiver) *problem {
	bonded := make(map[[2]int32]bool, len(r.mol.Bonds))
	for i := range r.mol.Bonds {
		b := &r.mol.Bonds[i]
		pair := [2]int32{min(b.Begin, b.End), max(b.Begin, b.End)}
		if bonded[pair] {
			return r.problem("two bonds between the atoms %d and %d", b.Begin+1, b.End+1)
		}
		bonded[pair] = true
	}
	for i := range r.mol.Atoms {
		if val := r.valence[i]; val != 0 {
			a := &r.mol.Atoms[i]
			a.fixed = true
			if val != noValence {
				a.explicit = int8(max(0, int32(val)-v.explicitValence(int32(i))))
			}
		}
	}
	r.findStereo(v)
	return nil
}
