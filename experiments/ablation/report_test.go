package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
)

// TestReport: made-up outcomes come out in the row of their setting, under their
// names.
func TestReport(t *testing.T) {
	x := &experiment{
		Experiment: paper.Experiment{
			Recipe:   cli.Recipe{Epochs: 2, Batch: 16, LR: 0.01, Seeds: 2},
			Protocol: cli.Protocol{Protocols: []string{"graphcl"}, Folds: 3},
			Settings: training.Settings{Options: method.Options{"beta": train.Beta{Weight: 0.5}}},
		},
		vary: vary{factors: []string{factorP, factorKappa}, ps: []float64{100, 60, 80}, kappas: []float64{60, 5}},
	}
	ds, other := dataset.Default(), dataset.Default()
	ds.Name, other.Name = "NCI1", "other" // the first has published figures
	runs := x.runs([]*dataset.Dataset{other, ds})
	if len(runs) != 2*2*(1+3+2) { // β = 0, three p and two κ
		t.Fatalf("%d runs", len(runs))
	}
	var outcomes []outcome
	for _, r := range runs {
		// p = 60 and κ = 10 are 60 and 70 with a seed each, β = 0 is 50 and 55.
		match := method.Objective(r.Settings.Options).Match
		a := match.Percentile + 10*float64(r.Seed) + match.Kappa - 10
		if r.Method == method.InfoNCE {
			a = 50 + 5*float64(r.Seed)
		}
		if r.Dataset == other {
			a = 1
		}
		first := train.Metrics{"loss_g": 1000, "loss_g_hard": 1000, "similarity_std": 1000, "gradient_ratio": 1000}
		last := train.Metrics{"loss_g": a, "loss_g_hard": 2 * a, "similarity_std": 3 * a, "gradient_ratio": 4 * a}
		trained := training.Trained{TrainSeconds: 1, GraphsPerSecond: run.Float(a), Epochs: []train.Metrics{first, last}}
		outcomes = append(outcomes, x.outcomes([]training.Trained{trained}, []eval.Score{{Accuracy: a, Seconds: 2}})...)
	}
	results := x.results(ds, runs, outcomes)

	rows := map[string][]string{}
	for _, r := range runtest.Rows(t, x.table(ds, "graphcl", results)) {
		rows[r[0]] = r[1:]
	}
	for row, want := range map[string][]string{
		// 60-50 and 70-55: 12.5 ± 2.5
		"β = 0":  {"52.50 ± 3.54", "", "52.500", "105.000", "157.500", "210.000", ""},
		"p = 60": {"65.00 ± 7.07", "12.50 ± 2.50", "65.000", "130.000", "195.000", "260.000", "79.32 ± 0.58"},
		"κ = 60": {"135.00 ± 7.07", "82.50 ± 2.50", "135.000", "270.000", "405.000", "540.000", ""},
	} {
		if d := cmp.Diff(want, rows[row]); d != "" {
			t.Errorf("%s:\n%s", row, d)
		}
	}

	for _, r := range results {
		got := x.resultsRow(ds, "graphcl", r)
		if r.label != "p = 60" && r.label != "β = 0" {
			continue
		}
		want := run.Row{
			Experiment: "ablation", Dataset: "NCI1", Method: "p = 60", Protocol: "graphcl", Metric: "accuracy", Mean: 65, Std: got.Std, PerSeed: []float64{60, 70},
			Beta: train.Beta{Weight: 0.5}, Percentile: 60, Epochs: 2, Precision: "float32", Seconds: 6, GraphsPerSecond: 65,
		}
		if r.label == "β = 0" {
			want.Method, want.Beta, want.Percentile, want.Mean, want.PerSeed, want.GraphsPerSecond = "β = 0", train.Beta{}, 80, 52.5, []float64{50, 55}, 52.5
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}

	// The figure's points ascend, whatever the order of the flags.
	var values []float64
	for _, r := range sorted(results, factorP) {
		values = append(values, r.x)
	}
	if !slices.Equal(values, []float64{60, 80, 100}) {
		t.Errorf("points at p = %v", values)
	}
}
