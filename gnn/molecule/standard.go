package molecule

import (
	"cmp"
	"math"
	"slices"
)

// largestFragment keeps one fragment: those with carbon come first, then the one with the most
// atoms, hydrogens included, then the one with the largest mass, then the first. It reports whether
// it has dropped others.
//
// The rules are those of RDKit's LargestFragmentChooser with preferOrganic, which breaks the last
// tie by SMILES.
func (v *perceiver) largestFragment() bool {
	m := v.m
	// Hydrogens count, so valences are needed. Errors are reported later, for the atoms that stay.
	v.rewriteDrawing()
	for i := range int32(len(m.Atoms)) {
		v.settleValence(i)
		n, _ := v.implicitHydrogens(i)
		m.Atoms[i].implicit = int8(n)
	}
	fragment := resize(v.moved, len(m.Atoms)) // from 1
	v.moved = fragment
	best := fragmentSize{}
	largest := int32(0)
	count := int32(0)
	for start := range int32(len(m.Atoms)) {
		if fragment[start] > 0 {
			continue
		}
		count++
		fragment[start] = count
		size := fragmentSize{}
		for v.queue = append(v.queue[:0], start); len(v.queue) > 0; {
			i := v.queue[len(v.queue)-1]
			v.queue = v.queue[:len(v.queue)-1]
			size.add(&m.Atoms[i])
			for _, l := range v.of(i) {
				if fragment[l.atom] == 0 {
					fragment[l.atom] = count
					v.queue = append(v.queue, l.atom)
				}
			}
		}
		if size.compare(best) > 0 {
			best = size
			largest = count
		}
	}
	if count < 2 {
		return false
	}
	v.keep = resize(v.keep, len(m.Atoms))
	for i, f := range fragment {
		v.keep[i] = f == largest
	}
	v.leaveOut(m)
	return true
}

// A fragmentSize is what fragments are compared by.
type fragmentSize struct {
	carbon int   // 1 if there is any
	atoms  int   // with hydrogens
	mass   int64 // µDa, so that sums do not depend on the order
}

func (s *fragmentSize) add(a *Atom) {
	if a.Z == 6 {
		s.carbon = 1
	}
	hydrogens := int(a.hydrogens())
	s.atoms += 1 + hydrogens
	mass := ElementOf(a.Z).Exact
	if a.Isotope > 0 {
		mass = a.Mass()
	}
	s.mass += int64(math.Round(1e6*mass)) + int64(hydrogens)*int64(math.Round(1e6*ElementOf(1).Exact))
}

func (s fragmentSize) compare(t fragmentSize) int {
	return cmp.Or(s.carbon-t.carbon, s.atoms-t.atoms, cmp.Compare(s.mass, t.mass))
}

// A charge is an atom whose charge may be removed.
type charge struct {
	atom, rank int32
	acid       bool
}

// neutralise removes charges from the perceived molecule by adding or removing hydrogens, and
// reports whether it has. The rules are those of RDKit's Uncharger (release 2026.09):
//
//  1. Anions gain a hydrogen, alkoxides and the like before acids. Boron and other early
//     elements lose one. As many anions as there are cations without hydrogens keep their
//     charge. A neighbour with a positive charge balances an anion, as in a nitro group.
//  2. While the net charge is positive, cations with hydrogens lose one. Carbon and early
//     elements gain one.
//
// An atom keeps its charge where the neutral atom would have a valence that its element does
// not have. RDKit breaks ties between anions by its own ranks of the atoms, this function by
// those of [perceiver.rankAtoms].
//
// The changes are made to drawing, a copy of the molecule as it was before its perception.
func (v *perceiver) neutralise(drawing []Atom) bool {
	if !slices.ContainsFunc(v.m.Atoms, func(a Atom) bool { return a.Charge != 0 }) {
		return false
	}
	anions, cations, fixed := v.findCharges()
	changed := v.removeNegative(drawing, anions, len(anions)-fixed)
	return v.removePositive(drawing, cations) || changed
}

// findCharges returns the anions and the cations with hydrogens in the order in which they lose
// their charges, and the positive charge that no hydrogen can remove.
func (v *perceiver) findCharges() (anions, cations []charge, fixed int) {
	v.rankAtoms(false)
	for i := range int32(len(v.m.Atoms)) {
		a := &v.m.Atoms[i]
		c := charge{atom: i, rank: v.stereo.rank[i]}
		switch {
		case a.Charge == -1:
			c.acid = v.acidic(i)
			if c.acid || v.countNext(i, cation) == 0 {
				anions = append(anions, c)
			}
		case !cation(a):
		case a.hydrogens() == 0:
			if v.countNext(i, anion) == 0 {
				fixed += int(a.Charge)
			}
		case v.countNext(i, anion) != 1:
			cations = append(cations, c)
		}
	}
	order := func(x, y charge) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.atom, y.atom))
	}
	slices.SortFunc(anions, order)
	slices.SortFunc(cations, order)
	anions = v.dropBalanced(anions)
	slices.SortStableFunc(anions, func(x, y charge) int {
		return yes(x.acid) - yes(y.acid)
	})
	return anions, cations, fixed
}

// removeNegative neutralises as many anions as the surplus says, or all if it is negative. It
// reports whether there were any.
func (v *perceiver) removeNegative(drawing []Atom, anions []charge, surplus int) (changed bool) {
	for _, c := range anions {
		if surplus == 0 {
			break
		}
		a := &v.m.Atoms[c.atom]
		change := int8(1)
		if elements[a.Z].early {
			change = -1
		}
		hydrogens := a.hydrogens() + change
		valence := int8(a.totalValence()) + change
		if hydrogens >= 0 && slices.Contains(elements[a.Z].valences, valence) {
			surplus--
			changed = true
			drawing[c.atom].setHydrogens(hydrogens, 0)
		}
	}
	return changed
}

// removePositive removes charges of cations while the net charge is positive. It reports whether
// there were any.
func (v *perceiver) removePositive(drawing []Atom, cations []charge) (changed bool) {
	net := 0
	for i := range drawing {
		net += int(drawing[i].Charge)
	}
	for _, c := range cations {
		a := &v.m.Atoms[c.atom]
		e := &elements[a.Z]
		change := int8(1)
		removed := int8(max(0, min(net, int(a.Charge))))
		if a.Z != 6 && !e.early {
			change = -1
			removed = min(removed, a.hydrogens())
		}
		valence := int8(a.totalValence()) + change*removed
		impossible := removed == a.Charge && e.maxValence() > 0 && !slices.Contains(e.valences, valence)
		if removed > 0 && !impossible {
			net -= int(removed)
			changed = true
			drawing[c.atom].setHydrogens(a.hydrogens()+change*removed, a.Charge-removed)
		}
	}
	return changed
}

// setHydrogens gives an atom exactly so many hydrogens, and a charge.
func (a *Atom) setHydrogens(n, charge int8) {
	a.fixed = true
	a.explicit = n
	a.Charge = charge
}

// dropBalanced removes the acidic anions that a positive neighbour balances: as many as its charge.
func (v *perceiver) dropBalanced(anions []charge) []charge {
	balanced := resize(v.moved, len(v.m.Atoms)) // of every atom: how many anions it balances
	v.moved = balanced
	return slices.DeleteFunc(anions, func(c charge) bool {
		if !c.acid {
			return false
		}
		for _, l := range v.of(c.atom) {
			if q := int32(v.m.Atoms[l.atom].Charge); q > 0 {
				balanced[l.atom]++
				return balanced[l.atom] <= q
			}
		}
		return false
	})
}

func cation(a *Atom) bool { return a.Charge >= 1 && a.Charge <= 4 }

func anion(a *Atom) bool { return a.Charge == -1 }

// countNext counts the neighbours of a kind.
func (v *perceiver) countNext(i int32, kind func(a *Atom) bool) (n int) {
	for _, l := range v.of(i) {
		if kind(&v.m.Atoms[l.atom]) {
			n++
		}
	}
	return n
}

// acidic reports whether an atom of charge -1 is that of an acid: a carboxylate, sulphonate,
// phosphate, nitrate, halate or one of their sulphur analogues, or a tetrazole.
func (v *perceiver) acidic(i int32) bool {
	a := &v.m.Atoms[i]
	if a.Aromatic {
		return a.Z == 7 && v.inTetrazole(i)
	}
	if a.Z != 8 && a.Z != 16 {
		return false
	}
	for _, l := range v.of(i) {
		if t := v.m.Bonds[l.bond].Type; t != Single && t != Aromatic {
			continue
		}
		centre := &v.m.Atoms[l.atom]
		if centre.Aromatic {
			continue
		}
		double := 0 // bonds to O or S
		anions := 0 // O or S at single bonds
		oxygens := 0
		for _, o := range v.of(l.atom) {
			end := &v.m.Atoms[o.atom]
			if end.Aromatic || end.Z != 8 && end.Z != 16 {
				continue
			}
			switch t := v.m.Bonds[o.bond].Type; {
			case t == Double:
				double++
			case end.Charge == -1 && (t == Single || t == Aromatic):
				anions++
				oxygens += yes(end.Z == 8)
			}
		}
		switch centre.Z {
		case 6:
			if centre.Charge == 0 && double > 0 {
				return true
			}
		case 16:
			if centre.Charge == 0 && double > 0 {
				return true
			}
		case 7, 15:
			if centre.Charge == 1 && double > 0 && anions > 1 {
				return true
			}
		case 17, 35, 53:
			if centre.Charge >= 1 && centre.Charge <= 3 && a.Z == 8 && oxygens > 1 {
				return true
			}
		}
	}
	return false
}

// inTetrazole reports whether an atom is in an aromatic ring of four nitrogens and a carbon.
func (v *perceiver) inTetrazole(i int32) bool {
	s := &v.rings
	for r := range int32(s.count()) {
		atoms := s.atomsOf(r)
		if len(atoms) != 5 || !slices.Contains(atoms, i) {
			continue
		}
		nitrogens := 0
		carbons := 0
		for _, k := range atoms {
			if a := &v.m.Atoms[k]; a.Aromatic {
				nitrogens += yes(a.Z == 7)
				carbons += yes(a.Z == 6)
			}
		}
		if nitrogens == 4 && carbons == 1 {
			return true
		}
	}
	return false
}
