package main

import (
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/tensor"
)

// modelFiles: embeddings computed from a model file alone have the accuracy that
// the run reported, to the last digit, for every method. GraphCL by its code is the
// trap: its encoder must see self-loops.
func modelFiles(t *testing.T, dir, data string, rows []run.Row) {
	if testing.Short() {
		t.Skip("evaluates every method once more; left out with -short")
	}
	ds, err := dataset.Open(t.Context(), data, "few", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		m, err := model.Open(filepath.Join(dir, "weights", "few-"+row.Method+"-0.safetensors"), cpu.New(tensor.Float32))
		if err != nil {
			t.Fatal(err)
		}
		h, err := m.Embed(t.Context(), ds.Graphs)
		if err != nil {
			t.Fatal(err)
		}
		result, err := eval.Protocol(row.Protocol).Accuracy(t.Context(), h, ds.Labels(), 3, 0, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := 100 * result.Mean; got != row.PerSeed[0] {
			t.Errorf("%s, %s: accuracy %v from the model file, %v in the run", row.Method, row.Protocol, got, row.PerSeed[0])
		}
		if p := m.Card.Provenance; p.Method != row.Method || p.Epochs != row.Epochs || len(p.Data) != 4 || p.Data[0].Name != "few_A.txt" {
			t.Errorf("%s: the card says %+v", row.Method, p)
		}
	}
}
