package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

func runOK(t *testing.T, args ...string) (dir, stdout string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	var out bytes.Buffer
	args = append([]string{"-out", dir, "-seeds", "2", "-epochs", "2", "-folds", "3"}, args...)
	if err := execute(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return dir, out.String()
}

// results returns the rows of results.json by the name of their method.
func results(t *testing.T, dir string) map[string]run.Row {
	t.Helper()
	byName := map[string]run.Row{}
	for _, r := range runtest.Results(t, dir) {
		if _, twice := byName[r.Method]; twice {
			t.Errorf("two rows are called %q", r.Method)
		}
		byName[r.Method] = r
	}
	return byName
}

// metrics returns columns of metrics.csv, in the order of the epochs, for the
// units whose names have the part.
func metrics(t *testing.T, dir, part string, columns ...string) [][]string {
	t.Helper()
	var found [][]string
	for _, line := range runtest.Metrics(t, dir) {
		if strings.Contains(line["unit"], part) {
			row := []string{line["seed"], line["epoch"]}
			for _, c := range columns {
				row = append(row, line[c])
			}
			found = append(found, row)
		}
	}
	slices.SortFunc(found, slices.Compare)
	return found
}

// TestHardThresholdAtP100IsBetaZero: no similarity is above the largest, so the
// graphs have no edges, L_G is 0, and training is that of L_C alone bit for bit.
// The paper's Table 4 has another figure in that row.
func TestHardThresholdAtP100IsBetaZero(t *testing.T) {
	dir, _ := runOK(t, "-vary", "adjacency", "-beta", "1.5")
	rows := results(t, dir)
	zero := rows["β = 0"].PerSeed
	if len(zero) != 2 {
		t.Fatalf("β = 0 has the seeds %v", zero)
	}
	for _, name := range []string{"adjacency hard", "adjacency hard, p = 100"} {
		if d := cmp.Diff(zero, rows[name].PerSeed); d != "" {
			t.Errorf("%s has other accuracies than β = 0:\n%s", name, d)
		}
	}
	losses := metrics(t, dir, "infonce", "loss_c", "similarity_std", "align")
	hard := metrics(t, dir, "p=100,kappa=10,hard", "loss_c", "similarity_std", "align")
	if d := cmp.Diff(losses, hard); d != "" || len(hard) != 4 {
		t.Errorf("p = 100 and β = 0 train differently:\n%s", d)
	}
	for _, row := range metrics(t, dir, "p=100,kappa=10,hard", "loss_g", "loss_g_hard", "edge_density", "gradient_ratio", "beta") {
		if d := cmp.Diff([]string{"0", "0", "0", "0", "1.5"}, row[2:]); d != "" {
			t.Errorf("seed %s, epoch %s: L_G, hard L_G, density, gradient ratio, β:\n%s", row[0], row[1], d)
		}
	}
	// A hard threshold elsewhere has edges and an L_G, and still no gradient.
	for _, row := range metrics(t, dir, "p=80,kappa=10,hard", "gradient_ratio", "loss_g") {
		if row[2] != "0" || row[3] == "0" {
			t.Errorf("p = 80: gradient ratio %s, L_G %s; want 0 and not 0", row[2], row[3])
		}
	}
	// And the soft one is another training.
	if soft := metrics(t, dir, "p=80,kappa=10,sigmoid", "loss_c"); cmp.Equal(metrics(t, dir, "infonce", "loss_c"), soft) || len(soft) != 4 {
		t.Errorf("the sigmoid at β = 1.5 trains like β = 0: %v", soft)
	}
}

// TestRows: every factor has its rows, a row changes what it says, and rows that
// say the same share their runs.
func TestRows(t *testing.T) {
	if testing.Short() {
		t.Skip("trains many times; left out with -short")
	}
	dir, stdout := runOK(t, "-beta-values", "0,0.1,0.5", "-seeds", "1")
	rows := results(t, dir)
	same := []string{"β = 0.5", "p = 80", "κ = 10", "adjacency sigmoid", "Laplacian symmetric", "L_G on z", "L_C as a mean"}
	for _, name := range same {
		if d := cmp.Diff(rows[same[0]].PerSeed, rows[name].PerSeed); d != "" || len(rows[name].PerSeed) != 1 {
			t.Errorf("%s is not the base:\n%s", name, d)
		}
	}
	others := []string{
		"β = 0", "β = 0.1", "p = 60", "p = 100", "κ = 5", "κ = 50", "adjacency spread, κ = 3", "adjacency ste",
		"adjacency hard", "adjacency hard, p = 100", "Laplacian random-walk", "L_G on h", "L_C as a sum",
	}
	for _, name := range others {
		if _, ok := rows[name]; !ok {
			t.Errorf("there is no row %q", name)
		}
		if !strings.Contains(stdout, name) {
			t.Errorf("the table lacks %q", name)
		}
	}
	if len(rows) != len(same)+len(others) {
		t.Errorf("%d rows, want %d", len(rows), len(same)+len(others))
	}
	journal, err := os.ReadFile(filepath.Join(dir, "done.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(journal, []byte("\n")); n != 2*(1+len(others)) {
		t.Errorf("%d trainings and evaluations, want %d each: rows that say the same share them", n, 1+len(others))
	}
	// A switch that did nothing would leave the base's losses.
	base := metrics(t, dir, "beta=0.5,p=80,kappa=10,sigmoid,random-walk=false,on-h=false,sum=false", "loss")
	for _, unit := range []string{"p=60", "kappa=5,", "kappa=3,spread", ",ste", "random-walk=true", "on-h=true", "sum=true"} {
		if m := metrics(t, dir, unit, "loss"); len(m) != 2 || cmp.Equal(m, base) {
			t.Errorf("%s: the losses are those of the base, or missing: %v", unit, m)
		}
	}
	runtest.Files(t, dir, "ablation.svg", "tables.md", "config.json")
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args  []string
		usage bool
		want  string
	}{
		{[]string{"-vary", "colour"}, true, "-vary"},
		{[]string{"-p-values", "60,101"}, true, "-p-values"},
		{[]string{"-beta-values", "-1"}, true, "-beta-values"},
		{[]string{"-kappa-values", "0"}, true, "-kappa-values"},
		{[]string{"-policy", "random9"}, true, "random9"},
		{[]string{"-dataset", "NCI1"}, true, "-data"},
		{[]string{"-epochs", "0"}, true, "-epochs 0"},
		{[]string{"-method", "infonce"}, true, "-method"},
	} {
		err := execute(t.Context(), append([]string{"-out", filepath.Join(t.TempDir(), "run")}, c.args...), io.Discard, io.Discard)
		var usage *cli.UsageError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &usage) != c.usage {
			t.Errorf("%v: got %v, want a usage error (%v) that names %q", c.args, err, c.usage, c.want)
		}
	}
}
