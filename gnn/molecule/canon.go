package molecule

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// Bounds on the search for a canonical form: the labelings of a connected part, and the atoms of all parts that are
// looked at. None of 10,000 large molecules of MoleculeNet needs more than an eighth; a ring of 160 CH2 needs more. The
// form of an adversarial graph may depend on the order of its atoms.
const (
	mostLabelings = 10_000
	mostEffort    = 4_000_000
)

// A canon finds a canonical form: a description of a molecule that does not
// depend on the order of its atoms. Colour refinement colours atoms by their
// properties and by their neighbours' colours until nothing changes. While atoms
// share a colour, each atom of the first such class in turn gets a colour of its
// own. Every sequence of choices gives a description, and the smallest one is
// canonical. Two choices that lead to equal descriptions are symmetric, so only
// one of them is pursued.
type canon struct {
	v      *perceiver
	best   []byte
	tries  int
	effort int // atoms that refine has looked at in a part
	most   int // of them
	parts  []string
	member []bool // atoms of the parts so far
	key    [][4]int64
	seen   [][]byte
	levels []partition
	work   partition
	list   []int64
	ptr    []int32
	next   []int32
	buffer []byte
	at     []int32

	keepOrders bool      // whether orders are wanted
	bestOrder  []int32   // the atoms in the order of best
	orders     [][]int32 // of each part
}

// ranks returns the place of each atom in the canonical form.
func (c *canon) ranks(v *perceiver) []int32 {
	c.keepOrders = true
	c.orders = nil
	c.form(v)
	c.keepOrders = false
	// form has sorted the parts by their forms; equal ones may change places.
	ranks := make([]int32, len(v.m.Atoms))
	next := int32(0)
	for _, order := range c.orders {
		for _, atom := range order {
			ranks[atom] = next
			next++
		}
	}
	return ranks
}

// A partition is an ordered list of the atoms of a part, with the colour of every
// atom: the position of the first atom of its class.
type partition struct {
	order  []int32
	colour []int32
}

func (p *partition) set(q *partition) {
	p.order = append(p.order[:0], q.order...)
	p.colour = append(p.colour[:0], q.colour...)
}

// form returns the canonical form of the perceiver's molecule: the sorted forms of its connected
// parts.
func (c *canon) form(v *perceiver) string {
	c.v = v
	c.start()
	c.parts = c.parts[:0]
	for i := range int32(len(v.m.Atoms)) {
		if c.member[i] {
			continue
		}
		c.collect(i)
		c.best = c.best[:0]
		c.tries = 0
		c.effort = 0
		c.most = mostEffort * len(c.work.order) / len(v.m.Atoms) // the order of parts does not count
		c.colours()
		c.refine()
		c.search(0)
		if c.keepOrders {
			place, _ := slices.BinarySearch(c.parts, string(c.best))
			c.parts = slices.Insert(c.parts, place, string(c.best))
			c.orders = slices.Insert(c.orders, place, slices.Clone(c.bestOrder))
			continue
		}
		c.parts = append(c.parts, string(c.best))
	}
	slices.Sort(c.parts)
	return strings.Join(c.parts, "")
}

// collect makes the atoms that are connected to the first the current part.
func (c *canon) collect(first int32) {
	c.work.order = append(c.work.order[:0], first)
	c.member[first] = true
	for k := 0; k < len(c.work.order); k++ {
		for _, l := range c.v.of(c.work.order[k]) {
			if !c.member[l.atom] {
				c.member[l.atom] = true
				c.work.order = append(c.work.order, l.atom)
			}
		}
	}
}

// start describes the atoms by their own properties.
func (c *canon) start() {
	atoms := c.v.m.Atoms
	c.key = c.key[:0]
	c.member = resize(c.member, len(atoms))
	c.work.colour, c.next, c.ptr = resize(c.work.colour, len(atoms)), resize(c.next, len(atoms)),
		resize(c.ptr, len(atoms))
	for i := range atoms {
		a := &atoms[i]
		flags := int64(0)
		if a.Aromatic {
			flags = 1
		}
		if a.Chirality != Unspecified {
			flags += 2
		}
		c.key = append(c.key, [4]int64{
			int64(a.Z),
			int64(a.Charge)<<32 | int64(a.hydrogens())<<16 | int64(c.v.degree(int32(i)))<<2 | flags,
			int64(a.Isotope),
			int64(a.Map),
		})
	}
}

// colours colours the atoms of the current part by these properties.
func (c *canon) colours() {
	compare := func(a, b int32) int { return slices.Compare(c.key[a][:], c.key[b][:]) }
	slices.SortFunc(c.work.order, compare)
	first := int32(0)
	for k, a := range c.work.order {
		if k > 0 && compare(c.work.order[k-1], a) != 0 {
			first = int32(k)
		}
		c.work.colour[a] = first
	}
}

// refine splits classes by the neighbours' colours and the bonds to them.
func (c *canon) refine() {
	v := c.v
	p := &c.work
	n := len(p.order)
	for changed := true; changed; {
		changed = false
		c.effort += n
		for _, a := range p.order {
			c.next[a] = p.colour[a]
		}
		for lo := 0; lo < n; {
			hi := lo + 1
			for hi < n && p.colour[p.order[hi]] == int32(lo) {
				hi++
			}
			if hi-lo == 1 {
				lo = hi
				continue
			}
			class := p.order[lo:hi]
			c.list = c.list[:0]
			for _, a := range class {
				c.ptr[a] = int32(len(c.list))
				for _, l := range v.of(a) {
					c.list = append(c.list, int64(p.colour[l.atom])<<8|int64(v.m.Bonds[l.bond].typeAt(a)))
				}
				slices.Sort(c.list[c.ptr[a]:])
				c.list = append(c.list, endOfList)
			}
			slices.SortFunc(class, c.compareLists)
			first := int32(lo)
			for k := lo + 1; k < hi; k++ {
				if c.compareLists(p.order[k-1], p.order[k]) != 0 {
					first = int32(k)
					changed = true
				}
				c.next[p.order[k]] = first
			}
			lo = hi
		}
		for _, a := range p.order {
			p.colour[a] = c.next[a]
		}
	}
}

// typeAt returns the type of the bond as seen from one of its atoms; another number for a dative bond from the other.
func (b *Bond) typeAt(atom int32) BondType {
	if b.Type == Dative && b.End == atom {
		return AnyOrder + 1
	}
	return b.Type
}

func (c *canon) compareLists(a, b int32) int {
	return compareLists(c.list[c.ptr[a]:], c.list[c.ptr[b]:])
}

// class returns the first class of more than one atom, as positions.
func (c *canon) class() (lo, hi int) {
	p := &c.work
	for k := 1; k < len(p.order); k++ {
		lo := p.colour[p.order[k]]
		if int(lo) == k {
			continue
		}
		for hi = k + 1; hi < len(p.order) && p.colour[p.order[hi]] == lo; hi++ {
		}
		return int(lo), hi
	}
	return 0, 0
}

// single gives the k-th atom of a class a colour of its own, before those of the class.
func (c *canon) single(lo, hi, k int) {
	p := &c.work
	p.order[lo], p.order[k] = p.order[k], p.order[lo]
	for _, a := range p.order[lo+1 : hi] {
		p.colour[a] = int32(lo + 1)
	}
	c.refine()
}

// search tries all choices from the current partition.
func (c *canon) search(depth int) {
	lo, hi := c.class()
	if hi == 0 {
		c.describe()
		c.keepBest()
		return
	}
	if len(c.levels) <= 2*depth+1 {
		c.levels = append(c.levels, make([]partition, 2*depth+2-len(c.levels))...)
	}
	c.levels[2*depth].set(&c.work)
	mark := len(c.seen)
	for k := lo; k < hi && c.mayTry(); k++ {
		c.work.set(&c.levels[2*depth])
		c.single(lo, hi, k)
		c.levels[2*depth+1].set(&c.work)
		// Taking the first atom of every class leads to a description. Symmetric
		// choices have equal ones.
		for l, h := c.class(); h > 0; l, h = c.class() {
			c.single(l, h, l)
		}
		c.tries++
		c.describe()
		if len(c.best) == 0 { // the search may end before it comes here again
			c.keepBest()
		}
		if slices.ContainsFunc(c.seen[mark:], func(s []byte) bool { return bytes.Equal(s, c.buffer) }) {
			continue
		}
		c.seen = append(c.seen, bytes.Clone(c.buffer))
		c.work.set(&c.levels[2*depth+1])
		c.search(depth + 1)
	}
	clear(c.seen[mark:])
	c.seen = c.seen[:mark]
}

// mayTry reports whether the search may try another choice. The first one is always tried.
func (c *canon) mayTry() bool {
	return len(c.best) == 0 || c.tries < mostLabelings && c.effort < c.most
}

// keepBest keeps the description in c.buffer if it is the smallest so far.
func (c *canon) keepBest() {
	if len(c.best) == 0 || bytes.Compare(c.buffer, c.best) < 0 {
		c.best = append(c.best[:0], c.buffer...)
		c.bestOrder = append(c.bestOrder[:0], c.work.order...)
	}
}

// describe writes the molecule to c.buffer, in the order of the partition. Every class must have one
// atom.
func (c *canon) describe() {
	v := c.v
	m := c.v.m
	position := c.work.colour // every atom's position
	w := binary.AppendUvarint(c.buffer[:0], uint64(len(c.work.order)))
	for k, i := range c.work.order {
		a := &m.Atoms[i]
		tag := a.Chirality
		// From the order of the bonds to that of the positions.
		if (tag == Clockwise || tag == CounterClockwise) && oddOrder(v.of(i), position) {
			tag = Clockwise + CounterClockwise - tag
		}
		w = append(w, byte(a.Z), byte(a.Charge), byte(a.hydrogens()), byte(tag))
		w = binary.AppendUvarint(w, uint64(a.Isotope))
		w = binary.AppendUvarint(w, uint64(a.Map))
		if a.Aromatic {
			w = append(w, 1)
		} else {
			w = append(w, 0)
		}
		c.at = c.at[:0]
		for _, l := range v.of(i) {
			if position[l.atom] < int32(k) {
				c.at = append(
					c.at,
					position[l.atom]<<8|int32(m.Bonds[l.bond].typeAt(i))<<2|int32(c.configuration(l.bond)),
				)
			}
		}
		slices.Sort(c.at)
		w = append(w, byte(len(c.at)))
		for _, x := range c.at {
			w = binary.AppendUvarint(w, uint64(x))
		}
	}
	c.buffer = w
}

// configuration returns the configuration of a double bond relative to the first neighbours at both
// ends.
func (c *canon) configuration(bond int32) bondStereo {
	b := &c.v.m.Bonds[bond]
	if b.stereo == noStereo {
		return noStereo
	}
	s := b.stereo
	for k, end := range [2]int32{b.Begin, b.End} {
		first := int32(-1)
		for _, l := range c.v.of(end) {
			if l.bond != bond && (first < 0 || c.work.colour[l.atom] < c.work.colour[first]) {
				first = l.atom
			}
		}
		if first != b.ref[k] {
			s = stereoE + stereoZ - s
		}
	}
	return s
}
