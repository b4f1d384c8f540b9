package molecule_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// TestFragments: rings, groups and chains, as a chemist divides a molecule; every atom is in one of them.
func TestFragments(t *testing.T) {
	for smiles, want := range map[string]string{
		"CC(=O)Oc1ccccc1C(=O)O":   "C,C,O,O C,C,C,C,C,C C,O,O",       // aspirin
		"FC(F)(F)c1ccc(OC)cc1":    "F,C,F,F C,C,C,C,C,C O,C",         // two groups at a ring
		"CCN(CC)C(=O)CCl":         "C,C,N,C,C C,O,C,Cl",              // an amide between chains
		"CS(=O)(=O)NCC1CCCCC1":    "C,S,O,O N,C C,C,C,C,C,C",         // a sulfonamide
		"c1ccc2ccccc2c1-c1ccncc1": "C,C,C,C,C,C,C,C,C,C C,C,C,N,C,C", // fused rings are one
		"CCCCCC":                  "C,C,C,C,C,C",                     // nothing to cut
		"CC(=O)N":                 "C,C,O,N",                         // a group of its own
		"[Na+].[O-]C(=O)c1ccccc1": "Na O,C,O C,C,C,C,C,C",            // parts stay apart
		"O=[N+]([O-])c1ccccc1":    "O,N,O C,C,C,C,C,C",               // nitro
		"C1CC1C1CC1":              "C,C,C C,C,C",                     // ring to ring
		"O=C1CCCN1CC(=O)OCC":      "O,C,C,C,C,N C,C,O O,C,C",         // =O stays at its ring; an ester
	} {
		m, err := molecule.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		seen := map[int]bool{}
		for _, atoms := range m.Fragments() {
			var symbols []string
			for _, i := range atoms {
				symbols = append(symbols, molecule.Symbol(m.Atoms[i].Z))
				seen[i] = true
			}
			texts = append(texts, strings.Join(symbols, ","))
		}
		if got := strings.Join(texts, " "); got != want || len(seen) != len(m.Atoms) {
			t.Errorf("%s: %s, want %s (%s)", smiles, got, want, fmt.Sprint(m.Fragments()))
		}
	}
}
