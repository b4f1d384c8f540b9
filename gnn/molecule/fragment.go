package molecule

// Fragments divides the atoms of a molecule into the pieces that chemists speak of: ring systems, and the groups
// and chains between them and beside them, such as CF3, OCH3, NO2 and an amide. Fragments are in the order of
// their first atoms, and so are the atoms of each.
//
// Single bonds outside of rings are cut if one of their atoms is in a ring. In chains, bonds are cut that join a
// carbonyl or sulfonyl group to nitrogen or oxygen, if either has another neighbour and none in a ring. The rules are
// a part of those of BRICS.
//
//	J. Degen, C. Wegscheid-Gerlach, A. Zaliani, M. Rarey, On the art of compiling and using 'drug-like'
//	chemical fragment spaces, ChemMedChem 3 (2008) 1503–1507.
func (m *Molecule) Fragments() [][]int {
	acyl := make([]bool, len(m.Atoms))   // carbon or sulfur with =O
	beside := make([]bool, len(m.Atoms)) // bound to a ring
	for k := range m.Bonds {
		b := &m.Bonds[k]
		for _, ends := range [][2]int32{{b.Begin, b.End}, {b.End, b.Begin}} {
			atom := &m.Atoms[ends[0]]
			neighbour := &m.Atoms[ends[1]]
			isAcyl := (atom.Z == 6 || atom.Z == 16) && neighbour.Z == 8 && b.Type == Double
			acyl[ends[0]] = acyl[ends[0]] || isAcyl
			beside[ends[0]] = beside[ends[0]] || neighbour.InRing
		}
	}
	pieces := newPieces(len(m.Atoms))
	for k := range m.Bonds {
		b := &m.Bonds[k]
		begin := &m.Atoms[b.Begin]
		end := &m.Atoms[b.End]
		inChain := begin.Degree > 1 && end.Degree > 1 && !beside[b.Begin] && !beside[b.End]
		joins := acyl[b.Begin] && isNitrogenOrOxygen(end) || acyl[b.End] && isNitrogenOrOxygen(begin)
		isCut := b.Type == Single && !b.InRing && (begin.InRing || end.InRing || inChain && joins)
		if !isCut {
			pieces.join(int(b.Begin), int(b.End))
		}
	}
	return pieces.sets()
}

// Units divides the atoms of a molecule into its functional centres, such as a carbonyl, a nitrile or a nitro group
// without its charged oxygen: an atom, with the neighbours that only a double or triple bond joins to it. Other atoms
// are units of their own. Units are in the order of their first atoms, and so are the atoms of each.
func (m *Molecule) Units() [][]int {
	pieces := newPieces(len(m.Atoms))
	for k := range m.Bonds {
		b := &m.Bonds[k]
		isEnd := m.Atoms[b.Begin].Degree == 1 || m.Atoms[b.End].Degree == 1
		if isEnd && (b.Type == Double || b.Type == Triple) {
			pieces.join(int(b.Begin), int(b.End))
		}
	}
	return pieces.sets()
}

func isNitrogenOrOxygen(a *Atom) bool { return a.Z == 7 || a.Z == 8 }

// pieces are sets of numbers that can be joined.
type pieces []int

func newPieces(n int) pieces {
	p := make(pieces, n)
	for i := range p {
		p[i] = i
	}
	return p
}

// root returns the least number of the set of i.
func (p pieces) root(i int) int {
	for p[i] != i {
		p[i] = p[p[i]]
		i = p[i]
	}
	return i
}

func (p pieces) join(i, j int) {
	a := p.root(i)
	b := p.root(j)
	p[max(a, b)] = min(a, b)
}

// sets returns the sets in the order of their least numbers, each ascending.
func (p pieces) sets() (sets [][]int) {
	place := map[int]int{} // of a set, by its root
	for i := range p {
		root := p.root(i)
		k, ok := place[root]
		if !ok {
			k = len(sets)
			place[root] = k
			sets = append(sets, nil)
		}
		sets[k] = append(sets[k], i)
	}
	return sets
}
