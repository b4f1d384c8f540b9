package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func TestMain(m *testing.M) { rundirtest.Main(m, run) }

var small = []string{"-seeds", "2", "-epochs", "5", "-eval-every", "2", "-folds", "3"}

func start(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append([]string{"-out", dir}, args...), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestRun: the first row is what experiment unsupervised measures, rows and files are
// there, and a run that grows by a setting and a protocol is that of all at once.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains many times; left out with -short")
	}
	dir := filepath.Join(t.TempDir(), "run")
	out := start(t, dir, append(small, "-protocol", "linear")...)
	for _, want := range []string{"InfoNCE, last epoch", "epoch by validation", "oracle: best epoch of each fold"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	rundirtest.Files(t, dir, "config.json", "tables.md", "plots/epochs-linear.svg",
		"weights/motifs-infonce,tau=0.2-0-epoch2.safetensors", "weights/motifs-infonce,tau=0.2-1-epoch4.safetensors", "weights/motifs-infonce,tau=0.2-1-epoch5.safetensors")
	plain, ok := rundir.Find(rundirtest.Results(t, dir), "motifs", "InfoNCE, last epoch", "linear")
	if !ok || len(plain.PerSeed) != 2 {
		t.Fatalf("the row of the last epoch: %+v", plain)
	}
	ds := dataset.Default()
	for seed, got := range plain.PerSeed {
		l, err := method.New(method.InfoNCE, setup(ds, seed))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := train.Run(t.Context(), l, train.Options{Epochs: 5}, func(train.Progress) error { return nil }); err != nil {
			t.Fatal(err)
		}
		h, err := l.Embed(t.Context(), ds.Graphs)
		if err != nil {
			t.Fatal(err)
		}
		folds, err := dataset.StratifiedKFold(ds.Labels(), 3, true, uint32(seed))
		if err != nil {
			t.Fatal(err)
		}
		result, err := eval.Evaluate(t.Context(), eval.Linear, eval.Data{X: h, Dim: l.Model.Encoder.Width(), Y: ds.Labels()}, folds, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := 100 * result.Mean; got-want > 1e-9 || want-got > 1e-9 {
			t.Errorf("seed %d: %v after the last epoch, want %v", seed, got, want)
		}
	}
	grownOut := start(t, dir, "-protocol", "graphcl-c10", "-beta-values", "0,1")
	whole := filepath.Join(t.TempDir(), "whole")
	start(t, whole, append(small, "-protocol", "linear,graphcl-c10", "-beta-values", "0,1")...)
	if d := cmp.Diff(tables(t, whole), tables(t, dir)); d != "" {
		t.Errorf("the grown run differs from one at once:\n%s", d)
	}
	rundirtest.Files(t, dir, "plots/epochs-graphcl-c10.svg", "plots/gains-graphcl-c10.png")
	for _, want := range []string{"β = 1, p = 80", "oracle: best setting and epoch of each seed", "corrected by Holm for the 1 rows"} {
		if !strings.Contains(grownOut, want) {
			t.Errorf("the output lacks %q:\n%s", want, grownOut)
		}
	}
}

// setup is what repeats a run of the embedded set.
func setup(ds *dataset.Dataset, seed int) method.Setup {
	return method.Setup{
		Backend: cpu.New(tensor.Float32), Graphs: ds.Graphs, Seed: uint64(seed), Ratio: 0.2,
		Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: ds.FeatureWidth, Hidden: 32, Layers: 3},
	}
}

func tables(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "tables.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestKilled: killed at random moments, a run ends with the bits of one that nothing
// disturbs, snapshots included.
func TestKilled(t *testing.T) {
	rundirtest.Kill(t, 10, "-seeds", "1", "-epochs", "8", "-eval-every", "1", "-batch", "16", "-folds", "3")
}
