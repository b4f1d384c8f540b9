package depict

import (
	"math"
	"math/cmplx"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// A Drawing is a molecule in the plane.
type Drawing struct {
	// Atoms has the places of the molecule's atoms, and behind them those of hydrogens that are drawn.
	// A bond is about 1 long. X points to the right, Y up.
	Atoms []Point
	// Hydrogens has the atom of each drawn hydrogen: a stereocentre with three bonds in rings.
	Hydrogens []int
	// Wedges has at most one mark for each stereocentre.
	Wedges []Wedge

	mol *molecule.Molecule
}

// A Point is a place in the plane.
type Point struct{ X, Y float64 }

// A Wedge is a bond from a stereocentre that leaves the plane.
type Wedge struct {
	Begin int  // the stereocentre
	End   int  // an index of Atoms
	Up    bool // whether it points to the reader: a wedge; otherwise, it is a hash
}

// Layout draws a molecule. The drawing refers to m, which must not change before [Drawing.SVG] is called.
func Layout(m *molecule.Molecule) *Drawing {
	s := newSketch(m)
	for _, b := range s.blocks {
		s.layBlock(b)
	}
	parts := s.assemble()
	edge := 0.0
	for _, part := range parts {
		s.untangle(part)
		s.orient(part)
		edge = s.moveBehind(part, edge)
	}
	d := &Drawing{
		Atoms:     make([]Point, len(s.place)),
		Hydrogens: s.hydrogens,
		Wedges:    s.wedges(),
		mol:       m,
	}
	for i, p := range s.place {
		d.Atoms[i] = Point{real(p), imag(p)}
	}
	return d
}

// orient turns a part by a multiple of 30°, so that it is wide rather than high.
func (s *sketch) orient(part []int) {
	best := 0
	least := math.Inf(1)
	for k := range 6 {
		turn := heading(float64(k) * math.Pi / 6)
		low := math.Inf(1)
		high := math.Inf(-1)
		for _, i := range part {
			y := imag(s.place[i] * turn)
			low = min(low, y)
			high = max(high, y)
		}
		if height := high - low; height < least-0.05 {
			least = height
			best = k
		}
	}
	for _, i := range part {
		s.place[i] *= heading(float64(best) * math.Pi / 6)
	}
}

// moveBehind moves a part to the right of an edge, at half height 0, and returns the next edge.
func (s *sketch) moveBehind(part []int, edge float64) float64 {
	const gap = 2
	low := cmplx.Inf()
	high := -low
	for _, i := range part {
		p := s.place[i]
		low = lower(low, p)
		high = upper(high, p)
	}
	shift := complex(edge-real(low), -(imag(low)+imag(high))/2)
	for _, i := range part {
		s.place[i] += shift
	}
	return real(high) + real(shift) + gap
}
