package molecule

import (
	"cmp"
	"math"
	"slices"
)

// point is a point in space, or a vector.
type point [3]float64

func (p point) minus(q point) point {
	return point{p[0] - q[0], p[1] - q[1], p[2] - q[2]}
}

func (p point) dot(q point) float64 { return p[0]*q[0] + p[1]*q[1] + p[2]*q[2] }

func (p point) cross(q point) point {
	return point{p[1]*q[2] - p[2]*q[1], p[2]*q[0] - p[0]*q[2], p[0]*q[1] - p[1]*q[0]}
}

// findStereo sets the configurations of atoms and double bonds from the drawing, while all hydrogens
// are still atoms.
func (r *molfileReader) findStereo(v *perceiver) {
	drawn := slices.ContainsFunc(r.places[1:], func(p point) bool {
		return p != r.places[0]
	})
	if !drawn {
		return
	}
	space := slices.ContainsFunc(r.places, func(p point) bool { return p[2] != 0 })
	for i := range r.mol.Atoms {
		if space {
			r.mol.Atoms[i].Chirality = r.tagInSpace(v, int32(i))
		} else {
			r.mol.Atoms[i].Chirality = r.tagInPlane(v, int32(i))
		}
	}
	v.normalise()
	r.directions.set(r, v)
}

// tagOf returns the tag of neighbours that turn counter-clockwise if the volume is positive.
func tagOf(volume, tolerance float64) Chirality {
	switch {
	case volume > tolerance:
		return CounterClockwise
	case volume < -tolerance:
		return Clockwise
	}
	return Unspecified
}

// tagInSpace returns the tag of an atom by the volume that its first three neighbours span. The atom
// must have a fourth neighbour or a hydrogen that is no atom, or be S or Se with a lone pair.
func (r *molfileReader) tagInSpace(v *perceiver, i int32) Chirality {
	const tolerance = 0.1 // Å³
	links := v.of(i)
	a := &r.mol.Atoms[i]
	switch len(links) {
	case 3:
		a.valence = int16(v.explicitValence(i))
		implicit, _ := v.implicitHydrogens(i)
		if h := int32(a.explicit) + implicit; h != 1 && (h != 0 || a.Z != 16 && a.Z != 34) {
			return Unspecified
		}
	case 4:
	default:
		return Unspecified
	}
	var vectors [3]point
	for k, l := range links[:3] {
		vectors[k] = r.places[l.atom].minus(r.places[i])
	}
	return tagOf(vectors[0].dot(vectors[1].cross(vectors[2])), tolerance)
}

// tagInPlane returns the tag of an atom at which wedges begin. With four neighbours, the first wedge
// decides. With three, all wedges must agree.
func (r *molfileReader) tagInPlane(v *perceiver, i int32) Chirality {
	tag := Unspecified
	links := v.of(i)
	for k, l := range links {
		b := &r.mol.Bonds[l.bond]
		if b.Begin != i {
			continue
		}
		switch r.drawn[l.bond] {
		case wavy:
			return Unspecified
		case wedge, dash:
			switch again := r.tagByWedge(v, i, k); {
			case tag == Unspecified:
				tag = again
			case tag != again && len(links) == 3:
				return Unspecified
			}
		}
	}
	return tag
}

// tagByWedge returns the tag of an atom by one of its links, which is a wedge or a dash. As seen from
// the end of a wedge, the other links turn as they are drawn; as seen from that of a dash, they turn
// the other way.
func (r *molfileReader) tagByWedge(v *perceiver, i int32, wedged int) Chirality {
	links := v.of(i)
	if n := len(links); n < 3 || n > 4 {
		return Unspecified
	}
	const straight = 178.0 / 180 * math.Pi // from this angle on, two bonds count as one line
	angleOf := func(l link) float64 {
		offset := r.places[l.atom].minus(r.places[i])
		return math.Atan2(offset[1], offset[0])
	}
	zero := angleOf(links[wedged])
	type other struct {
		at    int
		angle float64 // counter-clockwise from the wedge
	}
	var turn []other
	for k, l := range links {
		if z := r.mol.Atoms[i].Z; r.mol.Bonds[l.bond].Type != Single && z != 15 && z != 16 {
			return Unspecified
		}
		if k != wedged {
			angle := angleOf(l) - zero
			if angle < 0 {
				angle += 2 * math.Pi
			}
			turn = append(turn, other{k, angle})
		}
	}
	slices.SortStableFunc(turn, func(a, b other) int {
		return cmp.Compare(a.angle, b.angle)
	})
	counter := r.drawn[links[wedged].bond] == wedge
	// With three neighbours, the fourth lies in the gap between the other two, behind the paper.
	if len(turn) == 2 && turn[1].angle-turn[0].angle >= straight {
		counter = !counter
	}
	// Change from the order of the turn, the wedge first, to the order of the links.
	odd := wedged%2 == 1
	for k, o := range turn {
		for _, p := range turn[:k] {
			odd = odd != (p.at > o.at)
		}
	}
	if counter != odd {
		return CounterClockwise
	}
	return Clockwise
}

// directions gives the single bonds next to double bonds directions that describe the drawing.
type directions struct {
	candidate []bool  // for every bond: whether it is a double bond with a configuration
	beside    []int32 // for every bond: the number of neighbouring candidates
	order     []int32
}

// set directs the bonds of all double bonds. From each, it goes on to those that share a single bond
// with it. As in RDKit, it begins where most double bonds meet.
func (d *directions) set(r *molfileReader, v *perceiver) {
	m := v.m
	if !slices.ContainsFunc(m.Bonds, func(b Bond) bool { return b.Type == Double }) {
		return
	}
	if v.findRings() != nil {
		return // perceive refuses the molecule
	}
	d.candidate = resize(d.candidate, len(m.Bonds))
	d.beside = resize(d.beside, len(m.Bonds))
	d.order = d.order[:0]
	for k := range m.Bonds {
		b := &m.Bonds[k]
		if b.Type == Double && r.drawn[k] != crossed && v.degree(b.Begin) > 1 && v.degree(b.End) > 1 &&
			v.mayHaveStereo(int32(k)) {
			d.candidate[k] = true
			d.order = append(d.order, int32(k))
			for _, end := range [2]int32{b.Begin, b.End} {
				for _, l := range v.of(end) {
					d.beside[l.bond]++
				}
			}
		}
	}
	weight := func(k int32) (sum int32) {
		for _, end := range [2]int32{m.Bonds[k].Begin, m.Bonds[k].End} {
			for _, l := range v.of(end) {
				if mayDirect(&m.Bonds[l.bond]) {
					sum += d.beside[l.bond]
				}
			}
		}
		if v.rings.ofBond[k] == 0 {
			sum *= 10
		}
		return sum
	}
	slices.SortFunc(d.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(b, a))
	})
	for len(d.order) > 0 {
		k := d.order[0]
		d.order = d.order[1:]
		d.follow(r, v, k)
	}
}

// mayDirect reports whether a bond may have a direction.
func mayDirect(b *Bond) bool { return b.Type == Single || b.Type == Aromatic }

// follow directs the bonds next to a double bond, and then those next to its neighbours.
func (d *directions) follow(r *molfileReader, v *perceiver, double int32) {
	if !d.candidate[double] {
		return
	}
	d.candidate[double] = false
	b := &v.m.Bonds[double]
	ends := [2]int32{b.Begin, b.End}
	var first, second [2]link
	for k, end := range ends {
		var ok bool
		first[k], second[k], ok = d.flank(r, v, end, double)
		if !ok {
			return
		}
	}
	axis := r.places[b.End].minus(r.places[b.Begin])
	var normal [2]point
	for k, end := range ends {
		normal[k] = r.places[first[k].atom].minus(r.places[end]).cross(axis)
	}
	var fresh []link
	outward := [2]Direction{v.outward(first[0], ends[0]), v.outward(first[1], ends[1])}
	setOutward(&outward, normal[0].dot(normal[1]) > 0)
	for k, end := range ends {
		for place, l := range [2]link{first[k], second[k]} {
			if l.bond < 0 || v.m.Bonds[l.bond].Direction != NoDirection {
				continue
			}
			x := outward[k]
			if place == 1 {
				x = x.reversed()
			}
			if v.m.Bonds[l.bond].Begin != end {
				x = x.reversed()
			}
			v.m.Bonds[l.bond].Direction = x
			if place == 0 {
				fresh = append(fresh, l)
			}
		}
	}
	for _, l := range fresh {
		for _, o := range v.of(l.atom) {
			d.follow(r, v, o.bond)
		}
	}
}

// setOutward sets the directions that are missing at the two ends of a double bond. same says
// that the first neighbours are on one side of it.
func setOutward(outward *[2]Direction, same bool) {
	turn := func(x Direction) Direction {
		if same {
			return x
		}
		return x.reversed()
	}
	switch {
	case outward[0] == NoDirection && outward[1] == NoDirection:
		outward[0] = Down
		outward[1] = turn(Down)
	case outward[0] == NoDirection:
		outward[0] = turn(outward[1])
	case outward[1] == NoDirection:
		outward[1] = turn(outward[0])
	}
}

// outward returns the direction of a link's bond as seen from the atom.
func (v *perceiver) outward(l link, atom int32) Direction {
	b := &v.m.Bonds[l.bond]
	if b.Begin != atom {
		return b.Direction.reversed()
	}
	return b.Direction
}

// flank returns the bond that determines how an end of a double bond is drawn, and the other bond at
// that end, -1 if there is none. It returns false if the drawing does not determine it.
func (d *directions) flank(
	r *molfileReader, v *perceiver, end, double int32,
) (first, second link, ok bool) {
	first, second = link{-1, -1}, link{-1, -1}
	for _, l := range v.of(end) {
		b := &v.m.Bonds[l.bond]
		if l.bond == double || !mayDirect(b) {
			continue
		}
		if r.drawn[l.bond] == wavy {
			return first, second, false
		}
		switch {
		case first.bond < 0:
			first = l
		case b.Direction == NoDirection && d.beside[l.bond] <= d.beside[first.bond]:
			second = l
		default:
			first, second = l, first
		}
	}
	if first.bond < 0 {
		return first, second, false
	}
	axis := r.places[v.m.Bonds[double].Begin+v.m.Bonds[double].End-end].minus(r.places[end])
	if r.straight(first.atom, end, axis) {
		if second.bond < 0 || r.straight(second.atom, end, axis) {
			return first, second, false
		}
		first, second = second, first
	}
	return first, second, true
}

// straight reports whether a neighbour lies on the line of the axis, to within two degrees.
func (r *molfileReader) straight(atom, end int32, axis point) bool {
	offset := r.places[atom].minus(r.places[end])
	return offset.dot(axis) < -math.Cos(0.035)*math.Sqrt(offset.dot(offset)*axis.dot(axis))
}
