package depict

import (
	"cmp"
	"math"
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// wedges returns a wedge or a hash for each tetrahedral stereocentre. Centres with the fewest bonds that suit
// choose first.
func (s *sketch) wedges() (wedges []Wedge) {
	taken := make([]bool, len(s.bonds))
	for i := range s.mol.Atoms {
		if !isCentre(&s.mol.Atoms[i]) || len(s.links[i]) < 3 || len(s.links[i]) > 4 {
			continue
		}
		best := -1
		least := math.Inf(1)
		for k, l := range s.links[i] {
			if taken[l.bond] || s.orderOf(l.bond) != molecule.Single {
				continue
			}
			if price := s.wedgePrice(i, k); price < least {
				least = price
				best = k
			}
		}
		if best < 0 {
			continue
		}
		l := s.links[i][best]
		taken[l.bond] = true
		wedges = append(wedges, Wedge{
			Begin: i,
			End:   l.atom,
			Up:    s.tagOf(i, best) == s.mol.Atoms[i].Chirality,
		})
	}
	return wedges
}

// orderOf returns the type of a bond in a Kekulé structure.
func (s *sketch) orderOf(k int) molecule.BondType {
	if k >= len(s.mol.Bonds) {
		return molecule.Single // to a hydrogen
	}
	return s.mol.Bonds[k].Kekule()
}

// wedgePrice returns how unsuitable a bond is for a wedge: bonds to hydrogens and to ends of chains suit, those
// in rings and to other centres do not.
func (s *sketch) wedgePrice(centre, which int) (price float64) {
	l := s.links[centre][which]
	if l.atom >= len(s.mol.Atoms) {
		return -1
	}
	end := &s.mol.Atoms[l.atom]
	if isCentre(end) {
		price += 40
	}
	if s.bonds[l.bond].block != nil {
		price += 20
	}
	if s.isBetween(centre, which) {
		price += 200 // readers disagree on what it means
	}
	for _, next := range s.links[l.atom] {
		if s.orderOf(next.bond) == molecule.Double {
			price += 2
		}
	}
	return price + float64(len(s.links[l.atom]))
}

// turn returns the links of an atom other than one, counter-clockwise from it, and the angles.
func (s *sketch) turn(centre, which int) (order []int, angles []float64) {
	start := s.angle(centre, s.links[centre][which].atom)
	angleOf := func(k int) float64 { return positive(s.angle(centre, s.links[centre][k].atom) - start) }
	for k := range s.links[centre] {
		if k != which {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(angleOf(a), angleOf(b)) })
	for _, k := range order {
		angles = append(angles, angleOf(k))
	}
	return order, angles
}

// isBetween reports whether an atom has three bonds within a half-plane, of which this one is the middle.
func (s *sketch) isBetween(centre, which int) bool {
	_, angles := s.turn(centre, which)
	const straight = 178.0 / 180 * math.Pi
	return len(angles) == 2 && angles[1]-angles[0] >= straight
}

// tagOf returns the configuration of a centre if one of its bonds is a wedge. As seen from the end of the wedge,
// the other bonds turn as they are drawn. A hydrogen that is drawn is the last of four neighbours, for which
// a tag without it stands as well.
func (s *sketch) tagOf(centre, which int) molecule.Chirality {
	order, _ := s.turn(centre, which)
	sequence := append([]int{which}, order...)
	counter := !s.isBetween(centre, which)
	for k, a := range sequence {
		for _, b := range sequence[:k] {
			if b > a {
				counter = !counter
			}
		}
	}
	if counter {
		return molecule.CounterClockwise
	}
	return molecule.Clockwise
}
