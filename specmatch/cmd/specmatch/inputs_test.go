package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// quick are the flags of a fit that takes no time.
const quick = " -network=false -forest 0 -seeds 1" + few

// letters writes a set of four small graphs in TUDataset's format, with a label of the last one.
func letters(t *testing.T, folder, last string) string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, filepath.Base(folder))
	write(t, name+"_A.txt", "1, 2\n2, 1\n3, 4\n4, 3\n5, 6\n6, 5\n7, 8\n8, 7\n")
	write(t, name+"_graph_indicator.txt", "1\n1\n2\n2\n3\n3\n4\n4\n")
	write(t, name+"_graph_labels.txt", "0\n1\n0\n1\n")
	write(t, name+"_node_labels.txt", "0\n1\n0\n1\n0\n1\n0\n"+last+"\n")
	return folder
}

// TestOtherInputs: a run is not resumed with other data, nor with a file that it did not have or without one that it
// had; files may move.
func TestOtherInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	write(t, "t.csv", moleculeTable(20))
	write(t, "u.csv", moleculeTable(30))
	write(t, "v.csv", moleculeTable(30))
	write(t, "y.csv", "name,a\nm0,1\nm1,2\n")
	write(t, "z.csv", "name,b\nm0,1\nm1,3\n")
	tune := "finetune -in m.csv -target length" + quick
	assays := "train -in m.csv -id name -method assays -task-minimum 2 -epochs 0" + tiny
	folder := "train -epochs 0" + tiny
	letters(t, "A/LETTER", "1")
	letters(t, "moved/LETTER", "1")
	letters(t, "B/LETTER", "0")
	write(t, "moved/LETTER/README.txt", "no table")
	for _, tt := range []struct{ command, first, second, want string }{
		{tune, "", "-test t.csv", "-test was not given, now it is t.csv; drop the flag, or give a new -out"},
		{tune, "", "-valid t.csv", "-valid was not given, now it is t.csv"},
		{tune, "", "-test none", "-test was not given, now it is none"},
		{tune, "-test none", "-test t.csv", "-test was none, now it is t.csv"},
		{tune, "-test t.csv", "-test none", "-test was t.csv, now it is none"},
		{tune, "-test t.csv", "-test u.csv", "-test u.csv is not the file that the run was started with (SHA-256 "},
		{tune, "-test u.csv", "-test v.csv -valid t.csv", "-valid was not given"},
		{tune, "-test u.csv", "-test v.csv", ""},
		{tune, "-test u.csv", "", ""},
		{assays, "-targets y.csv", "-targets z.csv", "-targets z.csv is not the file that the run was started with"},
		{assays, "-targets y.csv,z.csv", "-targets y.csv", "-targets y.csv is not the file that"},
		{assays, "-targets y.csv,z.csv", "-targets z.csv,y.csv", "-targets z.csv,y.csv is not the file that"},
		{assays, "-targets y.csv,z.csv", "", ""},
		{folder, "-in A/LETTER", "-in B/LETTER", "-in B/LETTER is not the folder that"},
		{folder, "-in A/LETTER", "-in moved/LETTER", ""},
		{folder, "-in A/LETTER", "-in t.csv", " here): give that file, or a new -out"},
	} {
		out := " -out " + t.TempDir()
		must(t, tt.command+out+" "+tt.first)
		_, _, err := invoke(t.Context(), tt.command+out+" "+tt.second)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, then %s: %v, want %q", tt.first, tt.second, err, tt.want)
		}
	}
	must(t, tune+"-valid ./u.csv -test ./t.csv -out apart")
	if want := `"protocol":"-valid u.csv -test t.csv"`; !strings.Contains(read(t, "apart/results.json"), want) {
		t.Errorf("no %s in\n%s", want, read(t, "apart/results.json"))
	}
}

// TestForeignColumns: a column's name does not steer the terminal.
func TestForeignColumns(t *testing.T) {
	t.Chdir(t.TempDir())
	var rows strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(moleculeTable(60)), "\n")[1:] {
		fmt.Fprintf(&rows, "%s,1e%d\n", strings.Split(line, ",")[1], i%6)
	}
	write(t, "m.csv", "smiles,y\x1b[31mz\n"+rows.String())
	for _, line := range []string{
		"finetune -in m.csv -out run" + quick,
		"finetune -in m.csv -test m.csv -out tested" + quick,
		"predict -in m.csv -model run -out p.csv",
		"check -in m.csv -target y\x1b[31mz",
		"report -in run -out r.md",
		"report -in run -out r.html",
		"compare -in run,tested",
	} {
		stdout, stderr, err := invoke(t.Context(), line)
		if err != nil || strings.Contains(stdout+stderr, "\x1b") {
			t.Errorf("%s: %v\n%q", line, err, stdout+stderr)
		}
	}
	if text := read(t, "r.md") + read(t, "run/results.md"); strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}

// TestForeignCells: ids and texts that are copied do not steer the terminal.
func TestForeignCells(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", "smiles,id,y\nCCO,a\x1b[31mb,1\x1b[32m\nCCN,c,2\n")
	for _, line := range []string{
		"check -in m.csv -id id -target y -out c.csv",
		"search -in m.csv -id id -keep y -query CCO -least 0.01 -top 0 -out s.csv",
		"predict -in m.csv -id id -model admet:caco2 -domain d.csv -out p.csv",
	} {
		must(t, line)
	}
	for _, name := range []string{"c.csv", "s.csv", "d.csv", "p.csv"} {
		if text := read(t, name); strings.Contains(text, "\x1b") || !strings.Contains(text, `a\x1b[31mb`) {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// TestResumedElsewhere: a run that is resumed without its data, or with those of another run, says what to give.
func TestResumedElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	must(t, "finetune -in m.csv -target length -out a"+quick)
	must(t, "finetune -in m.csv -target share -out b"+quick)
	write(t, "v.csv", moleculeTable(20))
	must(t, "finetune -in m.csv -target length -valid v.csv -out v"+quick)
	if err := os.Mkdir("sub", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir("sub")
	for line, want := range map[string]string{
		"finetune -out ../a": "-in m.csv: there is no such file here; the run was started with this path, perhaps in " +
			"another folder: give -in",
		"finetune -in ../m.csv -out ../v": "-valid v.csv: there is no such file here; the run was started with this " +
			"path, perhaps in another folder: give -valid",
		"finetune -in ../m.csv -out ../v -valid ../w.csv": "-valid ../w.csv: there is no such file; did you mean ",
		"finetune -in n.csv -out ../a":                    "-in n.csv: there is no such file",
		"finetune -out c -collect none":                   "-collect none: there is no such run directory",
		"finetune -out c -collect ..":                     "-collect: .. holds no run",
		"finetune -out c -collect ../a,../b":              "the runs in ../a and ../b differ, and cannot be joined: of ../b, -target was share, now it is length",
		"finetune -out ../a -target share":                "the run in ../a cannot be resumed: -target was length, now it is share; drop the flag",
	} {
		if _, _, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	must(t, "finetune -in ../m.csv -out ../a")
}

// TestResumedStdin: a run that read standard input does not wait for it when there is none.
func TestResumedStdin(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	for _, source := range []string{"m.csv", os.DevNull} {
		file, err := os.Open(source)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdin = file
		line := "finetune -out a"
		if source == "m.csv" {
			line += " -in - -target length" + quick
		}
		_, _, err = invoke(t.Context(), line)
		file.Close()
		if source == "m.csv" && err != nil {
			t.Fatal(err)
		}
		if source != "m.csv" && (err == nil || !strings.Contains(err.Error(), "pipe the same data")) {
			t.Error(err)
		}
	}
}
