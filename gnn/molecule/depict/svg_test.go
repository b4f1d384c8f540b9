package depict

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// TestSVG: what stands at atoms, how many lines and wedges there are, and that the SVG is well-formed and always the
// same.
func TestSVG(t *testing.T) {
	letters := regexp.MustCompile(`<text[^>]*>([^<]*)</text>`)
	for _, c := range []struct {
		smiles string
		texts  string // in the order of the drawing
		paths  int
	}{
		{"C", "C H 4", 0},
		{"CCO", "O H", 2},
		{"C[NH3+]", "N H 3 +", 1},
		{"[O-]S(=O)(=O)[O-].[Ca+2]", "O − S O O O − Ca 2+", 6},
		{"[13CH3]O", "C 13 H 3 O H", 1},
		{"c1ccccc1", "", 9},
		{"c1cc[nH]c1", "N H", 7},
		{"C#N", "N", 3},
		{"C=C=C", "C", 4},
		{"C[C@H](N)O", "N H 2 O H", 3},
		{"[CH3]", "C H 3", 0},
		{"N->[Pt]", "N H 3 Pt", 1},
		{"*C", "*", 1},
		{"", "", 0},
	} {
		m, err := molecule.Parse(c.smiles)
		if err != nil {
			if c.smiles == "" {
				m = new(molecule.Molecule)
			} else {
				t.Fatal(c.smiles, err)
			}
		}
		m = m.Clone()
		svg := Layout(m).SVG(Options{Title: `a <"title">`})
		if again := Layout(m).SVG(Options{Title: `a <"title">`}); svg != again {
			t.Errorf("%s is drawn in two ways", c.smiles)
		}
		var texts []string
		for _, match := range letters.FindAllStringSubmatch(svg, -1) {
			texts = append(texts, match[1])
		}
		if got := strings.Join(texts, " "); got != c.texts {
			t.Errorf("%s: the labels are %q, want %q", c.smiles, got, c.texts)
		}
		hashes := 0 // a hash has many lines
		for _, w := range Layout(m).Wedges {
			if !w.Up {
				hashes++
			}
		}
		if got := strings.Count(svg, "<path"); got != c.paths && hashes == 0 {
			t.Errorf("%s: %d lines, want %d", c.smiles, got, c.paths)
		}
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := decoder.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(c.smiles, err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Error(svg)
		}
	}
}

// TestWeights: discs have the colours and sizes of the weights.
func TestWeights(t *testing.T) {
	m, err := molecule.Parse("CCO")
	if err != nil {
		t.Fatal(err)
	}
	svg := Layout(m).SVG(Options{
		Width:   300,
		Height:  200,
		Weights: []float64{4, 0, -1},
	})
	for _, part := range []string{`r="13" fill="` + raises, `r="6.5" fill="` + lowers, ` 300 200"`} {
		if !strings.Contains(svg, part) {
			t.Errorf("%q is missing in %s", part, svg)
		}
	}
	if n := strings.Count(svg, "<circle"); n != 2 {
		t.Errorf("%d discs, want 2", n)
	}
}

// TestConventions: what chemists expect of some drawings, in the molecule's order of atoms.
func TestConventions(t *testing.T) {
	place := func(smiles string) ([]point, *Drawing) {
		m, err := molecule.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		d := Layout(m.Clone())
		places := make([]point, len(d.Atoms))
		for i, p := range d.Atoms {
			places[i] = complex(p.X, p.Y)
		}
		return places, d
	}
	regular := func(name string, places []point, size int) {
		t.Helper()
		for k := range size {
			for step := 1; step <= size/2; step++ {
				offset := places[k] - places[(k+step)%size]
				want := chord(size, step)
				if square := dot(offset, offset); square < want*want*0.99 || square > want*want*1.01 {
					t.Errorf("%s: a ring is not regular", name)
				}
			}
		}
	}
	for _, size := range []int{3, 4, 5, 6, 7, 8} {
		ring, _ := place("C1" + strings.Repeat("C", size-2) + "C1")
		regular("ring", ring, size)
	}
	pyridazine, _ := place("c1ccnnc1-c1ccccc1")
	regular("pyridazine", pyridazine, 6)
	spiro, _ := place("C1CCCC12CCCCC2")
	regular("spiro", spiro, 5)
	zigzag, _ := place("CCCCCCCCCC")
	for i := range len(zigzag) - 3 {
		first := cross(zigzag[i+1]-zigzag[i], zigzag[i+2]-zigzag[i+1])
		second := cross(zigzag[i+2]-zigzag[i+1], zigzag[i+3]-zigzag[i+2])
		if first*second > -0.5 {
			t.Errorf("a chain is no zigzag: %v", zigzag)
		}
	}
	alkyne, _ := place("CC#CC")
	if turn := cross(alkyne[1]-alkyne[0], alkyne[3]-alkyne[0]); turn > 1e-9 || turn < -1e-9 {
		t.Errorf("an alkyne is bent: %v", alkyne)
	}
	_, steroid := place("C[C@]12CC[C@H]3[C@H]([C@@H]1CC[C@@H]2O)CCC4=CC(=O)CC[C@]34C")
	if len(steroid.Hydrogens) != 3 {
		t.Errorf("hydrogens of the atoms %v are drawn, want three", steroid.Hydrogens)
	}
}
