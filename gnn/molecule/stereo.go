package molecule

import (
	"cmp"
	"slices"
)

// cipCode is the configuration of a stereocentre relative to the ranks of its
// neighbours.
type cipCode int8

const (
	noCode cipCode = iota
	codeS
	codeR
)

// bondStereo is the configuration of a double bond relative to the ranks of the
// atoms at its ends.
type bondStereo int8

const (
	noStereo bondStereo = iota
	stereoE
	stereoZ
)

// smallestStereoRing is the smallest ring in which a double bond can have two configurations.
const smallestStereoRing = 8

// A stereo has the memory for deciding which tags and directions are meaningful.
type stereo struct {
	rank    []int32 // for every atom, dense from 0
	key     []int64
	order   []int32 // atoms by rank
	scratch []int32
	listPtr []int32 // for every atom: its neighbours' ranks, as compared
	list    []int32

	toClear   []bool
	candidate []int8 // for every atom: a ring centre? 0 unknown, 1 no, 2 yes
	paired    []bool // atoms whose tag is meaningful relative to another's in the ring system
	seenAtom  []bool
	usedAtom  []bool
	seenBond  []bool
	queue     []int32
	rings     []int32 // of an atom
}

// dropFlatTags removes tags from atoms that are not tetrahedral, or whose number of neighbours does
// not fit the class of their chirality.
func (v *perceiver) dropFlatTags() {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		if a.Chirality == Unspecified {
			continue
		}
		n := v.degree(int32(i)) + int32(a.hydrogens())
		keep := true
		switch a.Chirality {
		case Clockwise, CounterClockwise:
			keep = a.Z != 0 && (n == 4 || a.Hybridisation == HybridSP3)
		case tagSquarePlanar:
			keep = n >= 2 && n <= 4
		case tagTrigonalBipyramidal:
			keep = n >= 2 && n <= 5
		case tagOctahedral:
			keep = n >= 2 && n <= 6
		}
		if !keep {
			a.Chirality = Unspecified
		}
	}
}

// cleanStereo removes the tags of atoms that are not stereocentres and the
// directions of bonds that define no double bond, as RDKit's legacy algorithm
// does. An atom is a stereocentre if its neighbours differ in rank. Configurations
// that are found refine the ranks until nothing changes. A ring atom with two equal
// neighbours in the ring keeps its tag if there is another such atom.
//
// With possible, possible centres without a tag also make it refine. RDKit does so
// when it reads a molecule, but not when it writes one.
func (v *perceiver) cleanStereo(possible bool) {
	m := v.m
	var tagged, directed bool
	for i := range m.Atoms {
		m.Atoms[i].code = noCode
		tagged = tagged || m.Atoms[i].Chirality != Unspecified
	}
	for i := range m.Bonds {
		m.Bonds[i].stereo = noStereo
		directed = directed || m.Bonds[i].Direction != NoDirection
	}
	if !tagged && !directed {
		return
	}
	v.code(possible || tagged, possible, true)
	v.pairRingCentres()
	v.dropTags()
	for i := range m.Bonds {
		b := &m.Bonds[i]
		if b.Type == Double && b.stereo == noStereo {
			v.clearDirections(b.Begin)
			v.clearDirections(b.End)
		}
	}
	for i := range m.Atoms {
		if a := &m.Atoms[i]; a.Chirality >= tagAllene {
			a.Chirality = Other
		}
	}
}

// dropTags removes the tags of tetrahedral atoms that are not stereocentres.
func (v *perceiver) dropTags() {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		if a.Chirality == Unspecified || a.nonTetrahedral() || a.code != noCode || v.stereo.paired[i] {
			continue
		}
		a.Chirality = Unspecified
		// The hydrogen in [C@H] was written only for the tag.
		if a.explicit == 1 && a.Charge == 0 && !a.Aromatic {
			a.explicit = 0
			a.fixed = false
			v.refill(int32(i))
		}
	}
}

// settleTurns sets the turns of the tetrahedral centres. A tag refers to the order in which a spelling
// names the neighbours, a turn to their ranks. Centres that are centres only relative to others in
// their ring have neighbours of equal rank; their turns refer to the canonical form.
func (v *perceiver) settleTurns() {
	var form []int32
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		a.turn = a.Chirality
		switch {
		case a.Chirality != Clockwise && a.Chirality != CounterClockwise:
		case a.code == codeR:
			a.turn = Clockwise
		case a.code == codeS:
			a.turn = CounterClockwise
		default:
			if form == nil {
				form = v.canon.ranks(v)
			}
			if oddOrder(v.of(int32(i)), form) {
				a.turn = Clockwise + CounterClockwise - a.Chirality
			}
		}
	}
}

// code gives codes to the double bonds whose neighbours differ, and with atoms also to such atoms.
// With onlyTagged, it refines ranks no further than the codes of tagged atoms need.
func (v *perceiver) code(atoms, possible, onlyTagged bool) {
	m := v.m
	s := &v.stereo
	bonds := false
	for i := range m.Bonds {
		b := &m.Bonds[i]
		bonds = bonds ||
			b.Type == Double && v.mayHaveStereo(int32(i)) && (v.hasDirected(b.Begin) || v.hasDirected(b.End))
	}
	s.toClear = resize(s.toClear, len(m.Bonds))
	enough := (atoms || bonds) && v.rankAtoms(onlyTagged && !bonds)
	for atoms || bonds {
		var changedAtoms, changedBonds bool
		if atoms {
			atoms, changedAtoms = v.codeAtoms(possible)
		}
		if bonds {
			bonds, changedBonds = v.codeBonds()
		}
		if enough || !atoms && !bonds || !changedAtoms && !changedBonds {
			break
		}
		v.refineByCodes()
	}
}

// StereoCentres counts the stereocentres of a molecule, which are the atoms whose neighbours differ
// in rank, and those among them that have no tag. As in RDKit, atoms that are centres only relative
// to others in their ring do not count.
func (p *Parser) StereoCentres(m *Molecule) (centres, untagged int) {
	v := &p.perceiver
	if !p.findCodes(m) {
		return 0, 0
	}
	for i := range v.m.Atoms {
		if v.m.Atoms[i].code != noCode {
			centres++
		} else if v.untaggedCentre(int32(i)) {
			centres++
			untagged++
		}
	}
	return centres, untagged
}

// findCodes makes a copy of m the molecule of the perceiver, and finds the codes of its stereocentres. It
// returns false if no atom could be one.
func (p *Parser) findCodes(m *Molecule) bool {
	v := &p.perceiver
	s := &p.scaffold
	s.Atoms = append(s.Atoms[:0], m.Atoms...)
	s.Bonds = append(s.Bonds[:0], m.Bonds...)
	v.reset(s)
	v.findRings() // does not fail: the parser has found the same
	candidate := false
	for i := range s.Atoms {
		s.Atoms[i].code = noCode
		candidate = candidate || v.mayBeCentre(int32(i))
	}
	if !candidate {
		return false
	}
	for i := range s.Bonds {
		s.Bonds[i].stereo = noStereo
	}
	v.code(true, true, false)
	return true
}

// untaggedCentre reports whether an atom without a tag has neighbours of different ranks, and is not flat.
func (v *perceiver) untaggedCentre(i int32) bool {
	a := &v.m.Atoms[i]
	flat := a.Z == 7 && a.Hybridisation != HybridSP3
	return a.code == noCode && a.Chirality == Unspecified && !flat && v.mayBeCentre(i) && v.neighboursDiffer(i)
}

// Stereogenic reports for every atom of a molecule whether it is a stereocentre, and for every bond whether it is a
// double bond with two configurations. A tag is not needed: they are those that could have one, of atoms also
// those that are centres relative to others in their ring. The next call overwrites the slices.
func (p *Parser) Stereogenic(m *Molecule) (atoms, bonds []bool) {
	v := &p.perceiver
	s := &v.stereo
	p.stereoAtoms = resize(p.stereoAtoms, len(m.Atoms))
	p.stereoBonds = resize(p.stereoBonds, len(m.Bonds))
	if p.findCodes(m) {
		for i := range v.m.Atoms {
			coded := v.m.Atoms[i].code != noCode && v.m.Atoms[i].Chirality != Other
			p.stereoAtoms[i] = coded || v.untaggedCentre(int32(i))
		}
		v.pairPossibleCentres(p.stereoAtoms)
		for i := range v.m.Atoms {
			turn := m.Atoms[i].Chirality
			p.stereoAtoms[i] = p.stereoAtoms[i] || turn == Clockwise || turn == CounterClockwise ||
				s.paired[i]
		}
	} else {
		v.rankAtoms(false)
	}
	for k := range m.Bonds {
		b := &m.Bonds[k]
		p.stereoBonds[k] = b.stereo != noStereo || b.Type == Double && v.rings.ofBond[k] == 0 &&
			v.sidesDiffer(b.Begin, int32(k)) && v.sidesDiffer(b.End, int32(k))
	}
	return p.stereoAtoms, p.stereoBonds
}

// pairPossibleCentres finds the atoms that would be stereocentres relative to others in their ring if all had tags:
// the two neighbours of such an atom in the ring are of equal rank, its others differ, and another atom of the
// ring is a centre (in centres), or is such an atom, or has a double bond that leads out of the ring.
func (v *perceiver) pairPossibleCentres(centres []bool) {
	s := &v.stereo
	s.paired = resize(s.paired, len(v.m.Atoms))
	s.usedAtom = resize(s.usedAtom, len(v.m.Atoms)) // possible partners
	copy(s.usedAtom, centres)
	for r := range int32(v.rings.count()) {
		atoms := v.rings.atomsOf(r)
		for k, a := range atoms {
			s.usedAtom[a] = s.usedAtom[a] || v.symmetric(atoms, k) && (v.mayPair(atoms, k) || v.leadsOut(a))
		}
	}
	for r := range int32(v.rings.count()) {
		atoms := v.rings.atomsOf(r)
		partners := 0
		for _, a := range atoms {
			if s.usedAtom[a] {
				partners++
			}
		}
		for k, a := range atoms {
			s.paired[a] = s.paired[a] || partners > 1 && v.symmetric(atoms, k) && v.mayPair(atoms, k)
		}
	}
}

// symmetric reports whether the neighbours of atom k of a ring in the ring are of equal rank.
func (v *perceiver) symmetric(ring []int32, k int) bool {
	n := len(ring)
	return v.stereo.rank[ring[(k+n-1)%n]] == v.stereo.rank[ring[(k+1)%n]]
}

// mayPair reports whether atom k of a ring may be a centre and its neighbours other than those in the ring differ in
// rank.
func (v *perceiver) mayPair(ring []int32, k int) bool {
	n := len(ring)
	return v.mayBeCentre(ring[k]) && v.restDiffers(ring[k], ring[(k+n-1)%n], ring[(k+1)%n])
}

// restDiffers reports whether the neighbours of an atom but two differ in rank.
func (v *perceiver) restDiffers(atom, before, after int32) bool {
	rank := int32(-1)
	for _, l := range v.of(atom) {
		if l.atom == before || l.atom == after {
			continue
		}
		if v.stereo.rank[l.atom] == rank {
			return false
		}
		rank = v.stereo.rank[l.atom]
	}
	return true
}

// leadsOut reports whether an atom of a ring has a double bond out of it to an atom with different sides.
func (v *perceiver) leadsOut(atom int32) bool {
	return slices.ContainsFunc(v.of(atom), func(l link) bool {
		return v.m.Bonds[l.bond].Type == Double && v.rings.ofBond[l.bond] == 0 && v.sidesDiffer(l.atom, l.bond)
	})
}

// sidesDiffer reports whether the neighbours of an atom at a double bond, one or two, differ in rank. Bonds to
// them are single.
func (v *perceiver) sidesDiffer(atom, double int32) bool {
	rank := int32(-1)
	count := 0
	for _, l := range v.of(atom) {
		if l.bond == double {
			continue
		}
		if v.stereo.rank[l.atom] == rank || v.m.Bonds[l.bond].Type == Double || v.m.Bonds[l.bond].Type == Triple {
			return false
		}
		rank = v.stereo.rank[l.atom]
		count++
	}
	return count == 1 || count == 2
}

// neighboursDiffer reports whether the neighbours of an atom are of different ranks.
func (v *perceiver) neighboursDiffer(i int32) bool {
	links := v.of(i)
	for k, l := range links {
		for _, o := range links[:k] {
			if v.stereo.rank[l.atom] == v.stereo.rank[o.atom] {
				return false
			}
		}
	}
	return true
}

// clearDirections removes the directions of an atom's bonds, except those that define a double bond
// of the atom at their other end.
func (v *perceiver) clearDirections(atom int32) {
	m := v.m
	for _, l := range v.of(atom) {
		b := &m.Bonds[l.bond]
		if b.Direction == NoDirection || b.Type != Single && b.Type != Aromatic {
			continue
		}
		needed := false
		for _, o := range v.of(l.atom) {
			ob := &m.Bonds[o.bond]
			needed = needed || ob.Type == Double && ob.stereo != noStereo
		}
		if !needed {
			b.Direction = NoDirection
		}
	}
}

func (v *perceiver) mayHaveStereo(bond int32) bool {
	return v.rings.ofBond[bond] == 0 || v.rings.smallest[bond] >= smallestStereoRing
}

func (v *perceiver) hasDirected(atom int32) bool {
	return slices.ContainsFunc(v.of(atom), func(l link) bool {
		return v.m.Bonds[l.bond].Direction != NoDirection
	})
}

// rankAtoms ranks the atoms by element, isotope and atom map number, and then refines the ranks.
func (v *perceiver) rankAtoms(onlyTagged bool) (enough bool) {
	s := &v.stereo
	s.key = s.key[:0]
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		// An isotope ranks by its difference from the most common one. It ranks above
		// the natural element unless it is lighter.
		mass := int64(0)
		if a.Isotope != 0 {
			mass = int64(a.Isotope) - int64(elements[a.Z].isotope)
			if mass >= 0 {
				mass++
			}
		}
		mass = max(0, mass+512) % 1024
		number := int64(0)
		if a.Map != 0 {
			number = (int64(a.Map) + 1) % 1024
		}
		s.key = append(s.key, int64(a.Z)<<20|mass<<10|number)
	}
	v.rankByKey()
	return v.refine(onlyTagged)
}

// rankByKey ranks the atoms by their keys.
func (v *perceiver) rankByKey() {
	s := &v.stereo
	n := len(v.m.Atoms)
	s.rank = resize(s.rank, n)
	s.order = s.order[:0]
	for i := range int32(n) {
		s.order = append(s.order, i)
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		return cmp.Compare(s.key[a], s.key[b])
	})
	r := int32(0)
	for k, a := range s.order {
		if k > 0 && s.key[a] != s.key[s.order[k-1]] {
			r++
		}
		s.rank[a] = r
	}
}

// refine ranks atoms of equal rank by the ranks of their neighbours, highest first and each as often
// as twice the bond order, and then by their hydrogens. It stops when all ranks differ or nothing
// changes. With onlyTagged, it stops, and returns true, when all tagged atoms are centres.
func (v *perceiver) refine(onlyTagged bool) (enough bool) {
	m := v.m
	s := &v.stereo
	n := len(m.Atoms)
	ranks := s.rank[s.order[n-1]] + 1
	next := resize(s.scratch, n)
	s.scratch = next
	s.listPtr = resize(s.listPtr, n+1)
	for rounds := n/2 + 1; int(ranks) < n && rounds > 0; rounds-- {
		if onlyTagged && v.taggedAreCentres() {
			return true
		}
		before := ranks
		r := int32(0)
		for lo := 0; lo < n; {
			hi := lo + 1
			for hi < n && s.rank[s.order[hi]] == s.rank[s.order[lo]] {
				hi++
			}
			cell := s.order[lo:hi]
			if len(cell) == 1 {
				next[cell[0]] = r
				r++
				lo = hi
				continue
			}
			s.list = s.list[:0]
			for _, a := range cell {
				s.listPtr[a] = int32(len(s.list))
				v.listNeighbours(a)
				s.list = append(s.list, endOfList)
			}
			slices.SortFunc(cell, s.compareLists)
			for k, a := range cell {
				if k > 0 && s.compareLists(cell[k-1], a) != 0 {
					r++
				}
				next[a] = r
			}
			r++
			lo = hi
		}
		copy(s.rank, next)
		ranks = r
		if ranks == before {
			break
		}
	}
	return false
}

// taggedAreCentres reports whether every tagged atom has neighbours of different ranks. Further
// refinement keeps the order of different ranks, and with it the codes.
func (v *perceiver) taggedAreCentres() bool {
	for i := range v.m.Atoms {
		if v.m.Atoms[i].Chirality != Unspecified &&
			!(v.neighboursDiffer(int32(i)) && v.mayBeCentre(int32(i))) {
			return false
		}
	}
	return true
}

// endOfList is less than every element of a list.
const endOfList = -1

func (s *stereo) compareLists(a, b int32) int {
	return compareLists(s.list[s.listPtr[a]:], s.list[s.listPtr[b]:])
}

func compareLists[T int32 | int64](x, y []T) int {
	for k := range x {
		if x[k] != y[k] || x[k] == endOfList {
			return cmp.Compare(x[k], y[k])
		}
	}
	return 0
}

// listNeighbours appends the elements by which an atom is compared: 1 + the rank of each neighbour,
// and 0 for each hydrogen.
func (v *perceiver) listNeighbours(atom int32) {
	m := v.m
	s := &v.stereo
	start := len(s.list)
	for _, l := range v.of(atom) {
		b := &m.Bonds[l.bond]
		times := halves[b.Type]
		// All bonds of phosphates and the like count the same.
		if b.Type == Double && m.Atoms[l.atom].Z == 15 {
			if d := v.degree(l.atom); d == 3 || d == 4 {
				times = 1
			}
		}
		rank := s.rank[l.atom] + 1
		place := len(s.list)
		for range times {
			s.list = append(s.list, rank)
		}
		// Insertion sort: atoms have few neighbours.
		for ; place > start && s.list[place-1] < rank; place-- {
			s.list[place-1+int(times)] = s.list[place-1]
			s.list[place-1] = rank
		}
	}
	for range m.Atoms[atom].hydrogens() {
		s.list = append(s.list, 0)
	}
}

// refineByCodes refines the ranks by the configurations that have been found.
func (v *perceiver) refineByCodes() {
	m := v.m
	s := &v.stereo
	factor := int64(100)
	for factor < int64(len(m.Atoms)) {
		factor *= 10
	}
	s.key = s.key[:0]
	for i := range m.Atoms {
		key := int64(s.rank[i])*factor + 10*int64(m.Atoms[i].code)
		for _, l := range v.of(int32(i)) {
			if b := &m.Bonds[l.bond]; b.Type == Double {
				key += int64(b.stereo)
			}
		}
		s.key = append(s.key, key)
	}
	v.rankByKey()
	v.refine(false)
}

// codeAtoms gives a code to every tagged atom whose neighbours differ in rank. left reports whether
// possible centres have no code, and changed whether an atom got one.
func (v *perceiver) codeAtoms(possible bool) (left, changed bool) {
	m := v.m
	s := &v.stereo
	open := 0
	for i := range m.Atoms {
		a := &m.Atoms[i]
		if a.code != noCode || a.Chirality == Unspecified && !possible || !v.mayBeCentre(int32(i)) {
			continue
		}
		open++
		if a.Chirality == Unspecified || !v.neighboursDiffer(int32(i)) {
			continue
		}
		links := v.of(int32(i))
		changed = true
		open--
		clockwise := a.Chirality != CounterClockwise
		if oddOrder(links, s.rank) != (len(links) == 3 && a.hydrogens() == 1) {
			clockwise = a.Chirality == CounterClockwise
		}
		a.code = codeS
		if clockwise {
			a.code = codeR
		}
	}
	return open > 0, changed
}

// oddOrder reports whether an odd number of swaps sorts links by the ranks of the atoms.
func oddOrder(links []link, rank []int32) (odd bool) {
	for k, l := range links {
		for _, o := range links[:k] {
			odd = odd != (rank[o.atom] > rank[l.atom])
		}
	}
	return odd
}

// mayBeCentre reports whether an atom would be a stereocentre if its neighbours differed.
func (v *perceiver) mayBeCentre(i int32) bool {
	a := &v.m.Atoms[i]
	degree := v.degree(i)
	h := int32(a.hydrogens())
	switch {
	case degree+h > 4 || degree+h < 3:
		return false
	case slices.ContainsFunc(v.of(i), func(l link) bool {
		return v.m.Bonds[l.bond].Type == AnyOrder
	}):
		return false
	case degree < 3:
		return a.Z == 15 || a.Z == 33
	case degree == 4 || h == 1:
		return true
	}
	switch a.Z { // three neighbours and a lone pair
	case 7:
		return v.inRingOf3(i) || v.bridgehead(i)
	case 15, 33:
		return true
	case 16, 34:
		return a.valence == 4 || a.valence == 3 && a.Charge == 1
	}
	return false
}

func (v *perceiver) inRingOf3(i int32) bool {
	return slices.ContainsFunc(v.of(i), func(l link) bool {
		return v.rings.smallest[l.bond] == 3
	})
}

// bridgehead reports whether an atom has three ring bonds, and each of its rings
// shares two bonds or more with another of its rings.
func (v *perceiver) bridgehead(i int32) bool {
	n := 0
	for _, l := range v.of(i) {
		if v.rings.ofBond[l.bond] > 0 {
			n++
		}
	}
	if n < 3 {
		return false
	}
	s := &v.rings
	rings := v.stereo.rings[:0] // rings of the atom
	for r := range int32(s.count()) {
		if slices.Contains(s.atomsOf(r), i) {
			rings = append(rings, r)
		}
	}
	v.stereo.rings = rings
	for _, r := range rings {
		overlaps := func(q int32) bool {
			return q != r && common(s.bondsOf(q), s.bondsOf(r)) >= 2
		}
		if !slices.ContainsFunc(rings, overlaps) {
			return false
		}
	}
	return true
}

// side is one end of a double bond: the neighbour of higher rank, and the direction of its bond as
// seen from the double bond.
type side struct {
	atom      int32
	direction Direction
	first     link // with second: bonds that may contradict each other
	second    link
	conflict  bool
}

// sideOf returns the side of a double bond at an atom. It returns false if the side has no direction
// or its neighbours have equal ranks.
func (v *perceiver) sideOf(atom, double int32) (side, bool) {
	m := v.m
	rank := v.stereo.rank
	var l [2]link
	var d [2]Direction
	n := 0
	directed := false
	for _, x := range v.of(atom) {
		if x.bond == double {
			continue
		}
		b := &m.Bonds[x.bond]
		l[n] = x
		d[n] = b.Direction
		if b.Direction != NoDirection {
			directed = true
			if b.Begin != atom {
				d[n] = d[n].reversed()
			}
		}
		n++
	}
	if !directed || n == 2 && rank[l[0].atom] == rank[l[1].atom] {
		return side{}, false
	}
	if n == 1 {
		return side{atom: l[0].atom, direction: d[0]}, true
	}
	if d[0] == NoDirection {
		d[0] = d[1].reversed()
	} else if d[1] == NoDirection {
		d[1] = d[0].reversed()
	}
	k := 1
	if rank[l[0].atom] > rank[l[1].atom] {
		k = 0
	}
	return side{l[k].atom, d[k], l[0], l[1], d[0] == d[1]}, true
}

// codeBonds gives a configuration to every double bond with directions at both ends, and removes
// directions that contradict each other. Its results are like those of codeAtoms.
func (v *perceiver) codeBonds() (left, changed bool) {
	m := v.m
	s := &v.stereo
	clear(s.toClear)
	conflicts := false
	for i := range m.Bonds {
		b := &m.Bonds[i]
		if b.Type != Double || b.stereo != noStereo || !v.mayHaveStereo(int32(i)) {
			continue
		}
		d := v.degree(b.Begin)
		e := v.degree(b.End)
		if d != 2 && d != 3 || e != 2 && e != 3 {
			continue
		}
		begin, ok := v.sideOf(b.Begin, int32(i))
		end, ok2 := v.sideOf(b.End, int32(i))
		if !ok || !ok2 {
			left = true
			continue
		}
		changed = true
		if begin.conflict || end.conflict {
			conflicts = true
			for _, x := range [2]side{begin, end} {
				if x.conflict {
					s.toClear[x.first.bond], s.toClear[x.second.bond] = true, true
				}
			}
			continue
		}
		b.ref = [2]int32{begin.atom, end.atom}
		b.stereo = stereoE
		if begin.direction == end.direction {
			b.stereo = stereoZ
		}
	}
	if conflicts {
		for i, c := range s.toClear {
			if c {
				m.Bonds[i].Direction = NoDirection
			}
		}
	}
	return left, changed
}

// pairRingCentres finds the tagged atoms without a code that are stereocentres relative to others in
// their ring system, such as the two substituted atoms of 1,4-dimethylcyclohexane.
func (v *perceiver) pairRingCentres() {
	m := v.m
	s := &v.stereo
	s.paired = resize(s.paired, len(m.Atoms))
	s.candidate = resize(s.candidate, len(m.Atoms))
	s.seenAtom = resize(s.seenAtom, len(m.Atoms))
	s.usedAtom = resize(s.usedAtom, len(m.Atoms))
	s.seenBond = resize(s.seenBond, len(m.Bonds))
	for i := range m.Atoms {
		if s.seenAtom[i] || !v.ringCentre(int32(i)) {
			continue
		}
		s.queue = s.queue[:0]
		v.spreadInRings(int32(i), false)
		for k := 0; k < len(s.queue); k++ {
			a := s.queue[k]
			s.seenAtom[a] = true
			if v.ringCentre(a) {
				s.paired[a], s.paired[i] = true, true
			}
			v.spreadInRings(a, true)
		}
		s.seenAtom[i] = true
	}
}

// spreadInRings queues the atoms at ring bonds that have not been seen.
func (v *perceiver) spreadInRings(atom int32, once bool) {
	s := &v.stereo
	for _, l := range v.of(atom) {
		if s.seenBond[l.bond] {
			continue
		}
		s.seenBond[l.bond] = true
		if v.rings.ofBond[l.bond] > 0 && !s.seenAtom[l.atom] && !(once && s.usedAtom[l.atom]) {
			s.usedAtom[l.atom] = true
			s.queue = append(s.queue, l.atom)
		}
	}
}

// ringCentre reports whether an atom is tagged, has no code and may be a stereocentre within its
// ring: it has two different neighbours outside of rings, or one, or neighbours in rings of which
// two are alike.
func (v *perceiver) ringCentre(i int32) bool {
	m := v.m
	s := &v.stereo
	a := &m.Atoms[i]
	if a.Chirality == Unspecified || a.code != noCode || v.rings.ofAtom[i] == 0 {
		return false
	}
	if s.candidate[i] != 0 {
		return s.candidate[i] == 2
	}
	s.candidate[i] = 1
	neighbours := v.degree(i)
	if !v.release2022 { // the nitrogen of a protonated amine does not turn over
		neighbours += int32(a.hydrogens())
	}
	if a.Z == 7 && neighbours == 3 && !v.inRingOf3(i) && !v.bridgehead(i) {
		return false
	}
	var outside [2]int32
	var nOutside, nRing, different int
	links := v.of(i)
	for k, l := range links {
		if v.rings.ofBond[l.bond] == 0 {
			if nOutside < 2 {
				outside[nOutside] = s.rank[l.atom]
			}
			nOutside++
			continue
		}
		nRing++
		fresh := true
		for _, o := range links[:k] {
			fresh = fresh && (v.rings.ofBond[o.bond] == 0 || s.rank[o.atom] != s.rank[l.atom])
		}
		if fresh {
			different++
		}
	}
	yes := false
	switch nOutside {
	case 2:
		yes = outside[0] != outside[1]
	case 1:
		yes = nRing >= 2
	case 0:
		yes = nRing == 4 && different == 3 || nRing == 3 && different == 2
	}
	if yes {
		s.candidate[i] = 2
	}
	return yes
}
