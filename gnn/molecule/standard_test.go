package molecule

import (
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
		{"[Na+].[O-]C(=O)C(=O)[O-]", neutral, "[Na+].[O-]C(=O)C(=O)O"}, // nor can the first for it
		{"CCO.CCN.CCCl", largest, "CCCl"},                              // of equal size, the heaviest
		{"CCN.NCC", largest, "CCN"},                                    // of equal ones the first
		{"CCC.C([2H])([2H])([2H])C", largest, "CCC"},                   // hydrogens do not count
		{"[H]C([H])([H])[H].CC", largest, "CC"},                        // nor these
		{"F/C=C/F.O.C[C@H](N)C(=O)O", largest, "C[C@H](N)C(=O)O"},      // what is left keeps its configuration
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
		{"[O-2]", neutral, "O"},
		{"[CH3-]", neutral, "[CH3-]"},                         // carbon is left alone
		{"F[P-](F)(F)(F)(F)F", neutral, "F[P-](F)(F)(F)(F)F"}, // it would have too many
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
		{"[Cl-].[Cl-].[Ca+2].[O-]C(=O)C", neutral, "[Cl-].[Cl-].[Ca+2].OC(=O)C"},
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
