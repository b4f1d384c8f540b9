package molecule

// removeHydrogens turns hydrogens that are written as atoms into counts at their
// neighbours, and reports whether there were any. Some hydrogens stay atoms: isotopes, hydrides,
// bridges between atoms; hydrogens without a neighbour, or bound to hydrogens, wildcards or atoms
// whose chirality is not tetrahedral; and hydrogens whose direction defines the configuration of a
// double bond. A tag keeps its meaning, because a removed hydrogen counts as the last neighbour. It is
// an error if an atom has more hydrogens than a bracket can have.
func (v *perceiver) removeHydrogens() (bool, *problem) {
	m := v.m
	found := false
	v.keep = resize(v.keep, len(m.Atoms))
	for i := range m.Atoms {
		v.keep[i] = !v.removable(int32(i))
		found = found || !v.keep[i]
	}
	if !found {
		return false, nil
	}
	// From last to first, because each removal depends on those before.
	gone := resize(v.moved, len(m.Atoms)) // hydrogens removed so far
	for i := int32(len(m.Atoms)) - 1; i >= 0; i-- {
		if v.keep[i] {
			continue
		}
		if bearer := v.of(i)[0].atom; m.Atoms[bearer].explicit >= mostHydrogens {
			return false, atomProblem(bearer, "more than %d hydrogens at an atom", mostHydrogens)
		}
		v.fold(i, gone)
		gone[i] = 1
	}
	v.moved = gone
	v.leaveOut(m)
	return true, nil
}

// mostHydrogens is how many hydrogens an atom can have, those in its bracket and those that are atoms.
const mostHydrogens = 99

// leaveOut removes the atoms that are not in v.keep from s, a copy of the perceiver's molecule, and
// sets v.moved to the new numbers.
func (v *perceiver) leaveOut(s *Molecule) {
	n := int32(0)
	for i, k := range v.keep {
		v.moved[i] = n
		if k {
			n++
		}
	}
	bonds := s.Bonds[:0]
	for _, b := range s.Bonds {
		if v.keep[b.Begin] && v.keep[b.End] {
			b.Begin = v.moved[b.Begin]
			b.End = v.moved[b.End]
			bonds = append(bonds, b)
		}
	}
	s.Bonds = bonds
	s.Atoms = compact(s.Atoms, v.keep)
}

// removable reports whether an atom is a hydrogen that becomes a count.
func (v *perceiver) removable(i int32) bool {
	a := &v.m.Atoms[i]
	if a.Z != 1 || a.Isotope != 0 || v.degree(i) != 1 || a.Charge == -1 && !v.release2022 {
		return false
	}
	l := v.of(i)[0]
	heavy := &v.m.Atoms[l.atom]
	if heavy.Z <= 1 || heavy.nonTetrahedral() {
		return false
	}
	if v.degree(l.atom) == 2 && v.m.Bonds[l.bond].Direction != NoDirection {
		for _, o := range v.of(l.atom) {
			if v.m.Bonds[o.bond].Type == Double {
				return false
			}
		}
	}
	return true
}

func (a *Atom) nonTetrahedral() bool { return a.Chirality >= tagSquarePlanar }

// fold turns hydrogen i into a count at its neighbour.
func (v *perceiver) fold(i int32, gone []int32) {
	m := v.m
	bearer := v.of(i)[0]
	bond := &m.Bonds[bearer.bond]
	heavy := &m.Atoms[bearer.atom]
	heavy.explicit++
	behind := 0         // neighbours after the hydrogen, which moves behind them
	directed := false   // whether another single bond has a direction
	var candidate *Bond // a single bond without a direction
	for _, l := range v.of(bearer.atom) {
		if l.atom == i || gone[l.atom] != 0 {
			continue
		}
		if l.bond > bearer.bond {
			behind++
		}
		if b := &m.Bonds[l.bond]; b.Type == Single {
			if b.Direction == NoDirection {
				candidate = b
			} else {
				directed = true
			}
		}
	}
	if behind%2 == 1 {
		heavy.invert()
	}
	// The bond to the other substituent, which lies opposite, gets the direction.
	if bond.Direction != NoDirection && !directed && candidate != nil {
		candidate.Direction = bond.Direction
		if candidate.Begin == bearer.atom && bond.Begin == bearer.atom {
			candidate.Direction = bond.Direction.reversed()
		}
	}
}
