package descriptor

import (
	"math"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// polar describes a nitrogen or an oxygen in Ertl's table. single to aromatic count its bonds to
// neighbours other than hydrogen.
type polar struct {
	z, hydrogens, charge             int8
	single, double, triple, aromatic int8
	inRing3                          bool
}

// polarAreas is Ertl's table, in Å². A three-membered ring matters where both forms are listed.
var polarAreas = map[polar]float64{
	{z: 7, triple: 1}:               23.79,
	{z: 7, hydrogens: 1, double: 1}: 23.85,
	{z: 7, hydrogens: 2, single: 1}: 26.02,
	{
		z:         7,
		hydrogens: 2,
		charge:    1,
		double:    1,
	}: 25.59,
	{
		z:         7,
		hydrogens: 3,
		charge:    1,
		single:    1,
	}: 27.64,
	{z: 7, single: 1, double: 1}: 12.36,
	{z: 7, triple: 1, double: 1}: 13.60,
	{
		z:         7,
		hydrogens: 1,
		single:    2,
		inRing3:   true,
	}: 21.94,
	{z: 7, hydrogens: 1, single: 2}: 12.03,
	{
		z:      7,
		charge: 1,
		triple: 1,
		single: 1,
	}: 4.36,
	{
		z:         7,
		hydrogens: 1,
		charge:    1,
		single:    1,
		double:    1,
	}: 13.97,
	{
		z:         7,
		hydrogens: 2,
		charge:    1,
		single:    2,
	}: 16.61,
	{z: 7, aromatic: 2}:               12.89,
	{z: 7, hydrogens: 1, aromatic: 2}: 15.79,
	{
		z:         7,
		hydrogens: 1,
		charge:    1,
		aromatic:  2,
	}: 14.14,
	{z: 7, single: 3, inRing3: true}: 3.01,
	{z: 7, single: 3}:                3.24,
	{z: 7, single: 1, double: 2}:     11.68,
	{
		z:      7,
		charge: 1,
		single: 2,
		double: 1,
	}: 3.01,
	{
		z:         7,
		hydrogens: 1,
		charge:    1,
		single:    3,
	}: 4.44,
	{z: 7, aromatic: 3}:            4.41,
	{z: 7, single: 1, aromatic: 2}: 4.93,
	{z: 7, double: 1, aromatic: 2}: 8.39,
	{z: 7, charge: 1, aromatic: 3}: 4.10,
	{
		z:        7,
		charge:   1,
		single:   1,
		aromatic: 2,
	}: 3.88,
	{z: 7, charge: 1, single: 4}:     0,
	{z: 8, double: 1}:                17.07,
	{z: 8, hydrogens: 1, single: 1}:  20.23,
	{z: 8, charge: -1, single: 1}:    23.06,
	{z: 8, single: 2, inRing3: true}: 12.53,
	{z: 8, single: 2}:                9.23,
	{z: 8, aromatic: 2}:              13.14,
}

// polarSurface returns the sum of the areas of nitrogens and oxygens. Those outside of the table have
// an area by their numbers of neighbours and hydrogens.
func (w *work) polarSurface() float64 {
	sum := 0.0
	for i := range int32(len(w.m.Atoms)) {
		a := w.atom(i)
		if a.Z != 7 && a.Z != 8 {
			continue
		}
		p := polar{
			z:         a.Z,
			hydrogens: int8(w.allH[i]),
			charge:    a.Charge,
			inRing3:   w.inRing3[i],
		}
		neighbours := 0
		for _, l := range w.of(i) {
			if w.atom(l.atom).Z == 1 {
				continue
			}
			neighbours++
			switch l.bond.Type {
			case molecule.Single:
				p.single++
			case molecule.Double:
				p.double++
			case molecule.Triple:
				p.triple++
			case molecule.Aromatic:
				p.aromatic++
			}
		}
		area, listed := polarAreas[p]
		if !listed && p.inRing3 {
			p.inRing3 = false
			area, listed = polarAreas[p]
		}
		// The table has no bonds of other orders, such as dative ones.
		listed = listed && neighbours == int(p.single+p.double+p.triple+p.aromatic)
		switch {
		case listed:
		case a.Z == 7:
			area = max(0, 30.5-8.2*float64(neighbours)+1.5*float64(w.allH[i]))
		default:
			area = max(0, 28.5-8.6*float64(neighbours)+1.5*float64(w.allH[i]))
		}
		sum += area
	}
	return sum
}

// surface returns Labute's approximate surface: the spheres of the atoms without the parts that lie
// in the sphere of a neighbour. As in RDKit, each atom counts one hydrogen, however many it has. It
// leaves the parts of the atoms, without those of hydrogens, in w.areas.
func (w *work) surface() float64 {
	hydrogen := molecule.ElementOf(1).Radius
	covered := zeros(w.areas, len(w.m.Atoms))
	ofHydrogens := 0.0
	w.areas = covered
	for i := range w.m.Bonds {
		b := &w.m.Bonds[i]
		r := w.radius(b.Begin)
		s := w.radius(b.End)
		short := [...]float64{
			molecule.Aromatic: 0.1,
			molecule.Double:   0.2,
			molecule.Triple:   0.3,
			molecule.AnyOrder: 0,
		}[b.Type]
		if b.Type == molecule.Aromatic && !b.InRing {
			short = 0
		}
		d := max(math.Abs(r-s), r+s-short)
		if d == 0 {
			continue // wildcards
		}
		covered[b.Begin] += s*s - (r-d)*(r-d)/d
		covered[b.End] += r*r - (s-d)*(s-d)/d
	}
	sum := 0.0
	for i := range w.m.Atoms {
		r := w.radius(int32(i))
		d := max(math.Abs(r-hydrogen), r+hydrogen)
		covered[i] += hydrogen*hydrogen - (r-d)*(r-d)/d
		ofHydrogens += r*r - (hydrogen-d)*(hydrogen-d)/d
		covered[i] = math.Pi * r * (4*r - covered[i])
		sum += covered[i]
	}
	if sum == 0 { // no atom of a known radius
		return 0
	}
	return sum + math.Pi*hydrogen*(4*hydrogen-ofHydrogens)
}

func (w *work) radius(i int32) float64 { return molecule.ElementOf(w.atom(i).Z).Radius }
