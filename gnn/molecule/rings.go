package molecule

import "slices"

// A ringSet holds rings of a molecule as lists of atoms and of bonds, and how
// many there are through every atom and bond.
type ringSet struct {
	ptr          []int32 // ring r is ptr[r]..ptr[r+1]-1 of atoms and bonds
	atoms, bonds []int32
	ofAtom       []int32 // number of rings
	ofBond       []int32
	smallest     []int32 // of every bond: the size of its smallest ring
}

func (s *ringSet) count() int { return len(s.ptr) - 1 }

func (s *ringSet) size(r int32) int32      { return s.ptr[r+1] - s.ptr[r] }
func (s *ringSet) atomsOf(r int32) []int32 { return s.atoms[s.ptr[r]:s.ptr[r+1]] }
func (s *ringSet) bondsOf(r int32) []int32 { return s.bonds[s.ptr[r]:s.ptr[r+1]] }

func (s *ringSet) reset(m *Molecule) {
	s.ptr = append(s.ptr[:0], 0)
	s.atoms, s.bonds = s.atoms[:0], s.bonds[:0]
	s.ofAtom = resize(s.ofAtom, len(m.Atoms))
	s.ofBond = resize(s.ofBond, len(m.Bonds))
	s.smallest = resize(s.smallest, len(m.Bonds))
}

// add adds a ring of atoms in cyclic order.
func (s *ringSet) add(n *adjacency, atoms []int32) {
	s.atoms = append(s.atoms, atoms...)
	for i, a := range atoms {
		b := n.between(a, atoms[(i+1)%len(atoms)])
		s.bonds = append(s.bonds, b)
		s.ofAtom[a]++
		s.ofBond[b]++
		if s.smallest[b] == 0 || s.smallest[b] > int32(len(atoms)) {
			s.smallest[b] = int32(len(atoms))
		}
	}
	s.ptr = append(s.ptr, int32(len(s.atoms)))
}

// common returns how many elements, all different, two lists have in common.
func common(a, b []int32) (n int) {
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}

// between returns the bond between two neighbours.
func (n *adjacency) between(a, b int32) int32 {
	for _, l := range n.of(a) {
		if l.atom == b {
			return l.bond
		}
	}
	panic("molecule: no bond between two atoms of a ring")
}

// A ringFinder finds the smallest set of smallest rings, made symmetric: rings
// that could stand in for one of the set are added to it, since only the order of
// the atoms decided between them.
//
// Two bonds are in a ring together if they are in the same block, a part that stays
// connected without any one of its atoms. Blocks come from one depth-first search; a block
// with as many bonds as atoms is a ring, and there is nothing left to choose.
// In other blocks rings are searched for as Figueras and RDKit do: the
// set is not unique in cages, and what is aromatic depends on it. Dative bonds are in no ring.
//
//	J. Figueras, Ring perception using breadth-first search, J. Chem. Inf.
//	Comput. Sci. 36 (1996) 986–991.
type ringFinder struct {
	// Depth-first search.
	found, low []int32 // order of discovery from 1, and the lowest reached
	frames     []frame
	stack      []int32 // bonds of unfinished blocks

	// The block at hand.
	atoms, bonds []int32
	degree       []int32 // of every atom: active bonds
	active       []bool  // bonds that are still there
	done         []bool  // atoms whose bonds have been cut
	cut          []int32 // atoms to cut off
	spent        []bool  // atoms whose chain has a member in chain starts
	starts       []int32
	chainStack   []int32
	candidates   ringList
	tried        ringList // rings of the search at hand
	behind       ringList
	covered      []bool // bonds of rings through chain starts
	touched      []bool // atoms of such rings

	// Breadth-first search.
	state         []int32
	parent, depth []int32
	queue         []int32
	path          []int32
	onPath        []int32 // stamps
	stamp         int32

	spareDegree []int32
	spareActive []bool
	pairs       []startRing
	steps       []step
	order       []int32 // candidates by size
	bondOf      []int32
	union       []bool // bonds of the chosen candidates
	chosen      []bool
	passed      []bool
	times       []int32 // of every bond: chosen rings
}

type frame struct{ atom, link, bond int32 }

// A startRing says that the search from a chain start found a ring.
type startRing struct{ start, ring int32 }

// A ringList is a list of rings as atoms in cyclic order.
type ringList struct {
	ptr   []int32
	atoms []int32
	hash  []uint64 // of the set of atoms
}

func (l *ringList) reset() {
	l.ptr = append(l.ptr[:0], 0)
	l.atoms, l.hash = l.atoms[:0], l.hash[:0]
}

func (l *ringList) count() int32       { return int32(len(l.hash)) }
func (l *ringList) at(i int32) []int32 { return l.atoms[l.ptr[i]:l.ptr[i+1]] }

// add appends a ring. If it is to be new and there is one of the same atoms,
// that one is returned instead.
func (l *ringList) add(ring []int32, unique bool) (index int32, added bool) {
	h := uint64(0)
	for _, a := range ring {
		x := (uint64(a) + 1) * 0x9e3779b97f4a7c15
		x ^= x >> 29
		h += x * x
	}
	if unique {
		for i, o := range l.hash {
			if o == h && sameAtoms(l.at(int32(i)), ring) {
				return int32(i), false
			}
		}
	}
	l.atoms = append(l.atoms, ring...)
	l.ptr = append(l.ptr, int32(len(l.atoms)))
	l.hash = append(l.hash, h)
	return l.count() - 1, true
}

// sameAtoms reports whether two rings have the same atoms, in whatever order.
// It is called for rings of equal hash only.
func sameAtoms(a, b []int32) bool {
	return len(a) == len(b) && common(a, b) == len(a)
}

func (v *perceiver) findRings() {
	m, f := v.m, &v.finder
	v.rings.reset(m)
	if len(m.Bonds) == 0 {
		return
	}
	n := len(m.Atoms)
	f.found, f.low = resize(f.found, n), resize(f.low, n)
	f.frames, f.stack = f.frames[:0], f.stack[:0]
	f.active, f.degree = resize(f.active, len(m.Bonds)), resize(f.degree, n)
	f.state = f.state[:0] // the large searches set up on demand
	time := int32(0)
	for root := range m.Atoms {
		if f.found[root] != 0 {
			continue
		}
		time++
		f.found[root], f.low[root] = time, time
		f.frames = append(f.frames, frame{int32(root), v.ptr[root], -1})
		for len(f.frames) > 0 {
			top := &f.frames[len(f.frames)-1]
			a := top.atom
			if top.link < v.ptr[a+1] {
				l := v.links[top.link]
				top.link++
				switch {
				case l.bond == top.bond || m.Bonds[l.bond].Type == Dative:
				case f.found[l.atom] == 0:
					time++
					f.found[l.atom], f.low[l.atom] = time, time
					f.stack = append(f.stack, l.bond)
					f.frames = append(f.frames, frame{l.atom, v.ptr[l.atom], l.bond})
				case f.found[l.atom] < f.found[a]:
					f.stack = append(f.stack, l.bond)
					f.low[a] = min(f.low[a], f.found[l.atom])
				}
				continue
			}
			bond := top.bond
			f.frames = f.frames[:len(f.frames)-1]
			if len(f.frames) == 0 {
				break
			}
			p := f.frames[len(f.frames)-1].atom
			f.low[p] = min(f.low[p], f.low[a])
			if f.low[a] < f.found[p] {
				continue
			}
			// p separates what was found since the bond: a block.
			k := len(f.stack) - 1
			for f.stack[k] != bond {
				k--
			}
			if len(f.stack)-k > 1 {
				if !v.ringsOfBlock(f.stack[k:]) {
					v.ringsByDepth()
					return
				}
			}
			f.stack = f.stack[:k]
		}
	}
}

// ringsOfBlock adds the rings of the block with the given bonds, and reports
// whether it found as many as there must be.
func (v *perceiver) ringsOfBlock(bonds []int32) bool {
	m, f := v.m, &v.finder
	f.bonds = append(f.bonds[:0], bonds...)
	f.atoms = f.atoms[:0]
	for _, b := range bonds {
		for _, a := range [2]int32{m.Bonds[b].Begin, m.Bonds[b].End} {
			if f.degree[a] == 0 {
				f.atoms = append(f.atoms, a)
			}
			f.degree[a]++
		}
		f.active[b] = true
	}
	defer func() {
		for _, a := range f.atoms {
			f.degree[a] = 0
		}
		for _, b := range f.bonds {
			f.active[b] = false
		}
	}()
	if len(f.atoms) == len(bonds) {
		v.rings.add(&v.adjacency, v.walk(f.atoms[0]))
		return true
	}
	slices.Sort(f.atoms)
	slices.Sort(f.bonds)
	return v.figueras(len(bonds) - len(f.atoms) + 1)
}

// walk returns the atoms of the ring of active bonds through an atom.
func (v *perceiver) walk(start int32) []int32 {
	f := &v.finder
	f.path = append(f.path[:0], start)
	from, at := int32(-1), start
	for {
		for _, l := range v.of(at) {
			if f.active[l.bond] && l.atom != from {
				from, at = at, l.atom
				break
			}
		}
		if at == start {
			return f.path
		}
		f.path = append(f.path, at)
	}
}

// figueras finds the expected number of rings in the block, or more, and adds
// them; it reports whether it has. Rings are found from the atoms of degree 2,
// one for each chain of them, or else from one of degree 3; these are then cut
// off and the search is repeated on what is left.
func (v *perceiver) figueras(expected int) bool {
	m, f := v.m, &v.finder
	n := len(m.Atoms)
	f.done, f.spent, f.touched = resize(f.done, n), resize(f.spent, n), resize(f.touched, n)
	f.covered = resize(f.covered, len(m.Bonds))
	if len(f.state) != n {
		f.state, f.parent, f.depth, f.onPath = resize(f.state, n), resize(f.parent, n), resize(f.depth, n), resize(f.onPath, n)
		f.stamp = 0
	}
	f.candidates.reset()
	f.cut = f.cut[:0]
	for {
		for len(f.cut) > 0 {
			a := f.cut[len(f.cut)-1]
			f.cut = f.cut[:len(f.cut)-1]
			if !f.done[a] {
				f.done[a] = true
				v.cutOff(a, true)
			}
		}
		v.pickStarts()
		if len(f.starts) > 0 {
			v.ringsFromStarts()
			for _, a := range f.starts {
				f.done[a] = true
				v.cutOff(a, true)
			}
			continue
		}
		k := slices.IndexFunc(f.atoms, func(a int32) bool { return f.degree[a] == 3 })
		if k < 0 {
			break
		}
		v.ringsFromDegree3(f.atoms[k])
		f.done[f.atoms[k]] = true
		v.cutOff(f.atoms[k], true)
	}
	if int(f.candidates.count()) < expected {
		v.ringsOfLeftovers()
		if int(f.candidates.count()) < expected {
			return false
		}
	}
	v.selectRings(expected)
	return true
}

// cutOff removes the active bonds of an atom. Neighbours that lose their ring
// with it are queued to be cut off too.
func (v *perceiver) cutOff(a int32, queue bool) {
	f := &v.finder
	for _, l := range v.of(a) {
		if !f.active[l.bond] {
			continue
		}
		if f.degree[l.atom] <= 2 && queue {
			f.cut = append(f.cut, l.atom)
		}
		f.active[l.bond] = false
		f.degree[l.atom]--
		f.degree[a]--
	}
}

// pickStarts picks one atom of each chain of atoms of degree 2: all of a chain
// are in the same rings.
func (v *perceiver) pickStarts() {
	f := &v.finder
	f.starts = f.starts[:0]
	for _, a := range f.atoms {
		f.spent[a] = false
	}
	for _, a := range f.atoms {
		if f.degree[a] != 2 || f.spent[a] {
			continue
		}
		f.starts = append(f.starts, a)
		f.spent[a] = true
		f.chainStack = append(f.chainStack[:0], a)
		for len(f.chainStack) > 0 {
			b := f.chainStack[len(f.chainStack)-1]
			f.chainStack = f.chainStack[:len(f.chainStack)-1]
			for _, l := range v.of(b) {
				if f.active[l.bond] && !f.spent[l.atom] && f.degree[l.atom] == 2 {
					f.spent[l.atom] = true
					f.chainStack = append(f.chainStack, l.atom)
				}
			}
		}
	}
}

// ringsFromStarts searches from the chain starts. Where several starts find the
// same ring it may hide a larger one from each of them: they are searched from
// again with the others cut off.
func (v *perceiver) ringsFromStarts() {
	f := &v.finder
	f.pairs = f.pairs[:0]
	for _, a := range f.starts {
		v.search(a, -1)
		for i := range f.tried.count() {
			ring := f.tried.at(i)
			k, added := f.candidates.add(ring, true)
			if added {
				v.cover(ring)
			}
			f.pairs = append(f.pairs, startRing{a, k})
		}
		if f.tried.count() == 0 {
			f.chainStack = append(f.chainStack[:0], a)
			for len(f.chainStack) > 0 {
				b := f.chainStack[len(f.chainStack)-1]
				f.chainStack = f.chainStack[:len(f.chainStack)-1]
				for _, l := range v.of(b) {
					if f.active[l.bond] && f.degree[l.atom] <= 2 {
						f.chainStack = append(f.chainStack, l.atom)
					}
				}
				v.cutOff(b, false)
			}
		}
	}
	slices.SortStableFunc(f.pairs, func(x, y startRing) int { return int(x.ring - y.ring) })
	for lo := 0; lo < len(f.pairs); {
		hi := lo + 1
		for hi < len(f.pairs) && f.pairs[hi].ring == f.pairs[lo].ring {
			hi++
		}
		if hi-lo > 1 {
			v.ringsBehind(f.pairs[lo:hi])
		}
		lo = hi
	}
}

// ringsBehind searches from each of the starts that found the same ring, with
// those cut off that share a ring with it.
func (v *perceiver) ringsBehind(same []startRing) {
	f := &v.finder
	f.spareDegree = append(f.spareDegree[:0], f.degree...)
	f.spareActive = append(f.spareActive[:0], f.active...)
	f.behind.reset()
	shortest := len(f.spareDegree) + 1
	for _, p := range same {
		for _, q := range f.pairs {
			if q.start != p.start {
				continue
			}
			for _, o := range f.pairs {
				if o.ring == q.ring && o.start != p.start {
					v.cutOff(o.start, false)
				}
			}
		}
		v.search(p.start, -1)
		for i := range f.tried.count() {
			f.behind.add(f.tried.at(i), false)
			shortest = min(shortest, len(f.tried.at(i)))
		}
		copy(f.degree, f.spareDegree)
		copy(f.active, f.spareActive)
	}
	for i := range f.behind.count() {
		if len(f.behind.at(i)) == shortest {
			f.candidates.add(f.behind.at(i), true)
		}
	}
}

// cover notes the bonds and atoms of a ring.
func (v *perceiver) cover(ring []int32) {
	f := &v.finder
	for i, a := range ring {
		f.covered[v.between(a, ring[(i+1)%len(ring)])] = true
		f.touched[a] = true
	}
}

// ringsFromDegree3 searches from an atom with three active bonds, for a ring
// through each pair of them.
func (v *perceiver) ringsFromDegree3(a int32) {
	f := &v.finder
	v.search(a, -1)
	smallest := f.tried.count()
	var nbr [3]int32
	var in [3]bool // both rings, or the only one
	k := 0
	for _, l := range v.of(a) {
		if !f.active[l.bond] {
			continue
		}
		nbr[k], in[k] = l.atom, smallest > 0
		for r := range min(smallest, 2) {
			in[k] = in[k] && slices.Contains(f.tried.at(r), l.atom)
		}
		k++
	}
	f.keepTried()
	switch smallest {
	case 2: // the third ring avoids the neighbour that both have
		for i := range nbr {
			if in[i] {
				v.search(a, nbr[i])
				f.keepTried()
				break
			}
		}
	case 1: // the two others avoid a neighbour each that is in the ring
		for i := 2; i >= 0; i-- {
			if in[i] {
				v.search(a, nbr[i])
				f.keepTried()
			}
		}
	}
}

func (f *ringFinder) keepTried() {
	for i := range f.tried.count() {
		f.candidates.add(f.tried.at(i), true)
	}
}

// What search knows of an atom.
const (
	unseen = iota
	queued
	finished
)

// search finds the smallest rings of active bonds through an atom that avoid
// another (-1 for none), breadth first, into f.tried.
func (v *perceiver) search(root, avoid int32) {
	f := &v.finder
	f.tried.reset()
	if avoid >= 0 {
		f.state[avoid] = finished
	}
	f.queue = append(f.queue[:0], root)
	f.parent[root], f.depth[root] = -1, 0
	size := len(f.state) + 1
	v.spread(root, &size)
	for _, a := range f.queue {
		f.state[a] = unseen
	}
	if avoid >= 0 {
		f.state[avoid] = unseen
	}
}

func (v *perceiver) spread(root int32, size *int) {
	f := &v.finder
	for head := 0; head < len(f.queue); head++ {
		a := f.queue[head]
		f.state[a] = finished
		depth := f.depth[a] + 1
		if int(depth) > *size {
			return
		}
		for _, l := range v.of(a) {
			b := l.atom
			if !f.active[l.bond] || f.state[b] == finished || f.parent[a] == b {
				continue
			}
			if f.state[b] == unseen {
				f.parent[b], f.depth[b], f.state[b] = a, depth, queued
				f.queue = append(f.queue, b)
				continue
			}
			// The paths of a and b from the root make a ring if they meet
			// nowhere else.
			f.stamp++
			for p := b; p != -1 && p != root; p = f.parent[p] {
				f.onPath[p] = f.stamp
			}
			f.path = f.path[:0]
			simple := true
			for p := a; p != -1 && simple; p = f.parent[p] {
				simple = f.onPath[p] != f.stamp
				f.path = append(f.path, p)
			}
			if !simple {
				continue
			}
			slices.Reverse(f.path)
			for p := b; p != root; p = f.parent[p] {
				f.path = append(f.path, p)
			}
			if len(f.path) > *size {
				return
			}
			*size = len(f.path)
			f.tried.add(f.path, false)
		}
	}
}

// mostPaths bounds the search for leftovers, which is exhaustive.
const mostPaths = 100_000

// ringsOfLeftovers finds rings for bonds of the block that no ring covers
// though both their atoms are in rings.
func (v *perceiver) ringsOfLeftovers() {
	m, f := v.m, &v.finder
	for _, b := range f.bonds {
		from, to := m.Bonds[b].Begin, m.Bonds[b].End
		if !f.covered[b] && f.touched[from] && f.touched[to] && v.connect(from, to) {
			f.candidates.add(f.path, true)
			v.cover(f.path)
		}
	}
}

// A step is an atom on a path, and the step before it or -1.
type step struct{ atom, before int32 }

// connect finds the shortest path between two neighbours through atoms in rings
// that makes a new ring, into f.path.
func (v *perceiver) connect(from, to int32) bool {
	f := &v.finder
	steps := append(f.steps[:0], step{from, -1})
	defer func() { f.steps = steps }()
	for head := 0; head < len(steps) && len(steps) < mostPaths; head++ {
		at := steps[head].atom
		for _, l := range v.of(at) {
			if l.atom == to {
				if at == from {
					continue
				}
				f.path = append(f.path[:0], to)
				for s := int32(head); s >= 0; s = steps[s].before {
					f.path = append(f.path, steps[s].atom)
				}
				n := f.candidates.count()
				if _, added := f.candidates.add(f.path, true); added {
					f.candidates.truncate(n)
					return true
				}
				continue
			}
			if !f.touched[l.atom] {
				continue
			}
			s := int32(head)
			for s >= 0 && steps[s].atom != l.atom {
				s = steps[s].before
			}
			if s < 0 {
				steps = append(steps, step{l.atom, int32(head)})
			}
		}
	}
	return false
}

func (l *ringList) truncate(n int32) {
	l.atoms, l.ptr, l.hash = l.atoms[:l.ptr[n]], l.ptr[:n+1], l.hash[:n]
}

// selectRings adds the candidates to the ring set: all if they are no more than
// expected. Otherwise those that cover new bonds, small ones first and among
// those of one size the one that has most in common with what is covered; and
// of the others those that could replace a ring that was chosen.
func (v *perceiver) selectRings(expected int) {
	f, s := &v.finder, &v.rings
	c := &f.candidates
	if int(c.count()) <= expected {
		for i := range c.count() {
			s.add(&v.adjacency, c.at(i))
		}
		return
	}
	f.order = f.order[:0]
	for i := range c.count() {
		f.order = append(f.order, i)
	}
	slices.SortStableFunc(f.order, func(a, b int32) int { return len(c.at(a)) - len(c.at(b)) })
	// The bonds of candidate i are at c.ptr[i], in parallel to its atoms.
	f.bondOf = f.bondOf[:0]
	for i := range c.count() {
		ring := c.at(i)
		for k, a := range ring {
			f.bondOf = append(f.bondOf, v.between(a, ring[(k+1)%len(ring)]))
		}
	}
	bonds := func(i int32) []int32 { return f.bondOf[c.ptr[i]:c.ptr[i+1]] }
	f.union = resize(f.union, len(v.m.Bonds))
	covered := func(i int32) int {
		n := 0
		for _, b := range bonds(i) {
			if f.union[b] {
				n++
			}
		}
		return n
	}
	f.chosen = resize(f.chosen, int(c.count()))
	f.passed = resize(f.passed, int(c.count()))
	choose := func(i int32) {
		f.passed[i] = true
		if covered(i) == len(bonds(i)) {
			return
		}
		f.chosen[i] = true
		for _, b := range bonds(i) {
			f.union[b] = true
		}
	}
	for at, i := range f.order {
		if f.passed[i] {
			continue
		}
		choose(i)
		if !f.chosen[i] {
			continue
		}
		for {
			best, most := int32(-1), -1
			for _, j := range f.order[at+1:] {
				if len(bonds(j)) != len(bonds(i)) {
					break
				}
				if n := covered(j); !f.passed[j] && n > most {
					best, most = j, n
				}
			}
			if best < 0 {
				break
			}
			choose(best)
		}
	}
	firstRing := int32(s.count())
	for _, i := range f.order {
		if f.chosen[i] {
			s.add(&v.adjacency, c.at(i))
		}
	}
	end := int32(s.count())
	f.times = append(f.times[:0], s.ofBond...)
	for _, i := range f.order {
		if f.chosen[i] {
			continue
		}
		for r := firstRing; r < end; r++ {
			if v.mayReplace(s.bondsOf(r), bonds(i)) {
				s.add(&v.adjacency, c.at(i))
				break
			}
		}
	}
}

// mayReplace reports whether an extra ring could stand in for a chosen one:
// they have as many bonds and some in common, and every bond that only the
// chosen one has.
func (v *perceiver) mayReplace(chosen, extra []int32) bool {
	if len(chosen) != len(extra) {
		return false
	}
	shared := false
	for _, b := range chosen {
		in := slices.Contains(extra, b)
		shared = shared || in
		if !in && v.finder.times[b] == 1 {
			return false
		}
	}
	return shared
}

// ringsByDepth fills v.rings with one ring for each bond that a depth-first
// search finds to lead back: not the smallest, but as many. It is RDKit's way
// out of a ring system in which the smallest were not found.
func (v *perceiver) ringsByDepth() {
	m, f := v.m, &v.finder
	v.rings.reset(m)
	f.frames = f.frames[:0]
	state := resize(f.found, len(m.Atoms))
	for root := range m.Atoms {
		if state[root] != unseen || v.degree(int32(root)) < 2 {
			continue
		}
		state[root] = queued
		f.frames = append(f.frames, frame{int32(root), v.ptr[root], -1})
		for len(f.frames) > 0 {
			top := &f.frames[len(f.frames)-1]
			if top.link == v.ptr[top.atom+1] {
				state[top.atom] = finished
				f.frames = f.frames[:len(f.frames)-1]
				continue
			}
			l := v.links[top.link]
			top.link++
			switch {
			case state[l.atom] == unseen && v.degree(l.atom) >= 2:
				state[l.atom] = queued
				f.frames = append(f.frames, frame{l.atom, v.ptr[l.atom], l.bond})
			case state[l.atom] == queued && l.bond != top.bond:
				f.path = f.path[:0]
				for k := len(f.frames) - 1; ; k-- {
					f.path = append(f.path, f.frames[k].atom)
					if f.frames[k].atom == l.atom {
						break
					}
				}
				v.rings.add(&v.adjacency, f.path)
			}
		}
	}
}
