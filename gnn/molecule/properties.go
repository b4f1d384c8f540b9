package molecule

// Hybridisation says how many orbitals of an atom are taken by bonds, lone pairs and unpaired
// electrons. The order is that of RDKit's HybridizationType.
type Hybridisation int8

const (
	Unhybridised Hybridisation = iota // a wildcard, or more than six orbitals
	HybridS
	HybridSP
	HybridSP2 // also four orbitals next to a conjugated bond, as in the nitrogen of an amide
	HybridSP3
	HybridSP2D // square planar, by its chirality
	HybridSP3D
	HybridSP3D2
)

// CIP returns 'R' or 'S' for a stereocentre whose neighbours differ in rank, and 0 for other
// atoms. The ranks are those of RDKit's legacy perception, which approximate the rules of Cahn,
// Ingold and Prelog.
func (a *Atom) CIP() byte { return [...]byte{noCode: 0, codeS: 'S', codeR: 'R'}[a.code] }

// Valence returns the sum of the orders of an atom's bonds, including those to hydrogens.
func (a *Atom) Valence() int { return int(a.totalValence()) }

// Radicals returns the number of unpaired electrons of an atom.
func (a *Atom) Radicals() int { return int(a.radicals) }

// CIP returns 'E' or 'Z' for a double bond with a configuration, and 0 for other bonds. The ranks
// are those of [Atom.CIP].
func (b *Bond) CIP() byte {
	return [...]byte{noStereo: 0, stereoE: 'E', stereoZ: 'Z'}[b.stereo]
}

// Sides returns a neighbour of Begin and one of End, for a double bond with a configuration, and whether both
// lie on the same side of it. ok is false for other bonds.
func (b *Bond) Sides() (begin, end int32, same, ok bool) {
	return b.ref[0], b.ref[1], b.stereo == stereoZ, b.stereo != noStereo
}

// Rings returns the number of rings of a molecule: the rings of all its smallest sets of smallest
// rings, as in RDKit's GetSymmSSSR.
func (m *Molecule) Rings() int { return max(len(m.ringPtr), 1) - 1 }

// Ring returns the atoms of ring r in cyclic order, and the bonds from each to the next.
func (m *Molecule) Ring(r int) (atoms, bonds []int32) {
	start, end := m.ringPtr[r], m.ringPtr[r+1]
	return m.ringAtoms[start:end], m.ringBonds[start:end]
}

// conjugate finds the conjugated bonds: aromatic bonds, and a multiple bond with its neighbours if
// their atoms have electrons to share.
func (v *perceiver) conjugate() {
	m := v.m
	for i := range m.Bonds {
		m.Bonds[i].Conjugated = m.Bonds[i].aromatic
	}
	for i := range int32(len(m.Atoms)) {
		if n := v.degree(i) + int32(m.Atoms[i].hydrogens()); n < 2 || n > 3 {
			continue
		}
		for _, x := range v.of(i) {
			if m.Bonds[x.bond].halvesAt(i) < 3 || !v.mayConjugate(i) ||
				!v.release2022 && !v.mayConjugate(x.atom) {
				continue
			}
			for _, y := range v.of(i) {
				if x != y && v.degree(y.atom)+int32(m.Atoms[y.atom].hydrogens()) <= 3 &&
					v.mayConjugate(y.atom) {
					m.Bonds[x.bond].Conjugated, m.Bonds[y.bond].Conjugated = true, true
				}
			}
		}
	}
}

// mayConjugate reports whether an atom has electrons for a conjugated bond.
func (v *perceiver) mayConjugate(i int32) bool {
	a := &v.m.Atoms[i]
	outer := elements[a.Z].outer
	if a.Z > 10 && (outer == 5 || outer == 6) && (outer != 6 || v.degree(i)+int32(a.hydrogens()) >= 2) {
		return false
	}
	return v.piElectrons(i) > 0
}

// hybridise sets the hybridisation of every atom. It uses the tags as they are written.
func (v *perceiver) hybridise() {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		a.Hybridisation = v.hybridisation(int32(i), v.degree(int32(i))+int32(a.hydrogens()))
	}
}

// hybridisation returns the hybridisation of an atom with n neighbours, including hydrogens.
func (v *perceiver) hybridisation(i, n int32) Hybridisation {
	a := &v.m.Atoms[i]
	switch tag := a.Chirality; {
	case a.Z == 0:
		return Unhybridised
	case (tag == Clockwise || tag == CounterClockwise) && n == 4:
		return HybridSP3
	case tag == tagSquarePlanar && n >= 2 && n <= 4:
		return HybridSP2D
	case tag == tagTrigonalBipyramidal && n >= 2 && n <= 5:
		return HybridSP3D
	case tag == tagOctahedral && n >= 2 && n <= 6:
		return HybridSP3D2
	}
	orbitals := n
	if a.Z < 89 {
		for _, l := range v.of(i) {
			if b := &v.m.Bonds[l.bond]; b.Type == Dative && b.Begin == i {
				orbitals--
			}
		}
	}
	if a.Z > 1 && a.Z < 89 {
		outer := int32(elements[a.Z].outer)
		total := a.totalValence()
		charge := int32(a.Charge)
		free := outer - (total + charge)
		if total+outer-charge < 8 {
			radicals := int32(a.radicals)
			orbitals += (free-radicals)/2 + radicals
		} else {
			orbitals += free / 2
		}
	}
	switch orbitals {
	case 0, 1:
		return HybridS
	case 2:
		return HybridSP
	case 3:
		return HybridSP2
	case 4:
		if n <= 3 {
			for _, l := range v.of(i) {
				if v.m.Bonds[l.bond].Conjugated {
					return HybridSP2
				}
			}
		}
		return HybridSP3
	case 5:
		return HybridSP3D
	case 6:
		return HybridSP3D2
	}
	return Unhybridised
}

// note copies the results of perception to the molecule.
func (v *perceiver) note() {
	m := v.m
	s := &v.rings
	for i := range m.Atoms {
		a := &m.Atoms[i]
		a.Hydrogens = a.hydrogens()
		a.Degree = int16(v.degree(int32(i)))
		a.InRing = s.ofAtom[i] > 0
	}
	for i := range m.Bonds {
		m.Bonds[i].InRing = s.ofBond[i] > 0
	}
	m.ringPtr = append(m.ringPtr[:0], s.ptr...)
	m.ringAtoms, m.ringBonds = append(m.ringAtoms[:0], s.atoms...), append(m.ringBonds[:0], s.bonds...)
}
