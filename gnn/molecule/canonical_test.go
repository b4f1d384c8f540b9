package molecule_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// TestCanonicalSMILES: another spelling of a molecule has the same SMILES, which are read as the molecule.
func TestCanonicalSMILES(t *testing.T) {
	for smiles, want := range map[string]string{
		"OCC":                          "CCO",
		"C(C)O":                        "CCO",
		"[Na+].[Cl-]":                  "[Na+].[Cl-]",
		"[H][CH4-]":                    "",
		"c1cc[nH]c1":                   "",
		"C1=CC=CN1":                    "",
		"CC(=O)Oc1ccccc1C(=O)O":        "",
		"N[C@@H](C)C(=O)O":             "",
		"C[C@H](C(=O)O)N":              "",
		"C1CC2CCC1CC2":                 "",
		"c1ccccc1-c1ccccc1":            "",
		"F/C=C/F":                      "",
		"[Fe]->[Fe]":                   "",
		"[Fe]->[Ni]->[Fe]":             "",
		"[13CH3][N+](C)(C)CC(=O)[O-]":  "",
		"OC(=O)c1cc2c([nH]1)cccc2":     "",
		"CN1C(=O)c2ccccc2S(=O)(=O)N1C": "",
		"[Cu+2].[O-]S(=O)(=O)[O-]":     "",
	} {
		var p molecule.Parser
		m, err := p.Parse(smiles)
		if err != nil {
			continue
		}
		got := p.CanonicalSMILES(m)
		identity := p.Canonical(m)
		m = m.Clone()
		copied, err := new(molecule.Parser).Parse(got)
		if err != nil || p.Canonical(copied) != identity {
			t.Errorf("%s becomes %s: %v", smiles, got, err)
			continue
		}
		if want != "" && got != want && len(got) > len(want) {
			t.Errorf("%s becomes %s, want as short as %s", smiles, got, want)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 10 {
			other, err := p.Parse(shuffled(m, rng).SMILES())
			if err != nil {
				t.Fatal(err)
			}
			if again := p.CanonicalSMILES(other); again != got {
				t.Errorf("%s becomes %s, and in another order %s", smiles, got, again)
			}
		}
	}
}

// TestConfigurations: spellings of a molecule with double bonds have the same SMILES, and other configurations have
// others.
func TestConfigurations(t *testing.T) {
	var p molecule.Parser
	seen := map[string]string{}
	for _, spellings := range [][]string{
		{"C/C(CC)=N/O", `C\C(CC)=N\O`, `CC/C(C)=N\O`, `N(\O)=C(/C)CC`, `C(\C)(/CC)=N/O`},
		{`C/C(CC)=N\O`, `C(/CC)(C)=N\O`},
		{"CC(CC)=NO"},
		{`CC(=O)/C=C(\C)c1ccccc1`, "CC(=O)/C=C(C)/c1ccccc1"},
		{`F/C=C\1CCCO1`, `F/C=C1/CCCO1`, `F/C=C1\OCCC1`},
		{"CCC", "C/CC"},
		{`C/C=C/CC/C=C\C`, `C/C=C/CC\C=C/C`, `C\C=C/CC/C=C/C`},
		{`F/C=C/C(/Cl)=C(/F)Br`, `F/C=C/C(Cl)=C(/F)Br`, `F/C=C/C(Cl)=C(F)\Br`, `C(=C/F)\C(Cl)=C(\F)Br`},
		{`C/C=C\C(/Cl)=C/F`, `C/C=C\C(Cl)=CF`}, // the directions at one end contradict each other
		{`C/C=C/C(\Cl)=C/F`, `C/C=C/C(Cl)=CF`},
		{`CC=C(C)/C(C=CC=C)=C/F`, `CC=C(C)C(/C=CC=C)=C/F`},
		{`C1CCCC/C=C/CCCCC1`, `C\1=C/CCCCCCCCCC1`},
	} {
		first := ""
		for _, text := range spellings {
			m, err := p.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got := p.CanonicalSMILES(m)
			identity := p.Canonical(m)
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("%s becomes %s, and %s becomes %s", spellings[0], first, text, got)
			}
			if other := seen[got]; other != "" && other != spellings[0] {
				t.Errorf("%s and %s become %s", text, other, got)
			}
			if copied, err := p.Parse(got); err != nil || p.Canonical(copied) != identity {
				t.Errorf("%s becomes another molecule, %s: %v", text, got, err)
			}
			seen[got] = spellings[0]
		}
	}
}

// TestScaffoldSMILES: a scaffold has its own hydrogens, not those of the molecule.
func TestScaffoldSMILES(t *testing.T) {
	var p molecule.Parser
	for smiles, want := range map[string]string{
		"Cn1cccc1":           "c1cc[nH]c1",
		"C[n+]1ccccc1":       "c1cc[nH+]cc1",
		"C[N+]1(C)CCCC1":     "C1CC[NH2+]C1",
		"C[Si]1(C)CCCC1":     "C1CC[SiH2]C1",
		"CC(C)=C1CCCCC1":     "C=C1CCCCC1",
		"C[C@H]1CC[C@@H]1CC": "C1CCC1",
		"CCO":                "",
	} {
		m, err := p.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		got := p.ScaffoldSMILES(m.Clone())
		if want != "" {
			m, err = p.Parse(want)
			if err != nil {
				t.Fatal(err)
			}
			want = p.CanonicalSMILES(m)
		}
		if got != want {
			t.Errorf("%s: the scaffold is %q, want %q", smiles, got, want)
		}
	}
}

// TestManyParts: the last of many symmetric parts has a form of its own.
func TestManyParts(t *testing.T) {
	var p molecule.Parser
	seen := map[string]bool{}
	for _, part := range []string{"CC", "OO", "NN"} {
		m, err := p.Parse(strings.Repeat("FS(F)(F)(F)(F)F.", 500) + part)
		if err != nil {
			t.Fatal(err)
		}
		identity := p.Canonical(m)
		if seen[identity] {
			t.Errorf("%s does not change the form", part)
		}
		seen[identity] = true
		if text := p.CanonicalSMILES(m); len(text) != 500*len("FS(F)(F)(F)(F)F.")+len(part) {
			t.Errorf("%s: the short form has %d bytes", part, len(text))
		}
	}
}

// shuffled returns the molecule from SMILES that begin at a random atom: bonds keep their order at each atom.
func shuffled(m *molecule.Molecule, rng *rand.Rand) *molecule.Molecule {
	s := m.Clone()
	n := len(s.Atoms)
	place := rng.Perm(n)
	atoms := make([]molecule.Atom, n)
	for i, a := range s.Atoms {
		atoms[place[i]] = a
	}
	s.Atoms = atoms
	for k := range s.Bonds {
		s.Bonds[k].Begin = int32(place[s.Bonds[k].Begin])
		s.Bonds[k].End = int32(place[s.Bonds[k].End])
	}
	return s
}
