package descriptor

import (
	"math"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// gasteiger has the working memory of findCharges.
type gasteiger struct {
	parameters []polynomial
	ionised    []float64 // electronegativity of the cation of every atom
	energies   []float64
	hydrogens  []float64 // charge of all hydrogens at an atom
	group      []int32
}

// polynomial is the electronegativity of an orbital as a function of its charge q: a + bq + cq².
type polynomial struct{ a, b, c float64 }

func (p polynomial) at(q float64) float64 { return p.a + q*(p.b+p.c*q) }

// orbital is an element with its hybridisation. Hydrogen has none.
type orbital struct {
	z     int8
	state molecule.Hybridisation
}

// sulfone is the state of sulphur with two oxygens and more than four orbitals.
const sulfone = molecule.HybridSP3D

// Shorter names for the table.
const (
	sp  = molecule.HybridSP
	sp2 = molecule.HybridSP2
	sp3 = molecule.HybridSP3
)

// electronegativities are the parameters of Gasteiger and Marsili, and those of further elements that
// RDKit takes from PyBabel, in eV.
var electronegativities = map[orbital]polynomial{
	{1, 0}:        {7.17, 6.24, -0.56},
	{6, sp3}:      {7.98, 9.18, 1.88},
	{6, sp2}:      {8.79, 9.32, 1.51},
	{6, sp}:       {10.39, 9.45, 0.73},
	{7, sp3}:      {11.54, 10.82, 1.36},
	{7, sp2}:      {12.87, 11.15, 0.85},
	{7, sp}:       {15.68, 11.7, -0.27},
	{8, sp3}:      {14.18, 12.92, 1.39},
	{8, sp2}:      {17.07, 13.79, 0.47},
	{9, sp3}:      {14.66, 13.85, 2.31},
	{17, sp3}:     {11.00, 9.69, 1.35},
	{35, sp3}:     {10.08, 8.47, 1.16},
	{53, sp3}:     {9.9, 7.96, 0.96},
	{16, sp3}:     {10.14, 9.13, 1.38},
	{16, sulfone}: {12.00, 10.81, 1.20},
	{16, sp2}:     {10.88, 9.49, 1.33},
	{15, sp3}:     {8.90, 8.24, 0.96},
	{15, sp2}:     {9.665, 8.530, 0.735},
	{14, sp3}:     {7.300, 6.567, 0.657},
	{14, sp2}:     {7.905, 6.748, 0.443},
	{14, sp}:      {9.065, 7.027, -0.002},
	{5, sp3}:      {5.980, 6.820, 1.605},
	{5, sp2}:      {6.420, 6.807, 1.322},
	{4, sp3}:      {3.845, 6.755, 3.165},
	{4, sp2}:      {4.005, 6.725, 3.035},
	{12, sp2}:     {3.565, 5.572, 2.197},
	{12, sp3}:     {3.300, 5.587, 2.447},
	{12, sp}:      {4.040, 5.472, 1.823},
	{13, sp3}:     {5.375, 4.953, 0.867},
	{13, sp2}:     {5.795, 5.020, 0.695},
}

const (
	ionisedHydrogen = 20.02 // eV
	chargeRounds    = 12
)

// findCharges computes Gasteiger's partial charges: electrons flow along the bonds to the more
// electronegative atom, half as much in every round. An atom without parameters leaves charges near it
// undefined (NaN), as in RDKit.
//
//	J. Gasteiger, M. Marsili, Tetrahedron 36 (1980) 3219–3228.
func (x *extended) findCharges() {
	n := len(x.m.Atoms)
	g := &x.gas
	x.charges = zeros(x.charges, n)
	g.parameters = zeros(g.parameters, n)
	g.ionised = zeros(g.ionised, n)
	g.energies = zeros(g.energies, n)
	g.hydrogens = zeros(g.hydrogens, n)
	x.spreadCharges()
	for i := range int32(n) {
		p := electronegativities[x.orbitalOf(i)]
		g.parameters[i] = p
		g.ionised[i] = p.a + p.b + p.c
		if x.atom(i).Z == 1 {
			g.ionised[i] = ionisedHydrogen
		}
	}
	damp := 0.5
	for range chargeRounds {
		for i, q := range x.charges {
			g.energies[i] = g.parameters[i].at(q)
		}
		for i := range int32(n) {
			x.flow(i, damp)
		}
		damp *= 0.5
	}
	// In this way an undefined charge counts unless a defined one follows, as in RDKit.
	x.highestCharge = -500
	x.lowestCharge = 500
	for _, q := range x.charges {
		if !(x.lowestCharge < q) {
			x.lowestCharge = q
		}
		if !(x.highestCharge > q) {
			x.highestCharge = q
		}
	}
}

// orbitalOf returns the element and hybridisation of an atom by which its parameters are listed.
func (x *extended) orbitalOf(i int32) orbital {
	a := x.atom(i)
	switch a.Hybridisation {
	case sp, sp2, sp3:
		return orbital{a.Z, a.Hybridisation}
	}
	switch a.Z {
	case 1:
		return orbital{1, 0}
	case 16:
		oxygens := 0
		for _, l := range x.of(i) {
			if x.atom(l.atom).Z == 8 {
				oxygens++
			}
		}
		if oxygens == 2 {
			return orbital{16, sulfone}
		}
		return orbital{16, sp3}
	}
	return orbital{}
}

// flow changes the charge of an atom and its hydrogens by the electrons that flow in a round.
func (x *extended) flow(i int32, damp float64) {
	g := &x.gas
	total := 0.0
	for _, l := range x.of(i) {
		difference := g.energies[l.atom] - g.energies[i]
		donor := g.ionised[i]
		if difference < 0 {
			donor = g.ionised[l.atom]
		} else {
			donor = (donor - g.ionised[l.atom]) + g.ionised[l.atom] // RDKit's rounding
		}
		total += difference / donor
	}
	if h := float64(x.atom(i).Hydrogens); h > 0 {
		hydrogen := electronegativities[orbital{1, 0}]
		difference := hydrogen.at(g.hydrogens[i]/h) - g.energies[i]
		donor := ionisedHydrogen
		if !(difference < 0) {
			donor = (g.ionised[i] - ionisedHydrogen) + ionisedHydrogen
		}
		total += h * (difference / donor)
		g.hydrogens[i] -= h * (difference / donor) * damp
	}
	x.charges[i] += damp * total
}

// spreadCharges sets the charges to the formal ones, shared by atoms of the element that are two
// conjugated bonds apart, as the oxygens of a carboxylate.
func (x *extended) spreadCharges() {
	for i := range int32(len(x.m.Atoms)) {
		a := x.atom(i)
		if a.Charge == 0 || math.Abs(x.charges[i]) > 1e-10 {
			continue
		}
		formal := float64(a.Charge)
		group := append(x.gas.group[:0], i)
		for _, l := range x.of(i) {
			if !l.bond.Conjugated {
				continue
			}
			for _, k := range x.of(l.atom) {
				end := x.atom(k.atom)
				if k.bond != l.bond && k.bond.Conjugated && end.Z == a.Z {
					formal += float64(end.Charge)
					group = append(group, k.atom)
				}
			}
		}
		for _, k := range group {
			x.charges[k] = formal / float64(len(group))
		}
		x.gas.group = group
	}
}
