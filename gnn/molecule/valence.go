package molecule

// normalise rewrites some common ways of drawing a pentavalent atom:
// N(=O)=O becomes [N+](=O)[O-], N=N#N becomes N=[N+]=[N-], C=P(=O) becomes
// C=[P+][O-], and a halogen with only oxygens around it gets charges in the
// place of double bonds.
func (v *perceiver) normalise() {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		if a.Charge != 0 {
			continue
		}
		switch a.Z {
		case 7:
			v.normaliseNitrogen(int32(i))
		case 15:
			v.normalisePhosphorus(int32(i))
		case 17, 35, 53:
			v.normaliseHalogen(int32(i))
		}
	}
}

func (v *perceiver) normaliseNitrogen(i int32) {
	m := v.m
	a := &m.Atoms[i]
	if v.orders(i)+2*int32(a.explicit) < 9 { // the common case
		return
	}
	aromatic := a.Aromatic
	a.Aromatic = false
	five := v.explicitValence(i) == 5
	a.Aromatic = aromatic
	if !five {
		return
	}
	for _, l := range v.of(i) {
		n, b := &m.Atoms[l.atom], &m.Bonds[l.bond]
		if n.Charge != 0 {
			continue
		}
		switch {
		case n.Z == 8 && b.Type == Double:
			b.Type = Single
		case n.Z == 7 && b.Type == Triple:
			b.Type = Double
		default:
			continue
		}
		a.Charge, n.Charge = 1, -1
		return
	}
}

func (v *perceiver) normalisePhosphorus(i int32) {
	m := v.m
	if v.degree(i) != 3 || v.explicitValence(i) != 5 {
		return
	}
	var oxygen *link
	double := false // to carbon or nitrogen
	for k, l := range v.of(i) {
		n := &m.Atoms[l.atom]
		if m.Bonds[l.bond].Type != Double {
			continue
		}
		switch {
		case n.Z == 8 && n.Charge == 0:
			oxygen = &v.of(i)[k]
		case (n.Z == 6 || n.Z == 7) && v.degree(l.atom) >= 2:
			double = true
		}
	}
	if oxygen != nil && double {
		m.Atoms[i].Charge, m.Atoms[oxygen.atom].Charge = 1, -1
		m.Bonds[oxygen.bond].Type = Single
	}
}

func (v *perceiver) normaliseHalogen(i int32) {
	m := v.m
	if n := v.explicitValence(i); n != 3 && n != 5 && n != 7 {
		return
	}
	for _, l := range v.of(i) {
		if m.Atoms[l.atom].Z != 8 {
			return
		}
	}
	for _, l := range v.of(i) {
		if b := &m.Bonds[l.bond]; b.Type == Double {
			b.Type = Single
			m.Atoms[i].Charge++
			m.Atoms[l.atom].Charge = -1
		}
	}
}

// inAromatic reports whether an atom or one of its bonds is aromatic. A bond
// outside of rings that is written so counts too: kekulise removes its mark and
// leaves the type.
func (v *perceiver) inAromatic(i int32) bool {
	if v.m.Atoms[i].Aromatic {
		return true
	}
	for _, l := range v.of(i) {
		if b := &v.m.Bonds[l.bond]; b.aromatic || b.Type == Aromatic {
			return true
		}
	}
	return false
}

// valenceShift is what the charge of an atom adds to its allowed valences. A
// positive charge adds a bond to nitrogen and the elements to its right, and takes
// one from early elements and carbon.
func (a *Atom) valenceShift() int32 {
	c := int32(a.Charge)
	if elements[a.Z].early || a.Z == 6 && c > 0 {
		return -c
	}
	return c
}

// orders returns twice the sum of the orders of an atom's bonds.
func (v *perceiver) orders(i int32) int32 {
	sum := int32(0)
	for _, l := range v.of(i) {
		sum += halves[v.m.Bonds[l.bond].Type]
	}
	return sum
}

// explicitValence is the valence without implicit hydrogens. That of an
// aromatic atom, whose bonds count 1½, is brought to an allowed one nearby: the
// nitrogen of pyrrole has bonds for 4 and the valence 3.
func (v *perceiver) explicitValence(i int32) int32 {
	a := &v.m.Atoms[i]
	e := &elements[a.Z]
	twice := v.orders(i) + 2*int32(a.explicit)
	shift := a.valenceShift()
	if def := e.defaultValence(); def != anyValence && def+shift >= 0 && twice > 2*(def+shift) && v.inAromatic(i) {
		nearest := def + shift
		for _, val := range e.valences {
			if val == anyValence || 2*(int32(val)+shift) > twice {
				break
			}
			nearest = int32(val) + shift
		}
		if twice-2*nearest <= 3 {
			twice = 2 * nearest
		}
	}
	return (twice + 1) / 2 // a half counts as a whole
}

// settleValences computes the valence and the implicit hydrogens of every atom,
// and refuses those with more bonds than the element allows.
func (v *perceiver) settleValences() *problem {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		e := &elements[a.Z]
		val := v.explicitValence(int32(i))
		a.valence = int16(val)
		effective := val + int32(a.Charge)
		if e.outer >= 4 {
			effective = val - int32(a.Charge)
		}
		if most := e.maxValence(); most > 0 && effective > most {
			return atomProblem(int32(i), "%s%s has the valence %d, and at most %d is allowed", e.symbol, chargeSign(a.Charge), val, val-effective+most)
		}
		h, ok := v.implicitHydrogens(int32(i))
		if !ok {
			return atomProblem(int32(i), "%s%s cannot have the valence %d", e.symbol, chargeSign(a.Charge), val)
		}
		a.implicit = int8(h)
	}
	return nil
}

func chargeSign(c int8) string {
	switch {
	case c > 0:
		return "+"
	case c < 0:
		return "-"
	}
	return ""
}

// implicitHydrogens returns how many hydrogens fill up the valence of an atom.
// ok is false if the valence is not an allowed one.
func (v *perceiver) implicitHydrogens(i int32) (n int32, ok bool) {
	a := &v.m.Atoms[i]
	if a.fixed || a.Z == 0 {
		return 0, true
	}
	e := &elements[a.Z]
	used := int32(a.valence) + int32(a.radicals)
	if a.Z == 1 && used == 0 {
		return max(0, 1-max(int32(a.Charge), -int32(a.Charge))), true
	}
	def := e.defaultValence()
	if def == anyValence {
		return 0, true
	}
	shift := a.valenceShift()
	if v.inAromatic(i) {
		if used <= def+shift {
			return def + shift - used, true
		}
		for _, val := range e.valences {
			if val > 0 && used == int32(val)+shift {
				return 0, true
			}
		}
		return 0, false
	}
	for _, val := range e.valences {
		if val != anyValence && used <= int32(val)+shift {
			return int32(val) + shift - used, true
		}
	}
	return 0, e.maxValence() == anyValence
}

// refill computes the valence of an atom and its implicit hydrogens anew.
func (v *perceiver) refill(i int32) {
	a := &v.m.Atoms[i]
	a.valence = int16(v.explicitValence(i))
	h, _ := v.implicitHydrogens(i)
	a.implicit = int8(h)
}

// countRadicals finds unpaired electrons: bracket atoms have the hydrogens that are
// written, and what is missing from an octet is unpaired.
func (v *perceiver) countRadicals() {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		if !a.fixed || a.Z == 0 {
			continue
		}
		e := &elements[a.Z]
		outer, charge := int32(e.outer), int32(a.Charge)
		if e.defaultValence() == anyValence {
			a.radicals = int8(max(0, outer-charge) % 2)
			continue
		}
		total := v.orders(int32(i))/2 + int32(a.explicit)
		octet := int32(8)
		if a.Z <= 2 {
			octet = 2
		}
		n := octet - outer - total + charge
		if n < 0 {
			n = 0
			if len(e.valences) > 1 { // may be hypervalent
				for _, val := range e.valences {
					if left := int32(val) - total + charge; left >= 0 {
						n = left
						break
					}
				}
			}
		}
		if early := outer - total - charge; early >= 0 {
			n = min(n, early)
		}
		a.radicals = int8(n)
	}
}

// settleHydrogens fixes the hydrogens that aromatic bonds would leave no room for:
// the nitrogen of pyrrole keeps its own.
func (v *perceiver) settleHydrogens() {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		before := a.implicit
		v.refill(int32(i))
		if !a.fixed && a.implicit < before {
			a.explicit += before - a.implicit
			a.valence = int16(v.explicitValence(int32(i)))
		}
	}
}
