package molecule

import (
	"bufio"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// TestStandard: a molecule in standard form is the one that another SMILES writes.
func TestStandard(t *testing.T) {
	largest, neutral := feature.Standardisation{LargestFragment: true}, feature.Standardisation{Neutralise: true}
	both := feature.Standardisation{LargestFragment: true, Neutralise: true}
	for _, c := range []struct {
		smiles string
		how    feature.Standardisation
		want   string
	}{
		{"CC(=O)[O-].[Na+]", feature.Standardisation{}, "CC(=O)[O-].[Na+]"},
		{"CC(=O)[O-].[Na+]", largest, "CC(=O)[O-]"},
		{"[Na+].CC(=O)[O-]", both, "CC(=O)O"},
		{"[Na+].CC(=O)[O-]", neutral, "[Na+].CC(=O)[O-]"},              // the sodium cannot
		{"[Na+].[O-]C(=O)C(=O)[O-]", neutral, "[Na+].OC(=O)C(=O)[O-]"}, // nor can one anion for it
		{"CCO.CCN.CCCl", largest, "CCN"},                               // the most hydrogens
		{"CCO.COC", largest, "CCO"},                                    // of equal ones the first
		{"CCC.C([2H])([2H])([2H])C", largest, "CCC"},
		{"[H]C([H])([H])[H].CC", largest, "CC"},
		{"[BH4-].[Na+]", largest, "[BH4-]"},
		{"C.F[P-](F)(F)(F)(F)F", largest, "C"},                    // carbon goes first
		{"F/C=C/F.O.C[C@H](N)C(=O)O", largest, "C[C@H](N)C(=O)O"}, // what is left keeps its configuration
		{"Cl.N[C@@H](C)CC/C=C\\C", largest, "N[C@@H](C)CC/C=C\\C"},
		{"CC(C)(C)(C)C.CCCCCCCC", largest, "CCCCCCCC"}, // what is left out may be wrong
		{"C[NH3+].[Cl-]", neutral, "CN.Cl"},
		{"[NH3+]CC(=O)[O-]", neutral, "NCC(=O)O"},                   // a zwitterion
		{"C[N+](C)(C)CC(=O)[O-]", neutral, "C[N+](C)(C)CC(=O)[O-]"}, // one that cannot
		{"C[N+](=O)[O-]", neutral, "C[N+](=O)[O-]"},                 // neighbours
		{"CN=[N+]=[N-]", neutral, "CN=[N+]=[N-]"},
		{"CN(=O)=O", neutral, "CN(=O)=O"},
		{"c1cc[nH+]cc1", neutral, "c1ccncc1"},
		{"c1cc[n-]c1", neutral, "c1cc[nH]c1"},
		{"C[S-]", neutral, "CS"},
		{"[O-2]", neutral, "[O-2]"}, // one charge only
		{"[CH3-]", neutral, "C"},
		{"[BH4-]", neutral, "B"}, // an early element loses a hydrogen
		{"F[B-](F)(F)F.[NH3+]CCC", neutral, "F[B-](F)(F)F.[NH3+]CCC"},
		{"[O-]CC(=O)[O-].[Na+]", neutral, "OCC(=O)[O-].[Na+]"}, // the alkoxide before the acid
		{"F[P-](F)(F)(F)(F)F", neutral, "F[P-](F)(F)(F)(F)F"},  // it would have too many
		{"[Fe+2]", neutral, "[Fe+2]"},
		{"[H+].[OH-]", neutral, "[H+].[OH-]"},
		{"CC(=O)[O-]", neutral, "CC(=O)O"},
		{"C[n+]1ccccc1.CCS(=O)(=O)[O-]", neutral, "C[n+]1ccccc1.CCS(=O)(=O)[O-]"},
		{"C[n+]1ccccc1.CCS(=O)(=O)[O-]", both, "C[n+]1ccccc1"},
		{"C[N@@H+](CC)CCO", neutral, "CN(CC)CCO"},
		{"O=S(=O)([O-])c1ccccc1.C[NH2+]C", neutral, "O=S(=O)(O)c1ccccc1.CNC"},
		{"CC([O-])=[NH+]C", neutral, "CC(O)=NC"}, // not neighbours
		{"[O-]P(=O)([O-])OC.[K+].[K+]", both, "OP(=O)(O)OC"},
		{"[13CH3]C(=O)[18O-]", neutral, "[13CH3]C(=O)[18OH]"},
		{"[Cl-].[Cl-].[Ca+2].[O-]C(=O)C", neutral, "Cl.[Cl-].[Ca+2].[O-]C(=O)C"},
		{"[NH4+].[NH4+].[O-]S(=O)(=O)[O-]", neutral, "N.N.OS(=O)(=O)O"},
	} {
		p := Parser{Standard: c.how}
		m, err := p.Parse(c.smiles)
		if err != nil {
			t.Errorf("%s: %v", c.smiles, err)
			continue
		}
		got := sketch(m)
		want, err := Parse(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if sketch(want) != got {
			t.Errorf("%s: %s, want %s", c.smiles, got, sketch(want))
		}
	}
	// What is wrong with what is left is reported in the place where it stands.
	_, err := (&Parser{Standard: both}).Parse("[Na+].CC(C)(C)(C)C")
	if e, ok := err.(*Error); !ok || e.Column != 8 {
		t.Errorf("%v", err)
	}
}

var standardTable = flag.String("standard", "testdata/standard.tsv", "table by testdata/rdkit_standard.py, to compare with")

// TestStandardTable compares largest fragments and neutral forms with RDKit's:
//
//	python3 testdata/rdkit_standard.py TABLE FILE.csv.gz ...
//	go test -run StandardTable -v -standard TABLE
func TestStandardTable(t *testing.T) {
	f, err := os.Open(*standardTable)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// RDKit makes PF₅H of PF₆⁻, a phosphorus of valence 7 that it does not read.
	invalid := []string{"F[P-](F)(F)(F)(F)F", "C1=CC=C[CH+]C=C1.F[P-](F)(F)(F)(F)F"}
	var plain Parser
	parsers := [3]Parser{}
	parsers[0].Standard.LargestFragment = true
	parsers[1].Standard.Neutralise = true
	parsers[2].Standard = feature.Standardisation{LargestFragment: true, Neutralise: true}
	rows := 0
	differ := 0
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		fields := strings.Split(scanner.Text(), "\t")
		if slices.Contains(invalid, fields[0]) {
			continue
		}
		rows++
		same := true
		for k := range parsers {
			p := &parsers[k]
			m, err := p.Parse(fields[0])
			if err != nil {
				t.Logf("%s: %v", fields[0], err)
				same = false
				continue
			}
			form := p.Canonical(m)
			text := m.SMILES()
			want, err := plain.Parse(fields[k+1])
			if err != nil {
				t.Logf("%s: RDKit's %s: %v; here %s", fields[0], fields[k+1], err, text)
				same = false
			} else if plain.Canonical(want) != form {
				t.Logf("%s: %s, want %s", fields[0], text, fields[k+1])
				same = false
			}
		}
		if !same {
			differ++
		}
	}
	t.Logf("%d of %d molecules differ", differ, rows)
	if rows < 60 || 2000*differ > rows {
		t.Errorf("%d of %d molecules differ", differ, rows)
	}
}

// TestKept: atoms of the string that are of dropped fragments are known, whatever the parser read before; hydrogens
// that become counts are none of them.
func TestKept(t *testing.T) {
	for _, neutralise := range []bool{false, true} {
		p := Parser{Standard: feature.Standardisation{LargestFragment: true, Neutralise: neutralise}}
		for _, c := range []struct {
			smiles string
			kept   string // a character for each atom; "" without dropped ones
		}{
			{"[Na+].CC(=O)[O-]", ".1111"},
			{"CCO", ""},
			{"CC(=O)O.[Na+].CCN", ".....111"},
			{"[H+].CC(=O)[O-]", ".1111"},
			{"[H]OCC.[H]Cl", "111."},
			{"[2H]OCC.Cl", "1111."},
			{"[H][H].CC", "..11"},
			{"OCC", ""},
		} {
			m, err := p.Parse(c.smiles)
			if err != nil {
				t.Fatal(err)
			}
			kept := ""
			for _, isKept := range m.Clone().Kept {
				kept += map[bool]string{true: "1", false: "."}[isKept]
			}
			if kept != c.kept {
				t.Errorf("%s, neutralised: %t: %q are kept, want %q", c.smiles, neutralise, kept, c.kept)
			}
			if part, err := p.Without(m.Clone(), 0); err == nil && len(part.Kept) > 0 {
				t.Errorf("%s without its first atom was not read from a string, and has %v", c.smiles, part.Kept)
			}
		}
	}
}
