package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// still is a learning rate at which float32 weights stay what they are.
const still = 1e-30

// newExperiment is an experiment on the embedded set in a run directory of its own.
func newExperiment(t *testing.T) *experiment {
	t.Helper()
	x := &experiment{
		Experiment: paper.Experiment{
			Recipe:   cli.Recipe{Epochs: 1, Batch: 16, LR: 0.01, Seeds: 1},
			Protocol: cli.Protocol{Protocols: []string{protocolVal}, Choices: []string{protocolVal, protocolTestMax}, Folds: 3},
			Engine:   cli.Engine{Backend: "cpu"},
			Settings: training.Settings{OwnRecipes: true},
		},
		fine: fine{paper.Finetuning{Epochs: 2, LR: 0.001}, 0.25, "paper"},
	}
	if err := x.open(t.Context(), io.Discard, false); err != nil {
		t.Fatal(err)
	}
	x.Dir = runtest.Open(t, "semisupervised")
	return x
}

func (x *experiment) job(method string, seed int) *job {
	return &job{x: x, set: x.sets[0], method: method, seed: seed}
}

// pretrain pre-trains a method and keeps its model file.
func (x *experiment) pretrain(t *testing.T, method string, seed int) (training.Trained, error) {
	j := x.job(method, seed)
	return j.pretraining().Unit(j.name(), x.Engine, x.Dir).Compute(t.Context(), quiet)
}

func quiet(string, ...any) {}

// epochs fine-tunes on a fold of protocol val.
func (j *job) epochs(t *testing.T, fold int) []train.Metrics {
	t.Helper()
	out, err := j.unit(protocolVal, fold).Compute(t.Context(), quiet)
	// As at the end of a unit.
	if err := errors.Join(err, os.RemoveAll(j.x.Dir.Join("checkpoints"))); err != nil {
		t.Fatal(err)
	}
	if len(out.Epochs) != j.x.fine.Epochs || !(out.Seconds > 0) {
		t.Fatalf("%d epochs in %v s, want %d", len(out.Epochs), out.Seconds, j.x.fine.Epochs)
	}
	return out.Epochs
}

// TestParts: each part of a split has its own role, and no other.
func TestParts(t *testing.T) {
	x := newExperiment(t)
	j := x.job(paper.None, 0)
	set := j.set.data
	s := j.set.splits[protocolVal][0]
	want := j.epochs(t, 0)
	// turned is what comes out when the labels of a part are others.
	turned := func(samples []int) []train.Metrics {
		turn := func(by int) {
			for _, i := range samples {
				set.Graphs[i].Class = (set.Graphs[i].Class + by) % set.Classes
			}
		}
		turn(1)
		defer turn(set.Classes - 1)
		return j.epochs(t, 0)
	}
	for part, samples := range map[string][]int{"test_": s.Test, "valid_": s.Valid} {
		got := turned(samples)
		for e, m := range got {
			for name, v := range m {
				if mine := strings.HasPrefix(name, part); mine == (v == want[e][name]) {
					t.Errorf("labels of the part %s: %s of epoch %d is %v, and was %v", part, name, e+1, v, want[e][name])
				}
			}
		}
		if d := cmp.Diff(slices.Sorted(maps.Keys(want[0])), slices.Sorted(maps.Keys(got[0]))); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff([]string{"loss", testAccuracy, "test_loss", "valid_accuracy", validLoss}, slices.Sorted(maps.Keys(want[0]))); d != "" {
		t.Errorf("metrics:\n%s", d)
	}
	if got := turned(s.Train); got[0]["loss"] == want[0]["loss"] {
		t.Error("the labels do not count in training")
	}
}

// TestStart: fine-tuning starts from the pre-trained weights and, but for them,
// from the seed; each fold has a classifier of its own.
func TestStart(t *testing.T) {
	x := newExperiment(t)
	pretrained := []string{method.InfoNCE, method.SpecMatch}
	for _, name := range pretrained {
		for seed := range 2 {
			if _, err := x.pretrain(t, name, seed); err != nil {
				t.Fatal(err)
			}
		}
	}
	// One batch and no training: the loss is that of the start. Both folds have the
	// same labelled graphs.
	folds := x.sets[0].splits[protocolVal]
	folds[1] = folds[0]
	x.fine.Epochs, x.fine.LR, x.Recipe.Batch = 1, still, len(folds[0].Train)
	var labelled []*graph.Graph
	var classes []int
	for _, i := range folds[0].Train {
		g := x.sets[0].data.Graphs[i]
		labelled, classes = append(labelled, g), append(classes, g.Class)
	}
	be := cpu.New(tensor.Float32)
	seen := map[float64]string{}
	for _, name := range append([]string{paper.None}, pretrained...) {
		for seed := range 2 {
			j := x.job(name, seed)
			for fold := range 2 {
				loss := j.epochs(t, fold)[0]["loss"]
				if other, ok := seen[loss]; ok {
					t.Errorf("%s, classifier of fold %d, starts like %s", j.name(), fold, other)
				}
				seen[loss] = j.name()

				encoder, err := j.pretraining().NewEncoder(be)
				if err == nil && name != paper.None {
					err = model.LoadEncoder(filepath.Join(x.Dir.Path, "weights", fmt.Sprintf("motifs-%s-%d.safetensors", name, seed)), encoder)
				}
				if err != nil {
					t.Fatal(err)
				}
				rng := random.Stream(uint64(seed), purposeClassifier, 0, fold)
				head := model.Head{Kind: model.Classes, Outputs: j.set.data.Classes}
				output := model.NewPredictor(encoder, head, rng).Head
				tape := autodiff.NewTape(be)
				h := encoder.Forward(gnn.NewBatch(tape, graph.Collate(labelled...)), nn.Train)
				want := nn.CrossEntropy(output.Forward(h), classes).Float()
				tape.Reset()
				if math.Abs(want-loss) > 1e-5 {
					t.Errorf("%s, classifier of fold %d: loss %v, want %v", j.name(), fold, loss, want)
				}
			}
		}
	}
}

// TestBatches: an epoch has every labelled graph once, in an order of its own and
// of the seed's; graphs are augmented for the method that says so, and only while
// training.
func TestBatches(t *testing.T) {
	x := newExperiment(t)
	s := x.sets[0].splits[protocolVal][0]
	be := cpu.New(tensor.Float32)
	order := func(name string, seed, epoch int) (samples []int, nodes int) {
		l, err := x.job(name, seed).learner(be, s, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for some, b := range l.Epoch(t.Context(), epoch) {
			samples, nodes = append(samples, some...), nodes+b.Nodes()
		}
		return samples, nodes
	}
	first, nodes := order(paper.None, 0, 0)
	for name, at := range map[string][2]int{"seeds 0 and 1": {1, 0}, "epochs 0 and 1": {0, 1}} {
		if other, _ := order(paper.None, at[0], at[1]); slices.Equal(first, other) {
			t.Errorf("%s have the same order", name)
		}
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(s.Train)), slices.Sorted(slices.Values(first))); d != "" {
		t.Errorf("an epoch is not the labelled graphs:\n%s", d)
	}
	all := 0
	for _, i := range s.Train {
		all += x.sets[0].data.Graphs[i].Nodes()
	}
	x.Settings.Options = method.Options{"policy": "dropN"}
	if same, dropped := order(paper.Augmentation, 0, 0); nodes != all || dropped >= all || !slices.Equal(same, first) {
		t.Errorf("of %d nodes there are %d, and %d with augmentation, in the same order: %v", all, nodes, dropped, slices.Equal(same, first))
	}
}

// TestPretraining: the encoder, the features and the views are those of the regime.
func TestPretraining(t *testing.T) {
	x := newExperiment(t)
	j := x.job(method.SpecMatch, 0)
	plain := dataset.Default()
	if got, want := j.set.data.FeatureWidth, plain.WithDegrees(100).FeatureWidth; got != want || got == plain.FeatureWidth {
		t.Errorf("features of width %d, want %d: those of the set and degrees", got, want)
	}
	be := cpu.New(tensor.Float32)
	width := j.set.data.FeatureWidth
	for name, config := range map[string]gnn.ResGCNConfig{"paper": gnn.PaperResGCN(width), "reference": {In: width, Hidden: 128, Layers: 3}} {
		x.fine.Encoder = name
		e, err := j.pretraining().NewEncoder(be)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.(*gnn.ResGCN).Config; got != config {
			t.Errorf("-encoder %s is %+v", name, got)
		}
	}
	if r := x.job(method.GraphCL, 0).pretraining(); r.Regime != method.SemiSupervised {
		t.Errorf("GraphCL's views are those of the regime %s", r.Regime)
	}
}

// TestRow: a row has the seeds of its method and set, read by its protocol.
func TestRow(t *testing.T) {
	x := newExperiment(t)
	other := &labelledSet{data: &dataset.Dataset{Name: "other"}}
	// tuned has the second epoch best in the test and the first in the validation.
	tuned := func(first, second float64) map[string][]finetune.Result {
		folds := []finetune.Result{{Seconds: 1, Epochs: []train.Metrics{
			{validLoss: 1, testAccuracy: first}, {validLoss: 2, testAccuracy: second},
		}}}
		return map[string][]finetune.Result{protocolVal: folds, protocolTestMax: folds}
	}
	jobs := []*job{
		{x: x, set: x.sets[0], method: method.SpecMatch, tuned: tuned(60, 90), pretrained: training.Trained{TrainSeconds: 10, GraphsPerSecond: 7}},
		{x: x, set: x.sets[0], method: method.SpecMatch, seed: 1, tuned: tuned(10, 20), pretrained: training.Trained{TrainSeconds: 20, GraphsPerSecond: 9}},
		{x: x, set: x.sets[0], method: paper.None, tuned: tuned(10, 20)},
		{x: x, set: other, method: method.SpecMatch, tuned: tuned(10, 20)},
	}
	x.Protocol.Protocols = []string{protocolVal, protocolTestMax}
	g := x.gather(jobs)
	for protocol, want := range map[string][]float64{protocolVal: {60, 10}, protocolTestMax: {90, 20}} {
		r, _ := g.Row(x.sets[0].data.Name, method.SpecMatch, protocol)
		if d := cmp.Diff(want, r.PerSeed); d != "" || r.Mean != (want[0]+want[1])/2 || r.Protocol != protocol {
			t.Errorf("%s: %+v\n%s", protocol, r, d)
		}
		if r.Beta != (train.Beta{Weight: 0.05}) || r.Percentile != 80 || r.Epochs != 1 || r.Seconds != 32 || r.GraphsPerSecond != 8 {
			t.Errorf("%s: %+v", protocol, r)
		}
	}
	if r, _ := g.Row(x.sets[0].data.Name, paper.None, protocolVal); r.Beta != (train.Beta{}) || !math.IsNaN(r.Percentile) || r.Epochs != 0 || r.Seconds != 1 {
		t.Errorf("no pre-training: %+v", r)
	}
}
