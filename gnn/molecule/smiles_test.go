package molecule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// sketch writes a molecule down for comparison.
func sketch(m *Molecule) string {
	var b strings.Builder
	for _, a := range m.Atoms {
		fmt.Fprintf(&b, "%s", elements[a.Z].symbol)
		if a.Isotope != 0 {
			fmt.Fprintf(&b, "^%d", a.Isotope)
		}
		if a.Aromatic {
			b.WriteByte('~')
		}
		b.WriteString([]string{"", "@@", "@", "?"}[a.Chirality])
		if a.Hydrogens > 0 {
			fmt.Fprintf(&b, "h%d", a.Hydrogens)
		}
		if a.Charge != 0 {
			fmt.Fprintf(&b, "%+d", a.Charge)
		}
		if a.Map != 0 {
			fmt.Fprintf(&b, ":%d", a.Map)
		}
		b.WriteByte(' ')
	}
	for _, x := range m.Bonds {
		fmt.Fprintf(&b, "%d%s%s%d ", x.Begin, []string{"-", "=", "#", ":", "$", ">", "~"}[x.Type], []string{"", "/", `\`}[x.Direction], x.End)
	}
	return strings.TrimSpace(b.String())
}

func TestParse(t *testing.T) {
	for smiles, want := range map[string]string{
		"C":                      "Ch4",
		" \tCC\t":                "Ch3 Ch3 0-1",
		"CO |^1:0| methanol":     "Ch3 Oh1 0-1",
		"CC~CC":                  "Ch3 Ch3 Ch3 Ch3 0-1 1~2 2-3",
		"C(C)(F)Br":              "Ch1 Ch3 F Br 0-1 0-2 0-3",
		"C=C.C#N":                "Ch2 Ch2 Ch1 N 0=1 2#3",
		"[U]$[U]":                "U U 0$1",
		"[13CH3-]":               "C^13h3-1",
		"[NH4+:12]":              "Nh4+1:12",
		"[Fe+2]":                 "Fe+2",
		"[Fe++]":                 "Fe+2",
		"[O--]":                  "O-2",
		"[U+0]":                  "U",
		"[CH0:0]":                "C",
		"*[1*]":                  "* *^1 0-1",
		"C1CC1":                  "Ch2 Ch2 Ch2 0-1 1-2 2-0",
		"C=1CC1":                 "Ch1 Ch2 Ch1 0-1 1-2 0=2",
		"C1CC=1":                 "Ch1 Ch2 Ch1 0-1 1-2 2=0",
		"C2CC1CC21":              "Ch2 Ch2 Ch1 Ch2 Ch1 0-1 1-2 2-3 3-4 4-2 4-0",
		"C%12CC%12":              "Ch2 Ch2 Ch2 0-1 1-2 2-0",
		"C%(3)CC3":               "Ch2 Ch2 Ch2 0-1 1-2 2-0",
		"C%(12345)CC%(12345)":    "Ch2 Ch2 Ch2 0-1 1-2 2-0",
		"C1CC1C1CC1":             "Ch2 Ch2 Ch1 Ch1 Ch2 Ch2 0-1 1-2 2-3 3-4 4-5 2-0 5-3",
		"C1.C1":                  "Ch3 Ch3 1-0",
		"C(CC1)C1":               "Ch2 Ch2 Ch2 Ch2 0-1 1-2 0-3 3-2",
		"C(O)1CC1":               "Ch1 Oh1 Ch2 Ch2 0-1 0-2 2-3 3-0",
		"c1ccccc1":               "C~h1 C~h1 C~h1 C~h1 C~h1 C~h1 0:1 1:2 2:3 3:4 4:5 5:0",
		"C1=CC=CC=C1":            "C~h1 C~h1 C~h1 C~h1 C~h1 C~h1 0:1 1:2 2:3 3:4 4:5 5:0",
		"[nH]1cccc1":             "N~h1 C~h1 C~h1 C~h1 C~h1 0:1 1:2 2:3 3:4 4:0",
		"[H]C([H])[H]":           "Ch4",
		"[H][C]([H])[H]":         "Ch3",
		"[H][H]":                 "H H 0-1",
		"[2H]C":                  "H^2 Ch3 0-1",
		"F/C=C/F":                "F Ch1 Ch1 F 0-/1 1=2 2-/3",
		`F/C=C\\F`:               `F Ch1 Ch1 F 0-/1 1=2 2-\3`,
		"F/C(F)=C/F":             "F C F Ch1 F 0-1 1-2 1=3 3-4",
		"N[C@H](C)F":             "Nh2 C@h1 Ch3 F 0-1 1-2 1-3",
		"N[C@@H](C)F":            "Nh2 C@@h1 Ch3 F 0-1 1-2 1-3",
		"N[C@@H](C)N":            "Nh2 Ch1 Ch3 Nh2 0-1 1-2 1-3",
		"N[C@TH2H](C)F":          "Nh2 C@@h1 Ch3 F 0-1 1-2 1-3",
		"N[C@TH1](Cl)(C)F":       "Nh2 C@ Cl Ch3 F 0-1 1-2 1-3 1-4",
		"F[Pt@SP2](Cl)(Br)I":     "F Pt? Cl Br I 0-1 1-2 1-3 1-4",
		"CN(=O)=O":               "Ch3 N+1 O-1 O 0-1 1-2 1=3",
		"[Na+].[O-]C(=O)C.[Cs+]": "Na+1 O-1 C O Ch3 Cs+1 1-2 2=3 2-4",
	} {
		m, err := Parse(smiles)
		if err != nil {
			t.Errorf("%s: %v", smiles, err)
		} else if got := sketch(m); got != want {
			t.Errorf("%s is\n%s, want\n%s", smiles, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	long := "C" + strings.Repeat("C", MaxAtoms)
	for _, c := range []struct {
		smiles string
		column int
		reason string
	}{
		{"", 1, "no atoms"},
		{"  ", 3, "no atoms"},
		{"CC(", 4, "the string ends where an atom is expected"},
		{"CC(C", 3, "the branch is not closed"},
		{"C(C(C", 4, "the branch is not closed"}, // the last one
		{"CC)", 3, "no branch is open"},
		{"(C)", 1, "a branch where an atom is expected"},
		{"C((C))", 3, "a branch where an atom is expected"},
		{"C()", 3, "a branch ends where an atom is expected"},
		{"C(=)", 4, "a branch ends where an atom is expected"},
		{"C(1)C1", 3, "a ring number where an atom is expected"},
		{"C(=1)C1", 4, "a ring number where an atom is expected"},
		{"C..C", 3, "a dot where an atom is expected"},
		{"C=.C", 3, "a dot where an atom is expected"},
		{"C.", 3, "the string ends where an atom is expected"},
		{"C==C", 3, "a bond where an atom is expected"},
		{"=C", 1, "a bond where an atom is expected"},
		{"1CC1", 1, "a ring number where an atom is expected"},
		{"C=", 3, "the string ends where an atom is expected"},
		{"C1CC", 2, "ring 1 is not closed"},
		{"C%12CC", 2, "ring 12 is not closed"},
		{"C11", 3, "ring 1 would bond an atom to itself"},
		{"C1C1", 4, "ring 1 would bond two atoms that are bonded already"},
		{"C12CC12", 7, "ring 2 would bond two atoms that are bonded already"},
		{"C%1", 2, "% is not followed by a ring number: %10 to %99 or %(0) to %(99999)"},
		{"C%01CC%01", 2, "% is not followed by a ring number: %10 to %99 or %(0) to %(99999)"},
		{"C%()", 2, "% is not followed by a ring number: %10 to %99 or %(0) to %(99999)"},
		{"C%(1", 2, "% is not followed by a ring number: %10 to %99 or %(0) to %(99999)"},
		{"C%(123456)", 2, "% is not followed by a ring number: %10 to %99 or %(0) to %(99999)"},
		{"CX", 2, "'X' is not an atom that may stand without brackets"},
		{"C?", 2, "'?' is not an atom"},
		{"CC–O", 3, "'–' is not an atom"},
		{"CCO\u200b", 4, "U+200B is not an atom"},
		{"C\xe4", 2, "the byte 0xe4 is not an atom"},
		{"C[C–]", 4, "'–' within a bracket; the order is isotope, symbol, chirality, hydrogens, charge, :map"},
		{"C@C", 2, "'@' has no meaning here: this is SMILES, and not SMARTS"},
		{"[C", 1, "the bracket is not closed"},
		{"[", 2, "the end where an element is expected"},
		{"C[]", 3, "']' where an element is expected"},
		{"[Xx]", 2, "'X' does not begin the symbol of an element"},
		{"[Cx]", 3, "'x' within a bracket; the order is isotope, symbol, chirality, hydrogens, charge, :map"},
		{"[013C]", 2, "the isotope has a leading zero"},
		{"[70000C]", 2, "the isotope is larger than 65535"},
		{"[99999999999999999999C]", 2, "the isotope is larger than 65535"}, // no int64
		{"[18446744073709551628C]", 2, "the isotope is larger than 65535"}, // 12 in 64 bits
		{"[CH100]", 4, "the number of hydrogens is larger than 99"},
		{"[C+100]", 4, "the charge is larger than 99"},
		{"[C:99999999999]", 4, "the atom map number is larger than 2147483647"},
		{"[C:]", 4, "']' where an atom map number is expected"},
		{"[C@TH3]", 6, "chirality class TH has the permutations 1 to 2"},
		{"[C@OH99]", 6, "chirality class OH has the permutations 1 to 30"},
		{long, MaxAtoms + 1, "more than 4096 atoms"},

		{"CC" + strings.Repeat("([H])", 260), 2, "more than 99 hydrogens at an atom"},
		{"[Fe]" + strings.Repeat("([H])", 100), 1, "more than 99 hydrogens at an atom"},
		{"CC(C)(C)(C)C", 2, "C has the valence 5, and at most 4 is allowed"},
		{"C[NH4]", 2, "N has the valence 5, and at most 3 is allowed"},
		{"CC[N+](C)(C)(C)C", 3, "N+ has the valence 5, and at most 4 is allowed"},
		{"C[O-]C", 2, "O- has the valence 2, and at most 1 is allowed"},
		{"Cc", 2, "an aromatic atom outside of rings"},
		{"Nc1cccc1", 2, "the aromatic ring system of this atom has no Kekulé structure: its double bonds cannot be placed"},
		{"c1cc[nH](C)c1", 5, "N has the valence 5, and at most 3 is allowed"},
	} {
		_, err := Parse(c.smiles)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.20s: error %v", c.smiles, err)
			continue
		}
		if e.Column != c.column || e.Reason != c.reason {
			t.Errorf("%.20s: column %d: %s; want column %d: %s", c.smiles, e.Column, e.Reason, c.column, c.reason)
		}
	}
	_, err := Parse("CC(C")
	if want := `molecule: "CC(C": column 3: the branch is not closed`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	_, err = Parse(long)
	if want := `molecule: "` + strings.Repeat("C", 80) + `…": column 4097: more than 4096 atoms`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestColumnAfterHydrogens: errors of perception name the column of the atom as
// written, wherever hydrogens have been folded in.
func TestColumnAfterHydrogens(t *testing.T) {
	_, err := Parse("[H]C([H])([H])C(C)(C)(C)C")
	var e *Error
	if !errors.As(err, &e) || e.Column != 15 {
		t.Errorf("error %v, want one at column 15", err)
	}
}

func TestElements(t *testing.T) {
	for z := 1; z <= maxZ; z++ {
		m, err := Parse("[" + elements[z].symbol + "]")
		if err != nil || len(m.Atoms) != 1 || int(m.Atoms[0].Z) != z {
			t.Errorf("[%s]: %v, %v", elements[z].symbol, m, err)
		}
	}
}
