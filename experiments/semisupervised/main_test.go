package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/train"
)

// TestChoose: two folds, three epochs, by hand.
func TestChoose(t *testing.T) {
	fold := func(losses, accuracies []float64) (t finetune.Result) {
		for e, loss := range losses {
			t.Epochs = append(t.Epochs, train.Metrics{validLoss: loss, testAccuracy: accuracies[e]})
		}
		return t
	}
	folds := []finetune.Result{
		fold([]float64{3, 1, 2}, []float64{50, 60, 90}),
		fold([]float64{1, 1, 2}, []float64{40, 80, 60}),
	}
	if a := choose(protocolVal, folds); a != 50 { // 60 at epoch 2 and 40 at 1
		t.Errorf("val: %v, want 50", a)
	}
	if a := choose(protocolTestMax, folds); a != 75 { // 90 and 60, both at epoch 3
		t.Errorf("test-max: %v, want 75", a)
	}
}

// few are flags that finish in seconds.
var few = []string{"-seeds", "2", "-epochs", "1", "-finetune-epochs", "2", "-folds", "3", "-label-rate", "0.25"}

func runOK(t *testing.T, out string, args ...string) string {
	t.Helper()
	var stdout bytes.Buffer
	if err := execute(t.Context(), slices.Concat([]string{"-out", out}, few, args), &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	return stdout.String()
}

func TestRunDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	data := runtest.FewGraphs(t, 96)
	ds, err := dataset.Open(t.Context(), data, "few", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stdout := runOK(t, dir, "-data", data, "-dataset", "few", "-label-rate", "0.5")
	for _, want := range []string{"no pre-training", "augmentation only", "GraphCL", "InfoNCE (β = 0)", "SpecMatch-CL", "Protocol val", "Protocol test-max", "Difference to InfoNCE"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout)
		}
	}
	rows := runtest.Results(t, dir)
	if len(rows) != 2*len(methods) {
		t.Errorf("%d rows in results.json, want 2 protocols × %d methods", len(rows), len(methods))
	}
	for _, r := range rows {
		if !(r.Mean >= 20 && r.Mean <= 100) || len(r.PerSeed) != 2 {
			t.Errorf("row %+v", r)
		}
	}
	var written map[string]map[string][]dataset.Split
	runtest.JSON(t, filepath.Join(dir, "splits.json"), &written)
	want, err := dataset.FewLabels(ds, 3, 0.5, true, splitSeed)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, written["few"][protocolVal]); d != "" || len(written["few"][protocolTestMax]) != 3 {
		t.Errorf("splits.json: %s", d)
	}
	runtest.Files(t, dir, "config.json", "tables.md", "metrics.csv", "plots/finetuning-few.svg", "plots/augmentations-few.svg", "weights/few-specmatch-1.safetensors")
	t.Run("methods differ", func(t *testing.T) { methodsDiffer(t, dir) })
}

// TestDeterminism: equal seeds give equal results at any number of threads, and
// when a run is taken up from weights that an earlier start left.
func TestDeterminism(t *testing.T) {
	if testing.Short() {
		t.Skip("trains many times; left out with -short")
	}
	only := []string{"-method", "none,specmatch", "-protocol", "val"}
	var first []run.Row
	for _, procs := range []int{1, 3} {
		old := runtime.GOMAXPROCS(procs)
		dir := filepath.Join(t.TempDir(), "run")
		runOK(t, dir, only...)
		runtime.GOMAXPROCS(old)
		if first == nil {
			first = runtest.Results(t, dir)
			cut(t, filepath.Join(dir, "done.jsonl"), 4) // two pre-trainings and two folds
			runOK(t, dir, only...)
		}
		if d := cmp.Diff(first, runtest.Results(t, dir), cmpopts.EquateNaNs()); d != "" {
			t.Errorf("GOMAXPROCS %d: %s", procs, d)
		}
	}
}

// TestPretrained: a run with the weights of another ends where that one did; one
// that those weights are not for is refused.
func TestPretrained(t *testing.T) {
	from, dir := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "run")
	only := []string{"-method", "none,specmatch", "-protocol", "val"}
	runOK(t, from, only...)
	runOK(t, dir, append(only, "-pretrained", from)...)
	if d := cmp.Diff(accuracies(t, from), accuracies(t, dir)); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(filepath.Join(dir, "weights")); err == nil {
		t.Error("it has pre-trained all the same")
	}
	for want, args := range map[string][]string{
		"-beta was 0.05, now it is 0.5": {"-beta", "0.5"},
		"motifs-infonce-0.safetensors":  {"-method", "infonce"},
		"config.json":                   {"-pretrained", dir + "-none"},
	} {
		args = slices.Concat(few, []string{"-method", "specmatch", "-pretrained", from, "-out", filepath.Join(t.TempDir(), "run")}, args)
		var usage *cli.UsageError
		if err := execute(t.Context(), args, io.Discard, io.Discard); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}

// accuracies are the values of results.json, by method and seed.
func accuracies(t *testing.T, dir string) map[string][]float64 {
	all := map[string][]float64{}
	for _, r := range runtest.Results(t, dir) {
		all[r.Method] = r.PerSeed
	}
	return all
}

// cut leaves the first lines of a file.
func cut(t *testing.T, path string, lines int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept := bytes.Join(bytes.SplitAfter(data, []byte("\n"))[:lines], nil)
	if err := os.WriteFile(path, kept, 0o666); err != nil {
		t.Fatal(err)
	}
}

// methodsDiffer fails unless every method of a run leads somewhere else, and a seed does.
func methodsDiffer(t *testing.T, dir string) {
	losses := map[string]string{}
	data, err := os.ReadFile(filepath.Join(dir, "done.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e struct {
			Unit   string
			Result finetune.Result
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Unit, "/val/fold=0") {
			key := fmt.Sprint(e.Result.Series("loss"))
			if other, equal := losses[key]; equal {
				t.Errorf("%s and %s have equal losses", e.Unit, other)
			}
			losses[key] = e.Unit
		}
	}
	if len(losses) != 2*len(methods) {
		t.Errorf("%d curves, want %d", len(losses), 2*len(methods))
	}
}

// TestOneClass: a set of one class would have an accuracy of 100 %.
func TestOneClass(t *testing.T) {
	dir := t.TempDir()
	nodes := ""
	for k := range 60 {
		nodes += strconv.Itoa(k+1) + "\n"
	}
	if err := os.Mkdir(filepath.Join(dir, "ONE"), 0o755); err != nil {
		t.Fatal(err)
	}
	for part, text := range map[string]string{"A": "", "graph_indicator": nodes, "graph_labels": strings.Repeat("7\n", 60)} {
		if err := os.WriteFile(filepath.Join(dir, "ONE", "ONE_"+part+".txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := execute(t.Context(), append([]string{"-dataset", "ONE", "-data", dir, "-method", "none", "-out", filepath.Join(dir, "run")}, few...), io.Discard, io.Discard)
	if want := "ONE: all of its graphs have class 7"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"want " + strings.Join(methods[:len(methods)-1], ", ") + " or specmatch": {"-method", "untrained"},
		"-label-rate 0.3": {"-label-rate", "0.3"},
		"motifs is too small for a label rate of 1/100": {"-label-rate", "0.01"},
		"-folds 500: motifs":                            {"-folds", "500"},
		"2 folds: one is for testing":                   {"-folds", "2"},
		"-dataset needs -data":                          {"-dataset", "NCI1"},
		"no augmentation":                               {"-policy", "random9"},
		"want paper or reference":                       {"-encoder", "gin"},
	} {
		err := execute(t.Context(), args, io.Discard, io.Discard)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want a usage error with %q", args, err, want)
		}
	}
}
