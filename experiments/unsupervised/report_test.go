package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
)

// TestReport: made-up outcomes come out in their row and column.
func TestReport(t *testing.T) {
	x := &experiment{
		loss:     cli.Loss{Beta: cli.Beta{Weight: 0.05}, P: 80, Methods: []string{method.Untrained, method.InfoNCE, method.SpecMatch}},
		recipe:   cli.Recipe{Epochs: 20, Seeds: 2},
		protocol: cli.Protocol{Protocols: []string{"graphcl", "linear"}, Folds: 10},
	}
	a, b := &dataset.Dataset{Name: "NCI1"}, &dataset.Dataset{Name: "other"}
	sets := []*dataset.Dataset{a, b}
	runs := x.runs(sets)
	var outcomes []pretrain.Outcome
	// The other set has these with a minus sign, the other classifier 1000 more.
	accuracy := map[string][]float64{method.Untrained: {50, 50}, method.InfoNCE: {60, 70}, method.SpecMatch: {61, 75}}
	for _, r := range runs {
		v := accuracy[r.Method][r.Seed]
		if r.Dataset == b {
			v = -v
		}
		speed := rundir.Float(v)
		if r.Method == method.Untrained {
			speed = rundir.Float(math.NaN())
		}
		outcomes = append(outcomes, pretrain.Outcome{
			Trained:  pretrain.Trained{TrainSeconds: 1, GraphsPerSecond: speed},
			Accuracy: map[string]float64{"graphcl": v, "linear": v + 1000}, EvalSeconds: 2,
		})
	}
	var rows []rundir.Row
	for _, protocol := range x.protocol.Protocols {
		for _, ds := range sets {
			for _, method := range x.loss.Methods {
				rows = append(rows, x.row(ds, method, protocol, runs, outcomes))
			}
		}
	}
	got, _ := rundir.Find(rows, "NCI1", method.SpecMatch, "linear")
	want := rundir.Row{
		Experiment: "unsupervised", Dataset: "NCI1", Method: method.SpecMatch, Protocol: "linear", Metric: "accuracy", Mean: 1068, Std: got.Std, PerSeed: []float64{1061, 1075},
		Beta: cli.Beta{Weight: 0.05}, P: 80, Epochs: 20, Precision: "float32", Seconds: 6, GraphsPerSecond: 68,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if r, _ := rundir.Find(rows, "other", method.Untrained, "graphcl"); r.Epochs != 0 || r.Beta != (cli.Beta{}) || !math.IsNaN(r.P) || !math.IsNaN(r.GraphsPerSecond) || r.Mean != -50 {
		t.Errorf("untrained: %+v", r)
	}

	table := [][]string{
		{"untrained encoder", "50.00 ± 0.00", "−50.00 ± 0.00"},
		{"InfoNCE (β = 0)", "65.00 ± 7.07", "−65.00 ± 7.07"},
		{"SpecMatch-CL", "68.00 ± 9.90", "−68.00 ± 9.90"},
		{"GraphCL, published", "77.87 ± 0.41", ""},
		{"InfoGraph, published", "76.20 ± 1.06", ""},
		{"JOAO, published", "78.07 ± 0.47", ""},
		{"JOAOv2, published", "78.36 ± 0.53", ""},
		{"SimGRACE, published", "79.12 ± 0.44", ""},
		{"MSSGCL, published", "81.45 ± 0.48", ""},
		{"CuCo, published", "79.24 ± 0.56", ""},
		{"SpecMatch-CL, published", "81.86 ± 0.36", ""},
		{"untrained, PyTorch", "76.00 ± 1.50", ""},
		{"InfoNCE, PyTorch", "79.56 ± 0.46", ""},
	}
	if d := cmp.Diff(table, rundirtest.Rows(t, x.accuracyTable("graphcl", sets, rows))); d != "" {
		t.Error(d)
	}
	// What is published for one classifier does not stand below the other.
	linear := rundirtest.Rows(t, x.accuracyTable("linear", sets, rows))
	if d := cmp.Diff([][]string{{"SpecMatch-CL", "1068.00 ± 9.90", "932.00 ± 9.90"}, {"SpecMatch-CL, published", "81.86 ± 0.36", ""}}, linear[2:]); d != "" {
		t.Error(d)
	}
	// Differences of 1 and 5 are 3 ± 2; of the mean of two sets the error is 2/√2.
	paired := [][]string{
		{"graphcl", "3.00 ± 2.00", "−3.00 ± 2.00", "0.00 ± 1.41"},
		{"linear", "3.00 ± 2.00", "−3.00 ± 2.00", "0.00 ± 1.41"},
	}
	if d := cmp.Diff(paired, rundirtest.Rows(t, x.pairedTable(sets, rows))); d != "" {
		t.Error(d)
	}
	x.recipe.Seeds = 1
	if x.pairedTable(sets, rows) != nil {
		t.Error("a paired difference of one seed")
	}
}
