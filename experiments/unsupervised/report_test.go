package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
)

// TestGather: made-up outcomes come out in their row.
func TestGather(t *testing.T) {
	x := &experiment{paper.Experiment{
		Methods:  paper.Methods{Names: []string{method.Untrained, method.InfoNCE, method.SpecMatch}},
		Recipe:   cli.Recipe{Epochs: 20, Seeds: 2},
		Protocol: cli.Protocol{Protocols: []string{"graphcl", "linear"}, Folds: 10},
	}}
	runs := x.Runs([]*dataset.Dataset{{Name: "NCI1"}, {Name: "other"}}, x.Methods.Names)
	var trained []training.Trained
	var scores []eval.Score
	// The other set has 100 less, the linear machine 1000 more.
	accuracy := map[string][]float64{method.Untrained: {50, 50}, method.InfoNCE: {60, 70}, method.SpecMatch: {61, 75}}
	for _, r := range runs {
		v := accuracy[r.Method][r.Seed]
		trained = append(trained, training.Trained{TrainSeconds: 1, GraphsPerSecond: run.Float(v), Epochs: make([]train.Metrics, 3+r.Seed)})
		if r.Method == method.Untrained {
			trained[len(trained)-1] = training.Trained{GraphsPerSecond: run.Float(math.NaN())}
		}
		if r.Dataset.Name == "other" {
			v -= 100
		}
		twins := &eval.Twins{Graphs: 1, Others: 3, Correct: 3}
		scores = append(scores, eval.Score{Accuracy: v, Seconds: 0.5}, eval.Score{Accuracy: v + 1000, Seconds: 1.5, Twins: twins})
	}
	g := x.gather([]string{"NCI1", "other"}, runs, trained, scores)
	got, _ := g.Row("NCI1", method.SpecMatch, "linear")
	want := run.Row{
		Experiment: "unsupervised", Dataset: "NCI1", Method: method.SpecMatch, Protocol: "linear", Metric: "accuracy", Mean: 1068, Std: got.Std, PerSeed: []float64{1061, 1075},
		Beta: train.Beta{Weight: 0.05}, Percentile: 80, Epochs: 4, Precision: "float32", Seconds: 6, GraphsPerSecond: 68,
		Twins: []float64{25, 25}, WithoutTwins: []float64{100, 100},
	}
	if d := cmp.Diff(want, got); d != "" { // trained 3 epochs and 4, as a method that stops by itself may
		t.Error(d)
	}
	if r, _ := g.Row("other", method.Untrained, "graphcl"); r.Epochs != 0 || r.Beta != (train.Beta{}) || !math.IsNaN(r.Percentile) || !math.IsNaN(r.GraphsPerSecond) || r.Mean != -50 {
		t.Errorf("untrained: %+v", r)
	}
}
