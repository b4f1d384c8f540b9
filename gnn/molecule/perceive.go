package molecule

// A link is a bond as seen from one of its atoms.
type link struct {
	atom int32 // at the other end
	bond int32
}

// adjacency lists the links of every atom, in the order of the bonds.
type adjacency struct {
	ptr   []int32
	links []link
}

func (n *adjacency) of(atom int32) []link { return n.links[n.ptr[atom]:n.ptr[atom+1]] }

func (n *adjacency) degree(atom int32) int32 { return n.ptr[atom+1] - n.ptr[atom] }

func (n *adjacency) reset(m *Molecule) {
	n.ptr = resize(n.ptr, len(m.Atoms)+2)
	for i := range m.Bonds {
		n.ptr[m.Bonds[i].Begin+2]++
		n.ptr[m.Bonds[i].End+2]++
	}
	for i := 2; i < len(n.ptr); i++ {
		n.ptr[i] += n.ptr[i-1]
	}
	n.links = resize(n.links, 2*len(m.Bonds))
	for k := range m.Bonds {
		b := &m.Bonds[k]
		n.links[n.ptr[b.Begin+1]] = link{b.End, int32(k)}
		n.ptr[b.Begin+1]++
		n.links[n.ptr[b.End+1]] = link{b.Begin, int32(k)}
		n.ptr[b.End+1]++
	}
	n.ptr = n.ptr[:len(m.Atoms)+1]
}

// A perceiver works out what SMILES leaves to the reader: valences, rings,
// aromaticity and stereocentres. It changes the molecule in place, and keeps its
// memory between molecules.
type perceiver struct {
	adjacency
	m     *Molecule
	keep  []bool  // atoms that stay
	moved []int32 // new numbers of atoms; in peel, degrees
	core  []bool  // atoms in rings or between rings
	queue []int32

	drawing Molecule // before perception, for neutralise

	release2022 bool // see Parser

	rings   ringSet
	finder  ringFinder
	kekule  kekuliser
	hueckel hueckel
	stereo  stereo
	canon   canon
}

// reset makes m the molecule to work on.
func (v *perceiver) reset(m *Molecule) {
	v.m = m
	v.adjacency.reset(m)
}

// rewriteDrawing rewrites common ways of drawing pentavalent atoms and bonds to metals.
func (v *perceiver) rewriteDrawing() {
	v.normalise()
	if !v.release2022 {
		v.makeDative()
	}
}

// perceive runs all steps, in RDKit's order. With neutralise, it may remove charges, and then starts
// again from the drawing.
func (v *perceiver) perceive(neutralise bool) *problem {
	v.rewriteDrawing()
	if neutralise {
		v.drawing.Atoms = append(v.drawing.Atoms[:0], v.m.Atoms...)
		v.drawing.Bonds = append(v.drawing.Bonds[:0], v.m.Bonds...)
	}
	if err := v.settleValences(); err != nil {
		return err
	}
	if err := v.findRings(); err != nil {
		return err
	}
	if err := v.kekulise(); err != nil {
		return err
	}
	v.countRadicals()
	if err := v.findAromatic(); err != nil {
		return err
	}
	v.conjugate()
	v.hybridise()
	v.dropFlatTags()
	if err := v.settleHydrogens(); err != nil {
		return err
	}
	v.cleanStereo(true)
	v.settleTurns()
	if neutralise && v.neutralise(v.drawing.Atoms) {
		copy(v.m.Atoms, v.drawing.Atoms)
		copy(v.m.Bonds, v.drawing.Bonds)
		return v.perceive(false)
	}
	v.note()
	return nil
}

// hydrogens returns the number of hydrogens that are not atoms of the graph.
func (a *Atom) hydrogens() int8 {
	if a.fixed {
		return a.explicit
	}
	return a.explicit + a.implicit
}

// totalValence returns the sum of all bond orders, including those to hydrogens.
func (a *Atom) totalValence() int32 {
	if a.fixed {
		return int32(a.valence)
	}
	return int32(a.valence) + int32(a.implicit)
}
