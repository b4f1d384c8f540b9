package molecule

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var molfiles = flag.String("molfiles", "testdata/molfiles.json", "molfiles by testdata/make_molfiles.py, to compare with")

// molfile is what RDKit makes of a molfile.
type molfile struct {
	golden
	Molfile string
	Same    bool // as the molecule of the SMILES
}

func loadMolfiles(t testing.TB, path string) []molfile {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Molecules []molfile }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	return file.Molecules
}

// TestMolfiles: of RDKit's molfiles the molecules are those that RDKit reads from them, to the
// tag of each atom and the direction of each bond, and those of their SMILES.
func TestMolfiles(t *testing.T) {
	var p Parser
	read, same := 0, 0
	all := loadMolfiles(t, *molfiles)
	for _, g := range all {
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
		have := p.Canonical(m)
		if m, err = p.Parse(g.SMILES); err != nil {
			t.Errorf("%s: %v", g.SMILES, err)
			continue
		}
		if equal := have == p.Canonical(m); equal {
			same++
		} else if g.Same {
			t.Errorf("%s: another molecule than that of its molfile, and RDKit reads the same", g.SMILES)
		}
	}
	t.Logf("%d molfiles, %d read, %d of them as the molecules of their SMILES", len(all), read, same)
	if read < 45 {
		t.Errorf("only %d molfiles are read", read)
	}
}

// TestMolfileSyntax: what a molfile says beside its drawing, and what is refused.
func TestMolfileSyntax(t *testing.T) {
	v2000 := func(counts, rest string) string {
		return "\n\n\n" + counts + "  0  0  0  0  0  0  0  0999 V2000\n" + rest + "M  END\n"
	}
	atom := func(symbol, fields string) string {
		return fmt.Sprintf("%10.4f%10.4f%10.4f %-3s%s\n", 0., 0., 0., symbol, fields)
	}
	v3000 := func(counts, atoms, bonds string) string {
		return "\n\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS " + counts + " 0 0 0\nM  V30 BEGIN ATOM\n" +
			atoms + "M  V30 END ATOM\nM  V30 BEGIN BOND\n" + bonds + "M  V30 END BOND\nM  V30 END CTAB\nM  END\n"
	}
	for _, c := range []struct{ molfile, smiles string }{
		{v2000("  1  0", atom("O", " 0  5  0")), "[OH-]"},
		{v2000("  2  0", atom("O", " 0  5  0")+atom("N", "")+"M  CHG  1   2   1\n"), "O.[NH4+]"}, // the old charge goes
		{v2000("  1  0", atom("C", " 1  0  0")), "[13CH4]"},
		{v2000("  1  0", atom("C", "")+"M  ISO  1   1  14\n"), "[14CH4]"},
		{v2000("  1  0", atom("C", "")+"M  RAD  1   1   2\n"), "[CH3]"},
		{v2000("  1  0", atom("C", "")+"M  RAD  1   1   1\n"), "[CH2]"},
		{v2000("  1  0", atom("Na", " 0  0  0  0  0 15")), "[Na]"},
		{v2000("  1  0", atom("Fe", " 0  0  0  0  0  2")), "[FeH2]"},
		{v2000("  2  1", atom("D", "")+atom("O", "")+"  1  2  1\n"), "[2H]O"},
		{v2000("  2  1", atom("H", "")+atom("CL", "")+"  1  2  1\n"), "Cl"},
		{v2000("  2  1", atom("R1", "")+atom("C", "")+"  1  2  1\nA    1\nM  END\nS  SKP  1\nM  END\n"), "[1*]C"}, // neither is the end
		{v2000("  2  1", atom("N", "")+atom("Pt", "")+"  1  2  9\n"), "N->[Pt]"},
		{v3000("3 2", "M  V30 5 N 0 0 0 7 CHG=1 VAL=4\nM  V30 9 C 0 0 0 0 MASS=13\nM  V30 2 \"R#\" 0 0 0 0 RGROUPS=(1 1)\n",
			"M  V30 1 1 -\nM  V30 5 9\nM  V30 2 2 9 2\n"), "[NH3+:7][13CH]=[1*]"},
		{v2000("  3  2", atom("R#", "")+atom("N", " 0  3  0")+atom("R#", "")+"  1  2  1\n  2  3  1\nM  RGP  2   1   1   3   2\n"), "[1*][NH2+][2*]"},
		{v3000("2 1", "M  V30 1 R# 0 0 0 0 RGROUPS=(2 3 4)\nM  V30 2 C 0 0 0 0\n", "M  V30 1 1 1 2\n"), "[4*]C"},
	} {
		var p Parser
		m, err := p.ParseMolfile(c.molfile)
		if err != nil {
			t.Errorf("%s: %v", c.smiles, err)
			continue
		}
		form := p.Canonical(m)
		if want, err := p.Parse(c.smiles); err != nil || form != p.Canonical(want) {
			t.Errorf("%s: another molecule, %v\n%s", c.smiles, err, c.molfile)
		}
	}
	pair := atom("C", "") + atom("C", "")
	for molfile, want := range map[string]string{
		"": "line 0: the molfile ends before its counts", v2000("  0  0", ""): "line 5: no atoms",
		"\n\n\n  1  0  0  0  0  0  0  0  0  0999 V4000\n": `line 4: the version is "V4000"`,
		v2000("  x  0", ""):                                        `line 4: the number of atoms is "x"`,
		v2000("  2  0", atom("C", "")):                             "line 6: want a line for each of 2 atoms",
		v2000("  1  1", atom("C", "")):                             "line 6: want a line for each of 1 bonds",
		v2000("  1  0", atom("Xx", "")):                            `line 5: "Xx" is not an element`,
		v2000("  1  0", atom("Q", "")):                             `"Q" stands for several elements: this is a query`,
		v2000("  1  0", atom("C", " 0  0  0  2")):                  "the number of hydrogens is",
		v2000("  2  1", pair+"  1  2  8\n"):                        "line 7: a bond that is of any order: this is a query",
		v2000("  2  1", pair+"  1  2  0\n"):                        "a bond of type 0, want",
		v2000("  2  1", pair+"  1  3  1\n"):                        `the number of an atom is "3"`,
		v2000("  2  1", pair+"  1  1  1\n"):                        "a bond from an atom to itself",
		v2000("  2  2", pair+"  1  2  1\n  2  1  1\n"):             "two bonds between the atoms 2 and 1",
		v2000("  2  1", pair+"  1  2  4\n"):                        "line 5: an aromatic atom outside of rings",
		v2000("  2  1", pair+"  1  2  1  0  0  1\n"):               "the topology of a bond is given",
		v2000("  2  0", pair+"M  SUB  1   1   2\n"):                `line 7: "M  SUB": this is a query`,
		v2000("  2  0", pair+"M  CHG  1   1  99\n"):                `the charge is "99"`,
		v2000("  2  0", pair+"M  RGP  1   1   x\n"):                `the number of an R group is "x"`,
		v2000("  2  1", atom("F", "")+atom("F", "")+"  1  2  2\n"): "F has the valence 2",
		strings.TrimSuffix(v2000("  2  0", pair), "M  END\n"):      `there is no line "M  END"`,
		v3000("1 0", "M  V30 1 [N,O] 0 0 0 0\n", ""):               "is a list of elements: this is a query",
		v3000("1 0", "M  V30 1 C 0 0 0\n", ""):                     "want the number of an atom",
		v3000("1 0", "M  V30 1 C 0 nan 0 0\n", ""):                 `"nan" is not a coordinate`,
		v3000("1 0", "M  V30 1 C 0 0 0 0\n", "M  V30 1 1 1 2\n"):   `line 11: there is no atom "2"`,
		v3000("1 0", "1 C 0 0 0 0\n", ""):                          `want a line that begins with "M  V30 "`,
	} {
		if _, err := new(Parser).ParseMolfile(molfile); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s\n%s", err, want, molfile)
		}
	}
}
