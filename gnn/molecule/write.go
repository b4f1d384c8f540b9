package molecule

import (
	"strconv"
	"strings"
)

// SMILES returns SMILES that [Parser.Parse] reads as the same molecule, in another order of atoms.
// Centres that are not tetrahedral are not written as centres. An aromatic ring with wildcards or
// boron may be refused or read as another. A configuration is lost where the directions of bonds
// that it needs contradict those of another configuration.
func (m *Molecule) SMILES() string {
	w := smilesWriter{
		m:        m,
		ring:     make([]int, len(m.Bonds)),
		open:     make([]bool, len(m.Bonds)),
		seen:     make([]bool, len(m.Atoms)),
		children: make([][]link, len(m.Atoms)),
		at:       make([]int, len(m.Atoms)),
	}
	w.reset(m)
	for i := range m.Atoms {
		if w.seen[i] {
			continue
		}
		w.span(int32(i), -1)
		if i > 0 {
			w.text.WriteByte('.')
		}
		w.write(int32(i))
	}
	return w.turned()
}

// A smilesWriter writes a molecule along a tree that spans it.
type smilesWriter struct {
	adjacency
	m        *Molecule
	text     strings.Builder
	seen     []bool
	children [][]link // for every atom, in the tree
	ring     []int    // for every bond: its ring number from 1, or 0 if it is in the tree
	rings    int
	open     []bool  // for every bond: whether its number has been written once
	order    []int32 // atoms in the order of the text
	at       []int   // for every atom: the place of its tag in the text
}

// span finds the tree below an atom, and numbers the bonds outside of the tree.
func (w *smilesWriter) span(i, bond int32) {
	w.seen[i] = true
	for _, l := range w.of(i) {
		switch {
		case l.bond == bond || w.ring[l.bond] > 0:
		case w.seen[l.atom]:
			w.rings++
			w.ring[l.bond] = w.rings
		default:
			w.children[i] = append(w.children[i], l)
			w.span(l.atom, l.bond)
		}
	}
}

// write writes an atom and the tree below it. Every tag is @.
func (w *smilesWriter) write(i int32) {
	w.order = append(w.order, i)
	w.atom(i)
	for _, l := range w.of(i) {
		n := w.ring[l.bond]
		if n == 0 {
			continue
		}
		if !w.open[l.bond] {
			w.open[l.bond] = true
			w.bond(i, l)
		}
		w.text.WriteString("%(" + strconv.Itoa(n) + ")")
	}
	for k, l := range w.children[i] {
		final := k == len(w.children[i])-1
		if !final {
			w.text.WriteByte('(')
		}
		w.bond(i, l)
		w.write(l.atom)
		if !final {
			w.text.WriteByte(')')
		}
	}
}

func (w *smilesWriter) bond(atom int32, l link) {
	b := &w.m.Bonds[l.bond]
	symbol := map[BondType]string{
		Single:    "-",
		Double:    "=",
		Triple:    "#",
		Aromatic:  ":",
		Quadruple: "$",
		Dative:    "->",
		AnyOrder:  "~",
	}[b.Type]
	d := b.Direction
	if b.Begin != atom {
		d = d.reversed()
		if b.Type == Dative {
			symbol = "<-"
		}
	}
	// A reader takes a bond with a direction as aromatic between aromatic atoms, else as single.
	if aromatic := w.m.Atoms[b.Begin].Aromatic && w.m.Atoms[b.End].Aromatic; d != NoDirection &&
		(b.Type == Aromatic && aromatic || b.Type == Single && !aromatic) {
		symbol = map[Direction]string{Up: "/", Down: `\`}[d]
	}
	w.text.WriteString(symbol)
}

func (w *smilesWriter) atom(i int32) {
	a := &w.m.Atoms[i]
	w.text.WriteByte('[')
	if a.Isotope != 0 {
		w.text.WriteString(strconv.Itoa(int(a.Isotope)))
	}
	symbol := elements[a.Z].symbol
	if a.Aromatic {
		symbol = strings.ToLower(symbol)
	}
	w.text.WriteString(symbol)
	w.at[i] = w.text.Len()
	if a.Chirality == Clockwise || a.Chirality == CounterClockwise {
		w.text.WriteByte('@')
	}
	if a.Hydrogens > 0 {
		w.text.WriteString("H" + strconv.Itoa(int(a.Hydrogens)))
	}
	if a.Charge != 0 {
		w.text.WriteString(
			string("-+"[min(max(a.Charge, 0), 1)]) + strconv.Itoa(max(int(a.Charge), -int(a.Charge))),
		)
	}
	if a.Map != 0 {
		w.text.WriteString(":" + strconv.Itoa(int(a.Map)))
	}
	w.text.WriteByte(']')
}

// turned returns the text with the right tags, @ or @@. It reads the text to find them.
func (w *smilesWriter) turned() string {
	text := w.text.String()
	var r smilesReader
	again, err := r.read(text)
	if err != nil {
		return text // without tags that could matter
	}
	var n adjacency
	n.reset(again)
	r.settleTags(&n)
	var out strings.Builder
	done := 0
	place := make([]int, len(w.m.Atoms)) // among the neighbours of an atom, as they are in the molecule
	for j, i := range w.order {
		tag := w.m.Atoms[i].Chirality
		if tag != Clockwise && tag != CounterClockwise {
			continue
		}
		for k, l := range w.of(i) {
			place[l.atom] = k
		}
		odd := false
		links := n.of(int32(j))
		for k, l := range links {
			for _, o := range links[:k] {
				odd = odd != (place[w.order[o.atom]] > place[w.order[l.atom]])
			}
		}
		if (again.Atoms[j].Chirality != tag) != odd {
			out.WriteString(text[done:w.at[i]] + "@")
			done = w.at[i]
		}
	}
	return out.String() + text[done:]
}
