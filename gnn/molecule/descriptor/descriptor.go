// Package descriptor computes descriptors of molecules that depend only on the molecular graph. Names
// and values are RDKit's (release 2026.09). Where RDKit's definition differs from that of the source,
// RDKit's counts.
//
// [Calculator] computes 52 of them: masses, counts of atoms, bonds and rings, polar and total surface,
// and indices of connectivity, shape and complexity. A descriptor is a row of one table, with its
// source. [Crippen] computes logP and molar refractivity. [RDKit] computes all 217 of RDKit's list.
//
// # Agreement with RDKit
//
// TestRDKit and TestRDKitAll compare values with RDKit's, from tables that testdata/rdkit_descriptors.py
// writes. testdata/differences.tsv has the largest difference of each of the 217 names, relative to the
// value where that is more than 1, over 27,835 molecules of ZINC250k and of eight sets of MoleculeNet:
//
//	python3 rdkit_descriptors.py --all zinc.tsv 25 zinc250k.csv.gz
//	python3 rdkit_descriptors.py --all more.tsv 31 zinc250k.csv.gz # its first 8,000 lines
//	python3 rdkit_descriptors.py --all net.tsv 2 bace.csv.gz bbbp.csv.gz clintox.csv.gz sider.csv.gz \
//	    tox21.csv.gz esol.csv.gz freesolv.csv.gz lipo.csv.gz
//	go test -run TestRDKitAll . -args -all zinc.tsv,more.tsv,net.tsv -differences differences.tsv
//
// All are within 1e-9 but three. SPS differs for a molecule in a thousand: RDKit counts its stereocentres by
// another algorithm, which finds more of those that are centres only by the configuration of others. Ipc
// and AvgIpc differ for 19 and 14 large molecules, whose coefficients are rounding errors in both. For the
// 9,979 molecules of zinc.tsv, RDKit took 113 s of processor time, and the test 4.0 s.
//
// Elsewhere values differ where molecules do (see package molecule), and:
//
//   - RDKit gives no numbers, or infinity, where a charge, a bond or a radius is not defined, as for charges
//     next to metals. Values here are then 0, or leave the atom or bond out.
//   - RDKit stops after 1,000 matches of a pattern.
package descriptor

import "github.com/specmatch/specmatch/gnn/molecule"

// row is a descriptor: of computes its value.
type row struct {
	name   string
	source string
	of     func(w *work) float64
}

// Sources of several rows.
const (
	lipinski = "C. A. Lipinski et al., Adv. Drug Deliv. Rev. 23 (1997) 3–25"
	kier     = "L. H. Hall, L. B. Kier, Rev. Comput. Chem. 2 (1991) 367–422"
	counted  = "counted"
)

var rows = []row{
	{"MolWt", "standard atomic weights", (*work).weight},
	{"ExactMolWt", "masses of the most common isotopes", func(w *work) float64 { return w.exactMass }},
	{"HeavyAtomMolWt", "standard atomic weights", func(w *work) float64 { return w.heavyMass }},
	{"HeavyAtomCount", counted, func(w *work) float64 { return float64(w.heavy) }},
	{"NHOHCount", lipinski, func(w *work) float64 { return float64(w.nhoh) }},
	{"NOCount", lipinski, func(w *work) float64 {
		return w.count(func(a *molecule.Atom) bool { return a.Z == 7 || a.Z == 8 })
	}},
	{"NumAliphaticCarbocycles", counted, rings(func(r ring) bool {
		return !r.aromatic && !r.hetero
	})},
	{"NumAliphaticHeterocycles", counted, rings(func(r ring) bool {
		return !r.aromatic && r.hetero
	})},
	{"NumAliphaticRings", counted, rings(func(r ring) bool { return !r.aromatic })},
	{"NumAromaticCarbocycles", counted, rings(func(r ring) bool {
		return r.aromatic && !r.hetero
	})},
	{"NumAromaticHeterocycles", counted, rings(func(r ring) bool {
		return r.aromatic && r.hetero
	})},
	{"NumAromaticRings", counted, rings(func(r ring) bool { return r.aromatic })},
	{"NumSaturatedCarbocycles", counted, rings(func(r ring) bool {
		return r.saturated && !r.hetero
	})},
	{"NumSaturatedHeterocycles", counted, rings(func(r ring) bool {
		return r.saturated && r.hetero
	})},
	{"NumSaturatedRings", counted, rings(func(r ring) bool { return r.saturated })},
	{"NumHeterocycles", counted, rings(func(r ring) bool { return r.hetero })},
	{"RingCount", counted, rings(func(ring) bool { return true })},
	{"NumHAcceptors", "A. Gobbi, D. Poppinger, Biotechnol. Bioeng. 61 (1998) 47–54", (*work).acceptors},
	{"NumHDonors", "A. Gobbi, D. Poppinger, Biotechnol. Bioeng. 61 (1998) 47–54", (*work).donors},
	{"NumHeteroatoms", counted, func(w *work) float64 {
		return w.count(func(a *molecule.Atom) bool { return a.Z != 6 && a.Z != 1 })
	}},
	{"NumRotatableBonds", "RDKit's strict definition", (*work).rotatable},
	{
		"FractionCSP3",
		"F. Lovering, J. Bikker, C. Humblet, J. Med. Chem. 52 (2009) 6752–6756",
		(*work).saturation,
	},
	{"NumAmideBonds", counted, (*work).amides},
	{"NumBridgeheadAtoms", counted, func(w *work) float64 { return float64(w.bridgeheads) }},
	{"NumSpiroAtoms", counted, func(w *work) float64 { return float64(w.spiro) }},
	{"NumAtomStereoCenters", counted, func(w *work) float64 { return float64(w.centres) }},
	{"NumUnspecifiedAtomStereoCenters", counted, func(w *work) float64 { return float64(w.untagged) }},
	{"NumValenceElectrons", counted, (*work).electrons},
	{"TPSA", "P. Ertl, B. Rohde, P. Selzer, J. Med. Chem. 43 (2000) 3714–3717", (*work).polarSurface},
	{"LabuteASA", "P. Labute, J. Mol. Graph. Model. 18 (2000) 464–477", (*work).surface},
	{"BalabanJ", "A. T. Balaban, Chem. Phys. Lett. 89 (1982) 399–404", func(w *work) float64 {
		return w.balaban
	}},
	{"BertzCT", "S. H. Bertz, J. Am. Chem. Soc. 103 (1981) 3599–3601", func(w *work) float64 {
		return w.bertz
	}},
	{"HallKierAlpha", kier, func(w *work) float64 { return w.alpha }},
	{"Kappa1", kier, func(w *work) float64 { return w.kappa(1) }},
	{"Kappa2", kier, func(w *work) float64 { return w.kappa(2) }},
	{"Kappa3", kier, func(w *work) float64 { return w.kappa(3) }},
	{"Phi", kier, func(w *work) float64 {
		if w.heavy == 0 {
			return 0
		}
		return w.kappa(1) * w.kappa(2) / float64(w.heavy)
	}},
	{"Chi0", kier, func(w *work) float64 { return w.chi[simple][0] }},
	{"Chi1", kier, func(w *work) float64 { return w.chi[simple][1] }},
	{"Chi0n", kier, func(w *work) float64 { return w.chi[valence][0] }},
	{"Chi1n", kier, func(w *work) float64 { return w.chi[valence][1] }},
	{"Chi2n", kier, func(w *work) float64 { return w.chi[valence][2] }},
	{"Chi3n", kier, func(w *work) float64 { return w.chi[valence][3] }},
	{"Chi4n", kier, func(w *work) float64 { return w.chi[valence][4] }},
	{"Chi0v", kier, func(w *work) float64 { return w.chi[shell][0] }},
	{"Chi1v", kier, func(w *work) float64 { return w.chi[shell][1] }},
	{"Chi2v", kier, func(w *work) float64 { return w.chi[shell][2] }},
	{"Chi3v", kier, func(w *work) float64 { return w.chi[shell][3] }},
	{"Chi4v", kier, func(w *work) float64 { return w.chi[shell][4] }},
	{"FpDensityMorgan1", counted, func(w *work) float64 { return w.density(1) }},
	{"FpDensityMorgan2", counted, func(w *work) float64 { return w.density(2) }},
	{"FpDensityMorgan3", counted, func(w *work) float64 { return w.density(3) }},
}

// Names returns the names of the descriptors, in the order of [Calculator.Compute].
func Names() []string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.name
	}
	return names
}

// Source returns the source of descriptor i: a paper or a word.
func Source(i int) string { return rows[i].source }

// Calculator computes descriptors. It keeps its memory between calls. Two goroutines must not use one
// Calculator at once. The zero Calculator is ready for use.
type Calculator struct{ work work }

// Compute sets dst, with one element for each of [Names], to the descriptors of a molecule. All are
// finite. Time and memory grow with the number of pairs of atoms.
func (c *Calculator) Compute(dst []float64, m *molecule.Molecule) {
	c.work.prepare(m)
	for i := range rows {
		dst[i] = rows[i].of(&c.work)
	}
}

// weight returns the molecular weight, in daltons.
func (w *work) weight() float64 {
	return w.heavyMass + float64(w.hydrogens)*molecule.ElementOf(1).Weight + w.isotopeMass
}

// density returns the number of different environments per heavy atom.
func (w *work) density(radius int) float64 {
	if w.heavy == 0 {
		return 0
	}
	w.morgan.Radius = radius
	return float64(len(w.morgan.Counts(w.m))) / float64(w.heavy)
}
