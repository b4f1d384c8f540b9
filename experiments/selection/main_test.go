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
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func TestMain(m *testing.M) { runtest.Main(m, execute) }

var small = []string{"-seeds", "2", "-epochs", "5", "-eval-every", "2", "-folds", "3"}

func start(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := execute(t.Context(), append([]string{"-out", dir}, args...), &out, io.Discard); err != nil {
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
	data := runtest.FewGraphs(t, 96)
	small := append([]string{"-data", data, "-dataset", "few"}, small...)
	out := start(t, dir, append(small, "-protocol", "linear")...)
	for _, want := range []string{"InfoNCE, last epoch", "epoch by validation", "oracle: best epoch of each fold"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	runtest.Files(t, dir, "config.json", "tables.md", "plots/epochs-linear.svg",
		"weights/few-infonce,tau=0.2-0-epoch2.safetensors", "weights/few-infonce,tau=0.2-1-epoch4.safetensors", "weights/few-infonce,tau=0.2-1-epoch5.safetensors")
	plain, ok := runtest.Find(runtest.Results(t, dir), "few", "InfoNCE, last epoch", "linear")
	if !ok || len(plain.PerSeed) != 2 {
		t.Fatalf("the row of the last epoch: %+v", plain)
	}
	ds, err := dataset.Open(t.Context(), data, "few", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
		result, err := eval.Linear.Accuracy(t.Context(), h, ds.Labels(), 3, uint32(seed), eval.Options{})
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
	runtest.Files(t, dir, "plots/epochs-graphcl-c10.svg", "plots/gains-graphcl-c10.svg")
	if r, ok := runtest.Find(runtest.Results(t, dir), "few", "β = 1, p = 80, last epoch", "linear"); !ok || len(r.PerSeed) != 2 {
		t.Errorf("the second setting's row of results.json: %+v", r)
	}
	for _, want := range []string{"β = 1, p = 80", "oracle: best setting and epoch of each seed", "corrected by Holm for the 1 rows"} {
		if !strings.Contains(grownOut, want) {
			t.Errorf("the output lacks %q:\n%s", want, grownOut)
		}
	}
}

// TestMethods: every method has tables of its own, by its own recipe, which leaves
// those of the others as they are.
func TestMethods(t *testing.T) {
	if testing.Short() {
		t.Skip("trains many times; left out with -short")
	}
	alone, dir := filepath.Join(t.TempDir(), "alone"), filepath.Join(t.TempDir(), "run")
	args := []string{"-data", runtest.FewGraphs(t, 96), "-dataset", "few", "-seeds", "2", "-eval-every", "15", "-folds", "2", "-protocol", "linear"}
	start(t, alone, append(args, "-method", "simgrace")...)
	out := start(t, dir, append(args, "-method", "infonce,joaov2,simgrace,cuco")...)
	if !strings.Contains(out, "JOAOv2, last epoch") {
		t.Errorf("the output lacks JOAOv2's row:\n%s", out)
	}
	runtest.Files(t, dir, "weights/few-infonce,tau=0.2-0-epoch15.safetensors", "weights/few-infonce,tau=0.2-0-epoch20.safetensors",
		"weights/few-joaov2,tau=0.2-1-epoch30.safetensors", "weights/few-joaov2,tau=0.2-1-epoch40.safetensors")
	// CuCo stops by itself, with this seed before epoch 15, and is from then on what it was.
	stopped, err := os.ReadFile(filepath.Join(dir, "weights", "few-cuco,tau=0.2-1-epoch15.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	last, err := os.ReadFile(filepath.Join(dir, "weights", "few-cuco,tau=0.2-1-epoch20.safetensors"))
	if err != nil || !bytes.Equal(stopped, last) {
		t.Errorf("CuCo after epoch 20 is not that of epoch 15 (%v)", err)
	}
	results := runtest.Results(t, dir)
	for method, epochs := range map[string]int{"InfoNCE": 20, "JOAOv2": 40, "SimGRACE": 20, "CuCo": 20} {
		label := method + ", oracle: best epoch of each seed"
		if method == "InfoNCE" {
			label = "oracle: best epoch of each seed"
		}
		last, ok := runtest.Find(results, "few", method+", last epoch", "linear")
		best, also := runtest.Find(results, "few", label, "linear")
		if !ok || !also || last.Epochs != epochs || len(last.PerSeed) != 2 {
			t.Fatalf("%s: last epoch %+v, best %+v, want %d epochs", method, last, best, epochs)
		}
		for seed := range best.PerSeed {
			if best.PerSeed[seed] < last.PerSeed[seed] {
				t.Errorf("%s: the best epoch of seed %d has %v, the last %v", method, seed, best.PerSeed[seed], last.PerSeed[seed])
			}
		}
	}
	for _, r := range runtest.Results(t, alone) {
		beside, ok := runtest.Find(results, r.Dataset, r.Method, r.Protocol)
		if d := cmp.Diff(r.PerSeed, beside.PerSeed); !ok || d != "" {
			t.Errorf("%s beside others:\n%s", r.Method, d)
		}
	}
}

// TestBetaElsewhere: only InfoNCE has a β.
func TestBetaElsewhere(t *testing.T) {
	err := execute(t.Context(), []string{"-method", "cuco", "-beta-values", "0,1"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "-beta-values [0 1] are for -method infonce, not for cuco") {
		t.Errorf("error %v, want one about β", err)
	}
}

// setup is what repeats a run of the embedded set.
func setup(ds *dataset.Dataset, seed int) method.Setup {
	return method.Setup{
		Backend: cpu.New(tensor.Float32), Graphs: ds.Graphs, Seed: uint64(seed),
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
	runtest.Kill(t, 10, "-data", runtest.FewGraphs(t, 96), "-dataset", "few", "-seeds", "1", "-epochs", "8", "-eval-every", "1", "-batch", "16", "-folds", "3")
}
