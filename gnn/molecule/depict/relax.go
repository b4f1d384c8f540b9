package depict

import (
	"math"
	"math/cmplx"
	"slices"
)

// A piece is a ring system that is being placed. Its atoms are numbered from 0. Behind those of the block
// are pendants: neighbours of atoms that have rings on all sides.
type piece struct {
	*sketch
	block    *block
	atoms    []int // of the sketch
	index    map[int]int
	pairs    [][2]int // bonds
	rings    [][]int
	faces    [][]int // the rings that the drawing shows
	place    []point
	ringSize int // atoms that are not pendants
	targets  [][]target
}

// A target is a distance to another atom.
type target struct {
	atom     int
	distance float64
	weight   float64
}

func (s *sketch) newPiece(b *block) *piece {
	p := &piece{
		sketch:   s,
		block:    b,
		atoms:    slices.Clone(b.atoms),
		index:    map[int]int{},
		place:    make([]point, len(b.atoms)),
		ringSize: len(b.atoms),
	}
	for i, atom := range b.atoms {
		p.index[atom] = i
	}
	for _, k := range b.bonds {
		p.pairs = append(p.pairs, [2]int{p.index[s.bonds[k].begin], p.index[s.bonds[k].end]})
	}
	for _, ring := range b.rings {
		local := make([]int, len(ring))
		for k, atom := range ring {
			local[k] = p.index[atom]
		}
		p.rings = append(p.rings, local)
	}
	return p
}

// addPendants adds the neighbours of atoms that have faces on all sides, at a distance.
func (p *piece) addPendants(distance float64) {
	sides := make([]int, p.ringSize)
	for _, face := range p.faces {
		for _, i := range face {
			sides[i]++
		}
	}
	for i := range p.ringSize {
		var around []float64
		var outer []int
		for _, l := range p.links[p.atoms[i]] {
			if p.bonds[l.bond].block == p.block {
				around = append(around, cmplx.Phase(p.place[p.index[l.atom]]-p.place[i]))
			} else {
				outer = append(outer, l.atom)
			}
		}
		if sides[i] < len(around) {
			continue
		}
		for _, atom := range outer {
			start, width := widestGap(around)
			direction := start + width/2
			around = append(around, direction)
			step := heading(direction) * complex(distance, 0)
			p.addPendant(i, atom, step)
			if branch := p.branch(p.atoms[i], atom); len(branch) <= largestPendant {
				for _, l := range branch[1:] {
					p.addPendant(p.index[l.parent], l.atom, step)
				}
			}
		}
	}
}

// largestPendant is the number of atoms of a branch that is placed with the ring that it is inside of.
const largestPendant = 5

// addPendant adds an atom next to atom i of the piece.
func (p *piece) addPendant(i, atom int, step point) {
	p.index[atom] = len(p.atoms)
	p.pairs = append(p.pairs, [2]int{i, len(p.atoms)})
	p.atoms = append(p.atoms, atom)
	p.place = append(p.place, p.place[i]+step)
}

// branch returns what hangs on an atom at one of its bonds, from the inside to the outside.
func (s *sketch) branch(parent, first int) []step {
	branch := []step{{first, parent}}
	for k := 0; k < len(branch); k++ {
		for _, l := range s.links[branch[k].atom] {
			if l.atom != branch[k].parent && len(branch) < len(s.links) {
				branch = append(branch, step{l.atom, branch[k].atom})
			}
		}
	}
	return branch
}

// widestGap returns the widest angle between neighbouring directions, and the direction where it starts.
func widestGap(directions []float64) (start, width float64) {
	width = -1
	for _, a := range directions {
		gap := 2 * math.Pi
		for _, b := range directions {
			if turn := positive(b - a); turn > 1e-6 {
				gap = min(gap, turn)
			}
		}
		if gap > width+1e-6 {
			start = a
			width = gap
		}
	}
	return start, width
}

// findTargets sets the distances that make bonds of one length and faces regular.
func (p *piece) findTargets() {
	p.targets = make([][]target, len(p.atoms))
	for _, pair := range p.pairs {
		p.aim(pair[0], pair[1], 1, 3)
	}
	for _, face := range p.faces {
		if p.isFolded(face) {
			p.aimFolded(face)
			continue
		}
		n := len(face)
		for k, i := range face {
			for step := 2; step <= n/2; step++ {
				if 2*step == n && k >= n/2 {
					continue
				}
				distance := chord(n, step)
				p.aim(i, face[(k+step)%n], distance, 1/(distance*distance))
			}
		}
	}
}

// aimFolded sets the distances of angles of 120°, and those across trans double bonds.
func (p *piece) aimFolded(face []int) {
	n := len(face)
	constraints := p.turns(face)
	for k, i := range face {
		p.aim(i, face[(k+2)%n], math.Sqrt(3), 1.0/3)
		if constraints[(k+1)%n] == mustDiffer {
			p.aim(i, face[(k+3)%n], math.Sqrt(7), 1)
		}
	}
}

func (p *piece) aim(i, j int, distance, weight float64) {
	p.targets[i] = append(p.targets[i], target{j, distance, weight})
	p.targets[j] = append(p.targets[j], target{i, distance, weight})
}

// Distances that atoms keep in a ring system.
const (
	roomOfAtoms = 0.85
	roomOfBonds = 0.55
)

// relax moves one atom after another to the mean of the places that its targets ask for (stress majorization,
// Gansner, Koren and North 2004). If the drawing is plane, it stays so.
func (p *piece) relax(plane bool) {
	for range 200 {
		farthest := 0.0
		for i := range p.place {
			step := p.wanted(i) - p.place[i]
			if plane {
				for range 3 {
					if !p.wouldCross(i, p.place[i]+step) {
						break
					}
					step /= 3
				}
				if p.wouldCross(i, p.place[i]+step) {
					continue
				}
			}
			p.place[i] += step
			farthest = max(farthest, cmplx.Abs(step))
		}
		if farthest < 1e-3 {
			break
		}
	}
}

// wanted returns the place that the targets of an atom and its neighbourhood ask for.
func (p *piece) wanted(i int) point {
	var sum point
	total := 0.0
	place := p.place[i]
	pull := func(anchor point, distance, weight float64) {
		offset := place - anchor
		length := cmplx.Abs(offset)
		if length < 1e-9 {
			return
		}
		sum += complex(weight, 0) * (anchor + offset*complex(distance/length, 0))
		total += weight
	}
	for _, t := range p.targets[i] {
		weight := t.weight
		if cmplx.Abs(place-p.place[t.atom]) > t.distance {
			weight /= 10 // in a cage, some bonds must be long
		}
		pull(p.place[t.atom], t.distance, weight)
	}
	for j, anchor := range p.place {
		if j != i && isNear(place, anchor, roomOfAtoms) {
			pull(anchor, roomOfAtoms, 2)
		}
	}
	for _, pair := range p.pairs {
		if pair[0] == i || pair[1] == i {
			continue
		}
		anchor := nearest(place, p.place[pair[0]], p.place[pair[1]])
		if isNear(place, anchor, roomOfBonds) {
			pull(anchor, roomOfBonds, 2)
		}
	}
	if total == 0 {
		return place
	}
	return sum / complex(total, 0)
}

// enlarge makes a drawing larger whose atoms are too close to one another or to bonds.
func (p *piece) enlarge() {
	const largest = 2
	factor := 1.0
	for i := range p.place {
		for j := range i {
			factor = max(factor, 0.6/cmplx.Abs(p.place[i]-p.place[j]))
		}
		for _, pair := range p.pairs {
			if pair[0] != i && pair[1] != i {
				factor = max(factor, 0.35/distanceToSegment(p.place[i], p.place[pair[0]], p.place[pair[1]]))
			}
		}
	}
	for i := range p.place {
		p.place[i] *= complex(min(factor, largest), 0)
	}
}

// wouldCross reports whether a bond of an atom would cross another bond, if the atom were there.
func (p *piece) wouldCross(i int, anchor point) bool {
	for _, bond := range p.pairs {
		if bond[0] != i && bond[1] != i {
			continue
		}
		j := bond[0] + bond[1] - i
		for _, pair := range p.pairs {
			if pair[0] == i || pair[1] == i || pair[0] == j || pair[1] == j {
				continue
			}
			if segmentsCross(anchor, p.place[j], p.place[pair[0]], p.place[pair[1]]) {
				return true
			}
		}
	}
	return false
}

// crossings counts the pairs of bonds that cross.
func (p *piece) crossings() (count int) {
	for k, a := range p.pairs {
		for _, b := range p.pairs[:k] {
			if a[0] == b[0] || a[0] == b[1] || a[1] == b[0] || a[1] == b[1] {
				continue
			}
			if segmentsCross(p.place[a[0]], p.place[a[1]], p.place[b[0]], p.place[b[1]]) {
				count++
			}
		}
	}
	return count
}

// strain returns how far a placed ring system is from what a reader expects; 0 for regular polygons.
func (p *piece) strain() float64 {
	sum := 100 * float64(p.crossings())
	for i, targets := range p.targets {
		for _, t := range targets {
			miss := cmplx.Abs(p.place[i]-p.place[t.atom]) - t.distance
			if miss > 0 {
				miss /= 2 // a long bond is better than a short one
			}
			sum += t.weight * miss * miss / 2
		}
		for j := range i {
			if gap := roomOfAtoms - cmplx.Abs(p.place[i]-p.place[j]); gap > 0 {
				sum += 20 * gap
			}
		}
		for _, pair := range p.pairs {
			if pair[0] == i || pair[1] == i {
				continue
			}
			gap := roomOfBonds - distanceToSegment(p.place[i], p.place[pair[0]], p.place[pair[1]])
			if gap > 0 {
				sum += 20 * gap
			}
		}
	}
	sum += 5 * float64(len(p.atoms)-p.ringSize)
	for _, atom := range p.atoms[p.ringSize:] {
		for _, l := range p.links[atom] {
			if _, inside := p.index[l.atom]; !inside {
				sum += 100 // a long branch has no room in a ring
			}
		}
	}
	for _, k := range p.block.bonds {
		b := &p.bonds[k]
		if _, ok := p.index[b.config.first]; !ok {
			continue
		}
		if _, ok := p.index[b.config.second]; !ok {
			continue
		}
		if !p.hasConfig(b, func(atom int) point { return p.place[p.index[atom]] }) {
			sum += 200
		}
	}
	return sum
}
