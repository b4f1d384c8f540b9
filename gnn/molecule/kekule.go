package molecule

import "slices"

// A kekuliser gives aromatic bonds the orders 1 and 2.
type kekuliser struct {
	system    []int32 // for every ring: the first ring of its system
	members   []int32 // atoms of the current system
	in        []bool  // for every atom: whether it is in the system
	candidate []bool  // for every atom: whether it takes a double bond
	trial     []bool  // candidates without some of the wildcards
	wildcards []int32 // atoms that may take a double bond or not
	aliphatic []bool  // for every ring: whether no aromatic atom is in this ring alone

	single []int32 // bonds
	total  []int32 // for every atom: its valence before

	outside []bool // atoms of the system that are not aromatic
	done    []bool
	open    []bool  // candidates that still need a double bond
	order   []int32 // atoms in the order in which they were done
	queue   []int32
	queued  []bool
	double  []int32 // bonds
	choices []choice
	spare   []int32
}

// A choice is an atom with several possible partners, and the link to the chosen one.
type choice struct{ atom, link int32 }

const (
	mostRetries   = 100 // corrections of wrong choices; RDKit's number
	mostWildcards = 10  // wildcards of a ring system that are tried with and without a double bond
)

// kekulise turns aromatic bonds into single and double ones, and forgets what was written as
// aromatic, because it will be perceived anew. A ring system is a set of rings that share bonds. In
// each system, every atom that lacks a bond must get a double bond.
func (v *perceiver) kekulise() *problem {
	m := v.m
	k := &v.kekule
	if !slices.ContainsFunc(m.Atoms, func(a Atom) bool { return a.Aromatic }) &&
		!slices.ContainsFunc(m.Bonds, func(b Bond) bool { return b.aromatic }) {
		return nil
	}
	k.total = k.total[:0]
	for i := range m.Atoms {
		k.total = append(k.total, m.Atoms[i].totalValence())
	}
	v.ringSystems()
	v.peel()
	for r, s := range k.system {
		if s == int32(r) { // the first of its system
			if err := v.kekuliseSystem(s); err != nil {
				return err
			}
		}
	}
	for i := range m.Bonds {
		m.Bonds[i].aromatic = false
	}
	for i := range m.Atoms {
		a := &m.Atoms[i]
		if !a.Aromatic {
			continue
		}
		if v.rings.ofAtom[i] == 0 {
			return atomProblem(int32(i), "an aromatic atom outside of rings")
		}
		a.Aromatic = false
		// From here on, the hydrogen of [nH] is implicit.
		if (a.Z == 7 || a.Z == 15) && a.Charge == 0 && a.explicit == 1 {
			a.fixed = false
			a.explicit = 0
			v.refill(int32(i))
		}
	}
	for i := range m.Atoms {
		if m.Atoms[i].totalValence() != k.total[i] {
			return atomProblem(
				int32(i),
				"the atom cannot keep its valence %d when aromatic bonds become single and double",
				k.total[i],
			)
		}
	}
	return nil
}

// ringSystems joins rings that share bonds. The first ring of a system identifies it.
func (v *perceiver) ringSystems() {
	k := &v.kekule
	s := &v.rings
	n := s.count()
	k.system = k.system[:0]
	ringOf := resize(k.spare, len(v.m.Bonds)) // for every bond: 1 + its first ring
	k.spare = ringOf
	find := func(r int32) int32 {
		for k.system[r] != r {
			k.system[r] = k.system[k.system[r]]
			r = k.system[r]
		}
		return r
	}
	for r := range int32(n) {
		k.system = append(k.system, r)
		for _, b := range s.bondsOf(r) {
			if ringOf[b] == 0 {
				ringOf[b] = r + 1
				continue
			}
			x, y := find(ringOf[b]-1), find(r)
			k.system[max(x, y)] = min(x, y)
		}
	}
	for r := range int32(n) {
		k.system[r] = find(r)
	}
}

// kekuliseSystem places the double bonds of a ring system.
func (v *perceiver) kekuliseSystem(system int32) *problem {
	m := v.m
	k := &v.kekule
	k.in = resize(k.in, len(m.Atoms))
	k.members = k.members[:0]
	relevant := false
	wildcardsOnly := true
	for r, s := range k.system {
		if s != system {
			continue
		}
		for _, a := range v.rings.atomsOf(int32(r)) {
			if k.in[a] {
				continue
			}
			k.in[a] = true
			k.members = append(k.members, a)
			relevant = relevant || m.Atoms[a].Z == 0 || v.inAromatic(a)
			wildcardsOnly = wildcardsOnly && m.Atoms[a].Z == 0
		}
	}
	if !relevant || wildcardsOnly {
		return nil
	}
	// The search starts where RDKit's does, so that it makes the same choices: at the first atom
	// without a chain to another ring.
	first := -1
	for place, a := range k.members {
		if v.moved[a] == 2 && (first < 0 || a < k.members[first]) {
			first = place
		}
	}
	if first > 0 {
		k.members[0], k.members[first] = k.members[first], k.members[0]
	}
	v.markCandidates()
	if v.match(k.candidate) {
		return nil
	}
	if v.matchWithoutWildcards() {
		return nil
	}
	place := slices.IndexFunc(k.candidate, func(c bool) bool { return c })
	return atomProblem(int32(place),
		"the aromatic ring system of this atom has no Kekulé structure: its double "+
			"bonds cannot be placed")
}

// matchWithoutWildcards tries to match the candidates of the system without some of the
// wildcards, after all of them took part in vain.
func (v *perceiver) matchWithoutWildcards() bool {
	m := v.m
	k := &v.kekule
	n := len(k.wildcards)
	if n > mostWildcards {
		return false
	}
	for set := 1; set < 1<<n; set++ {
		for i := range m.Bonds {
			b := &m.Bonds[i]
			if b.aromatic && b.Type != Single && k.in[b.Begin] && k.in[b.End] {
				b.Type = Single
			}
		}
		k.trial = append(k.trial[:0], k.candidate...)
		for q, a := range k.wildcards {
			if set>>q&1 == 1 {
				k.trial[a] = false
			}
		}
		if v.match(k.trial) {
			return true
		}
	}
	return false
}

// markCandidates finds the atoms of the system that need a double bond, and makes its aromatic bonds
// single. It ignores atoms that are not aromatic.
func (v *perceiver) markCandidates() {
	m := v.m
	k := &v.kekule
	s := &v.rings
	k.candidate = resize(k.candidate, len(m.Atoms))
	k.outside = resize(k.outside, len(m.Atoms))
	k.wildcards = k.wildcards[:0]
	k.single = k.single[:0]
	k.aliphatic = resize(k.aliphatic, s.count())
	for r := range k.aliphatic {
		k.aliphatic[r] = !slices.ContainsFunc(s.atomsOf(int32(r)), func(a int32) bool {
			return s.ofAtom[a] == 1 && v.inAromatic(a)
		})
	}
	for _, i := range k.members {
		a := &m.Atoms[i]
		if a.Z != 0 && !v.inAromatic(i) {
			k.outside[i] = true
			continue
		}
		bonds := int32(0)
		aliphatic := int32(0)
		for _, l := range v.of(i) {
			b := &m.Bonds[l.bond]
			o := &m.Atoms[l.atom]
			if o.Z != 0 && !o.Aromatic && k.in[l.atom] {
				aliphatic++
			}
			if b.aromatic && (b.Type == Single || b.Type == Double || b.Type == Aromatic) {
				bonds++
				k.single = append(k.single, l.bond)
			} else {
				bonds += (b.halvesAt(i) + 1) / 2
			}
		}
		if a.Z == 0 {
			rings := s.ofAtom[i]
			outside := int32(0) // rings that cannot be aromatic
			for r := range int32(s.count()) {
				if k.aliphatic[r] && slices.Contains(s.atomsOf(r), i) {
					outside++
				}
			}
			if aliphatic < rings && outside < rings {
				k.candidate[i] = true
				k.wildcards = append(k.wildcards, i)
				continue
			}
		}
		if v.wantsDouble(i, bonds) {
			k.candidate[i] = true
		}
	}
	for _, b := range k.single {
		m.Bonds[b].Type = Single
	}
}

// wantsDouble reports whether an atom lacks one bond to an allowed valence. bonds counts its bonds,
// aromatic ones as single.
func (v *perceiver) wantsDouble(i, bonds int32) bool {
	a := &v.m.Atoms[i]
	e := &elements[a.Z]
	bonds += int32(a.hydrogens())
	implicit := int32(0)
	if !a.fixed {
		implicit = int32(a.implicit)
	}
	total := a.totalValence()
	shift := a.valenceShift()
	allowed := e.defaultValence() + shift
	for k := 1; total > allowed && k < len(e.valences) && e.valences[k] > 0; k++ {
		allowed = int32(e.valences[k]) + shift
	}
	degree := v.bonds(i) + implicit
	radicals := int32(a.radicals)
	if degree+radicals >= allowed {
		return false
	}
	// In the second case, the atom would be a radical.
	return allowed == bonds+1+radicals || radicals == 0 && a.fixed && allowed == bonds+2
}

// match gives every candidate of the system a double bond to a neighbouring candidate, and reports
// whether it could. It searches breadth first and corrects up to mostRetries wrong choices. If it
// fails, it places no double bonds.
func (v *perceiver) match(candidates []bool) bool {
	m := v.m
	k := &v.kekule
	k.open = append(k.open[:0], candidates...)
	k.done = append(k.done[:0], k.outside...)
	k.queued = resize(k.queued, len(m.Atoms))
	k.queue = k.queue[:0]
	k.order = k.order[:0]
	k.double = k.double[:0]
	k.choices = k.choices[:0]
	var head, next, retries int
	for {
		var atom int32
		if head < len(k.queue) {
			atom = k.queue[head]
			k.queued[atom] = false
			head++
		} else {
			for next < len(k.members) && k.done[k.members[next]] {
				next++
			}
			if next == len(k.members) {
				return true
			}
			atom = k.members[next]
		}
		k.done[atom] = true
		k.order = append(k.order, atom)

		link := v.ptr[atom]
		again := len(k.choices) > 0 && k.choices[len(k.choices)-1].atom == atom
		if again {
			link = k.choices[len(k.choices)-1].link + 1
		} else {
			for _, l := range v.of(atom) {
				if k.in[l.atom] && !k.done[l.atom] && !k.queued[l.atom] {
					k.queued[l.atom] = true
					k.queue = append(k.queue, l.atom)
				}
			}
		}
		if !k.open[atom] {
			continue
		}
		link = v.partner(atom, link)
		if link < 0 {
			if m.Atoms[atom].Z == 0 { // a wildcard needs no double bond
				continue
			}
			if len(k.choices) == 0 || retries == mostRetries {
				for _, b := range k.double {
					m.Bonds[b].Type = Single
				}
				return false
			}
			retries++
			v.retract(head)
			head = 0
			next = 0
			continue
		}
		alternative := v.partner(atom, link+1) >= 0
		switch {
		case again && alternative:
			k.choices[len(k.choices)-1].link = link
		case again:
			k.choices = k.choices[:len(k.choices)-1]
		case alternative:
			k.choices = append(k.choices, choice{atom, link})
		}
		l := v.links[link]
		m.Bonds[l.bond].Type = Double
		k.open[atom], k.open[l.atom] = false, false
		k.double = append(k.double, l.bond)
	}
}

// partner returns the first link of an atom, from the given one on, to a neighbour that could share a
// double bond with it. It returns -1 if there is none.
func (v *perceiver) partner(atom, link int32) int32 {
	m := v.m
	k := &v.kekule
	for ; link < v.ptr[atom+1]; link++ {
		l := v.links[link]
		if k.in[l.atom] && !k.done[l.atom] && k.open[l.atom] &&
			(m.Bonds[l.bond].aromatic || m.Atoms[atom].Z == 0 || m.Atoms[l.atom].Z == 0) {
			return link
		}
	}
	return -1
}

// retract goes back to the last choice. It queues the later atoms again and removes the double bonds
// among them.
func (v *perceiver) retract(head int) {
	m := v.m
	k := &v.kekule
	start := slices.Index(k.order, k.choices[len(k.choices)-1].atom)
	k.spare = append(append(k.spare[:0], k.order[start:]...), k.queue[head:]...)
	k.spare, k.queue = k.queue, k.spare
	for _, a := range k.order[start:] {
		k.done[a] = false
		k.queued[a] = true
	}
	k.order = k.order[:start]
	n := 0
	for _, b := range k.double {
		begin, end := m.Bonds[b].Begin, m.Bonds[b].End
		if k.done[begin] || k.done[end] {
			k.double[n] = b
			n++
			continue
		}
		m.Bonds[b].Type = Single
		k.open[begin], k.open[end] = true, true
	}
	k.double = k.double[:n]
}
