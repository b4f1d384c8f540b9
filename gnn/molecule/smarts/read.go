package smarts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// maxDepth bounds environments within environments, and mostAtoms the atoms of a pattern.
const (
	maxDepth  = 50
	mostAtoms = 1000
)

// A reader reads a pattern in one pass.
type reader struct {
	text   string
	pos    int
	end    int
	graphs []*graph
	known  map[string]int32 // environments by their text
	depth  int
	atoms  int
}

func (r *reader) fail(pos int, format string, args ...any) error {
	return &Error{SMARTS: r.text, Column: pos + 1, Reason: fmt.Sprintf(format, args...)}
}

// peek returns the next byte, and 0 at the end.
func (r *reader) peek() byte {
	if r.pos < r.end {
		return r.text[r.pos]
	}
	return 0
}

// take skips the next byte if it is c.
func (r *reader) take(c byte) bool {
	if r.peek() != c || r.pos >= r.end {
		return false
	}
	r.pos++
	return true
}

func (r *reader) read() error {
	r.pos = len(r.text) - len(strings.TrimLeft(r.text, " \t\r\n"))
	r.end = len(strings.TrimRight(r.text, " \t\r\n"))
	if r.pos >= r.end {
		return r.fail(0, "the pattern is empty")
	}
	if _, err := r.graph(); err != nil {
		return err
	}
	if r.pos < r.end {
		return r.fail(r.pos, "a branch ends here that did not begin")
	}
	return nil
}

// An opening is a ring number that waits for its second atom.
type opening struct {
	atom, place int32 // place is the index in around
	kinds       kinds
	written     bool
	direction   molecule.Direction
	column      int
}

// A chain is the state between the atoms of a graph.
type chain struct {
	graph    *graph
	last     int32 // the atom to which the next one is bound; -1 if none
	branches []int32
	columns  []int // of the branches
	rings    map[int]opening
}

// graph reads a graph up to the end or to the bracket that closes its environment, and returns its number.
func (r *reader) graph() (int32, error) {
	number := int32(len(r.graphs))
	c := chain{
		graph: &graph{},
		last:  -1,
		rings: map[int]opening{},
	}
	r.graphs = append(r.graphs, c.graph)
	start := r.pos
	for r.pos < r.end {
		closing := r.peek() == ')'
		if closing && len(c.branches) == 0 {
			break
		}
		if err := r.element(&c); err != nil {
			return 0, err
		}
	}
	switch {
	case len(c.branches) > 0:
		return 0, r.fail(c.columns[len(c.columns)-1], "the branch that begins here does not end")
	case len(c.graph.atoms) == 0:
		return 0, r.fail(start, "an atom is missing")
	case c.last < 0:
		return 0, r.fail(r.pos, "an atom is missing behind the dot")
	}
	for _, n := range slices.Sorted(maps.Keys(c.rings)) {
		return 0, r.fail(c.rings[n].column, "the ring number %d is used once", n)
	}
	return number, nil
}

// element reads what comes next in a chain: an atom with its bond, a ring number, a branch or a dot.
func (r *reader) element(c *chain) error {
	start := r.pos
	switch r.peek() {
	case '(':
		if c.last < 0 {
			return r.fail(start, "a branch needs an atom before it; groups of components are not supported")
		}
		r.pos++
		c.branches = append(c.branches, c.last)
		c.columns = append(c.columns, start)
		if r.peek() == ')' || r.peek() == '(' {
			return r.fail(r.pos, "an atom is missing in the branch")
		}
		return nil
	case ')':
		if before := r.text[start-1]; before == '(' || before == '.' {
			return r.fail(start, "an atom is missing before the end of the branch")
		}
		r.pos++
		top := len(c.branches) - 1
		c.last = c.branches[top]
		c.branches = c.branches[:top]
		c.columns = c.columns[:top]
		return nil
	case '.':
		if c.last < 0 {
			return r.fail(start, "a dot needs an atom before it")
		}
		r.pos++
		c.last = -1
		return nil
	case '>':
		return r.fail(start, "reactions are not supported")
	}
	spec, err := r.bond()
	if err != nil {
		return err
	}
	if spec.written && c.last < 0 {
		return r.fail(start, "a bond needs an atom before it")
	}
	if isDigit(r.peek()) || r.peek() == '%' {
		return r.ring(c, spec)
	}
	return r.place(c, spec)
}

// place reads an atom and adds it to a chain.
func (r *reader) place(c *chain, spec bondSpec) error {
	number := int32(len(c.graph.atoms))
	a := atom{column: r.pos}
	if r.atoms++; r.atoms > mostAtoms {
		return r.fail(r.pos, "a pattern may have %d atoms", mostAtoms)
	}
	hydrogens, err := r.atom(&a)
	if err != nil {
		return err
	}
	if c.last >= 0 {
		a.around = append(a.around, c.last)
		before := &c.graph.atoms[c.last]
		before.around = append(before.around, number)
		c.graph.bonds = append(c.graph.bonds, bond{
			begin:     c.last,
			end:       number,
			kinds:     spec.kinds,
			direction: spec.direction,
		})
	}
	if hydrogens {
		a.around = append(a.around, hydrogen)
	}
	c.graph.atoms = append(c.graph.atoms, a)
	c.graph.centres = c.graph.centres || a.turn != molecule.Unspecified
	c.last = number
	return nil
}

// ring reads a ring number behind the last atom.
func (r *reader) ring(c *chain, spec bondSpec) error {
	start := r.pos
	n, err := r.ringNumber()
	if err != nil {
		return err
	}
	if c.last < 0 {
		return r.fail(start, "a ring number needs an atom before it")
	}
	a := &c.graph.atoms[c.last]
	first, open := c.rings[n]
	if !open {
		c.rings[n] = opening{
			atom:      c.last,
			place:     int32(len(a.around)),
			kinds:     spec.kinds,
			written:   spec.written,
			direction: spec.direction,
			column:    start,
		}
		a.around = append(a.around, hydrogen) // until the other atom is known
		return nil
	}
	delete(c.rings, n)
	b := bond{
		begin:     first.atom,
		end:       c.last,
		kinds:     first.kinds,
		direction: first.direction,
	}
	if !first.written {
		b.kinds = spec.kinds.reversed()
		b.direction = reversed(spec.direction)
	}
	if first.written && spec.written && first.kinds != spec.kinds.reversed() {
		return r.fail(start, "the bonds of the ring number %d differ", n)
	}
	for _, present := range c.graph.bonds {
		if present.begin == b.begin && present.end == b.end || present.begin == b.end && present.end == b.begin {
			return r.fail(start, "the ring number %d is a second bond between two atoms", n)
		}
	}
	if b.begin == b.end {
		return r.fail(start, "the ring number %d binds an atom to itself", n)
	}
	c.graph.atoms[first.atom].around[first.place] = c.last
	a.around = append(a.around, first.atom)
	c.graph.bonds = append(c.graph.bonds, b)
	return nil
}

func (r *reader) ringNumber() (int, error) {
	start := r.pos
	if !r.take('%') {
		r.pos++
		return int(r.text[start] - '0'), nil
	}
	digits := 2
	grouped := r.take('(')
	if grouped {
		digits = 5
	}
	n := 0
	count := 0
	for ; count < digits && isDigit(r.peek()); count++ {
		n = 10*n + int(r.peek()-'0')
		r.pos++
	}
	if grouped && (count == 0 || !r.take(')')) || !grouped && count < 2 {
		return 0, r.fail(start, "a ring number is %%nn or %%(n)")
	}
	return n, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// bondSpec is a bond as written.
type bondSpec struct {
	kinds     kinds
	direction molecule.Direction
	written   bool
}

// bond reads the logic of a bond. The semicolon binds less than the comma, and that less than &. A bond that
// is not written is single or aromatic.
func (r *reader) bond() (bondSpec, error) {
	start := r.pos
	spec := bondSpec{kinds: anyBond}
	for {
		union := kinds(0)
		for {
			every := anyBond
			for {
				k, found, err := r.bondPrimitive(&spec)
				if err != nil {
					return spec, err
				}
				if !found {
					if r.pos == start {
						spec.kinds = kindOf(molecule.Single) | kindOf(molecule.Aromatic)
						return spec, nil
					}
					return spec, r.fail(r.pos, "a bond is missing")
				}
				spec.written = true
				every &= k
				if !r.take('&') && !strings.ContainsRune(bondSymbols, rune(r.peek())) {
					break
				}
			}
			union |= every
			if !r.take(',') {
				break
			}
		}
		spec.kinds &= union
		if !r.take(';') {
			return spec, nil
		}
	}
}

const bondSymbols = "!-=#$:~@/\\<"

func (r *reader) bondPrimitive(spec *bondSpec) (k kinds, found bool, err error) {
	negated := false
	start := r.pos
	for r.take('!') {
		negated = !negated
	}
	plain := kindOf(molecule.Single) | kindOf(molecule.Aromatic)
	switch r.peek() {
	case '-':
		k = kindOf(molecule.Single)
		if strings.HasPrefix(r.text[r.pos:r.end], "->") {
			r.pos++
			k = kindOf(molecule.Dative)
		}
	case '<':
		if !strings.HasPrefix(r.text[r.pos:r.end], "<-") {
			return 0, false, r.fail(r.pos, "a dative bond is -> or <-")
		}
		r.pos++
		k = kindOf(backward)
	case '=':
		k = kindOf(molecule.Double)
	case '#':
		k = kindOf(molecule.Triple)
	case '$':
		k = kindOf(molecule.Quadruple)
	case ':':
		k = kindOf(molecule.Aromatic)
	case '~':
		k = anyBond
	case '@':
		k = inRing
	case '/':
		k = plain
		spec.direction = molecule.Up
	case '\\':
		k = plain
		spec.direction = molecule.Down
		if strings.HasPrefix(r.text[r.pos:r.end], `\\`) {
			r.pos++
		}
	default:
		if r.pos > start {
			return 0, false, r.fail(r.pos, "a bond is missing behind !")
		}
		return 0, false, nil
	}
	r.pos++
	if negated {
		k = ^k
		spec.direction = molecule.NoDirection
	}
	return k, true, nil
}

func reversed(d molecule.Direction) molecule.Direction {
	switch d {
	case molecule.Up:
		return molecule.Down
	case molecule.Down:
		return molecule.Up
	}
	return d
}
