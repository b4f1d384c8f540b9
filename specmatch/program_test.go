package specmatch_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor"
)

// runProgram runs a program of testdata/program in dir, as the main package of another
// module, and returns what it prints.
func runProgram(t *testing.T, name, dir string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join("testdata", "program", name, "main.go"), dir)
	copyFile(t, filepath.Join(root, "go.sum"), dir)
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	// With all that this module requires, nothing is looked up but what it has itself.
	_, requires, _ := strings.Cut(string(own), "\n")
	module := fmt.Sprintf("module example.org/program\n%s\nrequire github.com/specmatch/specmatch v0.0.0\n\nreplace github.com/specmatch/specmatch => %q\n", requires, root)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", ".")
	cmd.Dir = dir
	// Nothing is fetched: what this module needs is there, or it would not be tested.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func copyFile(t *testing.T, name, dir string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestProgram runs a program that trains on its own edge lists and embeds with the file
// that it saved.
func TestProgram(t *testing.T) {
	type list struct {
		Nodes int
		Edges [][2]int
	}
	var lists []list
	for _, g := range dataset.Default().Graphs[:48] {
		l := list{Nodes: g.Nodes()}
		for i := range g.Nodes() {
			for _, j := range g.Neighbors(i) {
				l.Edges = append(l.Edges, [2]int{int(j), i})
			}
		}
		lists = append(lists, l)
	}
	data, err := json.Marshal(lists)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "graphs.json"), data, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, want := runProgram(t, "edges", dir), "48 graphs, width 96, equal: true\n"; out != want {
		t.Fatalf("%s, want %s", out, want)
	}
	m, err := model.Open(filepath.Join(dir, "model.safetensors"), cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	if a := (gnn.Architecture{Kind: gnn.KindGIN, In: 1, Hidden: 32, Layers: 3}); m.Card.Encoder != a {
		t.Errorf("encoder %+v, want %+v", m.Card.Encoder, a)
	}
	if s := m.Card.Provenance.Software; !strings.HasPrefix(s, "github.com/specmatch/specmatch v0.0.0") {
		t.Errorf("software %q", s)
	}
}

// TestProgramTable runs a program of 40 lines that fits a model to a column of a table,
// divided by scaffold, and predicts it for another table.
func TestProgramTable(t *testing.T) {
	dir := t.TempDir()
	table := func(name string, n int) {
		var b strings.Builder
		b.WriteString("name,smiles,carbons\n")
		for i := range n {
			rings := []string{"c1ccccc1", "C1CCCCC1", "c1ccoc1", "C1CCCC1", "c1ccsc1", "C1CCC1", "c1cc[nH]c1", "C1CC1"}
			smiles := strings.Repeat("C", i%9) + rings[i%8] + "C" + rings[i/8%8]
			fmt.Fprintf(&b, "m%d,%s,%d\n", i, smiles, strings.Count(strings.ToUpper(smiles), "C"))
		}
		b.WriteString("wrong,C1CC,3\n")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	table("train.csv", 240)
	table("new.csv", 1500) // more than a batch
	out := runProgram(t, "table", dir)
	var rmse, r2 float64
	if _, err := fmt.Sscanf(out, "RMSE %f, R² %f\n1501 records, 1 of them rejected\n", &rmse, &r2); err != nil || !(rmse < 1.5 && r2 > 0.7) {
		t.Errorf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "predictions.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(string(data), "\n"); lines[0] != "id,carbons" || len(lines) != 1502 {
		t.Errorf("%d lines, %s", len(lines), lines[0])
	}
}

// TestProgramClasses runs a program of 40 lines that trains without labels on a set in
// TUDataset's format and evaluates the embeddings in ten folds.
func TestProgramClasses(t *testing.T) {
	dir := t.TempDir()
	if err := dataset.WriteTU(dir, dataset.Default()); err != nil {
		t.Fatal(err)
	}
	out := runProgram(t, "classes", dir)
	var accuracy float64
	if _, err := fmt.Sscanf(out, "accuracy %f %% in 10 folds\n", &accuracy); err != nil || !(accuracy > 60 && accuracy <= 100) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestProgramLength: what the command line tool does with a table, and what an experiment
// does with a set, takes 40 lines of public packages.
func TestProgramLength(t *testing.T) {
	for _, name := range []string{"table", "classes"} {
		data, err := os.ReadFile(filepath.Join("testdata", "program", name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), "\n"); n > 40 || strings.Contains(string(data), "/experiments/") || strings.Contains(string(data), "/internal/") {
			t.Errorf("%s has %d lines, want at most 40 and public packages", name, n)
		}
	}
}
