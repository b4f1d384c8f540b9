package smarts

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// Pattern is a compiled SMARTS string. Goroutines may share it.
type Pattern struct {
	text   string
	graphs []*graph // the pattern itself, then its environments
}

// Compile reads a SMARTS string. Blanks around it are ignored. An error is an [*Error].
func Compile(smarts string) (*Pattern, error) {
	r := reader{text: smarts, known: map[string]int32{}}
	if err := r.read(); err != nil {
		return nil, err
	}
	for i, g := range r.graphs {
		if err := g.checkCentres(smarts); err != nil {
			return nil, err
		}
		g.findDoubleBonds()
		g.plan(i > 0)
	}
	return &Pattern{text: smarts, graphs: r.graphs}, nil
}

// MustCompile is [Compile] for a pattern that is known to be right. It panics if it is not.
func MustCompile(smarts string) *Pattern {
	p, err := Compile(smarts)
	if err != nil {
		panic(err)
	}
	return p
}

// String returns the text of the pattern.
func (p *Pattern) String() string { return p.text }

// Atoms returns the number of atoms of the pattern.
func (p *Pattern) Atoms() int { return len(p.graphs[0].atoms) }

// Error says why a text is not a SMARTS pattern.
type Error struct {
	SMARTS string
	Column int // byte of the text where the problem is, from 1
	Reason string
}

// Error returns `smarts: "SMARTS": column: reason`.
func (e *Error) Error() string {
	return fmt.Sprintf("smarts: %q: column %d: %s", e.SMARTS, e.Column, e.Reason)
}

// A graph is the graph of a pattern or of an environment, with the order of its search.
type graph struct {
	atoms   []atom
	bonds   []bond
	steps   []step
	needs   []need       // elements that a molecule must have
	doubles []doubleBond // with a configuration
	centres bool         // some atom has a configuration
}

// An atom of a pattern.
type atom struct {
	test     test
	possible classes // outside of these, the test fails
	certain  classes // in these, it holds
	column   int
	turn     molecule.Chirality // of the neighbours in around, as seen from the first
	around   []int32            // neighbours as written; hydrogen for one in the bracket
}

const hydrogen = -1

// A bond of a pattern.
type bond struct {
	begin, end int32
	kinds      kinds // as seen from begin
	direction  molecule.Direction
}

// kinds is a set of kinds of bonds: a bit for each type in a ring, and one for it outside of rings.
type kinds uint16

// backward is the type of a dative bond that is seen from the atom that takes the electrons. It stands
// behind the types of package molecule.
const backward = molecule.AnyOrder + 1

const (
	inRing  kinds = 0xAAAA
	anyBond kinds = 0xFFFF
)

// kindOf returns the bits of a bond type, in rings and outside.
func kindOf(t molecule.BondType) kinds { return 3 << (2 * t) }

// reversed returns the same kinds as seen from the other atom.
func (k kinds) reversed() kinds {
	forth := k & kindOf(molecule.Dative)
	back := k & kindOf(backward)
	k &^= kindOf(molecule.Dative) | kindOf(backward)
	return k | forth<<(2*(backward-molecule.Dative)) | back>>(2*(backward-molecule.Dative))
}

// classes is a set of elements, aromatic ones apart: bit 2z, and bit 2z+1 for aromatic atoms.
type classes [4]uint64

func classOf(z int8, aromatic bool) uint {
	class := 2 * uint(uint8(z))
	if aromatic {
		class++
	}
	return class
}

func (c *classes) add(class uint)      { c[class/64] |= 1 << (class % 64) }
func (c *classes) has(class uint) bool { return c[class/64]>>(class%64)&1 != 0 }

func (c *classes) meets(other *classes) bool {
	return c[0]&other[0]|c[1]&other[1]|c[2]&other[2]|c[3]&other[3] != 0
}

// element returns the only element of a set, or -1.
func (c *classes) element() int {
	z := -1
	for w, word := range c {
		for ; word != 0; word &= word - 1 {
			class := w*64 + bits.TrailingZeros64(word)
			if z >= 0 && class/2 != z {
				return -1
			}
			z = class / 2
		}
	}
	return z
}

// A need is the least number of atoms of an element.
type need struct {
	z     int8
	count int32
}

// A step of the search chooses the image of one atom of the pattern.
type step struct {
	atom   int32
	parent int32 // a neighbour that has an image; -1 if there is none
	kinds  kinds // of the bond from the parent
	closes []closure
}

// A closure is a further bond to an atom that has an image.
type closure struct {
	atom  int32
	kinds kinds // as seen from that atom
}

// plan orders the atoms for the search: rare ones first, and then neighbours of those before. With
// rooted, the first atom comes first.
func (g *graph) plan(rooted bool) {
	n := len(g.atoms)
	placed := make([]bool, n)
	counts := map[int]int32{}
	for i := range g.atoms {
		a := &g.atoms[i]
		a.possible, a.certain = a.test.classes()
		if z := a.possible.element(); z >= 0 {
			counts[z]++
		}
	}
	for z, count := range counts {
		g.needs = append(g.needs, need{int8(z), count})
	}
	slices.SortFunc(g.needs, func(a, b need) int { return int(b.z) - int(a.z) })
	for len(g.steps) < n {
		next := step{atom: -1, parent: -1}
		best := -1
		for i := range int32(n) {
			if placed[i] {
				continue
			}
			candidate := g.stepTo(i, placed)
			score := g.atoms[i].possible.rarity()
			switch {
			case rooted && len(g.steps) == 0 && i > 0:
				continue
			case candidate.parent >= 0:
				score += 1000 * (1 + len(candidate.closes))
			}
			if score > best {
				best = score
				next = candidate
			}
		}
		placed[next.atom] = true
		g.steps = append(g.steps, next)
	}
}

// stepTo returns the step to an atom after those that have been placed.
func (g *graph) stepTo(i int32, placed []bool) step {
	s := step{atom: i, parent: -1}
	for _, b := range g.bonds {
		if b.begin == i {
			b.begin, b.end = b.end, b.begin
			b.kinds = b.kinds.reversed()
		}
		if b.end != i || !placed[b.begin] {
			continue
		}
		if s.parent < 0 {
			s.parent = b.begin
			s.kinds = b.kinds
		} else {
			s.closes = append(s.closes, closure{b.begin, b.kinds})
		}
	}
	return s
}

// frequent has the number of atoms of a class among 100 atoms of drugs.
var frequent = map[uint]int{
	classOf(6, false): 40,
	classOf(6, true):  34,
	classOf(7, false): 7,
	classOf(7, true):  4,
	classOf(8, false): 10,
}

// rarity returns 100 for the rarest classes and less for frequent ones.
func (c *classes) rarity() int {
	score := 100
	for class, percent := range frequent {
		if c.has(class) {
			score -= percent
		}
	}
	return score
}
