package descriptor_test

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/descriptor"
)

func Example() {
	m, err := molecule.Parse("CC(=O)Nc1ccc(O)cc1")
	if err != nil {
		fmt.Println(err)
		return
	}
	var c descriptor.Calculator
	values := make([]float64, len(descriptor.Names()))
	c.Compute(values, m)
	for i, name := range descriptor.Names() {
		switch name {
		case "MolWt", "TPSA", "NumHDonors", "Kappa2":
			fmt.Printf("%s %.2f\n", name, values[i])
		}
	}
	// Output:
	// MolWt 151.16
	// NumHDonors 2.00
	// TPSA 49.33
	// Kappa2 3.05
}

var tables = flag.String("descriptors", "testdata/descriptors.tsv", "table by testdata/rdkit_descriptors.py, to compare with")

// otherStructure is a molecule whose Kekulé structure is another one than RDKit's.
const otherStructure = "CC(C)(c1ccccc1)c1ccc(Oc2ccc3c4nc5nc(nc6nc(nc7nc(nc(n4)c3c2)c2ccccc72)c2ccccc62)c2ccccc52)cc1"

// TestRDKit compares the descriptors with RDKit's.
func TestRDKit(t *testing.T) {
	f, err := os.Open(*tables)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Scan()
	names := strings.Split(sc.Text(), "\t")[1:]
	if all := slices.Concat(descriptor.Names(), descriptor.CrippenNames()); !slices.Equal(names, all) {
		t.Fatalf("names %v, want %v", all, names)
	}
	var p molecule.Parser
	var c descriptor.Calculator
	var crippen descriptor.Crippen
	values := make([]float64, len(names))
	rows, differ := 0, map[string]int{}
	for sc.Scan() {
		fields := strings.Split(sc.Text(), "\t")
		if fields[0] == otherStructure {
			continue
		}
		m, err := p.Parse(fields[0])
		if err != nil {
			t.Errorf("%s: %v", fields[0], err)
			continue
		}
		rows++
		c.Compute(values, m)
		values[len(names)-2], values[len(names)-1] = crippen.Compute(m)
		for i, text := range fields[1:] {
			want, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			if math.IsNaN(want) {
				want = values[i] // wildcards' surfaces are no numbers to RDKit
			}
			if !(math.Abs(values[i]-want) <= 1e-6*max(1, math.Abs(want))) {
				differ[names[i]]++
				if differ[names[i]] <= 10 {
					t.Logf("%s: %s is %v, want %v", fields[0], names[i], values[i], want)
				}
			}
		}
	}
	for name, n := range differ {
		t.Errorf("%s differs for %d of %d molecules", name, n, rows)
	}
	if rows < 100 {
		t.Errorf("only %d molecules", rows)
	}
	t.Logf("%d molecules", rows)
}

func BenchmarkCompute(b *testing.B) { benchmark(b, false) }

func BenchmarkCrippen(b *testing.B) { benchmark(b, true) }

func benchmark(b *testing.B, byCrippen bool) {
	var p molecule.Parser
	m, err := p.Parse("CC(C)Cn1c(=O)n(C)c(=O)c2c(N[C@@H](C)C(=O)N3CCOCC3)nc(-c3ccc(F)cc3)nc21")
	if err != nil {
		b.Fatal(err)
	}
	var c descriptor.Calculator
	var crippen descriptor.Crippen
	values := make([]float64, len(descriptor.Names()))
	for b.Loop() {
		if byCrippen {
			crippen.Compute(m)
		} else {
			c.Compute(values, m)
		}
	}
}

// TestStarAndChain: indices that can be computed by hand.
func TestStarAndChain(t *testing.T) {
	for _, test := range []struct {
		smiles, name string
		want         float64
	}{
		{"CCCC", "Chi1", 2/math.Sqrt2 + 0.5},
		{"CC(C)C", "Chi1", 3 / math.Sqrt(3)},
		{"CCCC", "Kappa2", 3}, // three bonds in a row: A-1
		{"CC(C)C", "Kappa2", 12.0 / 9},
		{"CCCC", "BalabanJ", 3 * (2/math.Sqrt(24) + 1.0/4)},
		{"C1CC1", "NumSpiroAtoms", 0},
		{"C1CC12CC2", "NumSpiroAtoms", 1},
		{"C1CC2CCC1CC2", "NumBridgeheadAtoms", 2},
		{"CC(=O)NC", "NumRotatableBonds", 0},
		{"CCCC", "NumRotatableBonds", 1},
		{"OC(=O)CN", "NumHAcceptors", 2},
	} {
		m, err := molecule.Parse(test.smiles)
		if err != nil {
			t.Fatal(err)
		}
		var c descriptor.Calculator
		values := make([]float64, len(descriptor.Names()))
		c.Compute(values, m)
		if have := values[slices.Index(descriptor.Names(), test.name)]; math.Abs(have-test.want) > 1e-12 {
			t.Errorf("%s: %s is %v, want %v", test.smiles, test.name, have, test.want)
		}
	}
	for i, name := range descriptor.Names() {
		if descriptor.Source(i) == "" {
			t.Errorf("%s has no source", name)
		}
	}
}

// TestLongChain: each CH₂ adds the same, also where RDKit has stopped matching.
func TestLongChain(t *testing.T) {
	var c descriptor.Crippen
	for _, n := range []int{100, 600, 1100} {
		m, err := molecule.Parse(strings.Repeat("C", n))
		if err != nil {
			t.Fatal(err)
		}
		// CH₃ and CH₂ are of type C1, their hydrogens of type H1.
		logP, refraction := c.Compute(m)
		wantLogP := float64(n)*0.1441 + float64(2*n+2)*0.123
		wantRefraction := float64(n)*2.503 + float64(2*n+2)*1.057
		if math.Abs(logP-wantLogP) > 1e-9 || math.Abs(refraction-wantRefraction) > 1e-9 {
			t.Errorf("%d carbons: %v and %v, want %v and %v", n, logP, refraction, wantLogP, wantRefraction)
		}
	}
}

// FuzzCompute: descriptors are finite and do not depend on the molecules before.
func FuzzCompute(f *testing.F) {
	for _, s := range []string{"CCO", "*", "[BH4-]", "C1CC1.[Na+]", "F/C=C/[C@H](N)O", "*1***:*1", "[H][H]", "N->[Pt]", "C$C", "c1ccccc1~[Fe]", "C~C"} {
		f.Add(s)
	}
	var p molecule.Parser
	var used descriptor.Calculator
	var usedAll descriptor.RDKit
	have, want := make([]float64, len(descriptor.Names())), make([]float64, len(descriptor.Names()))
	all := make([]float64, len(descriptor.RDKitNames()))
	wantAll := make([]float64, len(all))
	f.Fuzz(func(t *testing.T, smiles string) {
		if len(smiles) > 200 {
			return
		}
		m, err := p.Parse(smiles)
		if err != nil {
			return
		}
		used.Compute(have, m)
		new(descriptor.Calculator).Compute(want, m)
		for i, x := range have {
			if math.IsNaN(x) || math.IsInf(x, 0) || x != want[i] {
				t.Fatalf("%s is %v after others, %v alone", descriptor.Names()[i], x, want[i])
			}
		}
		usedAll.Compute(all, m)
		new(descriptor.RDKit).Compute(wantAll, m)
		for i, x := range all {
			if math.IsNaN(x) || math.IsInf(x, 0) || x != wantAll[i] {
				t.Fatalf("%s is %v after others, %v alone", descriptor.RDKitNames()[i], x, wantAll[i])
			}
		}
	})
}
