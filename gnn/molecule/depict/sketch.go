package depict

import (
	"math/cmplx"
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// A sketch is a layout in the making. Its atoms are those of the molecule, then the hydrogens that are drawn.
type sketch struct {
	mol       *molecule.Molecule
	hydrogens []int // the atoms that the drawn hydrogens belong to
	links     [][]link
	bonds     []bond
	blocks    []*block
	blocksOf  [][]*block // by atom
	place     []point
	placed    []bool
}

// A link is a bond as seen from one of its atoms.
type link struct {
	atom int // at the other end
	bond int
}

// A bond joins two atoms. Its first bonds are those of the molecule.
type bond struct {
	begin  int
	end    int
	block  *block // nil outside of rings
	config config
}

// A config is the configuration of a double bond.
type config struct {
	known  bool
	first  int // a neighbour of the begin
	second int // a neighbour of the end
	cis    bool
}

// A block is a ring system whose rings are joined by bonds; rings that share only an atom are in two blocks.
type block struct {
	atoms []int
	bonds []int
	rings [][]int
	place map[int]point // of the atoms and of the pendants
	// pendants are atoms that are placed with the rings that they are inside of.
	pendants []step
}

// newSketch returns the sketch of a molecule, without places.
func newSketch(m *molecule.Molecule) *sketch {
	s := &sketch{mol: m}
	s.links = make([][]link, len(m.Atoms))
	for k := range m.Bonds {
		b := &m.Bonds[k]
		s.join(int(b.Begin), int(b.End))
	}
	for i := range m.Atoms {
		if s.needsHydrogen(i) {
			s.hydrogens = append(s.hydrogens, i)
			s.links = append(s.links, nil)
			s.join(i, len(s.links)-1)
		}
	}
	for k := range m.Bonds {
		s.bonds[k].config = s.findConfig(k)
	}
	s.place = make([]point, len(s.links))
	s.placed = make([]bool, len(s.links))
	s.findBlocks()
	return s
}

func (s *sketch) join(begin, end int) {
	k := len(s.bonds)
	s.bonds = append(s.bonds, bond{begin: begin, end: end})
	s.links[begin] = append(s.links[begin], link{end, k})
	s.links[end] = append(s.links[end], link{begin, k})
}

// needsHydrogen reports whether the hydrogen of a stereocentre is drawn: if all of its other bonds are in rings.
func (s *sketch) needsHydrogen(i int) bool {
	a := &s.mol.Atoms[i]
	if !isCentre(a) || a.Hydrogens != 1 || a.Degree != 3 {
		return false
	}
	return !slices.ContainsFunc(s.links[i], func(l link) bool {
		return !s.mol.Bonds[l.bond].InRing
	})
}

// isCentre reports whether an atom is a tetrahedral stereocentre of known configuration.
func isCentre(a *molecule.Atom) bool {
	return a.Chirality == molecule.Clockwise || a.Chirality == molecule.CounterClockwise
}

// findConfig returns the configuration of a double bond. In a ring, it refers to neighbours in rings.
func (s *sketch) findConfig(k int) (c config) {
	b := &s.mol.Bonds[k]
	begin, end, same, ok := b.Sides()
	if !ok {
		return config{}
	}
	first := s.inRing(int(b.Begin), int(begin), k)
	second := s.inRing(int(b.End), int(end), k)
	return config{
		known:  true,
		first:  first,
		second: second,
		cis:    same == ((first == int(begin)) == (second == int(end))),
	}
}

// inRing returns a neighbour of an end of bond k to which a bond in a ring leads, or else the one that is given.
func (s *sketch) inRing(atom, neighbour, k int) int {
	for _, l := range s.links[atom] {
		if l.bond != k && l.bond < len(s.mol.Bonds) && s.mol.Bonds[l.bond].InRing {
			return l.atom
		}
	}
	return neighbour
}

// hasConfig reports whether a double bond is drawn with its configuration, or has none.
func (s *sketch) hasConfig(b *bond, place func(int) point) bool {
	c := &b.config
	if !c.known {
		return true
	}
	begin := place(b.begin)
	axis := place(b.end) - begin
	first := cross(axis, place(c.first)-begin)
	second := cross(axis, place(c.second)-begin)
	return first*second > 0 == c.cis
}

// findBlocks finds the ring systems: the parts that stay in one piece without any one atom.
func (s *sketch) findBlocks() {
	n := len(s.links)
	s.blocksOf = make([][]*block, n)
	finder := blockFinder{
		sketch: s,
		depth:  make([]int, n),
		low:    make([]int, n),
	}
	for i := range n {
		if finder.depth[i] == 0 {
			finder.visit(i, -1, 1)
		}
	}
	for r := range s.mol.Rings() {
		atoms, bonds := s.mol.Ring(r)
		ring := make([]int, len(atoms))
		for k, i := range atoms {
			ring[k] = int(i)
		}
		if b := s.bonds[bonds[0]].block; b != nil {
			b.rings = append(b.rings, ring)
		}
	}
	for _, b := range s.blocks {
		if len(b.rings) == 0 { // the molecule counts no ring with a dative bond
			b.rings = s.cycles(b)
		}
	}
}

// cycles returns cycles of a block, as short as possible, that have all of its bonds.
func (s *sketch) cycles(b *block) (cycles [][]int) {
	covered := map[int]bool{}
	for _, k := range b.bonds {
		if covered[k] {
			continue
		}
		cycle, bonds := s.cycle(k)
		cycles = append(cycles, cycle)
		for _, member := range bonds {
			covered[member] = true
		}
	}
	return cycles
}

// cycle returns the atoms and the bonds of a shortest cycle through a bond of a block. It searches the block from
// one end of the bond to the other, breadth first.
func (s *sketch) cycle(bond int) (atoms, bonds []int) {
	begin := s.bonds[bond].begin
	end := s.bonds[bond].end
	arrival := map[int]link{begin: {atom: -1, bond: bond}} // the atom before each one, and the bond from there
	queue := []int{begin}
	for len(queue) > 0 && queue[0] != end {
		i := queue[0]
		queue = queue[1:]
		for _, l := range s.links[i] {
			_, found := arrival[l.atom]
			if !found && l.bond != bond && s.bonds[l.bond].block == s.bonds[bond].block {
				arrival[l.atom] = link{atom: i, bond: l.bond}
				queue = append(queue, l.atom)
			}
		}
	}
	for i := end; i >= 0; i = arrival[i].atom {
		atoms = append(atoms, i)
		bonds = append(bonds, arrival[i].bond)
	}
	return atoms, bonds
}

// A blockFinder is Tarjan's search for biconnected components.
type blockFinder struct {
	*sketch
	depth []int // from 1; 0 before the visit
	low   []int
	stack []int // bonds
}

func (f *blockFinder) visit(atom, entry, depth int) {
	f.depth[atom] = depth
	f.low[atom] = depth
	for _, l := range f.links[atom] {
		switch {
		case l.bond == entry:
		case f.depth[l.atom] == 0:
			start := len(f.stack)
			f.stack = append(f.stack, l.bond)
			f.visit(l.atom, l.bond, depth+1)
			f.low[atom] = min(f.low[atom], f.low[l.atom])
			if f.low[l.atom] >= depth {
				f.close(f.stack[start:])
				f.stack = f.stack[:start]
			}
		case f.depth[l.atom] < depth:
			f.stack = append(f.stack, l.bond)
			f.low[atom] = min(f.low[atom], f.depth[l.atom])
		}
	}
}

// close makes bonds a block, unless there is only one.
func (f *blockFinder) close(bonds []int) {
	if len(bonds) < 3 {
		return
	}
	b := &block{bonds: slices.Sorted(slices.Values(bonds))}
	for _, k := range b.bonds {
		f.bonds[k].block = b
		b.atoms = append(b.atoms, f.bonds[k].begin, f.bonds[k].end)
	}
	slices.Sort(b.atoms)
	b.atoms = slices.Compact(b.atoms)
	for _, i := range b.atoms {
		f.blocksOf[i] = append(f.blocksOf[i], b)
	}
	f.blocks = append(f.blocks, b)
}

// isLinear reports whether the two bonds of an atom are on one line.
func (s *sketch) isLinear(atom int) bool {
	if atom >= len(s.mol.Atoms) || len(s.links[atom]) != 2 {
		return false
	}
	orders := 0
	for _, l := range s.links[atom] {
		switch s.mol.Bonds[l.bond].Type {
		case molecule.Triple:
			return true
		case molecule.Double:
			orders++
		}
	}
	z := s.mol.Atoms[atom].Z
	return orders == 2 && (z == 6 || z == 7)
}

// angle returns the direction from an atom to another one, both of which are placed.
func (s *sketch) angle(entry, target int) float64 {
	return cmplx.Phase(s.place[target] - s.place[entry])
}
