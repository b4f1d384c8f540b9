package molecule

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var molfiles = flag.String("molfiles", "testdata/molfiles.json", "molfiles by testdata/make_molfiles.py, to compare with")

// TestMolfiles: of RDKit's molfiles the molecules are those that RDKit reads from them, to the
// tag of each atom and the direction of each bond, and those of their SMILES.
func TestMolfiles(t *testing.T) {
	b, err := os.ReadFile(*molfiles)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Molecules []struct {
			golden
			Molfile string
			Same    bool
		}
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	var p Parser
	form := func(m *Molecule) string {
		m = m.Clone()
		p.perceiver.reset(m)
		return p.canon.form(&p.perceiver)
	}
	read, same := 0, 0
	for _, g := range file.Molecules {
		m, err := p.ParseMolfile(g.Molfile)
		if (err != nil) != g.Rejected {
			t.Errorf("%s: error %v, RDKit's %v\n%s", g.SMILES, err, g.Rejected, g.Molfile)
		}
		if err != nil {
			continue
		}
		read++
		if err := g.compare(m); err != nil {
			t.Errorf("%s: %v\n%s", g.SMILES, err, g.Molfile)
		}
		have := form(m)
		if m, err = p.Parse(g.SMILES); err != nil {
			t.Errorf("%s: %v", g.SMILES, err)
			continue
		}
		if equal := have == form(m); equal {
			same++
		} else if g.Same {
			t.Errorf("%s: another molecule than that of its molfile, and RDKit reads the same", g.SMILES)
		}
	}
	t.Logf("%d molfiles, %d read, %d of them as the molecules of their SMILES", len(file.Molecules), read, same)
	if read < 45 {
		t.Errorf("only %d molfiles are read", read)
	}
}
