package molecule_test

import (
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// TestWithout compares molecules without an atom with those that a chemist writes.
func TestWithout(t *testing.T) {
	for _, c := range []struct {
		smiles string
		atom   int
		want   string
	}{
		{"Clc1ccccc1", 0, "c1ccccc1"},
		{"Clc1ccccc1", 1, "Cl.CC=CC=C"},
		{"CC(=O)O", 2, "CCO"},
		{"CC(=O)O", 3, "CC=O"},
		{"CC(=O)O", 1, "C.O.O"},
		{"C#N", 1, "C"},
		{"CS(=O)(=O)C", 2, "CS(=O)C"},
		{"c1cc[nH]c1", 3, "C=CC=C"},
		{"Cn1cccc1", 0, "[nH]1cccc1"},
		{"C[N+](C)(C)C", 0, "C[NH+](C)C"},
		{"N[C@@H](C)C(=O)O", 0, "CCC(=O)O"},
		{"F/C=C/Cl", 0, "C=CCl"},
		{"C[C@H](F)[C@@H](Cl)Br", 0, "FC[C@@H](Cl)Br"},
		{"Cc1ccc2ccccc2c1", 0, "c1ccc2ccccc2c1"},
		{"[Na+].[Cl-]", 0, "[Cl-]"},
		{"C->[Pt]", 0, "[Pt]"},
	} {
		var p, q molecule.Parser
		m, err := p.Parse(c.smiles)
		if err != nil {
			t.Fatal(err)
		}
		before := m.SMILES()
		part, err := q.Without(m, c.atom)
		if after := m.SMILES(); after != before {
			t.Errorf("%s: the molecule has become %s", before, after)
		}
		if err != nil {
			t.Errorf("%s without %d: %v", c.smiles, c.atom, err)
			continue
		}
		got := q.Canonical(part)
		want, err := p.Parse(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if want := p.Canonical(want); got != want {
			t.Errorf("%s without %d is %s, want %s (%s)", c.smiles, c.atom, part.SMILES(), c.want, want)
		}
	}
	if m, _ := molecule.Parse("C"); m != nil {
		if _, err := new(molecule.Parser).Without(m, 0); err == nil {
			t.Error("a molecule without its only atom")
		}
	}
}

// TestUnmapped: without its numbers a molecule is that of SMILES without them.
func TestUnmapped(t *testing.T) {
	var p, q molecule.Parser
	for smiles, want := range map[string]string{
		"[CH3:1][CH2:2][OH:3]": "CCO",
		"C[C@H]([CH3:1])F":     "CC(C)F", // no centre
		`C/C([CH3:1])=N/O`:     "CC(C)=NO",
		"[CH3:1][C@H](N)F":     "C[C@H](N)F",
		`[CH3:1]/C=C/[Cl:2]`:   "C/C=C/Cl",
		"c1cc[nH:1]c1":         "c1cc[nH]c1",
		"c1c[n-:1]nc1":         "c1c[n-]nc1",
		"c1c#[nH+:1]ccc1":      "c1c#[nH+]ccc1",
		"[NH3:1]->[Pt:2]":      "N->[Pt]",

		"F[S@OH1](F)(F)(F)(F)[Cl:1]": "F[S@OH1](F)(F)(F)(F)Cl",
		"F[P@TB1](F)(F)(F)[Cl:1]":    "F[P@TB1](F)(F)(F)Cl",
	} {
		m, err := p.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		got := q.Canonical(q.Unmapped(m))
		plain, err := p.Parse(want)
		if err != nil {
			t.Fatal(err)
		}
		if got != p.Canonical(plain) {
			t.Errorf("%s is not %s", smiles, want)
		}
		if p.Unmapped(plain) != plain {
			t.Errorf("%s is copied", want)
		}
	}
}
