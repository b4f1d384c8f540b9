// Package fingerprint computes Morgan (circular, ECFP) fingerprints of molecules.
//
// A fingerprint is a multiset of environments. An environment of radius r is an atom with all bonds
// within r steps. Its identifier is a hash of its atoms and bonds. An identifier of radius 0 is a
// hash of the atom's element, degree, hydrogens, charge, isotope and ring membership. An identifier
// of radius r+1 is a hash of the atom's and its neighbours' identifiers of radius r. Environments
// with the same bonds count once: the one of the smallest radius counts, and of these the one with
// the smallest identifier.
//
// Identifiers and counts equal those of RDKit's Morgan generator (release 2026.09) at its defaults,
// optionally with chirality, so that a model of one can be used with the other.
//
//	D. Rogers, M. Hahn, Extended-connectivity fingerprints, J. Chem. Inf. Model. 50 (2010) 742–754.
package fingerprint

import (
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// Count is an environment with the number of its occurrences in a molecule.
type Count struct {
	ID uint32
	N  int32
}

// Tanimoto returns the similarity Σ min / Σ max of two lists of counts by ascending identifier, whose numbers have
// the given sum; 0 if the lists have nothing in common.
func Tanimoto(a, b []Count, sum int32) float64 {
	shared := int32(0)
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].ID < b[0].ID:
			a = a[1:]
		case a[0].ID > b[0].ID:
			b = b[1:]
		default:
			shared += min(a[0].N, b[0].N)
			a = a[1:]
			b = b[1:]
		}
	}
	if shared == 0 {
		return 0
	}
	return float64(shared) / float64(sum-shared)
}

// Morgan computes fingerprints. It keeps its memory between calls. Two goroutines must not use one
// Morgan at once.
type Morgan struct {
	Radius    int  // the largest radius, in bonds; ECFP4 has 2
	Chirality bool // whether configurations of atoms and double bonds matter

	counts     []Count
	ids        []uint32 // of the environments found
	now, next  []uint32 // identifiers of the atoms, at this radius and the next
	dead       []bool   // atoms whose environments equal those of others
	chiral     []bool   // atoms whose neighbours differ
	ptr        []int32
	links      []link
	around     []uint64 // of an atom: invariants of its bonds, and identifiers behind them
	bonds      []uint64 // sets of bonds, of every atom
	grown      []uint64
	seen       []uint64 // sets of bonds found so far
	seenOf     []environment
	slots      []int32 // hash table: 1 + index of seenOf
	words      int     // of a set
	bondHashes []int32
}

type link struct{ atom, bond int32 }

type environment struct {
	hash  uint64
	round int
	atom  int32
	at    int // in ids
}

// combine mixes a value into a hash, as boost::hash_combine does in 32 bits.
func combine(seed, value uint32) uint32 {
	return seed ^ (value + 0x9e3779b9 + seed<<6 + seed>>2)
}

// Counts returns the environments of a molecule by ascending identifier. The next call overwrites the
// slice.
func (g *Morgan) Counts(m *molecule.Molecule) []Count {
	g.find(m)
	slices.Sort(g.ids)
	g.counts = g.counts[:0]
	for i, id := range g.ids {
		if i > 0 && id == g.ids[i-1] {
			g.counts[len(g.counts)-1].N++
			continue
		}
		g.counts = append(g.counts, Count{id, 1})
	}
	return g.counts
}

// Fold sets dst to the counts of a molecule's environments by identifier modulo len(dst), which must
// not be 0. With bits, counts are 0 or 1.
func (g *Morgan) Fold(dst []float32, m *molecule.Molecule, bits bool) {
	g.find(m)
	clear(dst)
	for _, id := range g.ids {
		if k := id % uint32(len(dst)); bits {
			dst[k] = 1
		} else {
			dst[k]++
		}
	}
}

func (g *Morgan) find(m *molecule.Molecule) {
	n := len(m.Atoms)
	g.start(m)
	for round := range g.Radius {
		living := false
		copy(g.grown, g.bonds)
		for i := range int32(n) {
			g.next[i] = 0
			if g.dead[i] {
				continue
			}
			if g.ptr[i] == g.ptr[i+1] {
				g.dead[i] = true
				continue
			}
			living = true
			g.grow(i)
			g.next[i] = g.identify(m, i, uint32(round))
			g.enter(i, round)
		}
		if !living {
			break
		}
		g.now, g.next = g.next, g.now
		g.bonds, g.grown = g.grown, g.bonds
	}
}

// start prepares the search at radius 0.
func (g *Morgan) start(m *molecule.Molecule) {
	n := len(m.Atoms)
	g.words = (len(m.Bonds) + 63) / 64
	g.ids = g.ids[:0]
	g.seen = g.seen[:0]
	g.seenOf = g.seenOf[:0]
	g.now = zeros(g.now, n)
	g.next = zeros(g.next, n)
	g.dead = zeros(g.dead, n)
	g.chiral = zeros(g.chiral, n)
	g.bonds = zeros(g.bonds, n*g.words)
	g.grown = zeros(g.grown, n*g.words)
	slots := 16
	for slots < 2*n*g.Radius {
		slots *= 2
	}
	g.slots = zeros(g.slots, slots)
	g.ptr = zeros(g.ptr, n+2)
	g.links = zeros(g.links, 2*len(m.Bonds))
	g.bondHashes = zeros(g.bondHashes, len(m.Bonds))
	for k := range m.Bonds {
		b := &m.Bonds[k]
		g.bondHashes[k] = g.bondInvariant(b)
		g.ptr[b.Begin+2]++
		g.ptr[b.End+2]++
	}
	for i := 2; i < len(g.ptr); i++ {
		g.ptr[i] += g.ptr[i-1]
	}
	for k := range m.Bonds {
		b := &m.Bonds[k]
		g.links[g.ptr[b.Begin+1]] = link{b.End, int32(k)}
		g.ptr[b.Begin+1]++
		g.links[g.ptr[b.End+1]] = link{b.Begin, int32(k)}
		g.ptr[b.End+1]++
	}
	for i := range m.Atoms {
		hydrogens := int32(m.Atoms[i].Hydrogens)
		for _, l := range g.links[g.ptr[i]:g.ptr[i+1]] {
			if m.Atoms[l.atom].Z == 1 {
				hydrogens++
			}
		}
		g.now[i] = invariant(&m.Atoms[i], hydrogens)
	}
	g.ids = append(g.ids, g.now...)
}

// invariant returns the identifier of an atom by itself. hydrogens includes those that are atoms.
func invariant(a *molecule.Atom, hydrogens int32) uint32 {
	extra := int32(0) // mass beyond the standard atomic weight
	if a.Isotope != 0 {
		extra = int32(a.Mass() - molecule.ElementOf(a.Z).Weight)
	}
	h := uint32(0)
	for _, x := range [...]int32{
		int32(a.Z), int32(a.Degree) + int32(a.Hydrogens), hydrogens, int32(a.Charge), extra,
	} {
		h = combine(h, uint32(x))
	}
	if a.InRing {
		h = combine(h, 1)
	}
	return h
}

// bondInvariant returns RDKit's number of a bond.
func (g *Morgan) bondInvariant(b *molecule.Bond) int32 {
	order := [...]int32{
		molecule.Single:    1,
		molecule.Double:    2,
		molecule.Triple:    3,
		molecule.Quadruple: 4,
		molecule.Aromatic:  12,
		molecule.Dative:    17,
		molecule.AnyOrder:  0,
	}[b.Type]
	if cip := b.CIP(); g.Chirality && cip != 0 {
		order = 100 + 10*order + 2
		if cip == 'E' {
			order++
		}
	}
	return order
}

func (g *Morgan) set(sets []uint64, i int32) []uint64 {
	return sets[int(i)*g.words : (int(i)+1)*g.words]
}

// grow adds the atom's bonds, and those around its neighbours, to the bonds around the atom.
func (g *Morgan) grow(i int32) {
	if g.words == 1 {
		for _, l := range g.links[g.ptr[i]:g.ptr[i+1]] {
			g.grown[i] |= g.bonds[l.atom] | 1<<l.bond
		}
		return
	}
	mine := g.set(g.grown, i)
	for _, l := range g.links[g.ptr[i]:g.ptr[i+1]] {
		mine[l.bond/64] |= 1 << (l.bond % 64)
		for w, bits := range g.set(g.bonds, l.atom) {
			mine[w] |= bits
		}
	}
}

// identify returns the next identifier of an atom.
func (g *Morgan) identify(m *molecule.Molecule, i int32, round uint32) uint32 {
	pairs := g.around[:0]
	for _, l := range g.links[g.ptr[i]:g.ptr[i+1]] {
		x := uint64(g.bondHashes[l.bond])<<32 | uint64(g.now[l.atom])
		pairs = append(pairs, x)
		k := len(pairs) - 1 // insertion sort: atoms have few neighbours
		for ; k > 0 && pairs[k-1] > x; k-- {
			pairs[k] = pairs[k-1]
		}
		pairs[k] = x
	}
	g.around = pairs
	h := combine(round, g.now[i])
	for _, x := range pairs {
		h = combine(h, combine(combine(0, uint32(x>>32)), uint32(x)))
	}
	a := &m.Atoms[i]
	if !g.Chirality || a.Chirality == molecule.Unspecified {
		return h
	}
	for k, x := range pairs {
		if !g.chiral[i] && (x>>32 != 1 || k > 0 && x == pairs[k-1]) {
			return h
		}
	}
	g.chiral[i] = true
	switch a.CIP() {
	case 'R':
		return combine(h, 3)
	case 'S':
		return combine(h, 2)
	}
	return combine(h, 1)
}

// enter adds an atom's environment unless one with the same bonds has been found.
func (g *Morgan) enter(i int32, round int) {
	bonds := g.set(g.grown, i)
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range bonds {
		h = (h ^ w) * 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	mask := uint64(len(g.slots)) - 1 // a power of two
	for slot := h & mask; ; slot = (slot + 1) & mask {
		k := g.slots[slot] - 1
		if k < 0 {
			g.slots[slot] = int32(len(g.seenOf)) + 1
			g.seenOf = append(g.seenOf, environment{h, round, i, len(g.ids)})
			if g.words > 1 {
				g.seen = append(g.seen, bonds...)
			}
			g.ids = append(g.ids, g.next[i])
			return
		}
		e := &g.seenOf[k]
		// one word's hash is its own
		if e.hash != h || g.words > 1 && !slices.Equal(g.set(g.seen, k), bonds) {
			continue
		}
		if e.round == round && g.next[i] < g.ids[e.at] { // the other one goes
			g.dead[e.atom] = true
			e.atom = i
			g.ids[e.at] = g.next[i]
		} else {
			g.dead[i] = true
		}
		return
	}
}

// zeros returns a slice of n zeros, in the memory of s if that suffices.
func zeros[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
