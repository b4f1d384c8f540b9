package smarts

import (
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// Matcher looks for patterns in a molecule. It keeps its memory between molecules. Two goroutines must
// not use one Matcher at once. The zero Matcher has an empty molecule.
type Matcher struct {
	// Limit bounds the matches that Count and Matches find, 0 for no bound. A pattern of wildcards can
	// have very many.
	Limit int

	m         *molecule.Molecule
	ptr       []int32
	links     []link
	values    [][fields]int16
	sizes     []uint64 // of every atom: the sizes of its rings, as bits
	classes   []uint8
	present   classes
	histogram [128]int32 // of elements

	pattern *Pattern
	results []result // of environments at atoms: graph after graph
	search  []search // of the pattern, and of environments by depth
	sets    sets
	matches [][]int32
	list    bool // whether matches are wanted, not their number
}

// A link is a bond as seen from an atom.
type link struct {
	atom int32
	bond int32
	kind kinds // one bit
}

// result says whether an environment matches at an atom.
type result uint8

const (
	unknown result = iota
	fails
	holds
)

// A search is the state of looking for one graph.
type search struct {
	graph *graph
	depth int
	first bool    // stop at the first match
	found bool    // with first
	image []int32 // of every atom of the graph
	used  []bool  // the images, by atom of the molecule
}

// Reset makes mol the molecule in which patterns are looked for. It must stay as it is meanwhile.
func (m *Matcher) Reset(mol *molecule.Molecule) {
	n := len(mol.Atoms)
	m.m = mol
	m.connect()
	m.values = resize(m.values, n)
	m.sizes = resize(m.sizes, n)
	m.classes = resize(m.classes, n)
	m.present = classes{}
	clear(m.histogram[:])
	for r := range mol.Rings() {
		atoms, _ := mol.Ring(r)
		size := int16(min(len(atoms), maxValue))
		for _, a := range atoms {
			v := &m.values[a]
			v[rings]++
			if v[smallest] == 0 || size < v[smallest] {
				v[smallest] = size
			}
			m.sizes[a] |= 1 << min(size, 63)
		}
	}
	for i := range mol.Atoms {
		a := &mol.Atoms[i]
		m.describe(int32(i), a)
		class := classOf(a.Z, a.Aromatic)
		m.classes[i] = uint8(class)
		m.present.add(class)
		m.histogram[a.Z]++
	}
	for i := range m.search {
		m.search[i].used = resize(m.search[i].used, n)
	}
}

// connect lists the bonds of every atom.
func (m *Matcher) connect() {
	bonds := m.m.Bonds
	m.ptr = resize(m.ptr, len(m.m.Atoms)+2)
	m.links = resize(m.links, 2*len(bonds))
	for k := range bonds {
		m.ptr[bonds[k].Begin+2]++
		m.ptr[bonds[k].End+2]++
	}
	for i := 2; i < len(m.ptr); i++ {
		m.ptr[i] += m.ptr[i-1]
	}
	for k := range bonds {
		b := &bonds[k]
		forth := kinds(1) << (2 * b.Type)
		back := forth
		if b.Type == molecule.Dative {
			back = 1 << (2 * backward)
		}
		if b.InRing {
			forth <<= 1
			back <<= 1
		}
		m.links[m.ptr[b.Begin+1]] = link{b.End, int32(k), forth}
		m.ptr[b.Begin+1]++
		m.links[m.ptr[b.End+1]] = link{b.Begin, int32(k), back}
		m.ptr[b.End+1]++
	}
}

func (m *Matcher) of(i int32) []link { return m.links[m.ptr[i]:m.ptr[i+1]] }

// describe sets the values of an atom but those of its rings, which have been counted.
func (m *Matcher) describe(i int32, a *molecule.Atom) {
	v := &m.values[i]
	v[element] = int16(a.Z)
	v[charge] = int16(a.Charge)
	v[isotope] = int16(min(a.Isotope, maxValue))
	v[degree] = a.Degree
	v[neighbours] = a.Degree + int16(a.Hydrogens)
	v[valence] = int16(a.Valence())
	v[implicit] = int16(a.Hydrogens)
	v[hydrogens] = int16(a.Hydrogens)
	v[orbitals] = orbitalsOf(a.Hybridisation)
	if a.Aromatic {
		v[aromatic] = 1
	}
	for _, l := range m.of(i) {
		neighbour := &m.m.Atoms[l.atom]
		if neighbour.Z == 1 {
			v[hydrogens]++
		}
		if neighbour.Z != 1 || neighbour.Isotope > 1 {
			v[heavyDegree]++
		}
		if neighbour.Z != 1 && neighbour.Z != 6 {
			v[hetero]++
			if !neighbour.Aromatic {
				v[aliphatic]++
			}
		}
		if l.kind&inRing != 0 {
			v[ringBonds]++
		}
	}
}

// orbitalsOf returns the number of a hybridisation in SMARTS, and -1 for one that has none.
func orbitalsOf(h molecule.Hybridisation) int16 {
	switch h {
	case molecule.HybridS:
		return 0
	case molecule.HybridSP:
		return 1
	case molecule.HybridSP2:
		return 2
	case molecule.HybridSP3:
		return 3
	case molecule.HybridSP3D:
		return 4
	case molecule.HybridSP3D2:
		return 5
	}
	return -1
}

// resize returns a slice of n zeros, in the memory of s if it suffices.
func resize[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// Has reports whether the molecule has the pattern.
func (m *Matcher) Has(p *Pattern) bool {
	if !m.start(p, true) {
		return false
	}
	m.extend(0, 0)
	return m.search[0].found
}

// Count returns the number of sets of atoms that match the pattern.
func (m *Matcher) Count(p *Pattern) int {
	m.list = false
	m.sets.reset(p.Atoms())
	if m.start(p, false) {
		m.extend(0, 0)
	}
	return m.sets.count
}

// Matches returns the matches: the atoms of the molecule in the order of the pattern. Of matches with the
// same set of atoms, it returns the first that it finds. The next call overwrites the slices.
func (m *Matcher) Matches(p *Pattern) [][]int32 {
	m.list = true
	m.matches = m.matches[:0]
	m.sets.reset(p.Atoms())
	if m.start(p, false) {
		m.extend(0, 0)
	}
	for k := range m.sets.count {
		m.matches = append(m.matches, m.sets.images[k*p.Atoms():(k+1)*p.Atoms()])
	}
	return m.matches
}

// start prepares the search for a pattern. It returns false if the molecule lacks elements.
func (m *Matcher) start(p *Pattern, first bool) bool {
	g := p.graphs[0]
	if m.m == nil || !m.mayHave(g) {
		return false
	}
	m.pattern = p
	if n := (len(p.graphs) - 1) * len(m.m.Atoms); n > 0 {
		m.results = resize(m.results, n)
	}
	m.prepare(0, g, first)
	return true
}

// mayHave compares the elements that a graph needs with those of the molecule.
func (m *Matcher) mayHave(g *graph) bool {
	if len(g.atoms) > len(m.m.Atoms) || len(g.bonds) > len(m.m.Bonds) {
		return false
	}
	for _, n := range g.needs {
		if m.histogram[n.z] < n.count {
			return false
		}
	}
	for i := range g.atoms {
		if !g.atoms[i].possible.meets(&m.present) {
			return false
		}
	}
	return true
}

// prepare sets up the search of a depth.
func (m *Matcher) prepare(depth int, g *graph, first bool) {
	for len(m.search) <= depth {
		m.search = append(m.search, search{used: make([]bool, len(m.m.Atoms))})
	}
	s := &m.search[depth]
	s.graph = g
	s.depth = depth
	s.first = first
	s.found = false
	s.image = slices.Grow(s.image[:0], len(g.atoms))[:len(g.atoms)]
}

// extend tries all images of the atoms from step k on. It reports whether the search is over.
func (m *Matcher) extend(depth, k int) bool {
	s := &m.search[depth]
	if k == len(s.graph.steps) {
		return m.complete(s)
	}
	next := &s.graph.steps[k]
	if next.parent < 0 {
		for i := range int32(len(m.m.Atoms)) {
			if m.try(depth, k, next, i) {
				return true
			}
		}
		return false
	}
	for _, l := range m.of(s.image[next.parent]) {
		if l.kind&next.kinds != 0 && m.try(depth, k, next, l.atom) {
			return true
		}
	}
	return false
}

// try makes i the image of the atom of step k, and goes on. It reports whether the search is over.
func (m *Matcher) try(depth, k int, next *step, i int32) bool {
	s := &m.search[depth]
	if s.used[i] {
		return false
	}
	for _, c := range next.closes {
		if m.kindBetween(s.image[c.atom], i)&c.kinds == 0 {
			return false
		}
	}
	if !m.fits(&s.graph.atoms[next.atom], i, depth) {
		return false
	}
	s = &m.search[depth] // environments may have moved it
	s.image[next.atom] = i
	s.used[i] = true
	over := m.extend(depth, k+1)
	m.search[depth].used[i] = false
	return over
}

// kindBetween returns the kind of the bond between two atoms as seen from the first, and 0 if there is none.
func (m *Matcher) kindBetween(a, b int32) kinds {
	for _, l := range m.of(a) {
		if l.atom == b {
			return l.kind
		}
	}
	return 0
}

// complete notes a match. It reports whether the search is over.
func (m *Matcher) complete(s *search) bool {
	if s.graph.centres && !m.sameCentres(s) || !m.sameDoubleBonds(s) {
		return false
	}
	if s.first {
		s.found = true
		return true
	}
	m.sets.add(s.image, m.list)
	return m.Limit > 0 && m.sets.count >= m.Limit
}

// fits reports whether an atom of the molecule fits one of a pattern.
func (m *Matcher) fits(a *atom, i int32, depth int) bool {
	class := uint(m.classes[i])
	if !a.possible.has(class) {
		return false
	}
	return a.certain.has(class) || m.passes(&a.test, i, depth)
}

func (m *Matcher) passes(t *test, i int32, depth int) bool {
	switch t.op {
	case within:
		v := m.values[i][t.field]
		return t.low <= v && v <= t.high
	case not:
		return !m.passes(&t.parts[0], i, depth)
	case both:
		for k := range t.parts {
			if !m.passes(&t.parts[k], i, depth) {
				return false
			}
		}
		return true
	case either:
		for k := range t.parts {
			if m.passes(&t.parts[k], i, depth) {
				return true
			}
		}
		return false
	case ringOf:
		for size := max(t.low, 3); size <= min(t.high, 63); size++ {
			if m.sizes[i]>>size&1 != 0 {
				return true
			}
		}
		return false
	case inside:
		return m.inEnvironment(t.graph, i, depth+1)
	}
	return true
}

// inEnvironment reports whether an environment matches with its first atom at i.
func (m *Matcher) inEnvironment(number, i int32, depth int) bool {
	answer := &m.results[(int(number)-1)*len(m.m.Atoms)+int(i)]
	if *answer != unknown {
		return *answer == holds
	}
	m.prepare(depth, m.pattern.graphs[number], true)
	m.try(depth, 0, &m.pattern.graphs[number].steps[0], i)
	*answer = fails
	if m.search[depth].found {
		*answer = holds
	}
	return *answer == holds
}
