package model_test

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/tensor"
)

// python returns a Python with the modules, or skips. The variable PYTHON names
// another one than python3.
func python(t *testing.T, modules string) string {
	t.Helper()
	p := cmp.Or(os.Getenv("PYTHON"), "python3")
	if out, err := exec.Command(p, "-c", "import "+modules).CombinedOutput(); err != nil {
		t.Skipf("%s cannot import %s (%v); the variable PYTHON may name one that can\n%s", p, modules, err, out)
	}
	return p
}

// TestStateDict: PyTorch loads a model file of every kind, with and without a head,
// with strict=True, and has the same embeddings.
func TestStateDict(t *testing.T) {
	p := python(t, "torch, safetensors.torch")
	be := cpu.New(tensor.Float32)
	for k, a := range append(kinds, gnn.Architecture{Kind: gnn.KindResGCN, In: 11, Hidden: 4, Layers: 2}) {
		m, graphs := trainedModel(t, be, a, heads[k%len(heads)])
		want := embeddings(t, m, graphs)

		type row struct {
			Nodes  int         `json:"nodes"`
			Edges  [][2]int    `json:"edges"`
			Labels []int32     `json:"labels"`
			X      [][]float32 `json:"x"`
		}
		var rows []row
		for _, g := range graphs {
			r := row{Nodes: g.Nodes(), Labels: g.EdgeLabel}
			for i := range g.Nodes() {
				for _, j := range g.Neighbors(i) {
					r.Edges = append(r.Edges, [2]int{int(j), i})
				}
				x := make([]float32, g.X.Width)
				g.X.Row(x, i)
				r.X = append(r.X, x)
			}
			rows = append(rows, r)
		}
		data, err := json.Marshal(rows)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "graphs.json")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(p, filepath.Join("testdata", "state_dict.py"), saveModel(t, m), path)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", a.Kind, err)
		}
		var got struct {
			Layers     int
			Embeddings []float64
		}
		if err := json.Unmarshal(out, &got); err != nil || len(got.Embeddings) != len(want) {
			t.Fatalf("%s: %d embeddings of %d, %v", a.Kind, len(got.Embeddings), len(want), err)
		}
		scale, worst := 0.0, 0.0
		for i, w := range want {
			scale = max(scale, math.Abs(w))
			worst = max(worst, math.Abs(got.Embeddings[i]-w))
		}
		if !(worst <= 1e-5*scale) {
			t.Errorf("%s: the embeddings differ by %g of %g", a.Kind, worst, scale)
		}
		t.Logf("%s: %.1e, with the layers of PyTorch Geometric too: %v", a.Kind, worst/scale, got.Layers == 2)
	}
}
