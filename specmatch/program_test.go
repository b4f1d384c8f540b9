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
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

// TestProgram builds the program of testdata/program in a module of its own, where
// it trains on its own edge lists and embeds with the file that it saved.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
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
	write("graphs.json", data)
	write("main.go", read(filepath.Join("testdata", "program", "main.go")))
	write("go.sum", read(filepath.Join(root, "go.sum")))
	write("go.mod", fmt.Appendf(nil, "module example.org/program\n\ngo 1.26.0\n\nrequire github.com/specmatch/specmatch v0.0.0\n\nreplace github.com/specmatch/specmatch => %q\n", root))

	cmd := exec.Command("go", "run", ".")
	cmd.Dir = dir
	// Nothing is fetched: what this module needs is there, or it would not be tested.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if want := "48 graphs, width 96, equal: true\n"; err != nil || string(out) != want {
		t.Fatalf("%v: %s, want %s", err, out, want)
	}
	m, err := specmatch.Open(filepath.Join(dir, "model.safetensors"), cpu.New(tensor.Float32))
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
