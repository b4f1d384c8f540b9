package molecule

import (
	"slices"
	"strconv"
	"strings"
)

// SMILES returns SMILES that [Parser.Parse] reads as the same molecule, in another order of atoms.
// Centres that are not tetrahedral are not written as centres. An aromatic ring with wildcards or
// boron may be refused or read as another. A configuration is lost where the directions of bonds
// that it needs contradict those of another configuration, or would give one to a double bond without.
func (m *Molecule) SMILES() string {
	w := newWriter(m, nil)
	for i := range m.Atoms {
		w.part(int32(i))
	}
	return w.turned()
}

// CanonicalSMILES returns short SMILES that do not depend on the order of the atoms or the spelling of
// configurations, except in a molecule that has an aromatic element without a small symbol, such as Al: its Kekulé
// structure is written. Limits are those of [Molecule.SMILES], which it returns if a short form would be read as
// another molecule.
func (p *Parser) CanonicalSMILES(m *Molecule) string {
	isOther := func(a Atom) bool { return a.Chirality == Other }
	if slices.ContainsFunc(m.Atoms, isOther) { // it cannot be written
		m = m.Clone()
		for i := range m.Atoms {
			if isOther(m.Atoms[i]) {
				m.Atoms[i].Chirality = Unspecified
			}
		}
	}
	identity := p.Canonical(m)
	ranks := p.perceiver.canon.ranks(&p.perceiver)
	order := make([]int32, len(m.Atoms)) // atoms that begin parts: ends of chains first
	for atom, rank := range ranks {
		order[rank] = int32(atom)
	}
	isInner := func(atom int32) int { return yes(m.Atoms[atom].Degree > 1) }
	slices.SortStableFunc(order, func(a, b int32) int { return isInner(a) - isInner(b) })
	plain := make([]bool, len(m.Atoms)) // atoms without brackets
	for i := range m.Atoms {
		plain[i] = m.Atoms[i].mayBePlain()
	}
	var reader Parser
	reader.Release2022 = p.Release2022
	for range 3 {
		w := newWriter(m, ranks)
		w.plain = plain
		for _, i := range order {
			w.part(i)
		}
		text := w.turned()
		copied, err := reader.Parse(text)
		if err != nil || len(copied.Atoms) != len(m.Atoms) {
			break
		}
		if reader.Canonical(copied) == identity {
			return text
		}
		for k, i := range w.order { // these need their hydrogens in brackets
			if copied.Atoms[k].Hydrogens != m.Atoms[i].Hydrogens {
				plain[i] = false
			}
		}
	}
	return m.SMILES()
}

// mayBePlain reports whether an atom is of the elements that SMILES has without brackets, and has nothing
// that needs these.
func (a *Atom) mayBePlain() bool {
	organic := strings.Contains(" B C N O P S F Cl Br I ", " "+elements[a.Z].symbol+" ")
	if a.Aromatic && a.Z != 6 && a.Hydrogens > 0 {
		return false
	}
	return organic && a.Charge == 0 && a.Isotope == 0 && a.Map == 0 && a.Chirality == Unspecified
}

// mayBeSmall reports whether SMILES have the atom's element in small letters.
func (a *Atom) mayBeSmall() bool {
	return strings.Contains(" * B C N O P S Si As Se Te ", " "+elements[a.Z].symbol+" ")
}

// newWriter returns a writer of a molecule; ranks are nil for its own order. An aromatic element without a small symbol
// makes it write a Kekulé structure.
func newWriter(m *Molecule, ranks []int32) *smilesWriter {
	if slices.ContainsFunc(m.Atoms, func(a Atom) bool { return a.Aromatic && !a.mayBeSmall() }) {
		drawing := new(Molecule)
		drawing.copyDrawing(m)
		m = drawing
	}
	w := &smilesWriter{
		m:        m,
		ranks:    ranks,
		ring:     make([]int, len(m.Bonds)),
		open:     make([]bool, len(m.Bonds)),
		seen:     make([]bool, len(m.Atoms)),
		children: make([][]link, len(m.Atoms)),
		at:       make([]int, len(m.Atoms)),
		first:    map[int32]Direction{},
	}
	w.reset(m)
	w.direct()
	return w
}

// part writes the part of the molecule with an atom, unless it is written.
func (w *smilesWriter) part(i int32) {
	if w.seen[i] {
		return
	}
	w.span(i, -1)
	if w.text.Len() > 0 {
		w.text.WriteByte('.')
	}
	w.write(i)
}

// linksOf returns the links of an atom in the order in which they are written.
func (w *smilesWriter) linksOf(i int32) []link {
	if w.ranks == nil {
		return w.of(i)
	}
	return slices.SortedFunc(slices.Values(w.of(i)), func(a, b link) int {
		return int(w.ranks[a.atom] - w.ranks[b.atom])
	})
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

	direction []Direction         // for every bond: as seen from Begin, in the text
	group     []int32             // for every bond next to double bonds with a configuration
	first     map[int32]Direction // of a group, in the text

	// For short forms:
	ranks []int32 // of the atoms: nil for their own order
	plain []bool  // atoms without brackets
}

// span finds the tree below an atom, and numbers the bonds outside of the tree.
func (w *smilesWriter) span(i, bond int32) {
	w.seen[i] = true
	for _, l := range w.linksOf(i) {
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
	for _, l := range w.linksOf(i) {
		n := w.ring[l.bond]
		if n == 0 {
			continue
		}
		if !w.open[l.bond] {
			w.open[l.bond] = true
			w.bond(i, l)
		}
		w.text.WriteString(w.ringNumber(n))
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

func (w *smilesWriter) ringNumber(n int) string {
	switch number := strconv.Itoa(n); {
	case w.plain == nil || n > 99:
		return "%(" + number + ")"
	case n > 9:
		return "%" + number
	default:
		return number
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
	if b.Type == Dative && b.Begin != atom {
		symbol = "<-"
	}
	if d := w.directionOf(atom, l.bond); d != NoDirection {
		symbol = map[Direction]string{Up: "/", Down: `\`}[d]
	}
	aromatic := w.m.Atoms[b.Begin].Aromatic && w.m.Atoms[b.End].Aromatic
	if w.plain != nil && (symbol == "-" && !aromatic || symbol == ":" && aromatic) {
		return // what a reader takes it for
	}
	w.text.WriteString(symbol)
}

func (w *smilesWriter) atom(i int32) {
	a := &w.m.Atoms[i]
	symbol := elements[a.Z].symbol
	if a.Aromatic {
		symbol = strings.ToLower(symbol)
	}
	if w.plain != nil && w.plain[i] {
		w.text.WriteString(symbol)
		return
	}
	w.text.WriteByte('[')
	if a.Isotope != 0 {
		w.text.WriteString(strconv.Itoa(int(a.Isotope)))
	}
	w.text.WriteString(symbol)
	w.at[i] = w.text.Len()
	if a.Chirality == Clockwise || a.Chirality == CounterClockwise {
		w.text.WriteByte('@')
	}
	if a.Hydrogens > 0 {
		w.text.WriteString("H" + w.count(int(a.Hydrogens)))
	}
	if a.Charge != 0 {
		w.text.WriteString(string("-+"[min(max(a.Charge, 0), 1)]) + w.count(max(int(a.Charge), -int(a.Charge))))
	}
	if a.Map != 0 {
		w.text.WriteString(":" + strconv.Itoa(int(a.Map)))
	}
	w.text.WriteByte(']')
}

// count returns a number behind H or a sign; 1 needs none in a short form.
func (w *smilesWriter) count(n int) string {
	if w.plain != nil && n == 1 {
		return ""
	}
	return strconv.Itoa(n)
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
