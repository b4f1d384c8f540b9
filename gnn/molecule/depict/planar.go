package depict

import (
	"math"
	"slices"
)

// A plane is an embedding in the making: the faces, each in the same sense of rotation, and the atoms and bonds
// that they have.
type plane struct {
	*piece
	near   [][]int
	faces  [][]int
	atoms  []bool
	joined map[[2]int]bool
}

// embed returns a drawing without crossings for each face that may be the outside; none if the ring system is
// not planar. The search for faces begins with a ring.
func (s *sketch) embed(b *block, ring int) (drawings []*piece) {
	p := s.newPiece(b)
	faces := p.findFaces(p.rings[ring])
	const outsides = 5
	order := make([]int, len(faces))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(i, j int) int { return len(faces[j]) - len(faces[i]) })
	for _, outer := range order[:min(outsides, len(order))] {
		drawing := s.newPiece(b)
		for k, face := range faces {
			if k != outer {
				drawing.faces = append(drawing.faces, face)
			}
		}
		drawing.barycentres(faces[outer])
		drawing.addPendants(0.2)
		drawing.findTargets()
		drawing.relax(true)
		drawing.enlarge()
		drawings = append(drawings, drawing)
	}
	return drawings
}

// findFaces returns the faces of an embedding in the plane; nil if there is none. It adds paths within faces
// (Demoucron, Malgrange and Pertuiset), so that as many faces as possible are rings of the molecule.
func (p *piece) findFaces(first []int) [][]int {
	e := &plane{
		piece:  p,
		near:   make([][]int, p.ringSize),
		atoms:  make([]bool, p.ringSize),
		joined: map[[2]int]bool{},
	}
	for _, pair := range p.pairs {
		e.near[pair[0]] = append(e.near[pair[0]], pair[1])
		e.near[pair[1]] = append(e.near[pair[1]], pair[0])
	}
	reversed := slices.Clone(first)
	slices.Reverse(reversed)
	e.faces = [][]int{slices.Clone(first), reversed}
	e.note(append(slices.Clone(first), first[0]))
	for len(e.joined) < len(p.pairs) {
		path, face := e.choose()
		if path == nil {
			return nil
		}
		e.split(face, path)
		e.note(path)
	}
	return e.faces
}

// note marks the atoms and bonds of a path.
func (e *plane) note(path []int) {
	for k, i := range path {
		e.atoms[i] = true
		if k > 0 {
			e.joined[ordered(i, path[k-1])] = true
		}
	}
}

func ordered(i, j int) [2]int { return [2]int{min(i, j), max(i, j)} }

// choose returns the next path and its face; nil if one fits into no face. A part that fits into one face only
// comes first.
func (e *plane) choose() (path []int, face int) {
	bestScore := math.MinInt
	for _, part := range e.parts() {
		var fitting []int
		for k, f := range e.faces {
			if !slices.ContainsFunc(part.ends, func(i int) bool { return !slices.Contains(f, i) }) {
				fitting = append(fitting, k)
			}
		}
		if len(fitting) == 0 {
			return nil, 0
		}
		for _, candidate := range part.paths {
			for _, k := range fitting {
				score := 100*e.ringsBy(k, candidate) - len(candidate)
				if len(fitting) == 1 {
					score += 10_000
				}
				if score > bestScore {
					bestScore = score
					path = candidate
					face = k
				}
			}
		}
	}
	return path, face
}

// A part is a piece of the graph that is not embedded yet.
type part struct {
	ends  []int   // its embedded atoms
	paths [][]int // the shortest paths between these
}

// parts returns the parts that are not embedded: bonds between embedded atoms, and what hangs together.
func (e *plane) parts() (parts []part) {
	for _, pair := range e.pairs {
		if e.atoms[pair[0]] && e.atoms[pair[1]] && !e.joined[ordered(pair[0], pair[1])] {
			parts = append(parts, part{
				ends:  pair[:],
				paths: [][]int{pair[:]},
			})
		}
	}
	visited := make([]bool, len(e.near))
	for i := range e.near {
		if e.atoms[i] || visited[i] {
			continue
		}
		inner := []int{i}
		visited[i] = true
		var x part
		for k := 0; k < len(inner); k++ {
			for _, j := range e.near[inner[k]] {
				switch {
				case e.atoms[j] && !slices.Contains(x.ends, j):
					x.ends = append(x.ends, j)
				case !e.atoms[j] && !visited[j]:
					visited[j] = true
					inner = append(inner, j)
				}
			}
		}
		for k, end := range x.ends {
			x.paths = append(x.paths, e.pathsFrom(end, inner, x.ends[k+1:])...)
		}
		parts = append(parts, x)
	}
	return parts
}

// pathsFrom returns the shortest paths through inner atoms from an end to others.
func (e *plane) pathsFrom(start int, inner, ends []int) (paths [][]int) {
	before := map[int]int{start: -1}
	queue := []int{start}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, j := range e.near[i] {
			if _, ok := before[j]; ok || e.joined[ordered(i, j)] {
				continue
			}
			if slices.Contains(inner, j) {
				before[j] = i
				queue = append(queue, j)
				continue
			}
			if i == start || !slices.Contains(ends, j) {
				continue
			}
			before[j] = i
			var path []int
			for k := j; k >= 0; k = before[k] {
				path = append(path, k)
			}
			paths = append(paths, path)
		}
	}
	return paths
}

// ringsBy returns by how much a path that divides a face raises the number of faces that are rings.
func (e *plane) ringsBy(face int, path []int) (count int) {
	if e.isRing(e.faces[face]) {
		count--
	}
	first, second := halves(e.faces[face], path)
	if e.isRing(first) {
		count++
	}
	if e.isRing(second) {
		count++
	}
	return count
}

// isRing reports whether a face is a ring of the molecule.
func (e *plane) isRing(face []int) bool {
	for _, ring := range e.rings {
		if len(ring) == len(face) && !slices.ContainsFunc(ring, func(i int) bool { return !slices.Contains(face, i) }) {
			return true
		}
	}
	return false
}

// split replaces a face by the two that a path makes of it.
func (e *plane) split(face int, path []int) {
	first, second := halves(e.faces[face], path)
	e.faces[face] = first
	e.faces = append(e.faces, second)
}

// halves returns the two faces into which a path divides one, in its sense of rotation.
func halves(face, path []int) (first, second []int) {
	begin := slices.Index(face, path[0])
	end := slices.Index(face, path[len(path)-1])
	n := len(face)
	for k := begin; k != end; k = (k + 1) % n {
		first = append(first, face[k])
	}
	for k := len(path) - 1; k > 0; k-- {
		first = append(first, path[k])
	}
	for k := end; k != begin; k = (k + 1) % n {
		second = append(second, face[k])
	}
	return first, append(second, path[:len(path)-1]...)
}

// barycentres places the atoms of the outer face on a regular polygon, and each other atom at the mean of its
// neighbours and of the centres of its faces, which are neighbours for this purpose (Tutte).
func (p *piece) barycentres(outer []int) {
	n := p.ringSize
	near := make([][]int, n+len(p.faces))
	join := func(i, j int) {
		near[i] = append(near[i], j)
		near[j] = append(near[j], i)
	}
	for _, pair := range p.pairs {
		join(pair[0], pair[1])
	}
	for k, face := range p.faces {
		for _, i := range face {
			join(i, n+k)
		}
	}
	place := make([]point, len(near))
	fixed := make([]bool, len(near))
	for k, corner := range polygon(len(outer)) {
		place[outer[k]] = corner
		fixed[outer[k]] = true
	}
	for range 300 {
		for i, list := range near {
			if fixed[i] {
				continue
			}
			var sum point
			for _, j := range list {
				sum += place[j]
			}
			place[i] = sum / complex(float64(len(list)), 0)
		}
	}
	copy(p.place, place[:n])
}
