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
	"time"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/descriptor"
)

func ExampleRDKit() {
	m, err := molecule.Parse("CC(=O)Nc1ccc(O)cc1")
	if err != nil {
		fmt.Println(err)
		return
	}
	var c descriptor.RDKit
	names := descriptor.RDKitNames()
	values := make([]float64, len(names))
	c.Compute(values, m)
	for i, name := range names {
		switch name {
		case "qed", "PEOE_VSA1", "BCUT2D_CHGHI", "fr_phenol":
			fmt.Printf("%s %.4f\n", name, values[i])
		}
	}
	// Output:
	// qed 0.5950
	// BCUT2D_CHGHI 1.9280
	// PEOE_VSA1 10.4233
	// fr_phenol 1.0000
}

var (
	allTables  = flag.String("all", "testdata/all.tsv", "tables by rdkit_descriptors.py --all, to compare with, separated by commas")
	difference = flag.String("differences", "", "file to which TestRDKitAll writes the largest difference of every descriptor")
)

// oddMolecules differ in their bonds: another Kekulé structure, a triple bond in an aromatic ring, and an aromatic
// bond outside of rings.
var oddMolecules = []string{otherStructure, "c1c#cccc1", "c1c#[nH+]ccc1", "C[C@H](:O)C"}

// deviation is how much a descriptor differs from RDKit's.
type deviation struct {
	largest float64 // |x - y| / max(1, |y|)
	differ  int     // molecules beyond the tolerance
	without int     // molecules for which RDKit has no number
	smiles  string
	x, y    float64
}

// TestRDKitAll compares all descriptors with RDKit's.
func TestRDKitAll(t *testing.T) {
	names := descriptor.RDKitNames()
	if len(names) != 217 {
		t.Errorf("%d names, want 217", len(names))
	}
	deviations := make([]deviation, len(names))
	molecules := 0
	spent := time.Duration(0)
	for path := range strings.SplitSeq(*allTables, ",") {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<20)
		sc.Scan()
		if all := strings.Split(sc.Text(), "\t")[1:]; !slices.Equal(names, all) {
			t.Fatalf("names %v, want %v", names, all)
		}
		var p molecule.Parser
		var c descriptor.RDKit
		values := make([]float64, len(names))
		for sc.Scan() {
			fields := strings.Split(sc.Text(), "\t")
			if slices.Contains(oddMolecules, fields[0]) || strings.Contains(fields[0], "*") {
				continue // RDKit's surfaces of wildcards are no numbers
			}
			start := time.Now()
			m, err := p.Parse(fields[0])
			if err != nil {
				t.Errorf("%s: %v", fields[0], err)
				continue
			}
			molecules++
			c.Compute(values, m)
			spent += time.Since(start)
			for i, text := range fields[1:] {
				want, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Fatal(err)
				}
				deviations[i].add(fields[0], values[i], want)
			}
		}
	}
	report := "name\tlargest difference\tmolecules beyond 1e-5\twithout a number in RDKit\n"
	for i, d := range deviations {
		report += fmt.Sprintf("%s\t%.2g\t%d\t%d\n", names[i], d.largest, d.differ, d.without)
		exempt := slices.Contains([]string{"SPS", "Ipc", "AvgIpc"}, names[i]) // see the package comment
		if d.differ > 0 && !(exempt && d.differ < max(2, molecules/200)) {
			t.Errorf("%s differs for %d of %d molecules; %s: %v, want %v", names[i], d.differ, molecules, d.smiles, d.x, d.y)
		}
	}
	t.Logf("%d molecules, %.2f ms each", molecules, spent.Seconds()*1e3/float64(molecules))
	if *difference != "" {
		if err := os.WriteFile(*difference, []byte(report), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// add compares a value with RDKit's.
func (d *deviation) add(smiles string, x, y float64) {
	if math.IsNaN(y) || math.IsInf(y, 0) {
		d.without++
		return
	}
	const tolerance = 1e-5
	relative := math.Abs(x-y) / max(1, math.Abs(y))
	if relative > tolerance {
		d.differ++
	}
	if relative > d.largest {
		d.largest = relative
		d.smiles = smiles
		d.x = x
		d.y = y
	}
}

func BenchmarkRDKit(b *testing.B) {
	m, err := molecule.Parse("CC(C)Cn1c(=O)n(C)c(=O)c2c(N[C@@H](C)C(=O)N3CCOCC3)nc(-c3ccc(F)cc3)nc21")
	if err != nil {
		b.Fatal(err)
	}
	var c descriptor.RDKit
	values := make([]float64, len(descriptor.RDKitNames()))
	for b.Loop() {
		c.Compute(values, m)
	}
}
