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
	text := sdFile(t, table)
	file := filepath.Join(dir, "m.sdf")
	write(t, file, text)
	var results [2][]string
	for k, in := range []string{table + " -id name", file + " -id _Name"} {
		out := filepath.Join(dir, fmt.Sprint("out", k))
		must(t, "train -in "+in+" -method descriptors -epochs 1 -out "+out+tiny)
		must(t, "embed -in "+in+" -model "+filepath.Join(out, modelFile)+" -out "+out+".csv")
		must(t, "finetune -in "+in+" -target share -seeds 1 -epochs 2 -out "+out+"-fine"+tiny)
		must(t, "predict -in "+in+" -model "+filepath.Join(out+"-fine", "model-0.safetensors")+" -out "+out+"-predicted.csv")
		results[k] = []string{read(t, out+".csv"), read(t, out+"-predicted.csv")}
	}
	text = strings.ReplaceAll(text, "> <share>\n", "> <share>\n1\n\n> <Comment>\nline 1\nline 2; x\n")
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

// sdFile returns the molecules of a table as an SD file with the property share.
func sdFile(t *testing.T, table string) string {
	t.Helper()
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
	return sd.String()
}

// TestAbsentProperties: a property that no record has costs no output. Those that the user named are warned of, but a
// target that is to be learned is an error.
func TestAbsentProperties(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(40))
	text := sdFile(t, "m.csv")
	write(t, "one.sdf", text)
	write(t, "two.sdf", strings.ReplaceAll(text, "> <share>\n", "> <extra>\n1\n\n> <share>\n"))
	must(t, "finetune -in two.sdf -target share,extra -test one.sdf -kind regression -epochs 1 -seeds 1 -out run"+few+tiny)
	must(t, "finetune -in two.sdf -target share,extra -valid one.sdf -kind regression -epochs 1 -seeds 1 -out valid"+few+tiny)
	const warning = "one.sdf: no record has a value of shares; did you mean \"share\"?\n"
	predict := "predict -in one.sdf -model run -out "
	embed := "embed -in one.sdf -features descriptors -out "
	for _, c := range []struct{ line, warning string }{
		{embed + "plain.csv", ""},
		{embed + "kept.csv -keep shares,share", warning},
		{embed + "- -out-format csv -keep shares", warning},
		{embed + "sharded.csv -keep shares -shard 0/2", warning},
		{embed + "sharded.csv -keep shares -shard 1/2", warning},
		{embed + "sharded.csv -keep shares -collect", ""},
		{predict + "predicted.csv", ""},
		{predict + "named.csv -target share,shares", warning},
		{predict + "both.csv -keep shares", warning},
		{"search -in one.sdf -smarts C -keep shares -out hits.csv", warning},
		{"search -in one.sdf -query CCO -keep shares -out similar.csv", warning},
		{"pick -in one.sdf -count 3 -keep shares -out picked.csv", warning},
	} {
		stdout, stderr, err := invoke(t.Context(), c.line)
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
		}
		if !strings.Contains(stderr, c.warning) || c.warning == "" && strings.Contains(stderr, "no record") {
			t.Errorf("%s says %q, want %q", c.line, stderr, c.warning)
		}
		if strings.Contains(stderr, "also read shares") || strings.Contains(stderr, ", extra") {
			t.Errorf("%s describes what is not there: %s", c.line, stderr)
		}
		if c.line == predict+"predicted.csv" && !strings.Contains(stdout+stderr, "extra: 0 records with a target") {
			t.Errorf("%s%s", stdout, stderr)
		}
	}
	if rows := readCSV(t, "kept.csv"); len(rows) != 41 || rows[1][1] != "" || rows[1][2] == "" {
		t.Errorf("%d rows, such as %q", len(rows), rows[1])
	}
	for _, line := range []string{
		"check -in one.sdf -target shares",
		"finetune -in one.sdf -target share,shares -test two.sdf -epochs 1 -seeds 1" + few + tiny,
	} {
		_, stderr, err := invoke(t.Context(), line)
		if err == nil || err.Error()+"\n" != warning || stderr != "" {
			t.Errorf("%s: %v, %q", line, err, stderr)
		}
	}
}
