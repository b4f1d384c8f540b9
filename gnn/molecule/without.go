package molecule

import (
	"fmt"
	"slices"
)

// Without returns m without some atoms. The valences that their bonds leave are filled up with hydrogens,
// and everything is perceived anew: a ring without an atom is a chain of the bonds of a Kekulé structure.
// Stereocentres next to the atoms lose their tags. m must come from a parser. The molecule belongs to p, and
// the next call overwrites it. It is an error if there is no such molecule, as without any atom.
func (p *Parser) Without(m *Molecule, atoms ...int) (*Molecule, error) {
	if len(m.Atoms) <= len(atoms) {
		return nil, fmt.Errorf("molecule: nothing is left without the atoms %d", atoms)
	}
	v := &p.perceiver
	v.reset(m)
	part := &p.part
	part.copyDrawing(m)
	v.keep = resize(v.keep, len(m.Atoms))
	for i := range v.keep {
		v.keep[i] = !slices.Contains(atoms, i)
	}
	for _, i := range atoms {
		for _, l := range v.of(int32(i)) {
			bond := &part.Bonds[l.bond]
			part.Atoms[l.atom].release(bond.halvesAt(l.atom)/2, bond.Type)
		}
	}
	v.moved = resize(v.moved, len(m.Atoms))
	v.leaveOut(part)
	v.reset(part)
	v.release2022 = p.Release2022
	if err := v.perceive(false); err != nil {
		return nil, fmt.Errorf("molecule: without the atoms %d: %s", atoms, err.reason)
	}
	return part, nil
}

// Unmapped returns m without atom map numbers, which are those of a reaction and make no other molecule. What only they
// distinguish is no stereocentre, so everything is perceived anew; what they made the first perception remove stays
// removed. m must come from a parser; it is returned itself
// if it has no numbers. Otherwise the molecule belongs to p, and the next call overwrites it.
func (p *Parser) Unmapped(m *Molecule) *Molecule {
	isMapped := func(a Atom) bool { return a.Map != 0 }
	if !slices.ContainsFunc(m.Atoms, isMapped) {
		return m
	}
	v := &p.perceiver
	part := &p.part
	part.copyDrawing(m)
	part.Kept = append(part.Kept, m.Kept...)
	part.dropMaps()
	v.reset(part)
	v.release2022 = p.Release2022
	if v.perceive(false) != nil { // its Kekulé structure is refused, as that of c1c#[nH+]ccc1 is
		*part = *m.Clone()
		part.dropMaps()
	}
	return part
}

func (m *Molecule) dropMaps() {
	for i := range m.Atoms {
		m.Atoms[i].Map = 0
	}
}

// copyDrawing makes s the drawing of a perceived molecule, with a Kekulé structure for its aromatic bonds.
func (s *Molecule) copyDrawing(m *Molecule) {
	s.Atoms = append(s.Atoms[:0], m.Atoms...)
	s.Bonds = append(s.Bonds[:0], m.Bonds...)
	s.Kept = s.Kept[:0]
	for i := range s.Atoms {
		a := &s.Atoms[i]
		a.Aromatic = false
		if a.Chirality == Other {
			a.Chirality = otherTag(int(a.Degree) + int(a.Hydrogens)) // which perception turns back
		}
	}
	for k := range s.Bonds {
		b := &s.Bonds[k]
		b.aromatic = false
		if b.Type == Aromatic {
			b.Type = b.kekule
		}
	}
}

// otherTag returns a tag that perception keeps at a centre with some neighbours.
func otherTag(neighbours int) Chirality {
	switch {
	case neighbours <= 4:
		return tagSquarePlanar
	case neighbours == 5:
		return tagTrigonalBipyramidal
	}
	return tagOctahedral
}

// release removes what a bond of an order to a former neighbour meant for the atom.
func (a *Atom) release(order int32, kind BondType) {
	if !a.nonTetrahedral() {
		a.Chirality = Unspecified
	}
	if a.fixed && kind != Dative {
		a.explicit += int8(order)
	}
}
