package descriptor

import (
	"math"
	"math/bits"
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/fingerprint"
)

// A link is a bond as seen from one of its atoms.
type link struct {
	atom int32
	bond *molecule.Bond
}

// ring has the properties of a ring that descriptors count.
type ring struct{ aromatic, saturated, hetero bool }

// Kinds of connectivity.
const (
	simple  = iota // by degrees
	valence        // by electrons of the outer shell
	shell          // by these in proportion to the inner ones
	kinds
)

// work is a molecule with intermediate results that several descriptors share.
type work struct {
	m        *molecule.Molecule
	ptr      []int32
	links    []link
	rings    []ring
	sets     []uint64 // sets of atoms and bonds in describeRings
	inRing3  []bool
	allH     []int32 // for every atom: hydrogens, including those that are atoms
	delta    [kinds][]float64
	parser   molecule.Parser
	morgan   fingerprint.Morgan
	scratch  []float64
	areas    []float64 // of the atoms, by surface
	distance []int32   // n×n, in twelfths
	buckets  [13][]int32
	classes  []int32
	first    []int32
	edges    []weighted
	types    []int

	heavyMass, isotopeMass, exactMass float64
	heavy, hydrogens, nhoh            int
	bridgeheads, spiro                int
	centres, untagged                 int
	alpha                             float64
	paths                             [4]float64 // of bonds between atoms other than hydrogen, by length
	chi                               [kinds][5]float64
	balaban, bertz                    float64
}

func (w *work) of(i int32) []link { return w.links[w.ptr[i]:w.ptr[i+1]] }

func (w *work) atom(i int32) *molecule.Atom { return &w.m.Atoms[i] }

// prepare computes the results that rows share.
func (w *work) prepare(m *molecule.Molecule) {
	w.m = m
	w.connect()
	w.weigh()
	w.describeRings()
	w.centres, w.untagged = w.parser.StereoCentres(m)
	w.connectivity()
	w.alpha = w.hallKier()
	w.findDistances()
	w.balaban, w.bertz = w.balabanJ(), w.bertzCT()
}

func zeros[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

func (w *work) connect() {
	n := len(w.m.Atoms)
	w.ptr = zeros(w.ptr, n+2)
	w.links = zeros(w.links, 2*len(w.m.Bonds))
	w.allH = zeros(w.allH, n)
	for k := range w.m.Bonds {
		w.ptr[w.m.Bonds[k].Begin+2]++
		w.ptr[w.m.Bonds[k].End+2]++
	}
	for i := 2; i < len(w.ptr); i++ {
		w.ptr[i] += w.ptr[i-1]
	}
	for k := range w.m.Bonds {
		b := &w.m.Bonds[k]
		w.links[w.ptr[b.Begin+1]] = link{b.End, b}
		w.ptr[b.Begin+1]++
		w.links[w.ptr[b.End+1]] = link{b.Begin, b}
		w.ptr[b.End+1]++
	}
	for i := range int32(n) {
		w.allH[i] = int32(w.atom(i).Hydrogens)
		for _, l := range w.of(i) {
			if w.atom(l.atom).Z == 1 {
				w.allH[i]++
			}
		}
	}
}

const electronMass = 5.48579909e-4 // daltons

func (w *work) weigh() {
	w.heavyMass = 0
	w.isotopeMass = 0
	w.exactMass = 0
	w.heavy = 0
	w.hydrogens = 0
	w.nhoh = 0
	for i := range w.m.Atoms {
		a := &w.m.Atoms[i]
		mass := a.Mass()
		if a.Z == 1 {
			w.isotopeMass += mass
		} else {
			w.heavyMass += mass
		}
		if a.Z > 1 {
			w.heavy++
		}
		if a.Isotope == 0 {
			mass = molecule.ElementOf(a.Z).Exact
		}
		w.exactMass += mass + float64(a.Hydrogens)*molecule.ElementOf(1).Exact -
			float64(a.Charge)*electronMass
		w.hydrogens += int(a.Hydrogens)
		if a.Z == 7 || a.Z == 8 {
			w.nhoh += int(w.allH[i])
		}
	}
}

// describeRings looks at the rings, alone and in pairs. A spiro atom is all that two rings
// share. A bridgehead is an end of a path of two or more bonds that two rings share.
func (w *work) describeRings() {
	m := w.m
	w.rings = w.rings[:0]
	w.inRing3 = zeros(w.inRing3, len(m.Atoms))
	words := (max(len(m.Atoms), len(m.Bonds)) + 63) / 64
	n := m.Rings()
	w.sets = zeros(w.sets, (2*n+3)*words)
	set := func(k int) []uint64 { return w.sets[k*words : (k+1)*words] }
	spiro := set(2 * n)
	bridgeheads := set(2*n + 1)
	ends := set(2*n + 2)
	for r := range n {
		atoms, bonds := m.Ring(r)
		x := ring{aromatic: true, saturated: true}
		atomSet := set(2 * r)
		bondSet := set(2*r + 1)
		for k, a := range atoms {
			b := &m.Bonds[bonds[k]]
			x.aromatic = x.aromatic && b.Type == molecule.Aromatic
			x.saturated = x.saturated && b.Type == molecule.Single
			x.hetero = x.hetero || m.Atoms[a].Z != 6
			w.inRing3[a] = w.inRing3[a] || len(atoms) == 3
			atomSet[a/64] |= 1 << (a % 64)
			bondSet[bonds[k]/64] |= 1 << (bonds[k] % 64)
		}
		w.rings = append(w.rings, x)
		for q := range r {
			switch shared := overlap(atomSet, set(2*q)); {
			case shared == 1:
				for k := range atomSet {
					spiro[k] |= atomSet[k] & set(2 * q)[k]
				}
			case shared > 2 && overlap(bondSet, set(2*q+1)) > 1:
				w.pathEnds(ends, bondSet, set(2*q+1))
				for k := range ends {
					bridgeheads[k] |= ends[k]
				}
			}
		}
	}
	w.spiro = overlap(spiro, spiro)
	w.bridgeheads = overlap(bridgeheads, bridgeheads)
}

// overlap returns the number of elements that two sets share.
func overlap(a, b []uint64) (n int) {
	for k, word := range a {
		n += bits.OnesCount64(word & b[k])
	}
	return n
}

// pathEnds sets ends to the atoms at exactly one of the bonds that two rings share.
func (w *work) pathEnds(ends, a, b []uint64) {
	clear(ends)
	for k := range a {
		for shared := a[k] & b[k]; shared != 0; shared &= shared - 1 {
			bond := &w.m.Bonds[k*64+bits.TrailingZeros64(shared)]
			ends[bond.Begin/64] ^= 1 << (bond.Begin % 64)
			ends[bond.End/64] ^= 1 << (bond.End % 64)
		}
	}
}

func rings(counts func(ring) bool) func(w *work) float64 {
	return func(w *work) float64 {
		n := 0.0
		for _, r := range w.rings {
			if counts(r) {
				n++
			}
		}
		return n
	}
}

func (w *work) count(counts func(a *molecule.Atom) bool) float64 {
	n := 0.0
	for i := range w.m.Atoms {
		if counts(&w.m.Atoms[i]) {
			n++
		}
	}
	return n
}

// connectivity sums the products of 1/√δ of the atoms on paths of up to four bonds. δ is an atom's
// degree, its electrons, or these in proportion. Rings of as many bonds are paths, too, and a path
// of four bonds may end at its second atom. Paths of two bonds and more do not pass hydrogens. The
// counts of paths have those of at most three bonds.
func (w *work) connectivity() {
	n := len(w.m.Atoms)
	for k := range w.delta {
		w.delta[k] = zeros(w.delta[k], n)
		w.chi[k] = [5]float64{}
	}
	for i := range w.m.Atoms {
		a := &w.m.Atoms[i]
		outer := molecule.ElementOf(a.Z).Outer
		// Unsigned, as in RDKit: an atom with more hydrogens than electrons counts almost nothing.
		electrons := float64(uint32(int32(outer) - int32(a.Hydrogens)))
		w.delta[simple][i] = float64(a.Degree)
		w.delta[valence][i] = electrons
		switch {
		case a.Z > 10:
			w.delta[shell][i] = electrons / float64(int(a.Z)-outer-1)
		case a.Z > 1:
			w.delta[shell][i] = electrons
		}
		for k := range w.delta {
			if d := w.delta[k][i]; d > 0 {
				w.delta[k][i] = 1 / math.Sqrt(d)
			} else {
				w.delta[k][i] = 0
			}
			w.chi[k][0] += w.delta[k][i]
		}
	}
	w.paths = [4]float64{1: float64(len(w.m.Bonds))}
	for k := range w.m.Bonds {
		b := &w.m.Bonds[k]
		for kind := range w.delta {
			w.chi[kind][1] += w.delta[kind][b.Begin] * w.delta[kind][b.End]
		}
		w.pathsAround(b)
	}
	for i := range int32(n) {
		w.pathsThrough(i)
	}
}

// pathsAround adds the paths of three bonds with a bond in the middle. A triangle has three of them.
func (w *work) pathsAround(mid *molecule.Bond) {
	b := mid.Begin
	c := mid.End
	if w.atom(b).Z == 1 || w.atom(c).Z == 1 {
		return
	}
	for _, x := range w.of(b) {
		if x.bond == mid || w.atom(x.atom).Z == 1 {
			continue
		}
		for _, y := range w.of(c) {
			if y.bond == mid || w.atom(y.atom).Z == 1 {
				continue
			}
			part := 1.0
			if x.atom == y.atom {
				part = 1.0 / 3
			}
			w.paths[3] += part
			for k := valence; k < kinds; k++ {
				d := w.delta[k]
				p := part * d[b] * d[c] * d[x.atom]
				if x.atom != y.atom {
					p *= d[y.atom]
				}
				w.chi[k][3] += p
			}
		}
	}
}

// pathsThrough adds the paths of two and of four bonds with an atom in the middle. A ring of four
// bonds has four such paths, and a triangle with a tail has two.
func (w *work) pathsThrough(c int32) {
	if w.atom(c).Z == 1 {
		return
	}
	links := w.of(c)
	for i, x := range links {
		b := x.atom
		if w.atom(b).Z == 1 {
			continue
		}
		for _, y := range links[:i] {
			d := y.atom
			if w.atom(d).Z == 1 {
				continue
			}
			w.paths[2]++
			var core [kinds]float64
			for k := valence; k < kinds; k++ {
				core[k] = w.delta[k][b] * w.delta[k][c] * w.delta[k][d]
				w.chi[k][2] += core[k]
			}
			for _, p := range w.of(b) {
				a := p.atom
				if a == c || w.atom(a).Z == 1 {
					continue
				}
				for _, q := range w.of(d) {
					e := q.atom
					if e == c || a == d && e == b || w.atom(e).Z == 1 {
						continue
					}
					part := 1.0
					switch {
					case a == e:
						part = 0.25
					case a == d || e == b:
						part = 0.5
					}
					for k := valence; k < kinds; k++ {
						product := part * core[k] * w.delta[k][a]
						if a != e {
							product *= w.delta[k][e]
						}
						w.chi[k][4] += product
					}
				}
			}
		}
	}
}

// hallKier returns the correction of the indices of shape for radii other than that of sp³ carbon.
func (w *work) hallKier() float64 {
	sum := 0.0
	for i := range w.m.Atoms {
		a := &w.m.Atoms[i]
		sp := a.Hybridisation == molecule.HybridSP
		sp2 := a.Hybridisation == molecule.HybridSP2
		switch {
		case a.Z == 0 || a.Z == 1:
		case a.Z == 6 && sp:
			sum -= 0.22
		case a.Z == 6 && sp2:
			sum -= 0.13
		case a.Z == 6:
		case a.Z == 7 && sp:
			sum -= 0.29
		case (a.Z == 7 || a.Z == 8) && sp2:
			sum -= 0.20
		case a.Z == 7 || a.Z == 8:
			sum -= 0.04
		case a.Z == 9:
			sum -= 0.07
		case a.Z == 15 && sp2:
			sum += 0.30
		case a.Z == 15:
			sum += 0.43
		case a.Z == 16 && sp2:
			sum += 0.22
		case a.Z == 16:
			sum += 0.35
		case a.Z == 17:
			sum += 0.29
		case a.Z == 35:
			sum += 0.48
		case a.Z == 53:
			sum += 0.73
		default:
			sum += molecule.ElementOf(a.Z).Radius/molecule.ElementOf(6).Radius - 1
		}
	}
	return sum
}

// kappa returns the index of shape of an order from 1 to 3. It relates the atoms and the paths of
// that many bonds to those of a chain and of a star.
func (w *work) kappa(order int) float64 {
	a := float64(w.heavy) + w.alpha
	p := w.paths[order] + w.alpha
	if p == 0 {
		return 0
	}
	switch {
	case order == 1:
		return a * (a - 1) * (a - 1) / (p * p)
	case order == 2:
		return (a - 1) * (a - 2) * (a - 2) / (p * p)
	case w.heavy%2 == 1:
		return (a - 1) * (a - 3) * (a - 3) / (p * p)
	}
	return (a - 2) * (a - 3) * (a - 3) / (p * p)
}
