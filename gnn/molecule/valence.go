package molecule

// normalise rewrites some common ways of drawing a pentavalent atom. N(=O)=O becomes
// [N+](=O)[O-], N=N#N becomes N=[N+]=[N-], C=P(=O) becomes C=[P+][O-], and a halogen with only
// oxygens as neighbours gets charges in place of double bonds.
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
		n := &m.Atoms[l.atom]
		b := &m.Bonds[l.bond]
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

// makeDative makes one single bond of a non-metal to a metal dative if the non-metal has too many
// bonds. Its valence is then smaller by one: N([Fe])(C)(C)C is N(C)(C)(C)->[Fe]. Hydrogen and
// fluorine form no dative bonds.
func (v *perceiver) makeDative() {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		if a.Z <= 1 || a.Z == 9 || metal(a.Z) {
			continue
		}
		var metalBond *Bond
		for _, l := range v.of(int32(i)) {
			if b := &v.m.Bonds[l.bond]; b.Type == Single && metal(v.m.Atoms[l.atom].Z) {
				metalBond = b
			}
		}
		if metalBond == nil {
			continue
		}
		largest := a.isoelectronic().maxValence()
		val := v.explicitValence(int32(i))
		if a.Z == 6 { // also in benzene and cyclopentadienyl
			val = (v.orders(int32(i))+1)/2 + int32(a.explicit)
		}
		if largest > 0 && val > largest {
			metalBond.End = metalBond.Begin + metalBond.End - int32(i)
			metalBond.Begin = int32(i)
			metalBond.Type = Dative
		}
	}
}

// inAromatic reports whether an atom or one of its bonds is aromatic. A bond outside of rings that
// is written as aromatic counts, too: kekulise removes its mark and leaves the type.
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

// valenceShift returns what the charge of an atom adds to its allowed valences. A positive charge
// adds a bond to nitrogen and the elements to its right, and removes one from early elements and
// carbon.
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
		sum += v.m.Bonds[l.bond].halvesAt(i)
	}
	return sum
}

// isoelectronic returns the element with as many electrons as the atom. The atom has its valences:
// N+ bonds like C. For metals without valences, it returns their own element.
func (a *Atom) isoelectronic() *element {
	e := &elements[a.Z]
	if e.defaultValence() == anyValence {
		return e
	}
	return &elements[min(max(int32(a.Z)-int32(a.Charge), 0), maxZ)]
}

// allowance returns the element whose valences an atom may have, and what to subtract from the atom's
// valence before the comparison. P, S, As and Se with negative charges may be hypervalent, unlike
// the isoelectronic Cl, Ar, Br and Kr.
func (a *Atom) allowance() (e *element, less int32) {
	if z := int(a.Z) - int(a.Charge); (a.Z == 15 || a.Z == 16) && z > 16 ||
		(a.Z == 33 || a.Z == 34) && z > 34 {
		return &elements[a.Z], int32(a.Charge)
	}
	return a.isoelectronic(), 0
}

// bonds counts the bonds of an atom, except bonds of any order and dative bonds for which it gives the
// electrons.
func (v *perceiver) bonds(i int32) int32 {
	n := v.degree(i)
	for _, l := range v.of(i) {
		if b := &v.m.Bonds[l.bond]; b.Type == AnyOrder || b.Type == Dative && b.Begin == i {
			n--
		}
	}
	return n
}

// explicitValence returns the valence without implicit hydrogens. The bonds of an aromatic atom
// count 1½, and their sum is rounded to an allowed valence nearby: the bonds of the nitrogen of
// pyrrole sum to 4, and its valence is 3.
func (v *perceiver) explicitValence(i int32) int32 {
	a := &v.m.Atoms[i]
	e := a.isoelectronic()
	twice := v.orders(i) + 2*int32(a.explicit)
	if def := e.defaultValence(); def != anyValence && twice > 2*def && v.inAromatic(i) {
		nearest := def
		for _, val := range e.valences {
			if val == anyValence || 2*int32(val) > twice {
				break
			}
			nearest = int32(val)
		}
		if twice-2*nearest <= 3 {
			twice = 2 * nearest
		}
	}
	return (twice + 1) / 2 // a half counts as a whole
}

// settleValences computes the valence and the implicit hydrogens of every atom. It fails for an atom
// with more bonds than its element allows.
func (v *perceiver) settleValences() *problem {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		if err := v.settleValence(int32(i)); err != nil {
			return err
		}
		h, ok := v.implicitHydrogens(int32(i))
		if !ok {
			return atomProblem(int32(i), "%s%s cannot have the valence %d",
				elements[a.Z].symbol, chargeSign(a.Charge), a.valence)
		}
		a.implicit = int8(h)
	}
	return nil
}

// most2022 returns the largest valence that RDKit 2022.09 allows an element, 0 or less for no bound,
// and what the charge of the atom adds to it.
func (a *Atom) most2022() (largest, charge int32) {
	largest = elements[a.Z].maxValence()
	charge = int32(a.Charge)
	switch a.Z {
	case 3, 11, 19, 37:
		largest = 1
	case 13, 14:
		largest = 6
	case 15, 33, 51, 83:
		largest = 7
	case 81:
		largest = 3
	}
	if elements[a.Z].outer < 4 {
		charge = -charge
	}
	return largest, charge
}

// settleValence computes the valence of one atom.
func (v *perceiver) settleValence(i int32) *problem {
	a := &v.m.Atoms[i]
	model, less := a.allowance()
	val := v.explicitValence(i)
	a.valence = int16(val)
	largest := model.maxValence()
	if a.Z == 1 && a.Charge == -1 {
		largest = 2 // in bridges between metals
	}
	if v.release2022 {
		largest, less = a.most2022()
		if largest > 0 && val-less > largest {
			return atomProblem(i, "%s%s has the valence %d, and at most %d is allowed",
				elements[a.Z].symbol, chargeSign(a.Charge), val, largest+less)
		}
		return nil
	}
	if largest >= 0 && elements[a.Z].maxValence() >= 0 && val-less > largest {
		return atomProblem(i, "%s%s has the valence %d, and at most %d is allowed",
			elements[a.Z].symbol, chargeSign(a.Charge), val, largest+less)
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

// implicitHydrogens returns the number of hydrogens that fill up the valence of an atom. ok is false
// if the valence is not allowed.
func (v *perceiver) implicitHydrogens(i int32) (n int32, ok bool) {
	a := &v.m.Atoms[i]
	if a.fixed || a.Z == 0 {
		return 0, true
	}
	used := int32(a.valence) + int32(a.radicals)
	if a.Z == 1 && used == 0 {
		return max(0, 1-max(int32(a.Charge), -int32(a.Charge))), true
	}
	e, less := a.allowance()
	def := e.defaultValence()
	if def == anyValence {
		return 0, true
	}
	used -= less
	aromatic := v.inAromatic(i)
	if aromatic && used <= def {
		return def - used, true
	}
	for _, val := range e.valences {
		switch {
		case val == anyValence:
		case used == int32(val), !aromatic && used < int32(val):
			return int32(val) - used, true
		}
	}
	return 0, !aromatic && e.maxValence() == anyValence || v.release2022 && !aromatic
}

// refill recomputes the valence of an atom and its implicit hydrogens.
func (v *perceiver) refill(i int32) {
	a := &v.m.Atoms[i]
	a.valence = int16(v.explicitValence(i))
	h, _ := v.implicitHydrogens(i)
	a.implicit = int8(h)
}

// countRadicals counts the unpaired electrons of bracket atoms: what their written hydrogens leave
// missing from an octet.
func (v *perceiver) countRadicals() {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		if !a.fixed || a.Z == 0 {
			continue
		}
		e := &elements[a.Z]
		outer := int32(e.outer)
		charge := int32(a.Charge)
		if e.defaultValence() == anyValence {
			if v.degree(int32(i)) == 0 || v.release2022 {
				a.radicals = int8(max(0, outer-charge) % 2)
			}
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

// settleHydrogens keeps the hydrogens for which aromatic bonds leave no room, such as that of the
// nitrogen of pyrrole. Valences are final now. An atom that was written as aromatic and is not, as
// in Cc1(C)=NCCCC1, may have too many bonds.
func (v *perceiver) settleHydrogens() *problem {
	for i := range v.m.Atoms {
		a := &v.m.Atoms[i]
		before := a.implicit
		v.refill(int32(i))
		if !a.fixed && a.implicit < before {
			a.explicit += before - a.implicit
		}
		if err := v.settleValence(int32(i)); err != nil && !v.release2022 {
			return err
		}
	}
	return nil
}
