package smarts

import (
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// checkCentres refuses configurations of atoms with too few neighbours.
func (g *graph) checkCentres(smarts string) error {
	for i := range g.atoms {
		a := &g.atoms[i]
		if n := len(a.around); a.turn != molecule.Unspecified && (n < 3 || n > 4) {
			return &Error{
				SMARTS: smarts,
				Column: a.column + 1,
				Reason: "an atom with @ needs three or four neighbours, of which one may be H in its bracket",
			}
		}
	}
	return nil
}

// A doubleBond has a configuration: bonds at both of its atoms found directions.
type doubleBond struct {
	begin, end  int32
	left, right int32 // a neighbour of begin and one of end
	same        bool  // whether they are on the same side
}

// findDoubleBonds fills g.doubles.
func (g *graph) findDoubleBonds() {
	for k, b := range g.bonds {
		if b.kinds&^kindOf(molecule.Double) != 0 || b.kinds == 0 {
			continue
		}
		first, direction := g.directed(b.begin, k)
		second, across := g.directed(b.end, k)
		if first >= 0 && second >= 0 {
			g.doubles = append(g.doubles, doubleBond{
				begin: b.begin,
				end:   b.end,
				left:  first,
				right: second,
				same:  direction == across,
			})
		}
	}
}

// directed returns a neighbour of an atom at a bond with a direction other than bond k, or -1, and the direction
// as seen from the atom.
func (g *graph) directed(atom int32, k int) (int32, molecule.Direction) {
	for j, b := range g.bonds {
		if j == k || b.direction == molecule.NoDirection {
			continue
		}
		switch atom {
		case b.begin:
			return b.end, b.direction
		case b.end:
			return b.begin, reversed(b.direction)
		}
	}
	return -1, molecule.NoDirection
}

// sameDoubleBonds reports whether the images of double bonds found the configurations of the pattern.
func (m *Matcher) sameDoubleBonds(s *search) bool {
	for _, d := range s.graph.doubles {
		begin := s.image[d.begin]
		first := s.image[d.left]
		second := s.image[d.right]
		for _, l := range m.of(begin) {
			if l.atom != s.image[d.end] {
				continue
			}
			b := &m.m.Bonds[l.bond]
			refBegin, refEnd, same, ok := b.Sides()
			if b.Begin != begin {
				refBegin, refEnd = refEnd, refBegin
			}
			// Another neighbour lies on the other side.
			same = same == (first == refBegin) == (second == refEnd)
			if !ok || same != d.same {
				return false
			}
		}
	}
	return true
}

// noImage stands for a neighbour in the molecule that the pattern does not list.
const noImage = -2

// sameCentres reports whether the images of centres found the configurations of the pattern.
func (m *Matcher) sameCentres(s *search) bool {
	for i := range s.graph.atoms {
		a := &s.graph.atoms[i]
		if a.turn != molecule.Unspecified && !m.sameCentre(s, a, s.image[i]) {
			return false
		}
	}
	return true
}

func (m *Matcher) sameCentre(s *search, a *atom, i int32) bool {
	turn := m.m.Atoms[i].Chirality
	if turn != molecule.Clockwise && turn != molecule.CounterClockwise {
		return false
	}
	var wanted, found [4]int32 // neighbours as the pattern and as the molecule lists them
	n := 0
	for _, k := range a.around {
		wanted[n] = hydrogen
		if k != hydrogen {
			wanted[n] = s.image[k]
		}
		n++
	}
	size := 0
	missing := int32(noImage) // what the pattern does not list
	for _, l := range m.of(i) {
		if size == len(found) {
			return false
		}
		found[size] = l.atom
		if !slices.Contains(wanted[:n], l.atom) {
			found[size] = noImage
			if m.m.Atoms[l.atom].Z == 1 && slices.Contains(wanted[:n], hydrogen) {
				found[size] = hydrogen
			}
		}
		size++
	}
	if size == 3 {
		found[3] = hydrogen // or a lone pair
		if !slices.Contains(wanted[:n], hydrogen) {
			missing = hydrogen
		}
		size++
	}
	if n == 3 {
		wanted[3] = missing
		n++
	}
	if size != 4 || n != 4 {
		return false
	}
	// Sort found into the order of wanted: each swap turns the centre over.
	for k := range wanted {
		place := slices.Index(found[k:], wanted[k])
		if place < 0 {
			return false
		}
		if place > 0 {
			found[k], found[k+place] = found[k+place], found[k]
			turn = molecule.Clockwise + molecule.CounterClockwise - turn
		}
	}
	return turn == a.turn
}
