package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// TestUnits: atoms at the end of a double or triple bond join with their neighbour, and units of a ring or a chain
// are of one fragment.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		smiles    string
		units     [][]int
		fragments []int
	}{
		{"CC#N", [][]int{{0}, {1, 2}}, []int{0, 0}},
		{"N#CC", [][]int{{0, 1}, {2}}, []int{0, 0}},
		{"O=C=O", [][]int{{0, 1, 2}}, []int{0}},
		{"C=CC=CC", [][]int{{0, 1}, {2}, {3}, {4}}, []int{0, 0, 0, 0}},
		{"CC(=O)C1CCC1", [][]int{{0}, {1, 2}, {3}, {4}, {5}, {6}}, []int{0, 0, 1, 1, 1, 1}},
	} {
		mol, err := molecule.Parse(c.smiles)
		if err != nil {
			t.Fatal(err)
		}
		units := mol.Units()
		if d := cmp.Diff(c.units, units); d != "" {
			t.Errorf("%s: units %s", c.smiles, d)
		}
		if d := cmp.Diff(c.fragments, fragmentsOf(mol, units)); d != "" {
			t.Errorf("%s: fragments %s", c.smiles, d)
		}
	}
}
