package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestSDF: from an SD file every command makes what it makes from a table.
func TestSDF(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "m.csv")
	write(t, table, moleculeTable(40))
	var sd strings.Builder
	for _, row := range readCSV(t, table)[1:] {
		name, smiles, share := row[0], row[1], row[3] // a chain of C and O
		fmt.Fprintf(&sd, "%s\n\n\n%3d%3d  0  0  0  0            999 V2000\n", name, len(smiles), len(smiles)-1)
		for i, c := range smiles {
			fmt.Fprintf(&sd, "%10.4f%10.4f%10.4f %c   0  0\n", float64(i), 0.0, 0.0, c)
		}
		for i := range len(smiles) - 1 {
			fmt.Fprintf(&sd, "%3d%3d  1  0\n", i+1, i+2)
		}
		fmt.Fprintf(&sd, "M  END\n> <share>\n%s\n\n$$$$\n", share)
	}
	file := filepath.Join(dir, "m.sdf")
	write(t, file, sd.String())
	var results [2][]string
	for k, in := range []string{table + " -id name", file + " -id _Name"} {
		out := filepath.Join(dir, fmt.Sprint("out", k))
		must(t, "train -in "+in+" -method descriptors -epochs 1 -out "+out+tiny)
		must(t, "embed -in "+in+" -model "+filepath.Join(out, modelFile)+" -out "+out+".csv")
		must(t, "finetune -in "+in+" -target share -seeds 1 -epochs 2 -out "+out+"-fine"+tiny)
		must(t, "predict -in "+in+" -model "+filepath.Join(out+"-fine", "model-0.safetensors")+" -out "+out+"-predicted.csv")
		results[k] = []string{read(t, out+".csv"), read(t, out+"-predicted.csv")}
	}
	text := strings.ReplaceAll(sd.String(), "> <share>\n", "> <share>\n1\n\n> <Comment>\nline 1\nline 2; x\n")
	write(t, filepath.Join(dir, "lines.sdf"), text)
	kept := filepath.Join(dir, "kept.csv")
	for _, line := range []string{"embed -features descriptors", "search -smarts C"} {
		must(t, line+" -in "+filepath.Join(dir, "lines.sdf")+" -keep Comment -out "+kept)
		if value := read(t, kept); !strings.Contains(value, ",\"line 1\nline 2; x\n") {
			t.Errorf("%s: the lines of a property: %.200s", line, value)
		}
	}
	for i, of := range results[0] {
		if results[1][i] != of {
			t.Errorf("from the SD file\n%s\nfrom the table\n%s", results[1][i], of)
		}
	}
}
