package smarts

import (
	"strings"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// organic has the elements that need no brackets.
var organic = map[string]int{
	"B":  5,
	"C":  6,
	"N":  7,
	"O":  8,
	"F":  9,
	"P":  15,
	"S":  16,
	"Cl": 17,
	"Br": 35,
	"I":  53,
}

// aromatics has the elements that may be written in small letters; those of two letters in brackets only.
var aromatics = map[string]int{
	"b":  5,
	"c":  6,
	"n":  7,
	"o":  8,
	"p":  15,
	"s":  16,
	"si": 14,
	"as": 33,
	"se": 34,
	"te": 52,
}

// bySymbol has the elements by symbol, but those that RDKit does not read in SMARTS.
var bySymbol = indexSymbols()

func indexSymbols() map[string]int {
	index := map[string]int{}
	for z := 1; z <= 118; z++ {
		if z != 113 && z != 115 && z != 117 && z != 118 {
			index[molecule.Symbol(int8(z))] = z
		}
	}
	return index
}

// atom reads an atom. hydrogens reports whether the bracket says that it has a hydrogen.
func (r *reader) atom(a *atom) (hydrogens bool, err error) {
	start := r.pos
	if r.take('[') {
		return r.bracket(a, start)
	}
	if r.pos >= r.end {
		return false, r.fail(r.pos, "an atom is missing")
	}
	for length := min(2, r.end-r.pos); length > 0; length-- {
		if z := organic[r.text[r.pos:r.pos+length]]; z != 0 {
			r.pos += length
			a.test = typed(z, 0)
			return false, nil
		}
	}
	if z := aromatics[r.text[r.pos:r.pos+1]]; z != 0 {
		r.pos++
		a.test = typed(z, 1)
		return false, nil
	}
	switch r.peek() {
	case '*':
		a.test = test{op: anything}
	case 'a':
		a.test = equal(aromatic, 1)
	case 'A':
		a.test = equal(aromatic, 0)
	default:
		return false, r.unknown()
	}
	r.pos++
	return false, nil
}

// unknown returns the error for a character that is no atom.
func (r *reader) unknown() error {
	c := r.text[r.pos]
	switch {
	case c == ']':
		return r.fail(r.pos, "a bracket ends here that did not begin")
	case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
		return r.fail(r.pos, "%q is no atom outside of brackets", c)
	}
	return r.fail(r.pos, "%q is no atom and no bond", c)
}

// bracket reads the rest of an atom in brackets.
func (r *reader) bracket(a *atom, start int) (hydrogens bool, err error) {
	if h, ok := r.hydrogenAtom(); ok {
		a.test = h
		return false, nil
	}
	if a.test, err = r.alternatives(a, ';'); err != nil {
		return false, err
	}
	if r.take(':') && !isDigit(r.peek()) {
		return false, r.fail(r.pos, "an atom map number is missing")
	}
	for isDigit(r.peek()) {
		r.pos++
	}
	if !r.take(']') {
		if r.pos >= r.end {
			return false, r.fail(start, "the bracket that begins here does not end")
		}
		return false, r.fail(r.pos, "%q is no property of an atom", r.peek())
	}
	return a.turn != molecule.Unspecified && a.test.hasHydrogen(), nil
}

// hydrogenAtom reads the rest of [H], with an isotope, a charge and a map number, if that is what follows.
func (r *reader) hydrogenAtom() (test, bool) {
	start := r.pos
	parts := []test{equal(element, 1)}
	if isDigit(r.peek()) {
		n, err := r.number()
		if err != nil {
			r.pos = start
			return test{}, false
		}
		parts = append(parts, equal(isotope, n))
	}
	ok := r.take('H')
	if ok && (r.peek() == '+' || r.peek() == '-') {
		q, err := r.charge()
		ok = err == nil
		parts = append(parts, q)
	}
	if ok && r.take(':') {
		ok = isDigit(r.peek())
		for isDigit(r.peek()) {
			r.pos++
		}
	}
	if !ok || !r.take(']') {
		r.pos = start
		return test{}, false
	}
	return join(both, parts), true
}

// hasHydrogen reports whether a test demands one hydrogen.
func (t *test) hasHydrogen() bool {
	if t.op == both {
		for i := range t.parts {
			if t.parts[i].hasHydrogen() {
				return true
			}
		}
	}
	return t.op == within && t.field == hydrogens && t.low == 1 && t.high == 1
}

// alternatives reads the logic of an atom, from the operator that binds least: the semicolon, the comma, &.
func (r *reader) alternatives(a *atom, operator byte) (test, error) {
	var parts []test
	for {
		var part test
		var err error
		switch operator {
		case ';':
			part, err = r.alternatives(a, ',')
		case ',':
			part, err = r.alternatives(a, '&')
		default:
			part, err = r.negation(a)
		}
		if err != nil {
			return test{}, err
		}
		parts = append(parts, part)
		c := r.peek()
		implied := operator == '&' && c != 0 && strings.IndexByte(";,:]&)", c) < 0
		if !implied && !r.take(operator) {
			break
		}
	}
	if operator == ',' {
		if len(parts) > 1 && a.turn != molecule.Unspecified {
			return test{}, r.fail(r.pos, "a configuration among alternatives is not supported")
		}
		return join(either, parts), nil
	}
	return join(both, parts), nil
}

func (r *reader) negation(a *atom) (test, error) {
	start := r.pos
	negated := false
	for r.take('!') {
		negated = !negated
	}
	turn := a.turn
	t, err := r.primitive(a)
	if err != nil || !negated {
		return t, err
	}
	if a.turn != turn {
		return test{}, r.fail(start, "a negated configuration is not supported")
	}
	return test{op: not, parts: []test{t}}, nil
}

// primitive reads one property of an atom.
func (r *reader) primitive(a *atom) (test, error) {
	if r.pos >= r.end {
		return test{}, r.fail(r.pos, "the bracket does not end")
	}
	if t, ok := r.symbol(); ok {
		return t, nil
	}
	c := r.peek()
	switch {
	case isDigit(c):
		n, err := r.number()
		return equal(isotope, n), err
	case c == '+' || c == '-':
		return r.charge()
	case c == '$':
		return r.environment()
	}
	if k, ok := counts[c]; ok {
		r.pos++
		return r.count(k)
	}
	r.pos++
	switch c {
	case '*':
		return test{op: anything}, nil
	case 'a':
		return equal(aromatic, 1), nil
	case 'A':
		return equal(aromatic, 0), nil
	case 'k':
		sized := isDigit(r.peek()) || r.peek() == '{'
		t, err := r.count(counted{rings, 1, true})
		if sized {
			t.op = ringOf
		}
		return t, err
	case '#':
		n, err := r.number()
		return equal(element, n), err
	case '^':
		n, err := r.number()
		if err == nil && n > 5 {
			err = r.fail(r.pos-1, "a hybridisation is ^0 to ^5")
		}
		return equal(orbitals, n), err
	case '@':
		return r.configuration(a)
	}
	r.pos--
	return test{}, r.fail(r.pos, "%q is no property of an atom", c)
}

// symbol reads the symbol of an element in brackets, if that is what follows. The longest one counts.
func (r *reader) symbol() (test, bool) {
	for length := min(2, r.end-r.pos); length > 0; length-- {
		s := r.text[r.pos : r.pos+length]
		z := bySymbol[s]
		t := equal(element, z)
		if organic[s] != 0 { // elements that always need brackets may be aromatic, as in RDKit
			t = typed(z, 0)
		}
		if z == 0 {
			z = aromatics[s]
			t = typed(z, 1)
		}
		if _, counter := counts[s[0]]; z != 0 && !(counter && length == 1) {
			r.pos += length
			return t, true
		}
	}
	return test{}, false
}

// configuration reads the rest of @ or @@.
func (r *reader) configuration(a *atom) (test, error) {
	start := r.pos - 1
	turn := molecule.CounterClockwise
	if r.take('@') {
		turn = molecule.Clockwise
	}
	switch c := r.peek(); {
	case a.turn != molecule.Unspecified:
		return test{}, r.fail(start, "the atom has a configuration")
	case c == '?' || c == '@' || isDigit(c), strings.HasPrefix(r.text[r.pos:], "TH"),
		strings.HasPrefix(r.text[r.pos:], "AL"), strings.HasPrefix(r.text[r.pos:], "SP"),
		strings.HasPrefix(r.text[r.pos:], "TB"), strings.HasPrefix(r.text[r.pos:], "OH"):
		return test{}, r.fail(start, "a configuration is @ or @@; other classes are not supported")
	}
	a.turn = turn
	return test{op: anything}, nil
}

// environment reads $(…).
func (r *reader) environment() (test, error) {
	start := r.pos
	r.pos++
	if !r.take('(') {
		return test{}, r.fail(start, "an environment is $(…)")
	}
	if r.depth++; r.depth > maxDepth {
		return test{}, r.fail(start, "environments are nested more than %d deep", maxDepth)
	}
	inner := r.pos
	count := len(r.graphs)
	number, err := r.graph()
	if err != nil {
		return test{}, err
	}
	r.depth--
	text := r.text[inner:r.pos]
	if !r.take(')') {
		return test{}, r.fail(start, "the environment that begins here does not end")
	}
	if r.take('_') { // a label of RDKit's
		if _, err := r.number(); err != nil {
			return test{}, err
		}
	}
	if same, ok := r.known[text]; ok {
		r.graphs = r.graphs[:count]
		number = same
	}
	r.known[text] = number
	return test{op: inside, graph: number}, nil
}
