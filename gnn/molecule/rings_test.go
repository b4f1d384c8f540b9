package molecule

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var ringTable = flag.String("rings", "testdata/rings.tsv", "table by testdata/rdkit_rings.py, to compare with")

// TestRings compares the sizes of rings with RDKit's, in two orders of the atoms:
//
//	python3 testdata/rdkit_rings.py TABLE 1500 700 FILE.csv.gz ...
//	go test -run Rings -rings TABLE
func TestRings(t *testing.T) {
	f, err := os.Open(*ringTable)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var p Parser
	rows := 0
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		fields := strings.Split(scanner.Text(), "\t")
		rows++
		for _, smiles := range fields[:2] {
			m, err := p.Parse(smiles)
			if err != nil {
				t.Errorf("%s: %v", smiles, err)
				continue
			}
			if sizes := ringSizes(m); sizes != fields[2] {
				t.Errorf("%s: rings of sizes %s, want %s", smiles, sizes, fields[2])
			}
		}
	}
	if rows < 70 {
		t.Errorf("only %d molecules", rows)
	}
	t.Logf("%d molecules", rows)
}

// TestDativeChord: a dative bond between two atoms of a ring divides no ring, whichever way it is written.
func TestDativeChord(t *testing.T) {
	var p Parser
	for _, smiles := range []string{"[Pt]12CCCN->1(C)CC2", "N12CCC[Pt]<-1CC2", "CN12->[Pt](CCC1)CC2"} {
		m, err := p.Parse(smiles)
		if err != nil {
			t.Errorf("%s: %v", smiles, err)
			continue
		}
		if sizes := ringSizes(m); sizes != "7" {
			t.Errorf("%s: rings of sizes %s, want 7", smiles, sizes)
		}
	}
}

// ringSizes returns the sizes of the rings, ascending. It panics if the bonds of a ring do not join its atoms.
func ringSizes(m *Molecule) string {
	sizes := make([]int, m.Rings())
	for r := range sizes {
		atoms, bonds := m.Ring(r)
		sizes[r] = len(atoms)
		for k, a := range atoms {
			next := atoms[(k+1)%len(atoms)]
			if b := &m.Bonds[bonds[k]]; b.Begin+b.End != a+next || b.Begin != a && b.Begin != next {
				panic(fmt.Sprintf("ring %v: bond %d does not join %d and %d", atoms, bonds[k], a, next))
			}
		}
	}
	slices.Sort(sizes)
	return strings.Trim(fmt.Sprint(sizes), "[]")
}

// TestRingBounds: a macrocycle with 2³⁰ ways around it counts as one ring. A
// search that would not end is refused.
func TestRingBounds(t *testing.T) {
	m, err := Parse("C1" + strings.Repeat("c2ccc(cc2)C", 29) + "c2ccc1cc2")
	if err != nil {
		t.Fatal(err)
	}
	if m.Rings() != 32 {
		t.Errorf("%d rings, want 30 of six atoms and 2 families of larger ones", m.Rings())
	}
	start := time.Now()
	if _, err := Parse(completeGraph(150)); err == nil || !strings.Contains(err.Error(), "too large to be searched") {
		t.Errorf("a complete graph: error %v", err)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("a complete graph takes %v", d)
	}
}

// completeGraph returns SMILES of n wildcards with a bond between any two.
func completeGraph(n int) string {
	var text strings.Builder
	for i := range n {
		if i > 0 {
			text.WriteByte('.')
		}
		text.WriteByte('*')
		for j := range n {
			if j != i {
				fmt.Fprintf(&text, "%%(%d)", max(i, j)*(max(i, j)-1)/2+min(i, j))
			}
		}
	}
	return text.String()
}
