package descriptor

import "github.com/specmatch/specmatch/gnn/molecule"

// Crippen computes the octanol-water partition coefficient and the molar refractivity of molecules
// as sums over their atoms, hydrogens included, by the atom types of Wildman and Crippen. Values
// are those of RDKit's MolLogP and MolMR (release 2026.09), which fixes the order in which types
// are tried where the paper leaves it open. It keeps its memory between calls; the zero Crippen is
// ready for use.
//
// RDKit stops after 1,000 matches of a type's pattern, and an atom may match in several ways, so
// that its values are too small in magnitude for a chain of 500 carbons. There is no such bound here.
//
//	S. A. Wildman, G. M. Crippen, Prediction of physicochemical parameters by atomic
//	contributions, J. Chem. Inf. Comput. Sci. 39 (1999) 868–873.
type Crippen struct{ work work }

// CrippenNames returns the names of what [Crippen.Compute] returns.
func CrippenNames() []string { return []string{"MolLogP", "MolMR"} }

// Compute returns the logarithm of the partition coefficient and the molar refractivity (cm³/mol).
func (c *Crippen) Compute(m *molecule.Molecule) (logP, refraction float64) {
	c.work.m = m
	c.work.connect()
	var sum share
	add := func(s share, n int8) {
		sum.logP += float64(n) * s.logP
		sum.refraction += float64(n) * s.refraction
	}
	for i := range int32(len(m.Atoms)) {
		add(c.work.share(i), 1)
		if h := m.Atoms[i].Hydrogens; h > 0 {
			add(c.work.hydrogenAt(i, -1), h)
		}
	}
	return sum.logP, sum.refraction
}

// share is the contribution of an atom.
type share struct{ logP, refraction float64 }

// rule is a type of atoms with its name in the paper, its share, and whether the atom is of this type.
type rule struct {
	name             string
	logP, refraction float64
	is               bool
}

// first returns the share of the first type that applies to an atom, else the fallback.
func first(fallback share, rules ...rule) share {
	for _, r := range rules {
		if r.is {
			return share{r.logP, r.refraction}
		}
	}
	return fallback
}

// around counts the neighbours of an atom other than hydrogens, by the bond to them. A plain bond is
// single or aromatic.
type around struct {
	// at plain bonds: all, those that are aliphatic, those that are aromatic
	plain, aliphatic, aromatic int
	carbon, aromaticCarbon     int // at plain bonds; carbon is aliphatic, here and below
	// at plain bonds, aliphatic: N, O, P, S and halogens; neither these nor carbon
	polar, other                 int
	single                       [4]int
	singleOther, singleAromatic  int // at single bonds; single is C, N, O and S
	ring                         int // aromatic ones at aromatic bonds
	double, doubleAliphatic      int
	doubleCarbon, doubleAromatic int // the second is aromatic carbon
	doubleNOPS, doubleCNO        int
	nitrogen, imine, azide       int  // at double bonds: nitrogen, aliphatic nitrogen, and such anions
	triple                       int  // aliphatic ones
	halogen                      int8 // the lightest one at a plain bond
}

func halogen(z int8) bool { return z == 9 || z == 17 || z == 35 || z == 53 }

func (w *work) around(i int32) (n around) {
	for _, l := range w.of(i) {
		o := w.atom(l.atom)
		if o.Z == 1 {
			continue
		}
		nops := is(o, 7, 8, 15, 16)
		switch l.bond.Type {
		case molecule.Single, molecule.Aromatic:
			n.plain++
			switch {
			case o.Aromatic:
				n.aromatic++
				if o.Z == 6 {
					n.aromaticCarbon++
				}
			case o.Z == 6:
				n.carbon++
			case nops || halogen(o.Z):
				n.polar++
				if halogen(o.Z) && (n.halogen == 0 || o.Z < n.halogen) {
					n.halogen = o.Z
				}
			default:
				n.other++
			}
		case molecule.Double:
			n.double++
			if !o.Aromatic {
				n.doubleAliphatic++
			}
			if nops {
				n.doubleNOPS++
			}
			if is(o, 6, 7, 8) {
				n.doubleCNO++
			}
			if o.Z == 7 {
				n.nitrogen++
			}
			if is(o, 7) {
				n.imine++
				if anion(o) {
					n.azide++
				}
			}
			if o.Z == 6 && o.Aromatic {
				n.doubleAromatic++
			} else if o.Z == 6 {
				n.doubleCarbon++
			}
		case molecule.Triple:
			if !o.Aromatic {
				n.triple++
			}
		}
		switch {
		case l.bond.Type == molecule.Aromatic && o.Aromatic:
			n.ring++
		case l.bond.Type != molecule.Single:
		case o.Aromatic:
			n.singleAromatic++
		case o.Z == 6:
			n.single[0]++
		case o.Z == 7:
			n.single[1]++
		case o.Z == 8:
			n.single[2]++
		case o.Z == 16:
			n.single[3]++
		case !halogen(o.Z):
			n.singleOther++
		}
	}
	n.aliphatic = n.plain - n.aromatic
	return n
}

// share returns the contribution of an atom of the graph. Elements without a type contribute nothing.
func (w *work) share(i int32) share {
	a := w.atom(i)
	n := w.around(i)
	switch {
	case a.Z == 1:
		for _, l := range w.of(i) { // its first neighbour determines the type
			if plain(l) {
				return w.hydrogenAt(l.atom, i)
			}
		}
		if a.Hydrogens > 0 {
			return share{0.123, 1.057} // H1
		}
		return share{0.1125, 1.112} // HS
	case a.Z == 6 && a.Aromatic:
		return w.aromaticCarbon(i, n)
	case a.Z == 6:
		return w.carbon(i, n)
	case a.Z == 7:
		return w.nitrogen(i, n)
	case a.Z == 8:
		return w.oxygen(i, n)
	}
	z := a.Z
	charge := a.Charge
	return first(share{},
		rule{"F", 0.4202, 1.108, z == 9 && charge == 0},
		rule{"Cl", 0.6895, 5.853, z == 17 && charge == 0},
		rule{"Br", 0.8456, 8.927, z == 35 && charge == 0},
		rule{"I", 0.8857, 14.02, z == 53 && charge == 0},
		rule{"Hal", -2.996, 0, halogen(z) && charge == -1 || z == 53 && charge >= 1 && charge <= 3 ||
			alkali(z) && charge == 1},
		rule{"P", 0.8612, 6.92, z == 15},
		rule{"S3", 0.6237, 6.691, z == 16 && a.Aromatic},
		rule{"S2", -0.0024, 7.365, z == 16 &&
			(charge >= -4 && charge <= 6 && charge != 0 && charge != 4 || charge == 0 && n.doubleNOPS > 0)},
		rule{"S1", 0.6482, 7.591, z == 16},
		rule{"Me1", -0.3808, 5.754, alkali(z) || metal(z)},
		rule{"Me2", -0.0025, 0, z >= 21 && z <= 30 || z >= 39 && z <= 48 || z >= 72 && z <= 80},
	)
}

func alkali(z int8) bool { return z == 3 || z == 11 || z == 19 || z == 37 || z == 55 }

// metal reports whether an element is of the main groups 2 to 6 and has no type of its own.
func metal(z int8) bool {
	return z == 4 || z == 5 || z >= 12 && z <= 14 || z == 20 || z >= 31 && z <= 34 || z == 38 ||
		z >= 49 && z <= 52 || z == 56 ||
		z >= 81 && z <= 84
}

func anion(a *molecule.Atom) bool { return a.Charge <= -1 && a.Charge >= -3 }

func plain(l link) bool {
	return l.bond.Type == molecule.Single || l.bond.Type == molecule.Aromatic
}

func (w *work) carbon(i int32, n around) share {
	h := w.allH[i]
	x := int(w.atom(i).Degree) + int(w.atom(i).Hydrogens)
	polar := x == 4 && n.polar > 0
	return first(share{0.08129, 3.243}, // CS
		rule{"C1", 0.1441, 2.503, h == 4 || h == 3 && n.carbon > 0 || h == 2 && n.carbon > 1},
		rule{"C2", 0, 2.433, h == 1 && n.carbon > 2 || n.carbon > 3},
		rule{"C3", -0.2035, 2.753, h == 3 && n.polar > 0 || h == 2 && polar && n.aliphatic > 1},
		rule{"C4", -0.2051, 2.731, polar && (h == 1 && n.aliphatic > 2 || h == 0 && n.aliphatic > 3)},
		rule{"C5", -0.2783, 5.007, n.doubleAliphatic > n.doubleCarbon},
		rule{"C6", 0.1551, 3.513, n.doubleCarbon > 1 ||
			n.doubleCarbon > 0 && (h == 2 || h == 1 && n.aliphatic > 0 || h == 0 && n.aliphatic > 1)},
		rule{"C7", 0.0017, 3.888, x == 2 && n.triple > 0},
		rule{"C8", 0.08452, 2.464, h == 3 && n.aromaticCarbon > 0},
		rule{"C9", -0.1444, 2.412, h == 3 && n.aromatic > 0},
		rule{"C10", -0.0516, 2.488, h == 2 && x == 4 && n.aromatic > 0},
		rule{"C11", 0.1193, 2.582, h == 1 && x == 4 && n.aromatic > 0},
		rule{"C12", -0.0967, 2.576, h == 0 && x == 4 && n.aromatic > 0},
		rule{"C26", 0.264, 4.305, n.doubleAromatic > 0 || n.doubleCarbon > 0 && n.aromatic > 0 &&
			(n.aliphatic > 0 || h == 1 || n.aromaticCarbon > 0 && n.aromatic > 1)},
		rule{"C27", 0.2148, 2.693, x == 4 && n.other > 0},
	)
}

func (w *work) aromaticCarbon(i int32, n around) share {
	return first(share{0.08129, 3.243}, // CS
		rule{"C13", -0.5443, 4.041, w.allH[i] == 0 && n.singleOther > 0},
		rule{"C14", 0, 3.257, n.halogen == 9},
		rule{"C15", 0.245, 3.564, n.halogen == 17},
		rule{"C16", 0.198, 3.18, n.halogen == 35},
		rule{"C17", 0, 3.104, n.halogen == 53},
		rule{"C18", 0.1581, 3.35, w.allH[i] == 1},
		rule{"C19", 0.2955, 4.346, n.ring > 2},
		rule{"CS", 0.08129, 3.243, n.ring < 2},
		rule{"C20", 0.2713, 3.904, n.singleAromatic > 0},
		rule{"C21", 0.136, 3.509, n.single[0] > 0},
		rule{"C22", 0.4619, 4.067, n.single[1] > 0},
		rule{"C23", 0.5437, 3.853, n.single[2] > 0},
		rule{"C24", 0.1893, 2.673, n.single[3] > 0},
		rule{"C25", -0.8186, 3.135, n.doubleCNO > 0},
	)
}

// hydrogenAt returns the share of a hydrogen at an atom. self is the hydrogen if it is an atom of the
// graph, else -1.
func (w *work) hydrogenAt(i, self int32) share {
	a := w.atom(i)
	switch {
	case a.Z == 6 || a.Z == 1:
		return share{0.123, 1.057} // H1
	case a.Z != 7 && a.Z != 8:
		return share{-0.2677, 1.395} // H2
	case a.Z == 7:
		return share{0.2142, 0.9627} // H3
	}
	// water is an alcohol
	alcohol := w.allH[i] > 1
	nitrogen := false
	acid := false
	for _, l := range w.of(i) {
		if !plain(l) || l.atom == self {
			continue
		}
		switch o := w.atom(l.atom); {
		case is(o, 6):
			alcohol = alcohol || int(o.Degree)+int(o.Hydrogens) == 4
			for _, k := range w.of(l.atom) {
				end := w.atom(k.atom)
				acid = acid ||
					k.bond.Type == molecule.Double && (end.Z == 6 || end.Z == 7 || is(end, 8, 16))
			}
		case o.Z == 8 || o.Z == 16:
			acid = acid || !o.Aromatic
		case o.Z == 7:
			nitrogen = true
		default:
			alcohol = true
		}
	}
	switch {
	case alcohol:
		return share{-0.2677, 1.395} // H2
	case nitrogen:
		return share{0.2142, 0.9627} // H3
	case acid:
		return share{0.298, 1.805} // H4
	}
	return share{0.1125, 1.112} // HS
}

func (w *work) nitrogen(i int32, n around) share {
	a := w.atom(i)
	h := w.allH[i]
	neutral := a.Charge == 0
	cation := a.Charge >= 1 && a.Charge <= 3
	return first(share{-0.4806, 2.134}, // NS
		rule{"N11", -0.3239, 2.202, a.Aromatic && neutral},
		rule{"N12", -1.119, 0, a.Aromatic && cation},
		rule{"NS", -0.4806, 2.134, a.Aromatic},
		rule{"N1", -1.019, 2.262, neutral && h == 2 && n.aliphatic > 0},
		rule{"N2", -0.7096, 2.173, neutral && h == 1 && n.aliphatic > 1},
		rule{"N3", -1.027, 2.827, neutral && h == 2 && n.aromatic > 0},
		rule{"N4", -0.5188, 3, neutral && h == 1 && n.aromatic > 0 && n.plain > 1},
		rule{"N5", 0.08387, 1.757, neutral && h == 1 && n.double > 0},
		rule{"N6", 0.1836, 2.428, neutral && n.double > 0 && n.plain > 0},
		rule{"N7", -0.3187, 1.839, neutral && n.aliphatic > 2},
		rule{"N8", -0.4458, 2.819, neutral && n.aromatic > 0 && n.plain > 2},
		rule{"N9", 0.01508, 1.725, neutral && n.triple > 0},
		rule{"N10", -1.95, 0, cation && h >= 1 && h <= 3},
		rule{"N13", -0.3396, 0.2604, cation && h == 0 &&
			(n.aliphatic > 3 || n.doubleAliphatic > 0 && n.aliphatic > 0 && n.plain > 1 ||
				n.doubleCarbon+n.doubleAromatic > 0 && n.nitrogen > 0)},
		rule{"N14", 0.2887, 3.359, anion(a) || cation && (n.triple > 0 || n.azide > 0 && n.imine > 1)},
	)
}

func (w *work) oxygen(i int32, n around) share {
	a := w.atom(i)
	h := w.allH[i]
	terminal := anion(a) && int(a.Degree)+int(a.Hydrogens) == 1
	switch {
	case a.Aromatic:
		return share{0.1552, 1.08} // O1
	case h == 1 || h == 2:
		return share{-0.2893, 0.8238} // O2
	case n.aliphatic > 1:
		return share{-0.0684, 1.085} // O3
	case n.aromatic > 0 && n.plain > 1:
		return share{-0.4195, 1.182} // O4
	}
	var best share
	rank := 100 // of the type by the neighbour that comes first
	better := func(r int, s share) {
		if r < rank {
			rank = r
			best = s
		}
	}
	for _, l := range w.of(i) {
		o := w.atom(l.atom)
		switch {
		case o.Z == 1:
		case l.bond.Type == molecule.Double:
			better(w.doubleOxygen(a, l.atom))
		case !plain(l):
		case terminal && o.Z == 7:
			better(5, share{0.0335, 3.367}) // O5
		case terminal && o.Z == 16 && a.Charge >= -2:
			better(6, share{-0.3339, 0.7774}) // O6
		case a.Charge == -1 && is(o, 6) && w.doubleTo(l.atom, false, 8):
			better(7, share{-1.326, 0}) // O12
		case terminal && !is(o, 7, 16):
			better(8, share{-1.189, 0}) // O7
		}
	}
	if rank < 100 {
		return best
	}
	return share{-0.1188, 0.6865} // OS
}

// doubleOxygen returns the share of an oxygen with a double bond to atom k, and the rank of its type.
func (w *work) doubleOxygen(a *molecule.Atom, k int32) (int, share) {
	o := w.atom(k)
	n := w.around(k)
	h := w.allH[k]
	switch {
	case o.Z == 7 || o.Z == 8:
		return 5, share{0.0335, 3.367} // O5
	case o.Z == 16 && o.Charge == 0 && a.Charge == 0:
		return 6, share{-0.3339, 0.7774} // O6
	case o.Z == 6 && o.Aromatic:
		return 9, share{0.1788, 3.135} // O8
	case o.Z != 6:
		return 100, share{}
	}
	var oxygens, hetero, nitrogens int
	for _, l := range w.of(k) {
		e := w.atom(l.atom)
		switch {
		case l.bond.Type == molecule.Double && is(e, 8):
			oxygens++
		case plain(l) && e.Z != 1 && e.Z != 6:
			hetero++
			if is(e, 7, 8) {
				nitrogens++
			}
		}
	}
	switch {
	case h == 1 && (n.carbon > 0 || nitrogens > 0), n.carbon > 0 && n.aliphatic > 1, h == 2,
		int(o.Degree)+int(o.Hydrogens) == 2 && oxygens > 1:
		return 10, share{-0.1526, 0} // O9
	case h == 1 && n.aromaticCarbon > 0, n.aromatic > 0 && n.carbon > 0,
		n.aromaticCarbon > 0 && n.plain > 1:
		return 11, share{0.1129, 0.2215} // O10
	case hetero > 1:
		return 12, share{0.4833, 0.389} // O11
	}
	return 100, share{}
}
