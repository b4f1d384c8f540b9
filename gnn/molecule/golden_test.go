package molecule

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// golden is what RDKit makes of a molecule: testdata/make_golden.py.
type golden struct {
	SMILES    string
	Rejected  bool
	Atoms     [][4]int8 // Z, tag, hydrogens, aromatic
	Bonds     [][4]int  // begin, end, type, direction
	Rings     [][]int32
	Scaffold  *string
	Spellings []string
}

func loadGolden(t testing.TB) []golden {
	t.Helper()
	var file struct{ Molecules []golden }
	readGolden(t, &file)
	return file.Molecules
}

func readGolden(t testing.TB, file any) {
	t.Helper()
	b, err := os.ReadFile("testdata/rdkit.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, file); err != nil {
		t.Fatal(err)
	}
}

func (g *golden) compare(m *Molecule) error {
	if len(m.Atoms) != len(g.Atoms) || len(m.Bonds) != len(g.Bonds) {
		return fmt.Errorf("%d atoms and %d bonds, want %d and %d", len(m.Atoms), len(m.Bonds), len(g.Atoms), len(g.Bonds))
	}
	for i, a := range m.Atoms {
		aromatic := int8(0)
		if a.Aromatic {
			aromatic = 1
		}
		if have := [4]int8{a.Z, int8(a.Chirality), a.Hydrogens, aromatic}; have != g.Atoms[i] {
			return fmt.Errorf("atom %d: Z, tag, hydrogens, aromatic are %v, want %v", i, have, g.Atoms[i])
		}
	}
	for i, b := range m.Bonds {
		if have := [4]int{int(b.Begin), int(b.End), int(b.Type), int(b.Direction)}; have != g.Bonds[i] {
			return fmt.Errorf("bond %d: begin, end, type, direction are %v, want %v", i, have, g.Bonds[i])
		}
	}
	return nil
}

func sortedRings(s *ringSet) [][]int32 {
	var out [][]int32
	for r := range int32(s.count()) {
		ring := slices.Clone(s.atomsOf(r))
		slices.Sort(ring)
		out = append(out, ring)
	}
	slices.SortFunc(out, slices.Compare[[]int32])
	return out
}

// TestRDKit compares atoms, bonds and rings with RDKit's.
func TestRDKit(t *testing.T) {
	var p Parser
	accepted, rejected := 0, 0
	for _, g := range loadGolden(t) {
		m, err := p.Parse(g.SMILES)
		switch {
		case g.Rejected:
			rejected++
			if err == nil {
				t.Errorf("%s: accepted, and RDKit refuses it", g.SMILES)
			}
		case err != nil:
			t.Errorf("%s: %v", g.SMILES, err)
		default:
			accepted++
			if err := g.compare(m); err != nil {
				t.Errorf("%s: %v", g.SMILES, err)
			}
			if rings := sortedRings(&p.perceiver.rings); !slices.EqualFunc(rings, g.Rings, slices.Equal[[]int32]) {
				t.Errorf("%s: rings %v, want %v", g.SMILES, rings, g.Rings)
			}
		}
	}
	if accepted < 400 || rejected < 80 {
		t.Errorf("only %d molecules that RDKit accepts and %d that it refuses", accepted, rejected)
	}
}

// TestRDKitScaffolds: two molecules have the same scaffold exactly if RDKit
// writes the same SMILES for it.
func TestRDKitScaffolds(t *testing.T) {
	var p Parser
	ours, theirs := map[string]string{}, map[string]string{}
	for _, g := range loadGolden(t) {
		m, err := p.Parse(g.SMILES)
		if err != nil || g.Scaffold == nil {
			continue
		}
		key := p.Scaffold(m)
		if (key == "") != (*g.Scaffold == "") {
			t.Errorf("%s: the scaffold is %q, RDKit's %q", g.SMILES, key, *g.Scaffold)
		}
		if was, ok := ours[key]; ok && was != *g.Scaffold {
			t.Errorf("%s: the same scaffold as RDKit's %s, want %s", g.SMILES, was, *g.Scaffold)
		}
		if was, ok := theirs[*g.Scaffold]; ok && was != key {
			t.Errorf("%s: a scaffold unlike that of other molecules with RDKit's scaffold %s", g.SMILES, *g.Scaffold)
		}
		ours[key], theirs[*g.Scaffold] = *g.Scaffold, key
	}
	if len(ours) < 100 {
		t.Errorf("only %d scaffolds", len(ours))
	}
}

// TestKnownDifferences holds what the package comment says of differences from
// RDKit, release 2022.09.5: if one of them goes, so must its sentence.
func TestKnownDifferences(t *testing.T) {
	var p Parser
	scaffold := func(smiles string) string {
		m, err := p.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		return p.Scaffold(m)
	}
	for _, pair := range [][2]string{ // two scaffolds to RDKit
		{"C1CC1[Pt@SP1](C2CCC2)(C3CCCC3)C1CCCCC1", "C1CC1[Pt@SP2](C2CCC2)(C3CCCC3)C1CCCCC1"},
		{"C1CC1[Pt@SP2](C2CCC2)(C3CCCC3)C1CCCCC1", "C1CC1[Pt@SP3](C2CCC2)(C3CCCC3)C1CCCCC1"},
	} {
		if scaffold(pair[0]) != scaffold(pair[1]) {
			t.Errorf("%s and %s have different scaffolds", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{ // one scaffold to RDKit
		{"C[C](C)=C1CCCCC1", "CC(C)=C1CCCCC1"},
	} {
		if scaffold(pair[0]) == scaffold(pair[1]) {
			t.Errorf("%s and %s have the same scaffold", pair[0], pair[1])
		}
	}
}

// TestVerdicts: the verdicts of RDKit 2026.09.1.
func TestVerdicts(t *testing.T) {
	for _, smiles := range []string{
		"N->[Pt](<-N)(Cl)Cl", "N(C)(C)(C)[Fe]", "C1(C=CC=C1)[Fe]C1C=CC=C1", "[Fe+2].c1cc[cH-]c1.c1cc[cH-]c1", "n1(->[Zn])ccccc1",
		"Cl([Fe])[Fe]", "[P-](F)(F)(F)(F)(F)F", "F[Si-2](F)(F)(F)(F)F", "[H-]([Fe])[Fe]", "[#6][#8]",
		"C1=CC=CC2=b1C=CC=C2", "C1=COC=[pH]O1", "Cs1(C)CCCC1", "Cc1=NCCCC1", "[Li](C)C",
	} {
		if _, err := Parse(smiles); err != nil {
			t.Errorf("%s: %v", smiles, err)
		}
	}
	for smiles, want := range map[string]string{
		"Cc1(C)=NCCCC1":    `molecule: "Cc1(C)=NCCCC1": column 2: C has the valence 5, and at most 4 is allowed`,
		"O=b1NNC(=O)C=C1":  "B has the valence", // and its relatives
		"Nn1(C)CCCC1":      "N has the valence 4, and at most 3 is allowed",
		"CC1=CC=CC=c1(C)C": "C has the valence 5, and at most 4 is allowed",
		"n1(=O)CCCCC1":     "N has the valence 4, and at most 3 is allowed",
		"c1(C)(C)(C)CCCC1": "C has the valence 5, and at most 4 is allowed",
		"C1=n(C)C=CC=C1":   "N has the valence 4, and at most 3 is allowed",
		"C(=[Fe])(C)(C)C":  "C has the valence 5, and at most 4 is allowed",
		"F([Fe])[Fe]":      "F has the valence 2, and at most 1 is allowed",
		"C[Al](C)(C)(C)C":  "Al has the valence 5, and at most 3 is allowed",
		"C[#]":             "']' where an atomic number is expected",
		"C~~C":             "a bond where an atom is expected",
		"CC(=O) Oc1ccccc1": "column 7: a blank in a SMILES, behind which",
		"C\nCC":            "column 2: a blank in a SMILES",
		"CC |a":            "column 3: a blank in a SMILES",
		"C<C":              "'<' has no meaning here",
		"CCO>>CC=O":        "column 4: a reaction, and not one molecule",
		"CC.O>[Pd]>CCO":    "column 5: a reaction, and not one molecule",
	} {
		if _, err := Parse(smiles); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", smiles, err, want)
		}
	}
}

// TestRelease2026: where RDKit 2026.09.1 reads another molecule than 2022.09 does: whether atoms
// are aromatic, the dative bonds (begin, end), and the tag of the second atom.
func TestRelease2026(t *testing.T) {
	for _, c := range []struct {
		smiles, aromatic, before string // before is that of 2022.09, if it differs
		dative                   [][2]int32
		tag                      Chirality
	}{
		{"o1cccccccc1", "000000000", "111111111", nil, Unspecified}, // in large rings O and S give no electrons
		{"C1=CC=CC=CC=CS1", "000000000", "111111111", nil, Unspecified},
		{"[nH]1cccccccc1", "111111111", "", nil, Unspecified},
		{"[se]1cccccccc1", "111111111", "", nil, Unspecified},
		{"O1C=CNC=CC=C1", "11111111", "", nil, Unspecified},
		{"C1=CC2=CC=C1C(=O)OC3=C(C(=C(C(=C3Br)Br)Br)Br)OC2=O", "1111110001111110000000", "1111111011111110000110", nil, Unspecified},
		{"C1=CC2=C3C(=C1)C=CC4=CC=CC(=C4O3)C=C2", "11111111111111011", "11111111111111111", nil, Unspecified}, // O has no aromatic bond
		{"[cH-]12[cH]3[cH]4[cH]5[cH]16.[Fe+]23456", "111110", "-", [][2]int32{{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 5}}, Unspecified},
		{"[cH]1([Fe])ccccc1", "1011111", "-", [][2]int32{{0, 1}}, Unspecified},
		{"C[H-]", "00", "0", nil, Unspecified},
		{"C[N@H+]1CC[C@H](Nc2ncccn2)CC1", "00000011111100", "", nil, Clockwise}, // a protonated nitrogen keeps its configuration
		{"F[C@AL](Cl)(Br)I", "00000", "", nil, Other},
	} {
		for _, old := range []bool{false, true} {
			want := c.aromatic
			if old && c.before != "" {
				want = c.before
			}
			p := Parser{Release2022: old}
			m, err := p.Parse(c.smiles)
			if err != nil {
				if want != "-" {
					t.Errorf("%s: %v", c.smiles, err)
				}
				continue
			}
			have := ""
			for _, a := range m.Atoms {
				have += map[bool]string{false: "0", true: "1"}[a.Aromatic]
			}
			if have != want && want != "-" {
				t.Errorf("%s, of 2022 %v: aromatic are %s, want %s", c.smiles, old, have, want)
			}
			var dative [][2]int32
			for _, b := range m.Bonds {
				if b.Type == Dative {
					dative = append(dative, [2]int32{b.Begin, b.End})
				}
			}
			slices.SortFunc(dative, func(a, b [2]int32) int { return int(a[0] - b[0]) })
			if !old && (!slices.Equal(dative, c.dative) || len(m.Atoms) > 1 && m.Atoms[1].Chirality != c.tag) {
				t.Errorf("%s: dative %v, tag %v", c.smiles, dative, m.Atoms[1].Chirality)
			}
		}
	}
	if m, err := Parse("O=[HH-]"); err == nil {
		t.Errorf("a hydride of two bonds is read as %v", m)
	}
}

// TestCategories: a wildcard has a category of its own, and a dative bond, which points from
// the atom that gives, that of a single one.
func TestCategories(t *testing.T) {
	m, err := Parse("*[Pt]<-N")
	if err != nil {
		t.Fatal(err)
	}
	if b := m.Bonds[1]; b.Type != Dative || b.Begin != 2 || b.End != 1 || m.Atoms[2].Hydrogens != 3 {
		t.Errorf("bond %+v, atoms %+v", b, m.Atoms)
	}
	g, err := m.Graph()
	if err != nil || !slices.Equal(g.X.Category, []int32{118 * 3, 77 * 3, 6 * 3}) || !slices.Equal(g.EdgeLabel, []int32{0, 0, 0, 0}) {
		t.Errorf("graph %+v, %v", g, err)
	}
}

// TestPeriodicTable compares the elements with RDKit's.
func TestPeriodicTable(t *testing.T) {
	var file struct{ Elements [][4]any }
	readGolden(t, &file)
	if len(file.Elements) != len(elements) {
		t.Fatalf("%d elements, want %d", len(elements), len(file.Elements))
	}
	for z, e := range elements {
		have := fmt.Sprint(e.symbol, e.outer, e.isotope, e.valences)
		if want := fmt.Sprint(file.Elements[z][:]...); have != want {
			t.Errorf("element %d is %s, want %s", z, have, want)
		}
	}
}

// TestSpellings: the order in which the atoms of a molecule are written changes
// neither the molecule nor its scaffold.
func TestSpellings(t *testing.T) {
	var p Parser
	form := func(smiles string) (whole, scaffold string, ok bool) {
		m, err := p.Parse(smiles)
		if err != nil {
			t.Errorf("%s: %v", smiles, err)
			return "", "", false
		}
		m = m.Clone()
		scaffold = p.Scaffold(m)
		p.perceiver.reset(m)
		return p.perceiver.canon.form(&p.perceiver), scaffold, true
	}
	n := 0
	for _, g := range loadGolden(t) {
		if g.Rejected || slices.ContainsFunc(g.Atoms, func(a [4]int8) bool { return a[1] == int8(Other) }) {
			continue
		}
		whole, scaffold, ok := form(g.SMILES)
		for _, s := range g.Spellings {
			w, sc, ok2 := form(s)
			if !ok || !ok2 {
				continue
			}
			n++
			if w != whole {
				t.Errorf("%s is another molecule than %s", s, g.SMILES)
			} else if sc != scaffold {
				t.Errorf("%s has another scaffold than %s", s, g.SMILES)
			}
		}
	}
	if n < 800 {
		t.Errorf("only %d spellings", n)
	}
}
