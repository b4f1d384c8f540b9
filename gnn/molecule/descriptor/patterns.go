package descriptor

import "github.com/specmatch/specmatch/gnn/molecule"

// is reports whether an atom is aliphatic and of one of the elements.
func is(a *molecule.Atom, elements ...int8) bool {
	if a.Aromatic {
		return false
	}
	for _, z := range elements {
		if a.Z == z {
			return true
		}
	}
	return false
}

// doubleTo reports whether an atom has a double bond to an aliphatic atom of the elements.
func (w *work) doubleTo(i int32, outsideRings bool, elements ...int8) bool {
	for _, l := range w.of(i) {
		if l.bond.Type == molecule.Double && !(outsideRings && l.bond.InRing) &&
			is(w.atom(l.atom), elements...) {
			return true
		}
	}
	return false
}

// donors counts hydrogen-bond donors: nitrogens with hydrogens, and hydroxyl and thiol groups.
func (w *work) donors() float64 {
	n := 0.0
	for i := range w.m.Atoms {
		a := &w.m.Atoms[i]
		h := w.allH[i]
		v := a.Valence()
		switch {
		case is(a, 7):
			if h > 0 && (v == 3 || a.Charge == 1 && v == 4) {
				n++
			}
		case is(a, 8, 16), a.Z == 7:
			if h == 1 && a.Charge == 0 {
				n++
			}
		}
	}
	return n
}

// acceptors counts hydrogen-bond acceptors: oxygen and sulphur of valence 2 except in the hydroxyl of
// an acid, their anions, nitrogen of valence 3 except in amides, and aromatic ones with a free pair.
func (w *work) acceptors() float64 {
	n := 0.0
	for i := range int32(len(w.m.Atoms)) {
		a := w.atom(i)
		accepts := false
		switch {
		case is(a, 8, 16):
			v := a.Valence()
			h := w.allH[i]
			accepts = a.Charge == -1 || v == 2 && h == 0
			for _, l := range w.of(i) {
				accepts = accepts ||
					v == 2 && h == 1 && l.bond.Type == molecule.Single && !w.doubleTo(l.atom, false, 8, 7, 15, 16)
			}
		case is(a, 7):
			accepts = a.Valence() == 3
			for _, l := range w.of(i) {
				accepts = accepts &&
					!(l.bond.Type == molecule.Single && w.doubleTo(l.atom, true, 8, 7, 15, 16))
			}
		case a.Z == 7 && a.Charge == 0:
			accepts = w.allH[i] == 0 && a.Degree == 2
		case a.Z == 8 || a.Z == 16:
			accepts = a.Charge == 0
		}
		if accepts {
			n++
		}
	}
	return n
}

// amides counts the pairs of a carbonyl oxygen that is in no ring and a nitrogen at the same carbon.
func (w *work) amides() float64 {
	total := 0
	for i := range int32(len(w.m.Atoms)) {
		if !is(w.atom(i), 6) {
			continue
		}
		var oxygens, nitrogens int
		for _, l := range w.of(i) {
			o := w.atom(l.atom)
			switch {
			case l.bond.Type == molecule.Double && is(o, 8) && !o.InRing:
				oxygens++
			case l.bond.Type == molecule.Single && is(o, 7):
				nitrogens++
			}
		}
		total += oxygens * nitrogens
	}
	return float64(total)
}

// rotatable counts the rotatable bonds: single bonds outside of rings between atoms with other
// neighbours. It excludes bonds next to a triple bond, bonds to methyl, trihalomethyl and tert-butyl
// groups, and the stiff bonds of amides, esters and amidines.
func (w *work) rotatable() float64 {
	n := 0.0
	for k := range w.m.Bonds {
		b := &w.m.Bonds[k]
		if (b.Type == molecule.Single || b.Type == molecule.Aromatic) && !b.InRing && w.turns(b.Begin) &&
			w.turns(b.End) && !(w.stiff(b.Begin) && w.stiff(b.End)) {
			n++
		}
	}
	return n
}

// turns reports whether the rotation of a bond at an atom moves anything.
func (w *work) turns(i int32) bool {
	a := w.atom(i)
	if a.Degree == 1 || is(a, 6) && w.allH[i] == 3 {
		return false
	}
	var fluorine, chlorine, bromine, methyl int
	for _, l := range w.of(i) {
		o := w.atom(l.atom)
		switch {
		case l.bond.Type == molecule.Triple:
			return false
		case l.bond.Type != molecule.Single && l.bond.Type != molecule.Aromatic:
		case o.Z == 9:
			fluorine++
		case o.Z == 17:
			chlorine++
		case o.Z == 35:
			bromine++
		case is(o, 6) && w.allH[l.atom] == 3:
			methyl++
		}
	}
	return !is(a, 6) || max(fluorine, chlorine, bromine, methyl) < 3
}

// stiff reports whether an atom is at either end of the stiff bond of an amide, an ester or the like.
func (w *work) stiff(i int32) bool {
	for _, l := range w.of(i) {
		if l.bond.Type == molecule.Single && !l.bond.InRing &&
			(w.carbonyl(i) && w.bridging(l.atom) || w.carbonyl(l.atom) && w.bridging(i)) {
			return true
		}
	}
	return false
}

// carbonyl reports whether an atom is carbon with three neighbours and a double bond to
// nitrogen, oxygen or sulphur.
func (w *work) carbonyl(i int32) bool {
	return is(w.atom(i), 6) && w.atom(i).Degree == 3 && w.doubleTo(i, false, 7, 8, 16)
}

// bridging reports whether an atom may be the nitrogen, oxygen or sulphur of a stiff bond.
func (w *work) bridging(i int32) bool {
	a := w.atom(i)
	return a.Z == 7 || is(a, 8) || is(a, 16) && a.Degree != 1
}

// saturation returns the fraction of carbons with four neighbours.
func (w *work) saturation() float64 {
	var carbons, saturated float64
	for i := range w.m.Atoms {
		if a := &w.m.Atoms[i]; a.Z == 6 {
			carbons++
			if int(a.Degree)+int(a.Hydrogens) == 4 {
				saturated++
			}
		}
	}
	return saturated / max(carbons, 1)
}

// electrons returns the number of valence electrons.
func (w *work) electrons() float64 {
	n := 0
	for i := range w.m.Atoms {
		a := &w.m.Atoms[i]
		n += molecule.ElementOf(a.Z).Outer - int(a.Charge) + int(a.Hydrogens)
	}
	return float64(n)
}
