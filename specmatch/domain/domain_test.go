package domain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/domain"
)

// TestIndex: similarities by hand, the nearest molecules with their values, and what was never seen.
func TestIndex(t *testing.T) {
	rows := [][]string{{"CCO", "1"}, {"CCCO", "2"}, {"c1ccccc1", "3"}, {"CC(C)Cc1ccc(cc1)C(C)C(=O)O", ""}}
	set, err := domain.New([]string{"y"}, rows, []string{"CCN", "CCCCO"}, feature.Standardisation{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := domain.Open(feature.Standardisation{}, set, set)
	if err != nil {
		t.Fatal(err)
	}
	if x.Len() != 4 || !slices.Equal(x.Targets, []string{"y"}) || x.Least != set.Least {
		t.Errorf("%d molecules, targets %q, least %g", x.Len(), x.Targets, x.Least)
	}
	look := func(smiles string) domain.Finding {
		m, err := molecule.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		return x.Look(m, 2)
	}
	f := look("OCC")
	if f.Similarity() != 1 || f.Nearest[0].SMILES != "CCO" || f.Nearest[0].Values[0] != "1" || f.Reasons != nil ||
		f.Environments != 0 {
		t.Errorf("%+v", f)
	}
	// Propanol has 7 environments up to radius 1 and 2, ethanol 5; they share CH3, CH2, OH and CH2-OH.
	if f := look("CCCO"); f.Nearest[1].SMILES != "CCO" || !(f.Nearest[1].Similarity > 0.3 && f.Nearest[1].Similarity < 0.6) {
		t.Errorf("%+v", f)
	}
	if f := look("[2H]C([2H])([2H])CO"); strings.Contains(fmt.Sprint(f.Reasons), "no training molecule") {
		t.Errorf("deuterium is a new element: %v", f.Reasons)
	}
	for smiles, want := range map[string]string{
		"[Na+].[Cl-]":                     "no training molecule has Na",
		"[Fe+2].[cH-]1cccc1.[cH-]1cccc1":  "no training molecule has Fe",
		"F[U](F)(F)(F)(F)F":               "no training molecule has U",
		"*CC*":                            "no training molecule has *",
		"CCCO" + strings.Repeat("C", 60):  "64 heavy atoms, and no training molecule has more than 15",
		"O=C(O)C1=CC(=O)C(=O)C(=O)C1(O)O": "similarity",
	} {
		if f := look(smiles); !strings.Contains(strings.Join(f.Reasons, ", "), want) || f.Environments == 0 {
			t.Errorf("%s: %+v, want %s", smiles, f, want)
		}
	}
	set.Table = set.Table[:len(set.Table)/2]
	if _, err := domain.Open(feature.Standardisation{}, set); err == nil {
		t.Error("half a table is read")
	}
}
