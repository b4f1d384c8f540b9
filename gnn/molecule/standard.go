package molecule

import "slices"

// largestFragment leaves the fragment with the most atoms, hydrogens that are written as atoms
// left aside, of equal ones that of the larger sum of atomic numbers, and of these the first.
// It reports whether it has left out any.
func (v *perceiver) largestFragment() bool {
	m := v.m
	fragment := resize(v.moved, len(m.Atoms)) // from 1
	v.moved = fragment
	var best, atoms, protons, count int32
	for start := range int32(len(m.Atoms)) {
		if fragment[start] > 0 {
			continue
		}
		count++
		fragment[start] = count
		var n, z int32
		for v.queue = append(v.queue[:0], start); len(v.queue) > 0; {
			i := v.queue[len(v.queue)-1]
			v.queue = v.queue[:len(v.queue)-1]
			if m.Atoms[i].Z != 1 {
				n, z = n+1, z+int32(m.Atoms[i].Z)
			}
			for _, l := range v.of(i) {
				if fragment[l.atom] == 0 {
					fragment[l.atom] = count
					v.queue = append(v.queue, l.atom)
				}
			}
		}
		if best == 0 || n > atoms || n == atoms && z > protons {
			best, atoms, protons = count, n, z
		}
	}
	if count < 2 {
		return false
	}
	v.keep = resize(v.keep, len(m.Atoms))
	for i, f := range fragment {
		v.keep[i] = f == best
	}
	v.leaveOut(m)
	return true
}

// neutralise takes charges off by way of hydrogens. An atom of nitrogen, oxygen, phosphorus,
// sulphur, arsenic, selenium, tellurium or a halogen with a negative charge gets as many; one that is no
// metal with a positive charge and as many hydrogens loses them; where the valence is then one
// that the neutral element has. Neighbours of opposite charges, as in a nitro group, keep
// them, and for every cation that cannot lose its charge an anion keeps its own, in the order
// of the atoms.
func (v *perceiver) neutralise() {
	m := v.m
	opposite := func(i int32) bool {
		return slices.ContainsFunc(v.of(i), func(l link) bool {
			return int(m.Atoms[l.atom].Charge)*int(m.Atoms[i].Charge) < 0
		})
	}
	able := func(i int32) bool {
		a := &m.Atoms[i]
		q := a.Charge
		switch {
		case opposite(i) || a.Z <= 1:
			return false
		case q < 0 && !slices.Contains([]int8{7, 8, 9, 15, 16, 17, 33, 34, 35, 52, 53, 85}, a.Z),
			q > 0 && (metal(a.Z) || a.explicit < q):
			return false
		}
		return slices.Contains(elements[a.Z].valences, int8(v.explicitValence(i))-q)
	}
	change := resize(v.moved, len(m.Atoms))
	v.moved = change
	left := 0
	for i := range m.Atoms {
		if q := m.Atoms[i].Charge; q > 0 && able(int32(i)) {
			change[i] = 1
		} else if q > 0 && !opposite(int32(i)) {
			left += int(q)
		}
	}
	for i := range m.Atoms {
		if q := m.Atoms[i].Charge; q < 0 && able(int32(i)) {
			if left += int(q); left < 0 {
				change[i] = 1
			}
		}
	}
	for i, c := range change {
		if a := &m.Atoms[i]; c > 0 {
			a.explicit, a.Charge, a.Chirality = a.explicit-a.Charge, 0, Unspecified
		}
	}
}
