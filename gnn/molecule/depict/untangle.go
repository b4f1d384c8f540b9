package depict

import (
	"math"
	"math/cmplx"
)

// A tangle is a part of the molecule whose bonds and atoms may be too near to each other.
type tangle struct {
	*sketch
	atoms []int
	bonds []int
	work  int // pairs of atoms that were compared
}

// mostWork is the work after which no more moves are tried; it takes about a second.
const mostWork = 200_000_000

// Distances, in bond lengths, from which atoms and bonds count as too near.
const (
	nearAtoms = 0.75
	nearBond  = 0.4
)

// untangle moves branches until no bonds cross and no atoms are close, or no move helps.
func (s *sketch) untangle(part []int) {
	t := &tangle{sketch: s, atoms: part}
	inside := make([]bool, len(s.links))
	for _, i := range part {
		inside[i] = true
	}
	for k := range s.bonds {
		if inside[s.bonds[k].begin] {
			t.bonds = append(t.bonds, k)
		}
	}
	moves := []func([]hinge) []move{flips, pairsOfFlips, turns, pairsOfTurns, shifts}
	cost := t.cost()
	if cost == 0 {
		return
	}
	hinges := t.hinges()
	for stage := 0; stage < len(moves) && cost > 0 && t.work < mostWork; {
		if next := t.improve(moves[stage](hinges), cost); next < cost-1e-9 {
			cost = next
			stage = 0
			continue
		}
		stage++
	}
}

// cost returns 0 for a drawing without tangles. Each crossing and each contact costs at least 10.
func (t *tangle) cost() (cost float64) {
	t.work += len(t.atoms) * len(t.atoms)
	for n, i := range t.atoms {
		p := t.place[i]
		for _, j := range t.atoms[:n] {
			offset := t.place[j] - p
			if math.Abs(real(offset)) > nearAtoms || math.Abs(imag(offset)) > nearAtoms || t.areJoined(i, j) {
				continue
			}
			cost += penalty(cmplx.Abs(offset), 0.55, nearAtoms)
		}
	}
	for n, k := range t.bonds {
		b := &t.sketch.bonds[k]
		begin := t.place[b.begin]
		end := t.place[b.end]
		for _, earlier := range t.bonds[:n] {
			o := &t.sketch.bonds[earlier]
			if b.begin == o.begin || b.begin == o.end || b.end == o.begin || b.end == o.end {
				continue
			}
			if segmentsCross(begin, end, t.place[o.begin], t.place[o.end]) {
				cost += 30
			}
		}
		room := complex(nearBond, nearBond)
		low := lower(begin, end) - room
		high := upper(begin, end) + room
		for _, i := range t.atoms {
			p := t.place[i]
			if i == b.begin || i == b.end || !meet(low, high, p, p) {
				continue
			}
			cost += penalty(distanceToSegment(p, begin, end), 0.25, nearBond)
		}
	}
	return cost
}

// penalty returns the cost of a distance: 0 from free on, and at least 10 below contact.
func penalty(distance, contact, free float64) float64 {
	switch {
	case distance < contact:
		return 11 - distance/contact
	case distance < free:
		return (free - distance) / free
	}
	return 0
}

func (t *tangle) areJoined(i, j int) bool {
	for _, l := range t.links[i] {
		if l.atom == j {
			return true
		}
	}
	return false
}

// A hinge is a bond outside of rings, or an atom of two ring systems, with the atoms on its smaller side.
type hinge struct {
	pivot int   // an atom on the larger side
	arms  []int // its neighbours that belong to the branch; the axis goes through their middle
	moved []int
	fixed bool // whether turning the branch about from could change the configuration of a double bond
	still bool // whether reflecting it does nothing or changes a configuration
}

// hinges returns the hinges of a part.
func (t *tangle) hinges() (hinges []hinge) {
	for _, k := range t.bonds {
		b := &t.sketch.bonds[k]
		if b.block != nil {
			continue
		}
		h := hinge{pivot: b.begin, arms: []int{b.end}}
		h.moved = t.reach(b.end, k)
		if 2*len(h.moved) > len(t.atoms) {
			h = hinge{pivot: b.end, arms: []int{b.begin}}
			h.moved = t.reach(b.begin, k)
		}
		h.still = len(h.moved) == 1 || b.config.known
		for _, l := range t.links[h.pivot] {
			h.fixed = h.fixed || t.sketch.bonds[l.bond].config.known
		}
		hinges = append(hinges, h)
	}
	for _, atom := range t.atoms {
		for _, b := range t.blocksOf[atom] {
			if len(t.blocksOf[atom]) > 1 {
				hinges = append(hinges, t.spiro(atom, b))
			}
		}
	}
	return hinges
}

// spiro returns the hinge at an atom of a ring system and another one.
func (t *tangle) spiro(atom int, b *block) hinge {
	h := hinge{pivot: atom}
	visited := map[int]bool{atom: true}
	for _, l := range t.links[atom] {
		if t.sketch.bonds[l.bond].block == b {
			h.arms = append(h.arms, l.atom)
			h.moved = append(h.moved, l.atom)
			visited[l.atom] = true
		}
	}
	for k := 0; k < len(h.moved); k++ {
		for _, l := range t.links[h.moved[k]] {
			if !visited[l.atom] {
				visited[l.atom] = true
				h.moved = append(h.moved, l.atom)
			}
		}
	}
	return h
}

// A move is some changes of branches, done together.
type move []change

// A change reflects a branch about its hinge, turns it about the atom that it hangs on, or moves it away from it.
type change struct {
	hinge   *hinge
	reflect bool
	turn    float64
	shift   float64
}

func flips(hinges []hinge) (moves []move) {
	for k := range hinges {
		if !hinges[k].still {
			moves = append(moves, move{{hinge: &hinges[k], reflect: true}})
		}
	}
	return moves
}

// pairsOfFlips returns all pairs of flips, and exchanges of two branches of an atom.
func pairsOfFlips(hinges []hinge) (moves []move) {
	single := flips(hinges)
	if len(single) <= 24 {
		for i, a := range single {
			for _, b := range single[:i] {
				moves = append(moves, move{b[0], a[0]})
			}
		}
	}
	return moves
}

// turns returns turns of branches by up to 60°, also with a flip.
func turns(hinges []hinge) (moves []move) {
	for k := range hinges {
		h := &hinges[k]
		if h.fixed {
			continue
		}
		for _, degrees := range []float64{15, -15, 30, -30, 45, -45, 60, -60} {
			turn := degrees * math.Pi / 180
			moves = append(moves, move{{hinge: h, turn: turn}})
			if !h.still {
				moves = append(moves, move{{hinge: h, turn: turn, reflect: true}})
			}
		}
	}
	return moves
}

// pairsOfTurns returns turns of two branches at once.
func pairsOfTurns(hinges []hinge) (moves []move) {
	if len(hinges) > 30 {
		return nil
	}
	for i := range hinges {
		for j := range hinges[:i] {
			if hinges[i].fixed || hinges[j].fixed {
				continue
			}
			for _, degrees := range []point{complex(30, 30), complex(30, -30), complex(-30, 30), complex(-30, -30)} {
				moves = append(moves, move{
					{hinge: &hinges[i], turn: real(degrees) * math.Pi / 180},
					{hinge: &hinges[j], turn: imag(degrees) * math.Pi / 180},
				})
			}
		}
	}
	return moves
}

// shifts returns longer bonds, also with turns.
func shifts(hinges []hinge) (moves []move) {
	for k := range hinges {
		h := &hinges[k]
		for _, shift := range []float64{0.4, 0.8, 1.4, 2.2} {
			moves = append(moves, move{{hinge: h, shift: shift}})
			if h.fixed {
				continue
			}
			for _, degrees := range []float64{-30, -15, 15, 30} {
				moves = append(moves, move{{hinge: h, shift: shift, turn: degrees * math.Pi / 180}})
			}
		}
	}
	return moves
}

// improve does the move that lowers the cost most, and returns the new cost. A turn and a shift must lower it
// by more than their own price.
func (t *tangle) improve(moves []move, cost float64) float64 {
	best := -1
	least := cost
	bestTotal := cost
	saved := make([]point, len(t.place))
	copy(saved, t.place)
	for k, m := range moves {
		if t.work > mostWork {
			break
		}
		t.do(m)
		after := t.cost()
		total := after
		for _, c := range m {
			total += 0.3*math.Abs(c.turn) + math.Abs(c.shift)
		}
		if total < bestTotal-1e-6 {
			bestTotal = total
			least = after
			best = k
		}
		t.undo(m, saved)
	}
	if best >= 0 {
		t.do(moves[best])
	}
	return least
}

func (t *tangle) do(m move) {
	for _, c := range m {
		pivot := t.place[c.hinge.pivot]
		arms := t.middle(c.hinge.arms)
		axis := arms - pivot
		shift := axis * complex(c.shift/cmplx.Abs(axis), 0)
		turn := heading(c.turn)
		for _, i := range c.hinge.moved {
			p := t.place[i]
			if c.reflect {
				p = reflected(p, pivot, arms)
			}
			t.place[i] = pivot + (p-pivot+shift)*turn
		}
	}
}

func (t *tangle) middle(atoms []int) point {
	points := make([]point, len(atoms))
	for k, i := range atoms {
		points[k] = t.place[i]
	}
	return mean(points)
}

func (t *tangle) undo(m move, saved []point) {
	for _, c := range m {
		for _, i := range c.hinge.moved {
			t.place[i] = saved[i]
		}
	}
}
