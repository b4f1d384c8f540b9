package fingerprint_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/fingerprint"
)

// Ethanol, by radius 2, and paracetamol folded to 2,048 bits, are RDKit's.
func ExampleMorgan() {
	var p molecule.Parser
	morgan := fingerprint.Morgan{Radius: 2}
	m, err := p.Parse("CCO")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(morgan.Counts(m))
	if m, err = p.Parse("CC(=O)Nc1ccc(O)cc1"); err != nil {
		fmt.Println(err)
		return
	}
	bits := make([]float32, 2048)
	morgan.Fold(bits, m, true)
	for i, b := range bits {
		if b != 0 {
			fmt.Print(i, " ")
		}
	}
	// Output:
	// [{864662311 1} {1535166686 1} {2245384272 1} {2246728737 1} {3542456614 1} {4018048386 1}]
	// 191 245 530 650 745 807 843 849 1017 1057 1077 1152 1313 1380 1602 1750 1778 1816 1873 1917
}

// TestSpellings: the order in which atoms are written does not matter, and folding keeps the
// number of environments. TestDigests of package molecule compares identifiers with RDKit's.
func TestSpellings(t *testing.T) {
	var file struct {
		Molecules []struct {
			SMILES    string
			Spellings []string
		}
	}
	b, err := os.ReadFile("../testdata/rdkit.json")
	if err == nil {
		err = json.Unmarshal(b, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	var p molecule.Parser
	g := fingerprint.Morgan{Radius: 3}
	folded := make([]float32, 64)
	n := 0
	for _, row := range file.Molecules {
		var first []fingerprint.Count
		for _, s := range append([]string{row.SMILES}, row.Spellings...) {
			m, err := p.Parse(s)
			if err != nil || slices.ContainsFunc(m.Atoms, func(a molecule.Atom) bool { return a.Z == 0 }) {
				continue // wildcards in rings: see package molecule
			}
			have := g.Counts(m)
			n++
			if first == nil {
				first = slices.Clone(have)
			} else if !slices.Equal(have, first) {
				t.Errorf("%s and %s: %v and %v", row.SMILES, s, first, have)
			}
			total, sum := float32(0), float32(0)
			for _, c := range have {
				total += float32(c.N)
			}
			g.Fold(folded, m, false)
			for _, x := range folded {
				sum += x
			}
			if sum != total {
				t.Errorf("%s: %v environments, folded %v", s, total, sum)
			}
		}
	}
	if n < 1500 {
		t.Errorf("only %d molecules", n)
	}
}

// FuzzMorgan: a fingerprint does not depend on those before, its radii are nested, and there is
// no panic.
func FuzzMorgan(f *testing.F) {
	for _, s := range []string{"CCO", "[2H]C", "C1CC1.[Na+]", "F/C=C/[C@H](N)O", "*", "c1ccccc1->[Pt]"} {
		f.Add(s, uint8(2), true)
	}
	var p molecule.Parser
	var used fingerprint.Morgan
	f.Fuzz(func(t *testing.T, smiles string, radius uint8, chirality bool) {
		if len(smiles) > 300 {
			return
		}
		m, err := p.Parse(smiles)
		if err != nil {
			return
		}
		used.Radius, used.Chirality = int(radius%5), chirality
		fresh := fingerprint.Morgan{Radius: used.Radius, Chirality: chirality}
		have := slices.Clone(used.Counts(m))
		if want := fresh.Counts(m); !slices.Equal(have, want) {
			t.Fatalf("%v after others, %v alone", have, want)
		}
		if fresh.Radius > 0 {
			fresh.Radius--
			have := map[uint32]int32{}
			for _, c := range used.Counts(m) {
				have[c.ID] = c.N
			}
			for _, c := range fresh.Counts(m) {
				if have[c.ID] < c.N {
					t.Fatalf("%d of %d at radius %d, %d at the next", c.N, c.ID, fresh.Radius, have[c.ID])
				}
			}
		}
	})
}

func BenchmarkMorgan(b *testing.B) {
	var p molecule.Parser
	m, err := p.Parse("CC(C)Cn1c(=O)n(C)c(=O)c2c(N[C@@H](C)C(=O)N3CCOCC3)nc(-c3ccc(F)cc3)nc21")
	if err != nil {
		b.Fatal(err)
	}
	g := fingerprint.Morgan{Radius: 2}
	for b.Loop() {
		g.Counts(m)
	}
}
