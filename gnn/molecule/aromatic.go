package molecule

import "slices"

// donor says how many electrons an atom contributes to an aromatic system.
type donor int8

const (
	noDonor donor = iota // cannot be in an aromatic system
	vacant               // an empty orbital
	oneElectron
	twoElectrons
	oneOrTwo // a wildcard; no more than one in a ring system
)

// Sizes of ring systems.
const (
	largestEther = 8  // atoms of a ring in which O and S with two bonds contribute electrons
	largestFused = 24 // atoms of a ring that may be aromatic together with others
	mostFused    = 6  // rings that are aromatic only together
	manyRings    = 300
	mostSystems  = 1 << 20 // sets of rings that are tried
)

// A hueckel looks for aromatic ring systems.
type hueckel struct {
	donors    []donor
	known     []bool
	able      []bool
	rings     []int32 // candidates, as indices into the ring set
	nbrPtr    []int32 // candidate r is fused to nbrs[nbrPtr[r]:nbrPtr[r+1]]
	nbrs      []int32
	group     []int32 // candidates fused together
	inGroup   []bool
	touching  []int32 // for every candidate: how many members of the set it is or is fused to
	set       []int32 // current set of candidates
	extension []int32
	times     []int32 // for every atom or bond: the number of its rings in the set
	ringBonds int     // bonds of the group
	aromatic  []bool  // bonds found aromatic
	found     int     // number of bonds found aromatic
	tries     int
}

// findAromatic marks aromatic atoms and bonds. A ring is a candidate if all its atoms can be
// aromatic. A system consists of up to six candidates, each of which shares exactly one bond with
// another, and is aromatic if it has 4n+2 electrons (Hückel's rule). It makes only those bonds
// aromatic that are in exactly one of its rings.
func (v *perceiver) findAromatic() *problem {
	m := v.m
	h := &v.hueckel
	s := &v.rings
	if s.count() == 0 {
		return nil
	}
	v.findCandidates()
	if len(h.rings) == 0 {
		return nil
	}
	v.fuse()
	h.aromatic = resize(h.aromatic, len(m.Bonds))
	h.times = resize(h.times, len(m.Atoms))
	h.inGroup = resize(h.inGroup, len(h.rings))
	h.touching = resize(h.touching, len(h.rings))
	h.tries = 0
	for first := range h.rings {
		if h.inGroup[first] {
			continue
		}
		v.collectGroup(int32(first))
		if !v.tryGroup() {
			a := s.atomsOf(h.rings[first])[0]
			return atomProblem(
				a,
				"the ring system of this atom is too large: more than %d sets of its rings might be "+
					"aromatic",
				mostSystems,
			)
		}
	}
	for i := range m.Atoms {
		// An atom without aromatic bonds has all its bonds within the system.
		if a := &m.Atoms[i]; a.Aromatic && !v.release2022 {
			a.Aromatic = slices.ContainsFunc(v.of(int32(i)), func(l link) bool {
				return m.Bonds[l.bond].aromatic
			})
		}
	}
	return nil
}

// findCandidates sets h.rings to the rings whose atoms can all be aromatic.
func (v *perceiver) findCandidates() {
	h := &v.hueckel
	s := &v.rings
	n := len(v.m.Atoms)
	h.donors = resize(h.donors, n)
	h.known = resize(h.known, n)
	h.able = resize(h.able, n)
	h.rings = h.rings[:0]
	unable := func(a int32) bool {
		return !v.release2022 && v.isLargeEther(a) || !v.able(a)
	}
	named := func(a int32) bool { return v.m.Atoms[a].Z > 0 } // no wildcard
	for r := range int32(s.count()) {
		if atoms := s.atomsOf(r); !slices.ContainsFunc(atoms, unable) &&
			slices.ContainsFunc(atoms, named) {
			h.rings = append(h.rings, r)
		}
	}
}

// able is mayBeAromatic for each atom once. It sets h.donors.
func (v *perceiver) able(a int32) bool {
	h := &v.hueckel
	if !h.known[a] {
		h.known[a] = true
		h.donors[a] = v.donor(a)
		h.able[a] = v.mayBeAromatic(a)
	}
	return h.able[a]
}

// isLargeEther reports whether an atom is an uncharged O or S with two single bonds that is in no
// ring of at most largestEther atoms.
func (v *perceiver) isLargeEther(i int32) bool {
	a := &v.m.Atoms[i]
	return (a.Z == 8 || a.Z == 16) && a.Charge == 0 && v.degree(i) == 2 && a.totalValence() == 2 &&
		min(v.rings.smallest[v.of(i)[0].bond], v.rings.smallest[v.of(i)[1].bond]) > largestEther
}

// fuse finds the pairs of candidates that share exactly one bond.
func (v *perceiver) fuse() {
	h := &v.hueckel
	s := &v.rings
	h.nbrPtr = append(h.nbrPtr[:0], 0)
	h.nbrs = h.nbrs[:0]
	for i, r := range h.rings {
		shared := func(b int32) bool { return s.ofBond[b] > 1 }
		if s.size(r) <= largestFused && slices.ContainsFunc(s.bondsOf(r), shared) {
			for j, q := range h.rings {
				if i != j && s.size(q) <= largestFused && common(s.bondsOf(r), s.bondsOf(q)) == 1 {
					h.nbrs = append(h.nbrs, int32(j))
				}
			}
		}
		h.nbrPtr = append(h.nbrPtr, int32(len(h.nbrs)))
	}
}

func (h *hueckel) fused(i int32) []int32 { return h.nbrs[h.nbrPtr[i]:h.nbrPtr[i+1]] }

// collectGroup sets h.group to the candidates that are fused to the first, directly or through
// others, and counts their bonds.
func (v *perceiver) collectGroup(first int32) {
	h := &v.hueckel
	s := &v.rings
	h.group = append(h.group[:0], first)
	h.inGroup[first] = true
	h.ringBonds = 0
	h.found = 0
	clear(h.aromatic)
	for k := 0; k < len(h.group); k++ {
		for _, b := range s.bondsOf(h.rings[h.group[k]]) {
			if !h.aromatic[b] {
				h.aromatic[b] = true
				h.ringBonds++
			}
		}
		for _, j := range h.fused(h.group[k]) {
			if !h.inGroup[j] {
				h.inGroup[j] = true
				h.group = append(h.group, j)
			}
		}
	}
	clear(h.aromatic)
}

// tryGroup tests all sets of connected candidates of the group, small ones
// first, until every bond of the group is aromatic. It returns false if there
// are too many.
func (v *perceiver) tryGroup() bool {
	h := &v.hueckel
	for size := 1; size <= min(len(h.group), mostFused) && h.found < h.ringBonds; size++ {
		if len(h.group) > manyRings && size > 2 {
			break
		}
		for _, first := range h.group {
			h.extension = h.extension[:0]
			h.join(first, first)
			ok := v.extend(first, size-1, 0)
			h.leave(first)
			if !ok {
				return false
			}
		}
	}
	return true
}

// join adds a candidate to the set and those that become reachable through it,
// greater than the first of the set, to the extension.
func (h *hueckel) join(i, first int32) {
	h.set = append(h.set, i)
	for _, j := range h.fused(i) {
		if j > first && h.touching[j] == 0 {
			h.extension = append(h.extension, j)
		}
		h.touching[j]++
	}
	h.touching[i]++
}

func (h *hueckel) leave(i int32) {
	h.set = h.set[:len(h.set)-1]
	for _, j := range h.fused(i) {
		h.touching[j]--
	}
	h.touching[i]--
}

// extend enumerates, once each, the connected sets of candidates that consist of the
// set at hand and of as many further candidates as more says, drawn from the extension
// from the given position on.
//
//	S. Wernicke, Efficient detection of network motifs, IEEE/ACM Trans. Comput.
//	Biol. Bioinform. 3 (2006) 347–359.
func (v *perceiver) extend(first int32, missing, begin int) bool {
	h := &v.hueckel
	if missing == 0 {
		h.tries++
		if h.tries > mostSystems {
			return false
		}
		v.trySet()
		return true
	}
	end := len(h.extension)
	for k := begin; k < end; k++ {
		i := h.extension[k]
		h.join(i, first)
		ok := v.extend(first, missing-1, k+1)
		h.leave(i)
		h.extension = h.extension[:end]
		if !ok {
			return false
		}
	}
	return true
}

// trySet marks the atoms and bonds of the current set if it is aromatic.
func (v *perceiver) trySet() {
	m := v.m
	h := &v.hueckel
	s := &v.rings
	if !v.obeysHueckel() {
		return
	}
	for _, i := range h.set {
		for _, a := range s.atomsOf(h.rings[i]) {
			m.Atoms[a].Aromatic = true
		}
		for _, b := range s.bondsOf(h.rings[i]) {
			times := 0
			for _, j := range h.set {
				for _, c := range s.bondsOf(h.rings[j]) {
					if c == b {
						times++
					}
				}
			}
			if times != 1 {
				continue
			}
			bond := &m.Bonds[b]
			bond.aromatic = true
			if bond.Type == Single || bond.Type == Double {
				bond.kekule = bond.Type
				bond.Type = Aromatic
			}
			if !h.aromatic[b] {
				h.aromatic[b] = true
				h.found++
			}
		}
	}
}

// obeysHueckel reports whether the electrons of the current set obey Hückel's rule. It ignores atoms
// in more than two of its rings, which are in the middle of the system.
func (v *perceiver) obeysHueckel() bool {
	h := &v.hueckel
	s := &v.rings
	for _, i := range h.set {
		for _, a := range s.atomsOf(h.rings[i]) {
			h.times[a]++
		}
	}
	var least, largest, wildcards int
	for _, i := range h.set {
		for _, a := range s.atomsOf(h.rings[i]) {
			times := h.times[a]
			h.times[a] = 0 // counted
			if times != 1 && times != 2 {
				continue
			}
			switch h.donors[a] {
			case oneElectron:
				least++
				largest++
			case twoElectrons:
				least += 2
				largest += 2
			case oneOrTwo:
				least++
				largest += 2
				wildcards++
			}
		}
	}
	if wildcards > 1 {
		return false
	}
	if largest < 6 {
		return largest == 2
	}
	for n := least; n <= largest; n++ {
		if n%4 == 2 {
			return true
		}
	}
	return false
}

// piElectrons returns the number of electrons that an atom has for an aromatic or conjugated system,
// or -1 if it cannot be part of one.
func (v *perceiver) piElectrons(i int32) int32 {
	a := &v.m.Atoms[i]
	e := &elements[a.Z]
	def := e.defaultValence()
	if def <= 1 {
		return -1
	}
	degree := v.bonds(i) + int32(a.hydrogens())
	if degree > 3 {
		return -1
	}
	pairs := max(int32(e.outer)-def-int32(a.Charge), 0)
	n := def - degree + pairs - int32(a.radicals)
	if n > 1 && int32(a.valence)-v.bonds(i) > 1 { // a triple bond gives one
		n = 1
	}
	return n
}

// multiple returns the neighbour at a double or triple bond in a ring, or outside of rings. It
// returns -1 if there is none.
func (v *perceiver) multiple(i int32, inRing bool) int32 {
	for _, l := range v.of(i) {
		if (v.rings.ofBond[l.bond] > 0) == inRing && halves[v.m.Bonds[l.bond].Type] >= 4 {
			return l.atom
		}
	}
	return -1
}

// donor returns what an atom contributes to an aromatic system.
func (v *perceiver) donor(i int32) donor {
	a := &v.m.Atoms[i]
	if a.Z == 0 {
		if v.multiple(i, true) >= 0 {
			return oneElectron
		}
		return oneOrTwo
	}
	n := v.piElectrons(i)
	outward := v.multiple(i, false)
	// A double bond out of the ring to a more electronegative atom takes an electron away.
	taken := outward >= 0 && moreElectronegative(v.m.Atoms[outward].Z, a.Z)
	switch {
	case n < 0:
		return noDonor
	case n == 0:
		switch {
		case outward >= 0:
			return vacant
		case v.multiple(i, true) >= 0:
			return oneElectron
		}
		return noDonor
	case n == 1:
		switch {
		case taken:
			return vacant
		case outward >= 0:
			return oneElectron
		case int32(a.valence) != v.bonds(i)+int32(a.explicit): // has a multiple bond
			return oneElectron
		case a.Charge == 1: // tropylium, cyclopropenyl
			return vacant
		}
		return noDonor
	}
	if taken {
		n--
	}
	if n%2 == 1 {
		return oneElectron
	}
	return twoElectrons
}

// mayBeAromatic reports whether an atom can be in an aromatic ring.
func (v *perceiver) mayBeAromatic(i int32) bool {
	a := &v.m.Atoms[i]
	if a.Z > 18 && a.Z != 34 && a.Z != 52 || v.hueckel.donors[i] == noDonor {
		return false
	}
	// The valence must not exceed the default of the isoelectronic element.
	if elements[a.Z].defaultValence() > 0 {
		z := int(a.Z) - int(a.Charge)
		if z < 0 || z > maxZ || a.totalValence() > elements[z].defaultValence() {
			return false
		}
	}
	if a.radicals != 0 && (a.Z != 6 || a.Charge != 0) {
		return false
	}
	// The atom must not have two double bonds, as in C1=C=NC=N1.
	if int32(a.valence)-v.bonds(i) > 1 {
		multiple := 0
		for _, l := range v.of(i) {
			if t := v.m.Bonds[l.bond].Type; t == Double || t == Triple {
				multiple++
			}
		}
		if multiple > 1 {
			return false
		}
	}
	return true
}
