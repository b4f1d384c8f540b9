package descriptor

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/smarts"
)

// RDKit computes all descriptors of RDKit's Descriptors.descList (release 2026.09): those of
// [Calculator] and [Crippen], and counts of functional groups, electrotopological states, surface areas
// by property, partial charges, Burden's eigenvalues, information content, QED and the spacial score. It
// keeps its memory between calls. Two goroutines must not use one RDKit at once. The zero RDKit is ready
// for use.
//
// Values that RDKit does not define are 0: charges next to elements without parameters, and what is
// beyond the range of a float64. See the package comment for where values differ.
type RDKit struct{ work extended }

// RDKitNames returns the names of the descriptors, in RDKit's order and that of [RDKit.Compute].
func RDKitNames() []string { return slices.Clone(rdkitNames) }

// Compute sets dst, with one element for each of [RDKitNames], to the descriptors of a molecule. All are
// finite. Time and memory grow with the number of pairs of atoms, and time with the cube of the number of
// atoms for the eigenvalues and for Ipc.
func (c *RDKit) Compute(dst []float64, m *molecule.Molecule) {
	c.work.prepare(m)
	for i, value := range rdkitValues {
		dst[i] = value(&c.work)
		if math.IsNaN(dst[i]) || math.IsInf(dst[i], 0) {
			dst[i] = 0
		}
	}
}

// extended is a molecule with the intermediate results of all descriptors.
type extended struct {
	work
	matcher smarts.Matcher

	// for every atom
	states        []float64 // electrotopological
	charges       []float64 // Gasteiger's
	masses        []float64
	contributions [2][]float64 // to logP and to the molar refractivity

	logP, refraction               float64 // with hydrogens
	highestCharge, lowestCharge    float64
	highestState, lowestState      float64
	largestState, smallestState    float64 // of their magnitudes
	information, informationByTerm float64
	binned                         [series][]float64
	eigenvalues                    [4]extremes // by mass, charge, logP and refractivity
	qed                            float64

	hops    []int32 // breadth-first search: distances from an atom
	queue   []int32
	gas     gasteiger
	matrix  []float64 // Burden's
	power   [2][]float64
	terms   []float64
	removed []bool

	neighbours []int32 // of every atom, in ascending order
}

// Series of descriptors that differ in the bin.
const (
	peoe = iota
	smr
	slogp
	estateArea
	areaEState
	series
)

// bins has the names of the series and the lower bounds of their bins but the first.
var bins = [series]struct {
	name   string
	bounds []float64
}{
	peoe: {"PEOE_VSA", []float64{
		-0.30, -0.25, -0.20, -0.15, -0.10, -0.05, 0, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30,
	}},
	smr:   {"SMR_VSA", []float64{1.29, 1.82, 2.24, 2.45, 2.75, 3.05, 3.63, 3.8, 4.0}},
	slogp: {"SlogP_VSA", []float64{-0.4, -0.2, 0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6}},
	estateArea: {"EState_VSA", []float64{
		-0.390, 0.290, 0.717, 1.165, 1.540, 1.807, 2.05, 4.69, 9.17, 15.0,
	}},
	areaEState: {"VSA_EState", []float64{4.78, 5.00, 5.410, 5.740, 6.00, 6.07, 6.45, 7.00, 11.0}},
}

// value returns a descriptor of a molecule that has been prepared.
type value func(x *extended) float64

// single has the descriptors that stand alone and that rows do not have.
var single = map[string]value{
	"MaxAbsEStateIndex": func(x *extended) float64 { return x.largestState },
	"MaxEStateIndex":    func(x *extended) float64 { return x.highestState },
	"MinAbsEStateIndex": func(x *extended) float64 { return x.smallestState },
	"MinEStateIndex":    func(x *extended) float64 { return x.lowestState },
	"qed":               func(x *extended) float64 { return x.qed },
	"SPS":               (*extended).spacialScore,
	"NumRadicalElectrons": func(x *extended) float64 {
		n := 0
		for i := range x.m.Atoms {
			n += x.m.Atoms[i].Radicals()
		}
		return float64(n)
	},
	"MaxPartialCharge": func(x *extended) float64 { return x.highestCharge },
	"MinPartialCharge": func(x *extended) float64 { return x.lowestCharge },
	"MaxAbsPartialCharge": func(x *extended) float64 {
		return max(math.Abs(x.highestCharge), math.Abs(x.lowestCharge))
	},
	"MinAbsPartialCharge": func(x *extended) float64 {
		return min(math.Abs(x.highestCharge), math.Abs(x.lowestCharge))
	},
	"BCUT2D_MWHI":    func(x *extended) float64 { return x.eigenvalues[0].highest },
	"BCUT2D_MWLOW":   func(x *extended) float64 { return x.eigenvalues[0].lowest },
	"BCUT2D_CHGHI":   func(x *extended) float64 { return x.eigenvalues[1].highest },
	"BCUT2D_CHGLO":   func(x *extended) float64 { return x.eigenvalues[1].lowest },
	"BCUT2D_LOGPHI":  func(x *extended) float64 { return x.eigenvalues[2].highest },
	"BCUT2D_LOGPLOW": func(x *extended) float64 { return x.eigenvalues[2].lowest },
	"BCUT2D_MRHI":    func(x *extended) float64 { return x.eigenvalues[3].highest },
	"BCUT2D_MRLOW":   func(x *extended) float64 { return x.eigenvalues[3].lowest },
	"AvgIpc":         func(x *extended) float64 { return x.informationByTerm },
	"Ipc":            func(x *extended) float64 { return x.information },
	"MolLogP":        func(x *extended) float64 { return x.logP },
	"MolMR":          func(x *extended) float64 { return x.refraction },
}

// order has the names in RDKit's order, without the counts of fragments, which come last. A name with a
// star stands for a series, sorted as text.
const order = `MaxAbsEStateIndex MaxEStateIndex MinAbsEStateIndex MinEStateIndex qed SPS MolWt HeavyAtomMolWt
ExactMolWt NumValenceElectrons NumRadicalElectrons MaxPartialCharge MinPartialCharge MaxAbsPartialCharge
MinAbsPartialCharge FpDensityMorgan1 FpDensityMorgan2 FpDensityMorgan3 BCUT2D_MWHI BCUT2D_MWLOW BCUT2D_CHGHI
BCUT2D_CHGLO BCUT2D_LOGPHI BCUT2D_LOGPLOW BCUT2D_MRHI BCUT2D_MRLOW AvgIpc BalabanJ BertzCT Chi0 Chi0n Chi0v Chi1
Chi1n Chi1v Chi2n Chi2v Chi3n Chi3v Chi4n Chi4v HallKierAlpha Ipc Kappa1 Kappa2 Kappa3 LabuteASA PEOE_VSA*
SMR_VSA* SlogP_VSA* TPSA EState_VSA* VSA_EState* FractionCSP3 HeavyAtomCount NHOHCount NOCount
NumAliphaticCarbocycles NumAliphaticHeterocycles NumAliphaticRings NumAmideBonds NumAromaticCarbocycles
NumAromaticHeterocycles NumAromaticRings NumAtomStereoCenters NumBridgeheadAtoms NumHAcceptors NumHDonors
NumHeteroatoms NumHeterocycles NumRotatableBonds NumSaturatedCarbocycles NumSaturatedHeterocycles
NumSaturatedRings NumSpiroAtoms NumUnspecifiedAtomStereoCenters Phi RingCount MolLogP MolMR`

var rdkitNames, rdkitValues = listRDKit()

func listRDKit() (names []string, values []value) {
	byName := map[string]value{}
	for _, r := range rows {
		byName[r.name] = func(x *extended) float64 { return r.of(&x.work) }
	}
	for name, value := range single {
		byName[name] = value
	}
	for name := range strings.FieldsSeq(order) {
		if strings.HasSuffix(name, "*") {
			names = append(names, binsAsText(strings.TrimSuffix(name, "*"), byName)...)
			continue
		}
		names = append(names, name)
	}
	for _, f := range fragments() {
		names = append(names, f.name)
		byName[f.name] = func(x *extended) float64 { return float64(x.matcher.Count(f.pattern)) }
	}
	for _, name := range names {
		values = append(values, byName[name])
	}
	return names, values
}

// binsAsText adds the descriptors of a series to a table, and returns their names sorted as text.
func binsAsText(name string, byName map[string]value) (names []string) {
	for s, b := range bins {
		if b.name != name {
			continue
		}
		for k := range len(b.bounds) + 1 {
			bin := name + strconv.Itoa(k+1)
			names = append(names, bin)
			byName[bin] = func(x *extended) float64 { return x.binned[s][k] }
		}
	}
	slices.Sort(names)
	return names
}

// prepare computes the results that descriptors share.
func (x *extended) prepare(m *molecule.Molecule) {
	x.work.prepare(m)
	x.matcher.Reset(m)
	x.surface()
	x.findStates()
	x.findContributions()
	x.findCharges()
	x.bin(peoe, x.charges, x.areas)
	x.bin(smr, x.contributions[1], x.areas)
	x.bin(slogp, x.contributions[0], x.areas)
	x.bin(estateArea, x.states, x.areas)
	x.bin(areaEState, x.areas, x.states)
	x.findEigenvalues()
	x.findInformation()
	x.qed = x.drugLikeness()
}

// bin sums the weights of atoms by a property.
func (x *extended) bin(series int, property, weights []float64) {
	bounds := bins[series].bounds
	sums := zeros(x.binned[series], len(bounds)+1)
	x.binned[series] = sums
	for i, p := range property {
		k := 0
		for k < len(bounds) && !(p < bounds[k]) { // an undefined property counts as the largest
			k++
		}
		sums[k] += weights[i]
	}
}

// findContributions computes the parts of the atoms in logP and refractivity, without their hydrogens,
// and the sums with them.
func (x *extended) findContributions() {
	n := len(x.m.Atoms)
	for k := range x.contributions {
		x.contributions[k] = zeros(x.contributions[k], n)
	}
	x.logP = 0
	x.refraction = 0
	for i := range int32(n) {
		s := x.share(i)
		x.contributions[0][i] = s.logP
		x.contributions[1][i] = s.refraction
		x.logP += s.logP
		x.refraction += s.refraction
		if h := x.m.Atoms[i].Hydrogens; h > 0 {
			s = x.hydrogenAt(i, -1)
			x.logP += float64(h) * s.logP
			x.refraction += float64(h) * s.refraction
		}
	}
}
