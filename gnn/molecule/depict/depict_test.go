package depict

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
)

var all = flag.Bool("all", false, "draw all of 2,000 small and 200 large molecules")

const data = "../../../../shared/data"

// readColumn returns the first column called smiles of a table, every nth row.
func readColumn(t *testing.T, name string, every int, use func(smiles string) bool) {
	t.Helper()
	f, err := os.Open(filepath.Join(filepath.FromSlash(data), filepath.FromSlash(name)))
	if err != nil {
		t.Skip("no data sets: ", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := csv.NewReader(bufio.NewReader(z))
	column := -1
	for n := 0; ; n++ {
		line, err := lines.Read()
		if err != nil {
			return
		}
		for k, cell := range line {
			if n == 0 && cell == "smiles" {
				column = k
			}
		}
		if n > 0 && n%every == 0 && !use(line[column]) {
			return
		}
	}
}

// specimens returns molecules of ZINC, and larger ones of SIDER and the HIV set.
func specimens(t *testing.T, small, large int) (texts []string) {
	t.Helper()
	readColumn(t, "zinc/zinc250k.csv.gz", 20, func(smiles string) bool {
		texts = append(texts, smiles)
		return len(texts) < small
	})
	var p molecule.Parser
	for _, source := range []struct {
		name  string
		every int
	}{
		{"moleculenet/sider.csv.gz", 1},
		{"moleculenet/hiv.csv.gz", 20},
	} {
		end := len(texts) + large/2
		seen := 0
		readColumn(t, source.name, source.every, func(smiles string) bool {
			m, err := p.Parse(smiles)
			if err == nil && len(m.Atoms) >= 35 && len(m.Atoms) <= 100 {
				if seen%(200/large) == 0 {
					texts = append(texts, smiles)
				}
				seen++
			}
			return len(texts) < end
		})
	}
	return texts
}

// TestConfigured: drawings of molecules with configurations have no faults.
func TestConfigured(t *testing.T) { checkDrawings(t, configured) }

// TestDative: rings that only dative bonds close are drawn as rings: in one piece with others or not.
func TestDative(t *testing.T) {
	var p molecule.Parser
	for _, text := range []string{
		"C1C[NH2][Pt](Cl)(Cl)[NH2]1",
		"C1C[NH2]->[Pt](Cl)(Cl)<-[NH]1C",
		"C1CN2->[Pt](Cl)(<-N1)<-NCC2",
		"NCC1=O->[Cu]<-N1",
		"O=C1C[NH2]->[Cu]2(O1)OC(=O)C[NH2]->2",
		"C1CN2->[Fe]34(<-N1)<-N(CC2)CCN->3CCN->4",
		"c1ccc2c(c1)N->[Pt](Cl)(Cl)<-N2",
		"c1ccn2->[Ru](Cl)(Cl)<-n3ccccc3c2c1",
		"[CH-]12->[Fe+2]345<-[CH]1=[CH]->3[CH]->4=[CH]->52",
	} {
		m, err := p.Parse(text)
		if err != nil {
			t.Fatal(text, err)
		}
		for _, fault := range faults(Layout(m.Clone())) {
			t.Errorf("%s: %s", text, fault)
		}
	}
}

// TestDrawings: drawings of real molecules have no faults.
func TestDrawings(t *testing.T) {
	if *all {
		checkDrawings(t, specimens(t, 2000, 200))
	} else {
		checkDrawings(t, specimens(t, 100, 20))
	}
}

// checkDrawings checks that bonds cross only in graphs that are not planar, that no two atoms are nearer than half a
// bond, that no atom is on a bond of others, and that a reader of the drawing finds the molecule with its
// configurations.
func checkDrawings(t *testing.T, texts []string) {
	t.Helper()
	var p molecule.Parser
	faulty := 0
	marks := 0
	for _, text := range texts {
		m, err := p.Parse(text)
		if err != nil {
			t.Fatal(text, err)
		}
		m = m.Clone()
		d := Layout(m)
		marks += len(d.Wedges)
		faults := faults(d)
		read, err := p.ParseMolfile(molfile(d))
		if err != nil {
			faults = append(faults, err.Error())
		} else if difference := compare(m, read); difference != "" {
			faults = append(faults, difference)
		}
		if len(faults) > 0 {
			faulty++
			t.Errorf("%s: %s", text, strings.Join(faults, "; "))
		}
	}
	t.Logf("%d molecules, %d wedges, %d drawings with faults", len(texts), marks, faulty)
	if marks < len(texts)/10 {
		t.Errorf("only %d wedges", marks)
	}
}

// faults lists what is wrong with a drawing.
func faults(d *Drawing) (faults []string) {
	type segment struct{ begin, end int }
	var segments []segment
	for _, b := range d.mol.Bonds {
		segments = append(segments, segment{int(b.Begin), int(b.End)})
	}
	for k, i := range d.Hydrogens {
		segments = append(segments, segment{i, len(d.mol.Atoms) + k})
	}
	for i, a := range d.Atoms {
		if math.IsNaN(a.X + a.Y) {
			return []string{fmt.Sprintf("atom %d is nowhere", i)}
		}
		for j, b := range d.Atoms[:i] {
			if distance := math.Hypot(a.X-b.X, a.Y-b.Y); distance < 0.5 {
				faults = append(faults, fmt.Sprintf("atoms %d and %d are %.2f apart", j, i, distance))
			}
		}
		for _, s := range segments {
			if s.begin == i || s.end == i {
				continue
			}
			b := d.Atoms[s.begin]
			e := d.Atoms[s.end]
			along := ((a.X-b.X)*(e.X-b.X) + (a.Y-b.Y)*(e.Y-b.Y)) / math.Pow(math.Hypot(e.X-b.X, e.Y-b.Y), 2)
			along = min(max(along, 0), 1)
			if distance := math.Hypot(b.X+along*(e.X-b.X)-a.X, b.Y+along*(e.Y-b.Y)-a.Y); distance < 0.2 {
				faults = append(faults, fmt.Sprintf("atom %d is on the bond of %d and %d", i, s.begin, s.end))
			}
		}
	}
	side := func(a, b, c Point) float64 { return (b.X-a.X)*(c.Y-a.Y) - (b.Y-a.Y)*(c.X-a.X) }
	for k, s := range segments {
		for _, o := range segments[:k] {
			if s.begin == o.begin || s.begin == o.end || s.end == o.begin || s.end == o.end {
				continue
			}
			a := d.Atoms[s.begin]
			b := d.Atoms[s.end]
			c := d.Atoms[o.begin]
			e := d.Atoms[o.end]
			if side(a, b, c)*side(a, b, e) < -1e-9 && side(c, e, a)*side(c, e, b) < -1e-9 {
				faults = append(faults, fmt.Sprintf("bonds %d-%d and %d-%d cross", s.begin, s.end, o.begin, o.end))
			}
		}
	}
	return faults
}

// compare says in what two molecules with equal numbers of atoms differ.
func compare(want, got *molecule.Molecule) string {
	if len(want.Atoms) != len(got.Atoms) || len(want.Bonds) != len(got.Bonds) {
		return fmt.Sprintf("%d atoms and %d bonds, want %d and %d",
			len(got.Atoms), len(got.Bonds), len(want.Atoms), len(want.Bonds))
	}
	for i := range want.Atoms {
		a := &want.Atoms[i]
		b := &got.Atoms[i]
		if a.Z != b.Z || a.Charge != b.Charge || a.Hydrogens != b.Hydrogens || isCentre(a) != isCentre(b) ||
			a.Chirality != b.Chirality && isCentre(a) {
			return fmt.Sprintf("atom %d is %+v, want %+v", i, *b, *a)
		}
	}
	for k := range want.Bonds {
		a := &want.Bonds[k]
		b := &got.Bonds[k]
		if a.Type != b.Type || a.CIP() != b.CIP() {
			return fmt.Sprintf("bond %d is %+v, want %+v", k, *b, *a)
		}
	}
	return ""
}

// configured are molecules with configurations of many kinds.
var configured = []string{
	"C/C=C/C", "C/C=C\\C", "F/C=C/C=C\\Cl", "C/C(F)=C(/Cl)Br", "C/C=C\\C(/Cl)=C/F", "C/C=C/C(\\Cl)=C/F",
	"CC/C(C)=N/O", "C[C@H](N)C(=O)O", "C[S@](=O)c1ccccc1",
	"C1CCCCC/C=C/CCCC1", "C1CC/C=C\\CCC1", "C1CC/C=C/CCC1", "C[C@@H]1CC[C@H](O)CC1", "O1[C@@H]2CC[C@H]1CC2",
	"C[C@@]12CC[C@H](CC1=O)C2(C)C", "C[C@]12CC[C@H]3[C@H]([C@@H]1CC[C@@H]2O)CCC4=CC(=O)CC[C@]34C",
	"C/C=C/1\\CCCC[C@H]1C", "N[C@@](F)(Cl)Br", "OC[C@H]1O[C@@H](O)[C@H](O)[C@@H](O)[C@@H]1O", "C12C3C4C1C5C2C3C45", "C1C2CC3CC1CC(C2)C3",
	"CN1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5", "c1cc2cc3ccc(cc4ccc(cc5ccc(cc1n2)[nH]5)n4)[nH]3",
	"C=CC[C@@H]1/C=C(C)/C[C@H](C)C[C@H](OC)[C@H]2O[C@@](O)([C@H](C)C[C@@H]2OC)C(=O)C(=O)N2CCCC[C@H]2C(=O)O" +
		"[C@H](/C(C)=C/[C@@H]2CC[C@@H](O)[C@H](OC)C2)[C@H](C)[C@@H](O)CC1=O",
}

// molfile writes a drawing as V2000, with valences for atoms whose hydrogens a reader would not guess. Double bonds
// without a configuration are crossed.
func molfile(d *Drawing) string {
	var b strings.Builder
	bonds := len(d.mol.Bonds) + len(d.Hydrogens)
	fmt.Fprintf(&b, "\n\n\n%3d%3d  0  0  0  0  0  0  0  0999 V2000\n", len(d.Atoms), bonds)
	for i, place := range d.Atoms {
		symbol := "H"
		valence := 0
		if i < len(d.mol.Atoms) {
			a := &d.mol.Atoms[i]
			symbol = molecule.Symbol(a.Z)
			valence = a.Valence()
			if valence == 0 {
				valence = 15
			}
		}
		fmt.Fprintf(&b, "%10.4f%10.4f%10.4f %-3s 0  0  0  0  0%3d  0  0  0  0  0  0\n", place.X, place.Y, 0.0, symbol, valence)
	}
	marks := map[[2]int]int{}
	for _, w := range d.Wedges {
		mark := 6
		if w.Up {
			mark = 1
		}
		marks[[2]int{w.Begin, w.End}] = mark
	}
	line := func(begin, end, order, mark int) {
		if m, ok := marks[[2]int{begin, end}]; ok {
			mark = m
		} else if m, ok := marks[[2]int{end, begin}]; ok {
			begin, end, mark = end, begin, m
		}
		fmt.Fprintf(&b, "%3d%3d%3d%3d\n", begin+1, end+1, order, mark)
	}
	for k := range d.mol.Bonds {
		bond := &d.mol.Bonds[k]
		order := map[molecule.BondType]int{
			molecule.Single: 1,
			molecule.Double: 2,
			molecule.Triple: 3,
			molecule.Dative: 9,
		}[bond.Kekule()]
		mark := 0
		if order == 2 && bond.CIP() == 0 {
			mark = 3
		}
		line(int(bond.Begin), int(bond.End), order, mark)
	}
	for k, i := range d.Hydrogens {
		line(i, len(d.mol.Atoms)+k, 1, 0)
	}
	for i, a := range d.mol.Atoms {
		if a.Charge != 0 {
			fmt.Fprintf(&b, "M  CHG  1%4d%4d\n", i+1, a.Charge)
		}
		if a.Isotope != 0 {
			fmt.Fprintf(&b, "M  ISO  1%4d%4d\n", i+1, a.Isotope)
		}
	}
	b.WriteString("M  END\n")
	return b.String()
}
