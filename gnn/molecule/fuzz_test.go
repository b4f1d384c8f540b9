package molecule

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// FuzzParse: whatever the string, there is no panic and no long wait; an error
// points into the string; a molecule is well-formed, has a graph or a reason
// why not, and comes out the same from a parser that has been used before.
func FuzzParse(f *testing.F) {
	for _, g := range loadGolden(f) {
		f.Add(g.SMILES)
	}
	for _, s := range []string{
		"C%(99999)CC%(99999)", "[999C@@OH30H9-9:999]", strings.Repeat("(C", 50), strings.Repeat("C1", 60), "\x00\xff", "C\nC", "\\\\\\",
		strings.Repeat("C%10", 40), "c1*c*c*c*c*1", "C123C45C67C18C24C36C57C8", strings.Repeat("c1ccc2", 20) + strings.Repeat("c21", 20),
	} {
		f.Add(s)
	}
	var used Parser
	f.Fuzz(func(t *testing.T, smiles string) {
		if len(smiles) > 2000 {
			return
		}
		start := time.Now()
		m, err := used.Parse(smiles)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason == "" || e.Column < 1 || e.Column > len(smiles)+1 {
				t.Fatalf("error %#v", err)
			}
			return
		}
		wellFormed(t, m)
		fresh, err := Parse(smiles)
		if err != nil || !slices.Equal(fresh.Atoms, m.Atoms) || !slices.Equal(fresh.Bonds, m.Bonds) {
			t.Fatalf("a fresh parser makes %v, %v of it; a used one %v", fresh, err, m)
		}
		for _, c := range []*feature.Set{feature.Hu, feature.Rich} {
			g, err := m.GraphOf(c)
			if none := new(CategoryError); errors.As(err, &none) && c == feature.Hu {
				continue
			}
			if err == nil {
				err = g.Validate()
			}
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
		how := Parser{Standard: feature.Standardisation{LargestFragment: true, Neutralise: true}}
		if m, err := how.Parse(smiles); err == nil {
			wellFormed(t, m)
		}
		if text := m.SMILES(); text == "" {
			t.Error("no SMILES")
		}
		if key := used.Scaffold(m); key != new(Parser).Scaffold(fresh) {
			t.Error("a used parser finds another scaffold")
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%v for %d bytes", took, len(smiles))
		}
	})
}

func wellFormed(t *testing.T, m *Molecule) {
	t.Helper()
	if len(m.Atoms) == 0 || len(m.Atoms) > MaxAtoms {
		t.Fatalf("%d atoms", len(m.Atoms))
	}
	seen := map[[2]int32]bool{}
	for _, b := range m.Bonds {
		n := int32(len(m.Atoms))
		if b.Begin < 0 || b.Begin >= n || b.End < 0 || b.End >= n || b.Begin == b.End {
			t.Fatalf("a bond %d-%d among %d atoms", b.Begin, b.End, n)
		}
		pair := [2]int32{min(b.Begin, b.End), max(b.Begin, b.End)}
		if seen[pair] {
			t.Fatalf("two bonds %d-%d", b.Begin, b.End)
		}
		seen[pair] = true
		if b.Type < Single || b.Type > AnyOrder || b.Direction < NoDirection || b.Direction > Down {
			t.Fatalf("bond %+v", b)
		}
	}
	for i, a := range m.Atoms {
		if a.Z < 0 || a.Z > maxZ || a.Hydrogens < 0 || a.Chirality < Unspecified || a.Chirality > Other {
			t.Fatalf("atom %d is %+v", i, a)
		}
	}
}

// FuzzMolfile: whatever the text, there is no panic; an error is of a line; a molecule is
// well-formed, and comes out the same from a parser that has been used before.
func FuzzMolfile(f *testing.F) {
	for _, g := range loadMolfiles(f, "testdata/molfiles.json") {
		f.Add(g.Molfile)
	}
	f.Add("\n\n\n  2  1\n" + strings.Repeat("    0.0000    0.0000    0.0000 R# -1  3  0  0  0  2\n", 2) + "  1  2  9  6\nM  RAD  2   1   2   2   3\nM  END\n")
	var used Parser
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 10000 {
			return
		}
		m, err := used.ParseMolfile(text)
		if err != nil {
			var e *LineError
			if !errors.As(err, &e) || e.Reason == "" || e.Line < 0 || e.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("error %#v", err)
			}
			return
		}
		wellFormed(t, m)
		fresh, err := new(Parser).ParseMolfile(text)
		if err != nil || !slices.Equal(fresh.Atoms, m.Atoms) || !slices.Equal(fresh.Bonds, m.Bonds) {
			t.Fatalf("a fresh parser makes %v, %v of it; a used one %v", fresh, err, m)
		}
		if text := m.SMILES(); text == "" {
			t.Error("no SMILES")
		}
		used.Canonical(m)
	})
}
