package molecule_test

import (
	"bufio"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/fingerprint"
)

var digests = flag.String("digests", "testdata/digests", "folder of tables by testdata/rdkit_digests.py, to compare with")

// properties writes what is known of atoms and bonds as rdkit_digests.py does.
func properties(m *molecule.Molecule) string {
	var b strings.Builder
	cip := func(c byte) string { return strings.TrimPrefix(string(rune(c)), "\x00") }
	flag := func(set bool) string {
		if set {
			return "1"
		}
		return "0"
	}
	for i := range m.Atoms {
		a := &m.Atoms[i]
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d.%d.%d.%d.%s%s", a.Hybridisation, a.Hydrogens, a.Degree, a.Valence(), flag(a.InRing), cip(a.CIP()))
	}
	b.WriteByte('|')
	for i := range m.Bonds {
		x := &m.Bonds[i]
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(flag(x.Conjugated) + flag(x.InRing) + cip(x.CIP()))
	}
	return b.String()
}

// counts writes a fingerprint as rdkit_digests.py does.
func counts(g *fingerprint.Morgan, m *molecule.Molecule) string {
	var b []byte
	for i, c := range g.Counts(m) {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%d:%d", c.ID, c.N)
	}
	return string(b)
}

// centres writes the numbers of stereocentres as rdkit_digests.py does.
func centres(p *molecule.Parser, m *molecule.Molecule) string {
	all, untagged := p.StereoCentres(m)
	return fmt.Sprintf("%d/%d", all, untagged)
}

// TestProperties: what tells apart molecules that are the same to Hu et al.
func TestProperties(t *testing.T) {
	for smiles, want := range map[string]string{
		"CC(=O)O":           "4.3.1.4.0 3.0.3.4.0 3.0.1.2.0 3.1.1.2.0|00 10 10", // acid
		"CC(=O)[O-]":        "4.3.1.4.0 3.0.3.4.0 3.0.1.2.0 3.0.1.1.0|00 10 10",
		"C":                 "4.4.0.4.0|",
		"[CH3]":             "4.3.0.3.0|",
		"[2H]O":             "1.0.1.1.0 4.1.1.2.0|00",
		"CC(=O)NC":          "4.3.1.4.0 3.0.3.4.0 3.0.1.2.0 3.1.2.3.0 4.3.1.4.0|00 10 10 00", // the nitrogen is flat
		"C1CC1C#N":          "4.2.2.4.1 4.2.2.4.1 4.1.3.4.1 2.0.2.4.0 2.0.1.3.0|01 01 00 00 01",
		"N[C@@H](C)/C=C/F":  "4.2.1.3.0 4.1.3.4.0S 4.3.1.4.0 3.1.2.4.0 3.1.2.4.0 4.0.1.1.0|00 00 00 00E 00",
		"[Na+]":             "1.0.0.0.0|",
		"S(F)(F)(F)(F)(F)F": "7.0.6.6.0 4.0.1.1.0 4.0.1.1.0 4.0.1.1.0 4.0.1.1.0 4.0.1.1.0 4.0.1.1.0|00 00 00 00 00 00",
	} {
		m, err := molecule.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		if have := properties(m); have != want {
			t.Errorf("%s: %s, want %s", smiles, have, want)
		}
		if c := m.Clone(); properties(c) != want || c.Rings() != m.Rings() {
			t.Errorf("%s: the clone is %s", smiles, properties(c))
		}
	}
	m, err := molecule.Parse("C1CC1.c1ccccc1")
	if err != nil {
		t.Fatal(err)
	}
	if m.Rings() != 2 {
		t.Fatalf("%d rings", m.Rings())
	}
	if atoms, bonds := m.Ring(1); len(atoms) != 6 || m.Bonds[bonds[0]].Type != molecule.Aromatic {
		t.Errorf("ring of atoms %v and bonds %v", atoms, bonds)
	}
}

// TestDigests compares hybridisation, hydrogens, valences, rings, conjugation, configurations,
// stereocentres and Morgan fingerprints with RDKit's, on molecules.txt or on real molecules:
//
//	python3 testdata/rdkit_digests.py TABLES FILE.csv.gz ...
//	go test -run Digests -v -digests TABLES
func TestDigests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*digests, "*.tsv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables in %s: %v", *digests, err)
	}
	var p molecule.Parser
	plain, handed := fingerprint.Morgan{Radius: 2}, fingerprint.Morgan{Radius: 3, Chirality: true}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		rows, verdicts, same, counted, chiral, centred := 0, 0, 0, 0, 0, 0
		sc := bufio.NewScanner(f)
		for sc.Scan() {
			fields := strings.Split(sc.Text(), "\t")
			m, err := p.Parse(fields[0])
			rows++
			switch rejected := fields[1] == "rejected"; {
			case rejected != (err != nil):
				t.Logf("%s: RDKit %s, here %v", fields[0], fields[1], err)
				verdicts++
			case rejected:
				same++
				counted++
				chiral++
				centred++
			default:
				for i, have := range []struct {
					text  string
					right *int
				}{{properties(m), &same}, {counts(&plain, m), &counted}, {counts(&handed, m), &chiral}, {centres(&p, m), &centred}} {
					if have.text == fields[i+1] || fmt.Sprint(crc32.ChecksumIEEE([]byte(have.text))) == fields[i+1] {
						*have.right++
					} else {
						t.Logf("%s: %s", fields[0], have.text)
					}
				}
			}
		}
		f.Close()
		t.Logf("%-30s %6d rows, %d with another verdict, equal: %d properties, %d and %d Morgan counts, %d centres",
			filepath.Base(file), rows, verdicts, same, counted, chiral, centred)
		// One of molecules.txt is another: a wildcard in rings.
		if differ := rows - min(same, counted, chiral, centred); differ > rows/1000 && differ > 1 {
			t.Errorf("%d of %d molecules differ", differ, rows)
		}
	}
}
