package molecule

import (
	"slices"
	"strings"
	"testing"
)

// TestWrite: the SMILES that are written are read as the same molecule.
func TestWrite(t *testing.T) {
	var p Parser
	exceptions := []string{"O=*1ccccc1", "C1=CC=CC2=b1C=CC=C2", "CC=P(C)=[OH+]"}
	n := 0
	check := func(name string, m *Molecule) {
		if slices.Contains(exceptions, name) || slices.ContainsFunc(m.Atoms, func(a Atom) bool { return a.Chirality == Other }) {
			return
		}
		text, want := m.SMILES(), p.Canonical(m)
		n++
		if again, err := p.Parse(text); err != nil {
			t.Errorf("%s: %s: %v", name, text, err)
		} else if p.Canonical(again) != want {
			t.Errorf("%s: %s is another molecule", name, text)
		}
	}
	for _, g := range loadGolden(t) {
		if m, err := p.Parse(g.SMILES); err == nil {
			check(g.SMILES, m.Clone())
		}
	}
	for _, g := range loadMolfiles(t, *molfiles) {
		if m, err := p.ParseMolfile(g.Molfile); err == nil {
			check(g.SMILES, m.Clone())
		}
	}
	for _, smiles := range []string{"C1=CC=C[Al]=C1", "OC1=CC=C(/C=C/[NH3+])[Al]=C1", "C[N@H+]1CC[C@H](Nc2ncccn2)CC1", "C[N@@H+]1CC[C@H](Nc2ncccn2)CC1", "CC~CC", "c1ccccc1~[Fe]", "*1cccc1"} {
		m, err := p.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		tags := 0
		for _, a := range m.Atoms {
			tags += yes(a.Chirality != Unspecified)
		}
		if want := 2 * strings.Count(smiles, "[N@"); tags != want {
			t.Errorf("%s: %d tags, want %d", smiles, tags, want)
		}
		check(smiles, m.Clone())
	}
	if n < 600 {
		t.Errorf("only %d molecules", n)
	}
}
