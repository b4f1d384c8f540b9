package depict

import (
	"math"
	"math/cmplx"
	"slices"
)

// Rings of this size and more are folded; smaller ones are regular polygons.
const macrocycle = 12

// layBlock places the atoms of a ring system: by polygons that share bonds if these fit, and else in the way
// that strains it least.
func (s *sketch) layBlock(b *block) {
	best := s.fuse(b)
	least := best.strain()
	for ring := range b.rings {
		if least < 0.5 || ring > 0 && least < 40 {
			break
		}
		for _, p := range s.embed(b, ring) {
			if strain := p.strain(); strain < least-1e-6 {
				best = p
				least = strain
			}
		}
	}
	b.place = map[int]point{}
	for i, atom := range best.atoms {
		b.place[atom] = best.place[i]
	}
	for _, pair := range best.pairs[len(b.bonds):] {
		b.pendants = append(b.pendants, step{best.atoms[pair[1]], best.atoms[pair[0]]})
	}
}

// fuse places one ring after another as a polygon on a bond of those before. If the polygons do not fit, it
// relaxes them.
func (s *sketch) fuse(b *block) *piece {
	p := s.newPiece(b)
	p.faces = p.rings
	set := make([]bool, len(p.atoms))
	remaining := slices.Clone(p.rings)
	var done [][]int
	for len(remaining) > 0 {
		k := p.nextRing(remaining, set, len(done) == 0)
		ring := remaining[k]
		remaining = slices.Delete(remaining, k, k+1)
		if len(done) == 0 {
			for i, corner := range p.shape(ring) {
				p.place[ring[i]] = corner
			}
		} else {
			p.attach(ring, set, done)
		}
		for _, i := range ring {
			set[i] = true
		}
		done = append(done, ring)
	}
	p.addPendants(1)
	p.findTargets()
	if slices.Contains(set, false) || p.strain() < 0.5 {
		return p
	}
	p.relax(p.crossings() == 0)
	return p
}

// nextRing returns the ring that is placed next: a folded one or the one with the most common bonds first, then
// the one with the most bonds whose atoms are set.
func (p *piece) nextRing(remaining [][]int, set []bool, first bool) (best int) {
	highest := -1
	for k, ring := range remaining {
		score := 0
		for i, atom := range ring {
			following := ring[(i+1)%len(ring)]
			switch {
			case first && p.facesOf(atom, following) > 1:
				score++
			case !first && set[atom] && set[following]:
				score++
			}
		}
		if first && p.isFolded(ring) {
			score += 1000 * len(ring)
		}
		if score > highest {
			highest = score
			best = k
		}
	}
	return best
}

// facesOf counts the rings with a bond.
func (p *piece) facesOf(i, j int) (count int) {
	for _, ring := range p.rings {
		k := slices.Index(ring, i)
		if k < 0 {
			continue
		}
		n := len(ring)
		if ring[(k+1)%n] == j || ring[(k+n-1)%n] == j {
			count++
		}
	}
	return count
}

// attach places the atoms of a ring that are not set, in runs between two that are.
func (p *piece) attach(ring []int, set []bool, done [][]int) {
	n := len(ring)
	start := -1
	for k, i := range ring {
		if !set[i] && set[ring[(k+n-1)%n]] {
			start = k
		}
	}
	if start < 0 {
		return
	}
	turned := append(slices.Clone(ring[start:]), ring[:start]...) // begins with a run
	for k := 0; k < n; k++ {
		if set[turned[k]] {
			continue
		}
		end := k
		for end < n && !set[turned[end]] {
			end++
		}
		p.attachRun(turned, k, end, set, done)
		k = end
	}
}

// attachRun places the atoms of a ring from one index to another. The atoms before and behind them are set.
func (p *piece) attachRun(ring []int, begin, end int, set []bool, done [][]int) {
	n := len(ring)
	start := p.place[ring[(begin+n-1)%n]]
	goal := p.place[ring[end%n]]
	side := 1.0 // of the ring's inside, as seen along it
	before := ring[(begin+2*n-2)%n]
	if set[before] {
		if p.isLeftInside(before, ring[(begin+n-1)%n], done) {
			side = -1
		}
		step := (start - p.place[before]) / complex(cmplx.Abs(start-p.place[before]), 0)
		turn := heading(side * 2 * math.Pi / float64(n))
		corner := start
		for k := begin; k < end; k++ {
			step *= turn
			corner += step
			p.place[ring[k]] = corner
		}
		if cmplx.Abs(corner+step*turn-goal) < 0.1 {
			return
		}
	}
	for k, corner := range arc(start, goal, end-begin, side) {
		p.place[ring[begin+k]] = corner
	}
}

// isLeftInside reports whether the left side of a bond is inside of a ring that has it.
func (p *piece) isLeftInside(i, j int, rings [][]int) bool {
	axis := p.place[j] - p.place[i]
	left := p.place[i] + axis/2 + axis*0.1i
	for _, ring := range rings {
		if slices.Contains(ring, i) && slices.Contains(ring, j) {
			return isInside(left, p.corners(ring))
		}
	}
	return false
}

// arc returns count points between two, on an arc with sides of length 1 if it is long enough. With side 1, it
// turns to the left.
func arc(start, goal point, count int, side float64) []point {
	sides := float64(count + 1)
	length := cmplx.Abs(goal - start)
	low := 0.0
	high := 2 * math.Pi / sides
	for range 40 {
		middle := (low + high) / 2
		if math.Sin(sides*middle/2)/math.Sin(middle/2) > length {
			low = middle
		} else {
			high = middle
		}
	}
	size := 1.0
	if length > sides {
		low = 0
		size = length / sides
	}
	if length == 0 {
		length = 1
	}
	step := (goal - start) / complex(length, 0) * complex(size, 0) * heading(-side*low*float64(count)/2)
	points := make([]point, count)
	corner := start
	for k := range points {
		corner += step
		points[k] = corner
		step *= heading(side * low)
	}
	return points
}

func (p *piece) corners(ring []int) []point {
	corners := make([]point, len(ring))
	for k, i := range ring {
		corners[k] = p.place[i]
	}
	return corners
}

// isFolded reports whether a ring is no regular polygon: a macrocycle, or one with a trans double bond.
func (p *piece) isFolded(ring []int) bool {
	if len(ring) >= macrocycle {
		return true
	}
	return slices.Contains(p.turns(ring), mustDiffer)
}

// Constraints on the turns of a folded ring at an atom or at a bond.
const (
	free       = iota
	mustDiffer // of the two atoms of a trans double bond
	mustEqual  // … of a cis double bond
)

// turns returns the constraint on each bond of a ring.
func (p *piece) turns(ring []int) []int {
	constraints := make([]int, len(ring))
	for k := range ring {
		b := p.bondBetween(ring[k], ring[(k+1)%len(ring)])
		if b == nil || !b.config.known {
			continue
		}
		c := b.config
		inRing := func(atom int) bool {
			i, ok := p.index[atom]
			return ok && slices.Contains(ring, i)
		}
		cis := c.cis
		if !inRing(c.first) {
			cis = !cis
		}
		if !inRing(c.second) {
			cis = !cis
		}
		constraints[k] = mustDiffer
		if cis {
			constraints[k] = mustEqual
		}
	}
	return constraints
}

// bondBetween returns the bond of two atoms of the piece.
func (p *piece) bondBetween(i, j int) *bond {
	for _, l := range p.links[p.atoms[i]] {
		if l.atom == p.atoms[j] {
			return &p.bonds[l.bond]
		}
	}
	return nil
}

// shape returns the corners of a ring that is placed first.
func (p *piece) shape(ring []int) []point {
	if !p.isFolded(ring) {
		return polygon(len(ring))
	}
	return folded(p.fold(ring))
}

// folded returns the corners of a ring that turns inwards where the list says so.
func folded(inward []bool) []point {
	n := len(inward)
	sum := 0.0
	angles := make([]float64, n)
	for k, isInward := range inward {
		angles[k] = math.Pi / 3
		if isInward {
			angles[k] = -math.Pi / 3
		}
		sum += angles[k]
	}
	corners := make([]point, n)
	direction := 0.0
	var corner point
	for k := range corners {
		corners[k] = corner
		direction += angles[k] + (2*math.Pi-sum)/float64(n)
		corner += heading(direction)
	}
	for k := range corners { // distribute the gap
		corners[k] -= corner * complex(float64(k)/float64(n), 0)
	}
	return corners
}

// fold chooses where a ring turns inwards: at atoms without other neighbours, evenly, as fused hexagons would.
// Double bonds and other rings fix some turns.
func (p *piece) fold(ring []int) []bool {
	f := folding{
		bonds: p.turns(ring),
		price: make([]float64, len(ring)),
	}
	for k, i := range ring {
		for _, l := range p.links[p.atoms[i]] {
			switch {
			case len(p.links[l.atom]) == 1:
				f.price[k] += 0.4
			case p.bonds[l.bond].block == nil:
				f.price[k] += 1.2
			}
		}
	}
	for _, neighbour := range p.rings {
		if len(neighbour) < macrocycle && !slices.Equal(neighbour, ring) {
			f.yieldTo(ring, neighbour)
		}
	}
	return f.choose()
}

// A folding is the choice of the inward turns of a ring.
type folding struct {
	bonds []int     // constraints between an atom and the next
	price []float64 // of turning inwards at an atom; negative for a gain
}

// yieldTo makes the ring turn around another one that shares bonds with it.
func (f *folding) yieldTo(ring, neighbour []int) {
	n := len(ring)
	shared := func(k int) bool {
		i := slices.Index(neighbour, ring[k%n])
		j := slices.Index(neighbour, ring[(k+1)%n])
		return i >= 0 && j >= 0 && ((i+1)%len(neighbour) == j || (j+1)%len(neighbour) == i)
	}
	for k := range ring {
		before := shared(k + n - 1)
		after := shared(k)
		switch {
		case before && after:
			f.price[k] -= 20
		case before || after:
			f.price[k] += 10
		}
	}
}

// choose returns the best list of inward turns that it finds by exchanging turns.
func (f *folding) choose() []bool {
	n := len(f.price)
	inward := make([]bool, n)
	best := f.cost(inward)
	for improved := true; improved; {
		improved = false
		var change [2]int
		for i := range n {
			for j := i; j < n; j++ {
				if i != j && inward[i] == inward[j] && f.bonds[i] == free && j != i+1 {
					continue
				}
				f.swap(inward, i, j)
				if cost := f.cost(inward); cost < best-1e-9 {
					best = cost
					change = [2]int{i, j}
					improved = true
				}
				f.swap(inward, i, j)
			}
		}
		if improved {
			f.swap(inward, change[0], change[1])
		}
	}
	return inward
}

func (f *folding) swap(inward []bool, i, j int) {
	inward[i] = !inward[i]
	if i != j {
		inward[j] = !inward[j]
	}
}

// cost returns how bad a list of inward turns is.
func (f *folding) cost(inward []bool) (cost float64) {
	n := len(inward)
	count := 0
	var corner point
	direction := 0.0
	for k, isInward := range inward {
		turn := math.Pi / 3
		if isInward {
			turn = -turn
			count++
			cost += f.price[k]
		}
		following := inward[(k+1)%n]
		if isInward && following {
			cost += 3
		}
		if isInward && inward[(k+2)%n] {
			cost += 0.3
		}
		if f.bonds[k] == mustDiffer && isInward == following || f.bonds[k] == mustEqual && isInward != following {
			cost += 100
		}
		direction += turn
		corner += heading(direction)
	}
	// Hexagons close with six more outward turns.
	cost += 2 * math.Abs(float64(n-2*count-6))
	return cost + 0.8*cmplx.Abs(corner) + 2*unevenness(folded(inward))
}

// unevenness returns the variance of the distances from the centre.
func unevenness(corners []point) float64 {
	centre := mean(corners)
	var sum, squares float64
	for _, corner := range corners {
		distance := cmplx.Abs(corner - centre)
		sum += distance
		squares += distance * distance
	}
	n := float64(len(corners))
	return squares/n - (sum/n)*(sum/n)
}
