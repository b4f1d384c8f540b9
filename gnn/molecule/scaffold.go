package molecule

// Scaffold returns the identity of a molecule's Bemis–Murcko scaffold: two
// molecules have the same scaffold exactly if the strings are equal. A scaffold
// has the rings, the chains between them and what is bound to either by a double
// bond, with the remaining stereocentres. Without rings, the string is empty. It is
// a canonical form and not meant to be read.
//
// The scaffold is that of RDKit's MurckoScaffoldSmiles(includeChirality=True), by
// which Hu et al. split data sets.
//
//	G. W. Bemis, M. A. Murcko, The properties of known drugs. 1. Molecular
//	frameworks, J. Med. Chem. 39 (1996) 2887–2893.
func (p *Parser) Scaffold(m *Molecule) string {
	v := &p.perceiver
	v.reset(m)
	if !v.murcko(&p.scaffold) {
		return ""
	}
	v.reset(&p.scaffold)
	for i := range p.scaffold.Atoms {
		v.refill(int32(i))
	}
	v.findRings() // does not fail: the molecule had the same rings
	v.cleanStereo(false)
	return p.perceiver.canon.form(v)
}

// ScaffoldSMILES returns short SMILES of the scaffold that [Parser.Scaffold] identifies, to be read; "" without rings.
// They are those of [Parser.CanonicalSMILES].
func (p *Parser) ScaffoldSMILES(m *Molecule) string {
	if p.Scaffold(m) == "" {
		return ""
	}
	p.perceiver.note() // the hydrogens and degrees of the scaffold, not of the molecule
	return p.CanonicalSMILES(&p.scaffold)
}

// Canonical returns the identity of a whole molecule in the form of [Parser.Scaffold], with isotopes,
// charges, stereocentres and the directions of bonds.
func (p *Parser) Canonical(m *Molecule) string {
	p.perceiver.reset(m)
	return p.perceiver.canon.form(&p.perceiver)
}

// murcko copies the scaffold of the perceiver's molecule to s, and reports whether there is one.
func (v *perceiver) murcko(s *Molecule) bool {
	m := v.m
	n := len(m.Atoms)
	if len(m.Bonds) < 3 {
		return false
	}
	v.peel()
	core := v.core
	if len(v.queue) == n {
		return false
	}

	keep := append(v.keep[:0], core...)
	v.keep = keep
	s.Atoms = append(s.Atoms[:0], m.Atoms...)
	s.Bonds = append(s.Bonds[:0], m.Bonds...)
	for i := range int32(n) {
		if core[i] {
			continue
		}
		for _, l := range v.of(i) {
			if !core[l.atom] {
				continue
			}
			if m.Bonds[l.bond].Type == Double {
				keep[i] = true
				break
			}
			// The neighbour loses a substituent. An aromatic nitrogen gets a
			// hydrogen instead; other atoms get as many as fit.
			a := &s.Atoms[l.atom]
			switch {
			case a.Aromatic && (a.Z != 6 || a.Charge == 1):
				a.explicit = 1
			case a.fixed || a.Chirality != Unspecified:
				a.fixed = false
				a.explicit = 0
				a.Chirality = Unspecified
			}
		}
	}
	v.leaveOut(s)
	return true
}

// peel removes atoms with a single neighbour, one after another. v.core marks the remaining atoms,
// which are in rings or between rings, v.moved has their degrees, and v.queue the other atoms.
func (v *perceiver) peel() {
	n := len(v.m.Atoms)
	v.core = resize(v.core, n)
	v.moved = resize(v.moved, n)
	v.queue = v.queue[:0]
	for i := range int32(n) {
		v.core[i] = true
		v.moved[i] = v.degree(i)
		if v.moved[i] < 2 {
			v.queue = append(v.queue, i)
		}
	}
	for k := 0; k < len(v.queue); k++ {
		v.core[v.queue[k]] = false
		for _, l := range v.of(v.queue[k]) {
			v.moved[l.atom]--
			if v.moved[l.atom] == 1 && v.core[l.atom] {
				v.queue = append(v.queue, l.atom)
			}
		}
	}
}
