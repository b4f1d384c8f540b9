package molecule

import "slices"

// direct chooses the directions that bonds have in the text, which say the configurations of double bonds. In an
// order of ranks they depend on the configurations only. Otherwise they are those of the molecule, and an end of a
// double bond gets one if perception has removed its own: it removes those that contradict each other at the next
// double bond.
func (w *smilesWriter) direct() {
	m := w.m
	w.direction = make([]Direction, len(m.Bonds))
	var doubles []int32
	for k := range m.Bonds {
		if w.ranks == nil {
			w.direction[k] = m.Bonds[k].Direction
		}
		if m.Bonds[k].stereo != noStereo {
			doubles = append(doubles, int32(k))
		}
	}
	if doubles == nil {
		return
	}
	if w.ranks != nil {
		place := func(k int32) []int32 {
			begin := w.ranks[m.Bonds[k].Begin]
			end := w.ranks[m.Bonds[k].End]
			return []int32{min(begin, end), max(begin, end)}
		}
		slices.SortFunc(doubles, func(a, b int32) int { return slices.Compare(place(a), place(b)) })
	}
	wanted := w.wantedDirections(doubles)
	for _, withChoice := range []bool{false, true} { // last, so that it can avoid what the others need
		for _, k := range doubles {
			for _, end := range [2]int32{m.Bonds[k].Begin, m.Bonds[k].End} {
				if bond, choices := w.undirected(end, k); choices == 1 || choices > 1 && withChoice {
					w.direction[bond] = wanted[bond]
				}
			}
		}
	}
}

// wantedDirections returns directions for all bonds next to some double bonds that suit their configurations. From
// each double bond it continues with those that share a neighbour with it. Their bonds are a group: only
// together may their directions be reversed.
func (w *smilesWriter) wantedDirections(doubles []int32) (wanted []Direction) {
	m := w.m
	wanted = slices.Clone(w.direction)
	w.group = make([]int32, len(m.Bonds))
	done := make([]bool, len(m.Bonds))
	for _, start := range doubles {
		queue := []int32{start}
		for len(queue) > 0 {
			k := queue[0]
			queue = queue[1:]
			if done[k] {
				continue
			}
			done[k] = true
			b := &m.Bonds[k]
			reference := w.reference(k, wanted)
			for side, end := range [2]int32{b.Begin, b.End} {
				for _, l := range w.linksOf(end) {
					if l.bond == k {
						continue
					}
					w.group[l.bond] = start + 1
					if wanted[l.bond] == NoDirection {
						wanted[l.bond] = m.Bonds[l.bond].seenFrom(end, b.besideReference(side, l.atom, reference))
					}
					for _, o := range w.linksOf(l.atom) {
						if m.Bonds[o.bond].stereo != noStereo {
							queue = append(queue, o.bond)
						}
					}
				}
			}
		}
	}
	return wanted
}

// reference returns the direction of the bond from double bond k to the neighbour of its Begin that its configuration
// refers to: as the directions of the text say or else those that are wanted, or Up if both say nothing.
func (w *smilesWriter) reference(k int32, wanted []Direction) Direction {
	b := &w.m.Bonds[k]
	for _, known := range [2][]Direction{w.direction, wanted} {
		for side, end := range [2]int32{b.Begin, b.End} {
			for _, l := range w.linksOf(end) {
				if l.bond != k && known[l.bond] != NoDirection {
					d := w.m.Bonds[l.bond].seenFrom(end, known[l.bond])
					return b.besideReference(side, l.atom, d)
				}
			}
		}
	}
	return Up
}

// seenFrom turns a direction as seen from Begin into that as seen from an atom of the bond, or back.
func (b *Bond) seenFrom(atom int32, d Direction) Direction {
	if b.Begin != atom {
		return d.reversed()
	}
	return d
}

// besideReference turns the direction of the bond from a double bond to its reference at Begin into that of the bond
// to an atom at Begin (side 0) or End (side 1), or back.
func (b *Bond) besideReference(side int, atom int32, d Direction) Direction {
	isOther := atom != b.ref[side]
	isOpposite := side == 1 && b.stereo == stereoE
	if isOther != isOpposite {
		return d.reversed()
	}
	return d
}

// undirected returns the bond of an end of a double bond that is to get a direction, and how many bonds might; none if
// one has a direction.
func (w *smilesWriter) undirected(end, double int32) (bond int32, choices int) {
	misleads := false
	for _, l := range w.linksOf(end) {
		if l.bond == double || !w.mayDirect(l.bond) {
			continue
		}
		if w.direction[l.bond] != NoDirection {
			return 0, 0
		}
		if choices == 0 || misleads {
			bond = l.bond
			misleads = w.misleads(l)
		}
		choices++
	}
	return bond, choices
}

// misleads reports whether a direction of the bond to an atom gives a configuration to another double bond.
func (w *smilesWriter) misleads(l link) bool {
	return slices.ContainsFunc(w.of(l.atom), func(o link) bool {
		b := &w.m.Bonds[o.bond]
		return b.Type == Double && b.stereo == noStereo && slices.ContainsFunc(w.of(o.atom), func(far link) bool {
			return w.direction[far.bond] != NoDirection
		})
	})
}

// mayDirect reports whether a direction can be written for a bond. A reader takes a bond with a direction as aromatic
// between aromatic atoms, else as single.
func (w *smilesWriter) mayDirect(bond int32) bool {
	b := &w.m.Bonds[bond]
	if w.m.Atoms[b.Begin].Aromatic && w.m.Atoms[b.End].Aromatic {
		return b.Type == Aromatic
	}
	return b.Type == Single
}

// directionOf returns the direction of a bond as seen from an atom, or NoDirection if the text has none. In an order
// of ranks the first one of each group is Up.
func (w *smilesWriter) directionOf(atom, bond int32) Direction {
	if w.direction[bond] == NoDirection || !w.mayDirect(bond) {
		return NoDirection
	}
	d := w.m.Bonds[bond].seenFrom(atom, w.direction[bond])
	if w.ranks == nil {
		return d
	}
	group := w.group[bond]
	if w.first[group] == NoDirection {
		w.first[group] = d
	}
	if w.first[group] == Down {
		return d.reversed()
	}
	return d
}
