package molecule

import (
	"cmp"
	"math/bits"
	"slices"
)

// A ringSet holds rings of a molecule as lists of atoms and of bonds, and the
// number of rings through every atom and bond.
type ringSet struct {
	ptr      []int32 // ring r is ptr[r]..ptr[r+1]-1 of atoms and bonds
	atoms    []int32
	bonds    []int32
	ofAtom   []int32 // number of rings
	ofBond   []int32
	smallest []int32 // the size of the smallest ring through a bond; 0 if there is none
}

func (s *ringSet) count() int { return len(s.ptr) - 1 }

func (s *ringSet) size(r int32) int32      { return s.ptr[r+1] - s.ptr[r] }
func (s *ringSet) atomsOf(r int32) []int32 { return s.atoms[s.ptr[r]:s.ptr[r+1]] }
func (s *ringSet) bondsOf(r int32) []int32 { return s.bonds[s.ptr[r]:s.ptr[r+1]] }

func (s *ringSet) reset(m *Molecule) {
	s.ptr = append(s.ptr[:0], 0)
	s.atoms = s.atoms[:0]
	s.bonds = s.bonds[:0]
	s.ofAtom = resize(s.ofAtom, len(m.Atoms))
	s.ofBond = resize(s.ofBond, len(m.Bonds))
	s.smallest = resize(s.smallest, len(m.Bonds))
}

// push appends an atom to the ring under construction, and the bond to the next atom.
func (s *ringSet) push(atom, bond int32) {
	s.atoms = append(s.atoms, atom)
	s.bonds = append(s.bonds, bond)
}

// close completes the ring under construction.
func (s *ringSet) close() {
	start := s.ptr[len(s.ptr)-1]
	size := int32(len(s.atoms)) - start
	s.ptr = append(s.ptr, int32(len(s.atoms)))
	for _, a := range s.atoms[start:] {
		s.ofAtom[a]++
	}
	for _, b := range s.bonds[start:] {
		s.ofBond[b]++
		if s.smallest[b] == 0 || s.smallest[b] > size {
			s.smallest[b] = size
		}
	}
}

// common returns the number of elements, all different, that two lists share.
func common(a, b []int32) (n int) {
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}

// A ringFinder finds the symmetrised smallest set of smallest rings: the rings
// that are not a sum of smaller rings, where the sum of two rings is the bonds
// that exactly one of them has. This union of all minimum cycle bases does not
// depend on the order of the atoms. Dative bonds are in no ring.
//
// Every ring lies in one block, a part that stays connected without any one of
// its atoms. A depth-first search finds the blocks. A block with as many bonds
// as atoms is a ring. In other blocks, rings are found by Vismara's algorithm:
//
//  1. Order the atoms by degree. A ring belongs to its last atom, its root.
//  2. The candidates of a root are two disjoint shortest paths from the root,
//     joined by a bond or by one more atom. They pass earlier atoms only.
//  3. By size, drop the candidates that are sums of smaller ones (Gaussian
//     elimination over bits).
//  4. Each candidate that is left stands for a family of rings: all pairs of
//     shortest paths to the same ends.
//
// P. Vismara, Union of all the minimum cycle bases of a graph, Electron. J.
// Combin. 4 (1997) R9.
type ringFinder struct {
	// Depth-first search.
	found  []int32 // order of discovery from 1
	low    []int32 // the lowest order that an atom's subtree reaches
	frames []frame
	stack  []int32 // bonds of unfinished blocks
	time   int32   // number of atoms discovered

	// The block at hand. Its atoms are numbered in the order of step 1.
	atoms  []int32 // atom of the molecule
	number []int32 // of every atom of the molecule, valid for those of the block
	degree []int32 // of every atom of the molecule; 0 outside of the block
	edges  []int32 // bonds of the molecule
	ptr    []int32 // arcs of block atom i: arcs[ptr[i]:ptr[i+1]]
	arcs   []arc

	// Breadth-first search from a root.
	visits []visit // of every block atom
	queue  []int32

	candidates []candidate
	path       []step // of all candidates, ring after ring
	order      []int32

	// Elimination. A set of edges has words words.
	words       int
	rows        []uint64 // independent rings, reduced
	independent int32    // number of rows
	pivot       []int32  // for every edge: 1 + the row whose first edge it is
	sum         []uint64
	work        int // words added so far

	branches []step // family: the path under construction
}

// A frame is an atom on the path of a depth-first search: its next link, and the
// bond that led to it.
type frame struct{ atom, link, bond int32 }

// An arc is an edge of the block as seen from one of its atoms.
type arc struct{ to, edge int32 }

// A visit is what a search from a root knows of an atom.
type visit struct {
	depth int32 // distance from the root; -1 if the search has not reached the atom
	// the atom before, on a shortest path through atoms before the root; -1 if there is no such
	// path
	parent int32
	edge   int32 // to the parent
	branch int32 // the neighbour of the root on that path
	ways   int32 // the number of such paths, at most mostRingAtoms
}

// A step is an atom of a ring and the edge to the next atom.
type step struct{ atom, edge int32 }

// A candidate is a ring that stands for its family.
type candidate struct {
	root          int32
	first, second int32 // ends of the two paths
	middle        int32 // the atom between the ends; -1 if a bond joins them
	start, size   int32 // of the ring in path
	ways          int64 // number of rings in the family
}

// Bounds of the search.
const (
	mostRingAtoms   = 1 << 20 // atoms of all rings; beyond, a family counts as one ring
	mostPathSteps   = 1 << 22 // atoms of all candidates
	firstRingLimit  = 8       // size of the rings that are searched for first
	mostElimination = 1 << 30 // words added in the elimination
)

// findRings fills v.rings. It fails if a ring system is too large to be searched.
func (v *perceiver) findRings() *problem {
	m := v.m
	f := &v.finder
	v.rings.reset(m)
	if len(m.Bonds) < 3 {
		return nil
	}
	n := len(m.Atoms)
	f.found = resize(f.found, n)
	f.low = resize(f.low, n)
	f.number = resize(f.number, n)
	f.degree = resize(f.degree, n)
	f.frames = f.frames[:0]
	f.stack = f.stack[:0]
	f.time = 0
	for root := range int32(n) {
		if f.found[root] != 0 {
			continue
		}
		f.discover(v, root, -1)
		for len(f.frames) > 0 {
			top := &f.frames[len(f.frames)-1]
			a := top.atom
			if top.link == v.ptr[a+1] {
				f.frames = f.frames[:len(f.frames)-1]
				if len(f.frames) > 0 && !v.leave(a, top.bond) {
					return atomProblem(a, "the ring system of this atom is too large to be searched")
				}
				continue
			}
			l := v.links[top.link]
			top.link++
			switch {
			case l.bond == top.bond || m.Bonds[l.bond].Type == Dative:
			case f.found[l.atom] == 0:
				f.stack = append(f.stack, l.bond)
				f.discover(v, l.atom, l.bond)
			case f.found[l.atom] < f.found[a]:
				f.stack = append(f.stack, l.bond)
				f.low[a] = min(f.low[a], f.found[l.atom])
			}
		}
	}
	return nil
}

// discover begins the search from an atom to which a bond has led.
func (f *ringFinder) discover(v *perceiver, atom, bond int32) {
	f.time++
	f.found[atom] = f.time
	f.low[atom] = f.time
	f.frames = append(f.frames, frame{atom, v.ptr[atom], bond})
}

// leave goes back along a bond from an atom whose search is complete. If that completes a block, it
// adds its rings. It reports whether the search for rings stayed within its bounds.
func (v *perceiver) leave(atom, bond int32) bool {
	f := &v.finder
	parent := f.frames[len(f.frames)-1].atom
	f.low[parent] = min(f.low[parent], f.low[atom])
	if f.low[atom] < f.found[parent] {
		return true
	}
	// The parent separates the bonds that were found since the bond: a block.
	start := len(f.stack) - 1
	for f.stack[start] != bond {
		start--
	}
	block := f.stack[start:]
	f.stack = f.stack[:start]
	return len(block) == 1 || v.ringsOfBlock(block)
}

// ringsOfBlock adds the rings of the block with the given bonds. It reports
// whether the search stayed within its bounds.
func (v *perceiver) ringsOfBlock(bonds []int32) bool {
	f := &v.finder
	f.atoms = f.atoms[:0]
	for _, b := range bonds {
		for _, a := range [2]int32{v.m.Bonds[b].Begin, v.m.Bonds[b].End} {
			if f.degree[a] == 0 {
				f.atoms = append(f.atoms, a)
			}
			f.degree[a]++
		}
	}
	f.edges = append(f.edges[:0], bonds...)
	ok := true
	if len(f.atoms) == len(bonds) {
		v.addSingleRing()
	} else {
		v.numberBlock()
		ok = v.relevantRings()
	}
	for _, a := range f.atoms {
		f.degree[a] = 0
	}
	return ok
}

// addSingleRing adds the block as a ring, from its atom with the smallest number.
func (v *perceiver) addSingleRing() {
	f := &v.finder
	start := slices.Min(f.atoms)
	atom := start
	arrival := int32(-1) // the bond that led to the atom
	for {
		for _, l := range v.of(atom) {
			if l.bond != arrival && f.degree[l.atom] > 0 && v.m.Bonds[l.bond].Type != Dative {
				v.rings.push(atom, l.bond)
				atom = l.atom
				arrival = l.bond
				break
			}
		}
		if atom == start {
			v.rings.close()
			return
		}
	}
}

// numberBlock numbers the atoms of the block by degree, and lists their arcs.
func (v *perceiver) numberBlock() {
	f := &v.finder
	slices.SortFunc(f.atoms, func(a, b int32) int {
		return cmp.Or(int(f.degree[a]-f.degree[b]), int(a-b))
	})
	f.ptr = resize(f.ptr, len(f.atoms)+1)
	for i, a := range f.atoms {
		f.number[a] = int32(i)
		f.ptr[i+1] = f.ptr[i] + f.degree[a]
	}
	slices.Sort(f.edges)
	f.arcs = resize(f.arcs, 2*len(f.edges))
	f.queue = append(f.queue[:0], f.ptr...) // where the next arc goes
	for e, b := range f.edges {
		i := f.number[v.m.Bonds[b].Begin]
		j := f.number[v.m.Bonds[b].End]
		f.arcs[f.queue[i]] = arc{j, int32(e)}
		f.arcs[f.queue[j]] = arc{i, int32(e)}
		f.queue[i]++
		f.queue[j]++
	}
	f.queue = f.queue[:0]
	f.visits = resize(f.visits, len(f.atoms))
	for i := range f.visits {
		f.visits[i] = unvisited
	}
}

// unvisited is the visit of an atom that a search has not reached.
var unvisited = visit{depth: -1, parent: -1}

func (f *ringFinder) arcsOf(i int32) []arc { return f.arcs[f.ptr[i]:f.ptr[i+1]] }

// relevantRings adds the rings of the block at hand.
func (v *perceiver) relevantRings() bool {
	f := &v.finder
	n := int32(len(f.atoms))
	first := int32(0) // possible root
	for f.ptr[first+1]-f.ptr[first] < 3 {
		first++
	}
	// Rings are short, so search for longer ones only if these do not suffice.
	for limit := int32(firstRingLimit); ; limit *= 2 {
		f.candidates = f.candidates[:0]
		f.path = f.path[:0]
		for root := first; root < n; root++ {
			f.search(root, limit/2)
			f.collect(root, limit)
			if len(f.path) > mostPathSteps {
				return false
			}
		}
		complete, ok := f.eliminate()
		if !ok {
			return false
		}
		if complete {
			return v.addFamilies()
		}
	}
}

// search visits the atoms up to a depth from the root, breadth first. Paths lead
// through atoms before the root only.
func (f *ringFinder) search(root, depth int32) {
	for _, i := range f.queue { // of the search before
		f.visits[i] = unvisited
	}
	f.visits[root] = visit{parent: root, ways: 1}
	f.queue = append(f.queue[:0], root)
	for head := 0; head < len(f.queue); head++ {
		i := f.queue[head]
		source := f.visits[i]
		if source.depth == depth {
			break
		}
		for _, x := range f.arcsOf(i) {
			target := &f.visits[x.to]
			if target.depth < 0 {
				target.depth = source.depth + 1
				f.queue = append(f.queue, x.to)
			}
			if target.depth != source.depth+1 || source.parent < 0 || x.to > root {
				continue
			}
			target.ways = min(target.ways+source.ways, mostRingAtoms)
			if target.parent < 0 {
				target.parent = i
				target.edge = x.edge
				target.branch = source.branch
				if i == root {
					target.branch = x.to
				}
			}
		}
	}
}

// collect lists the candidates of the root of the last search up to a size: pairs
// of paths that meet at the root only.
func (f *ringFinder) collect(root, limit int32) {
	for _, y := range f.queue[1:] {
		end := f.visits[y]
		if end.parent < 0 {
			continue
		}
		arcs := f.arcsOf(y)
		for k, x := range arcs {
			p := f.visits[x.to]
			if p.parent < 0 || x.to == root {
				continue
			}
			switch {
			case p.depth == end.depth && x.to < y && p.branch != end.branch && 2*end.depth < limit:
				f.add(root, y, x.to, step{-1, x.edge}, -1)
			case p.depth == end.depth-1:
				for _, z := range arcs[:k] {
					q := f.visits[z.to]
					if q.parent >= 0 && z.to != root && q.depth == p.depth && q.branch != p.branch {
						f.add(root, x.to, z.to, step{y, z.edge}, x.edge)
					}
				}
			}
		}
	}
}

// add adds the candidate of two paths to left and right. middle is the atom between
// their ends, if any, with its edge to right, and edge that from left to it.
func (f *ringFinder) add(root, first, second int32, middle step, edge int32) {
	c := candidate{
		root:   root,
		first:  first,
		second: second,
		middle: middle.atom,
		start:  int32(len(f.path)),
	}
	c.ways = int64(f.visits[first].ways) * int64(f.visits[second].ways)
	// From left up to the root, down to right, and back to left.
	for i := first; i != root; i = f.visits[i].parent {
		f.path = append(f.path, step{i, f.visits[i].edge})
	}
	f.path = append(f.path, step{atom: root})
	turn := len(f.path) - 1
	for i := second; i != root; i = f.visits[i].parent {
		f.path = append(f.path, step{i, f.visits[i].edge})
	}
	// The way down was written upwards: reverse the atoms, and shift the edges by one.
	tail := f.path[turn+1:]
	slices.Reverse(tail)
	f.path[turn].edge = tail[0].edge
	for k := range tail[1:] {
		tail[k].edge = tail[k+1].edge
	}
	tail[len(tail)-1].edge = middle.edge
	if middle.atom >= 0 {
		f.path = append(f.path, step{middle.atom, edge})
	}
	c.size = int32(len(f.path)) - c.start
	f.candidates = append(f.candidates, c)
}

// eliminate reduces f.order to the candidates that are not sums of smaller ones. complete reports
// whether they span all rings of the block; larger rings are then sums of them.
func (f *ringFinder) eliminate() (complete, ok bool) {
	f.order = f.order[:0]
	for i := range f.candidates {
		f.order = append(f.order, int32(i))
	}
	slices.SortStableFunc(f.order, func(a, b int32) int {
		return int(f.candidates[a].size - f.candidates[b].size)
	})
	rank := int32(len(f.edges) - len(f.atoms) + 1)
	f.words = (len(f.edges) + 63) / 64
	f.rows = f.rows[:0]
	f.sum = resize(f.sum, f.words)
	f.pivot = resize(f.pivot, len(f.edges))
	f.independent = 0
	f.work = 0
	relevant := f.order[:0]
	smaller := int32(0) // number of independent rings that are smaller than the candidate
	size := int32(0)
	for _, i := range f.order {
		c := &f.candidates[i]
		if c.size > size {
			if f.independent == rank {
				break
			}
			size = c.size
			smaller = f.independent
		}
		clear(f.sum)
		for _, s := range f.path[c.start : c.start+c.size] {
			f.sum[s.edge/64] |= 1 << (s.edge % 64)
		}
		if f.reduce(smaller, rank) {
			relevant = append(relevant, i)
		}
		if f.work > mostElimination {
			return false, false
		}
	}
	f.order = relevant
	return f.independent == rank, true
}

// reduce adds independent rings to the ring f.sum until it is empty or has an edge that is the pivot
// of none, and then keeps it as one. It reports whether f.sum is no sum of the first rings, which
// are the smaller ones. Once there are rank rings, it stops when this is known.
func (f *ringFinder) reduce(smaller, rank int32) (relevant bool) {
	for w := 0; w < f.words; {
		if f.sum[w] == 0 {
			w++
			continue
		}
		edge := w*64 + bits.TrailingZeros64(f.sum[w])
		row := f.pivot[edge]
		if row == 0 {
			f.independent++
			f.pivot[edge] = f.independent
			f.rows = append(f.rows, f.sum...)
			return true
		}
		// No smaller ring has this edge as its pivot, so that none can remove it.
		relevant = relevant || row > smaller
		if relevant && f.independent == rank {
			return true
		}
		for k, word := range f.rows[int(row-1)*f.words : int(row)*f.words] {
			f.sum[k] ^= word
		}
		f.work += f.words
	}
	return relevant
}

// addFamilies adds the rings of the families in f.order. Where they have too many, each counts as one.
func (v *perceiver) addFamilies() bool {
	f := &v.finder
	total := int64(len(v.rings.atoms))
	single := total
	for _, i := range f.order {
		c := &f.candidates[i]
		single += int64(c.size)
		total = min(total+c.ways*int64(c.size), 2*mostRingAtoms)
	}
	if single > mostRingAtoms {
		return false
	}
	for _, i := range f.order {
		c := &f.candidates[i]
		if c.ways > 1 && total <= mostRingAtoms {
			f.search(c.root, c.size/2)
			f.branches = f.branches[:0]
			v.addLeft(c, c.first)
			continue
		}
		for _, s := range f.path[c.start : c.start+c.size] {
			v.rings.push(f.atoms[s.atom], f.edges[s.edge])
		}
		v.rings.close()
	}
	return true
}

// addLeft adds the rings of a family whose left path is f.branches, and then leads to the root from i.
func (v *perceiver) addLeft(c *candidate, i int32) {
	f := &v.finder
	if i == c.root {
		f.branches = append(f.branches, step{atom: i})
		v.addRight(c, c.second, len(f.branches))
		f.branches = f.branches[:len(f.branches)-1]
		return
	}
	for _, x := range f.arcsOf(i) {
		if f.leads(i, x.to) {
			f.branches = append(f.branches, step{i, x.edge})
			v.addLeft(c, x.to)
			f.branches = f.branches[:len(f.branches)-1]
		}
	}
}

// addRight adds the rings whose left path is the first turn steps of f.branches. The right path follows from
// its end upwards, and then leads to the root from i.
func (v *perceiver) addRight(c *candidate, i int32, turn int) {
	f := &v.finder
	if i != c.root {
		for _, x := range f.arcsOf(i) {
			if f.leads(i, x.to) {
				f.branches = append(f.branches, step{i, x.edge})
				v.addRight(c, x.to, turn)
				f.branches = f.branches[:len(f.branches)-1]
			}
		}
		return
	}
	left := f.branches[:turn-1]
	second := f.branches[turn:]
	for _, s := range left {
		v.rings.push(f.atoms[s.atom], f.edges[s.edge])
	}
	next := c.root
	for _, s := range slices.Backward(second) {
		v.rings.push(f.atoms[next], f.edges[s.edge])
		next = s.atom
	}
	// The last steps of the candidate close every ring of its family.
	closing := f.path[c.start+c.size-1]
	if c.middle >= 0 {
		v.rings.push(f.atoms[next], f.edges[f.path[c.start+c.size-2].edge])
		next = c.middle
	}
	v.rings.push(f.atoms[next], f.edges[closing.edge])
	v.rings.close()
}

// leads reports whether an arc is a step to the root on a shortest path of the last search.
func (f *ringFinder) leads(atom, neighbour int32) bool {
	return f.visits[neighbour].parent >= 0 && f.visits[neighbour].depth == f.visits[atom].depth-1
}
