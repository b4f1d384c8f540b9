package depict

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"
)

// assemble places each part of the molecule by itself, beginning with its largest ring system or an end of its
// longest chain. It returns the atoms of each part.
func (s *sketch) assemble() (parts [][]int) {
	visited := make([]bool, len(s.links))
	for i := range s.links {
		if visited[i] {
			continue
		}
		part := s.reach(i, -1)
		for _, atom := range part {
			visited[atom] = true
		}
		parts = append(parts, part)
		var root *block
		for _, atom := range part {
			for _, b := range s.blocksOf[atom] {
				if root == nil || len(b.atoms) > len(root.atoms) {
					root = b
				}
			}
		}
		g := grower{sketch: s}
		if root != nil {
			g.put(root, root.atoms[0], 0, 1)
		} else {
			start := s.farthest(s.farthest(i))
			s.placed[start] = true
			g.queue = append(g.queue, step{start, -1})
		}
		g.grow()
	}
	return parts
}

// reach returns the atoms that can be reached from one without a bond, -1 for none.
func (s *sketch) reach(start, without int) []int {
	visited := map[int]bool{start: true}
	queue := []int{start}
	for k := 0; k < len(queue); k++ {
		for _, l := range s.links[queue[k]] {
			if l.bond != without && !visited[l.atom] {
				visited[l.atom] = true
				queue = append(queue, l.atom)
			}
		}
	}
	return queue
}

// farthest returns the atom with the longest way from another one.
func (s *sketch) farthest(start int) int {
	order := s.reach(start, -1)
	return order[len(order)-1]
}

// depth returns the number of bonds on the longest way from an atom that does not begin with a bond.
func (s *sketch) depth(atom, without int) (depth int) {
	visited := map[int]bool{atom: true}
	layer := []int{atom}
	for len(layer) > 0 {
		var next []int
		for _, i := range layer {
			for _, l := range s.links[i] {
				if l.bond != without && !visited[l.atom] {
					visited[l.atom] = true
					next = append(next, l.atom)
				}
			}
		}
		layer = next
		depth++
	}
	return depth
}

// A grower places atoms around those that are placed.
type grower struct {
	*sketch
	queue []step
}

// A step is an atom whose neighbours are to be placed, and the atom that it was placed from, or -1.
type step struct {
	atom   int
	parent int
}

// put places a ring system with an atom at its place. It turns the system by an angle, and with side -1
// reflects it first.
func (g *grower) put(b *block, atom int, turn, side float64) {
	origin := b.place[atom]
	shift := g.place[atom]
	set := func(i int) {
		offset := b.place[i] - origin
		offset = complex(real(offset), side*imag(offset))
		g.place[i] = shift + offset*heading(turn)
		g.placed[i] = true
	}
	for _, i := range b.atoms {
		set(i)
		if i != atom {
			g.queue = append(g.queue, step{i, -1})
		}
	}
	if !slices.ContainsFunc(g.queue, func(x step) bool { return x.atom == atom }) {
		g.queue = append(g.queue, step{atom, -1})
	}
	for _, x := range b.pendants {
		if !g.placed[x.atom] {
			set(x.atom)
			g.queue = append(g.queue, x)
		}
	}
}

func (g *grower) grow() {
	for len(g.queue) > 0 {
		next := g.queue[0]
		g.queue = g.queue[1:]
		g.surround(next.atom, next.parent)
	}
}

// surround places the neighbours and ring systems of an atom.
func (g *grower) surround(atom, parent int) {
	var fresh []int // atoms that are placed here
	before := slices.Clone(g.placed)
	for _, b := range g.blocksOf[atom] {
		if !g.isPut(b) {
			g.putBeside(b, atom)
		}
	}
	var branches []link
	for _, l := range g.links[atom] {
		if !g.placed[l.atom] {
			branches = append(branches, l)
		}
	}
	slices.SortStableFunc(branches, func(a, b link) int {
		return cmp.Compare(g.depth(b.atom, b.bond), g.depth(a.atom, a.bond))
	})
	directions := g.directions(atom, parent, branches)
	for k, l := range branches {
		g.place[l.atom] = g.place[atom] + heading(directions[k])
		g.placed[l.atom] = true
		g.queue = append(g.queue, step{l.atom, atom})
	}
	for i, placed := range g.placed {
		if placed && !before[i] {
			fresh = append(fresh, i)
		}
	}
	g.obey(atom, parent, fresh)
}

// obey reflects what is new around an atom if the double bond that leads to it asks for that.
func (g *grower) obey(atom, parent int, fresh []int) {
	if parent < 0 {
		return
	}
	for _, l := range g.links[atom] {
		b := &g.bonds[l.bond]
		if l.atom != parent || !b.config.known || !g.placed[b.config.first] || !g.placed[b.config.second] {
			continue
		}
		if !g.hasConfig(b, func(i int) point { return g.place[i] }) {
			for _, i := range fresh {
				g.place[i] = reflected(g.place[i], g.place[parent], g.place[atom])
			}
		}
	}
}

// isPut reports whether a ring system is placed.
func (g *grower) isPut(b *block) bool {
	count := 0
	for _, i := range b.atoms {
		if g.placed[i] {
			count++
		}
	}
	return count > 1
}

// occupied returns the directions of the bonds of an atom to placed atoms.
func (g *grower) occupied(atom int) (directions []float64) {
	for _, l := range g.links[atom] {
		if g.placed[l.atom] {
			directions = append(directions, g.angle(atom, l.atom))
		}
	}
	return directions
}

// putBeside places a ring system at an atom, away from the atom's other bonds.
func (g *grower) putBeside(b *block, atom int) {
	var inner []float64 // of the ring system, as it is drawn
	for _, l := range g.links[atom] {
		if g.bonds[l.bond].block == b {
			inner = append(inner, cmplx.Phase(b.place[l.atom]-b.place[atom]))
		}
	}
	start, width := widestGap(inner)
	free := g.occupied(atom)
	switch len(free) {
	case 0:
		g.put(b, atom, 0, 1)
	case 1: // the bond becomes the first of those in the gap
		slots := float64(len(g.links[atom]) - len(inner) + 1)
		g.put(b, atom, free[0]-start-width/slots, 1)
	default:
		gap, room := widestGap(free)
		g.put(b, atom, gap+room/2-start-width/2-math.Pi, 1)
	}
}

// directions returns the directions of new bonds of an atom.
func (g *grower) directions(atom, parent int, branches []link) []float64 {
	count := len(branches)
	taken := g.occupied(atom)
	switch {
	case count == 0:
		return nil
	case len(taken) == 0:
		if count == 1 {
			return []float64{math.Pi / 6}
		}
		return spread(0, 2*math.Pi, count-1, 0)
	case len(taken) > 1:
		return g.intoGap(atom, taken, count)
	}
	ahead := taken[0] + math.Pi
	if g.isLinear(atom) {
		return []float64{ahead}
	}
	const sixth = math.Pi / 3
	side := g.side(atom, parent, ahead)
	leaves := 0
	for _, l := range branches {
		if len(g.links[l.atom]) == 1 {
			leaves++
		}
	}
	switch {
	case count <= 2:
		return []float64{ahead + side*sixth, ahead - side*sixth}[:count]
	case count == 3 && leaves == 2 && parent >= 0 && len(g.links[parent]) > 1:
		return []float64{ahead + side*sixth, ahead - side*sixth/3, ahead - side*sixth*5/3}
	case count == 3:
		return []float64{ahead, ahead + math.Pi/2, ahead - math.Pi/2}
	}
	return spread(taken[0], 2*math.Pi, count, 1)
}

// spread returns directions that divide an angle; first is the index of the first one.
func spread(start, width float64, count, first int) []float64 {
	directions := make([]float64, 0, count+1)
	for k := first; k <= count; k++ {
		directions = append(directions, start+width*float64(k)/float64(count+1))
	}
	return directions
}

// intoGap returns directions within the widest gap between bonds, outside of small rings if there is such a gap.
func (g *grower) intoGap(atom int, taken []float64, count int) []float64 {
	slices.Sort(taken)
	best := -1.0
	var start, width float64
	for k, a := range taken {
		gap := positive(taken[(k+1)%len(taken)] - a)
		if gap == 0 {
			continue
		}
		score := gap - g.ringPrice(atom, g.place[atom]+heading(a+gap/2)*0.3)
		if best == -1.0 || score > best+1e-6 {
			best = score
			start = a
			width = gap
		}
	}
	return spread(start, width, count, 1)
}

// ringPrice returns what it costs a bond to lead into a ring of an atom, where a point is. It is 0 outside of rings.
// A large ring that turns inwards at the atom has more room inside.
func (g *grower) ringPrice(atom int, p point) (price float64) {
	for _, b := range g.blocksOf[atom] {
		for _, ring := range b.rings {
			if !slices.Contains(ring, atom) {
				continue
			}
			corners := make([]point, len(ring))
			for k, i := range ring {
				corners[k] = g.place[i]
			}
			if !isInside(p, corners) {
				continue
			}
			if len(ring) < 8 {
				return 10
			}
			price = 1
		}
	}
	return price
}

// side returns 1 if a chain turns to the left at an atom, and -1 if to the right: it goes on in zigzag or, next
// to a ring, where there is more room.
func (g *grower) side(atom, parent int, ahead float64) float64 {
	if parent >= 0 && len(g.blocksOf[parent]) == 0 {
		axis := g.place[atom] - g.place[parent]
		for _, l := range g.links[parent] {
			if l.atom == atom || !g.placed[l.atom] || len(g.links[l.atom]) == 1 && len(g.links[parent]) > 2 {
				continue
			}
			if before := cross(axis, g.place[l.atom]-g.place[parent]); math.Abs(before) > 0.1 {
				return -math.Copysign(1, before)
			}
		}
	}
	leftCrowd := g.crowd(g.place[atom]+heading(ahead+math.Pi/3), atom)
	rightCrowd := g.crowd(g.place[atom]+heading(ahead-math.Pi/3), atom)
	if rightCrowd < leftCrowd-1e-6 {
		return -1
	}
	return 1
}

// crowd returns how crowded a place is by placed atoms, other than one.
func (g *grower) crowd(p point, except int) (sum float64) {
	for i, placed := range g.placed {
		if placed && i != except {
			distance := cmplx.Abs(g.place[i] - p)
			sum += 1 / max(distance*distance*distance, 0.01)
		}
	}
	return sum
}
