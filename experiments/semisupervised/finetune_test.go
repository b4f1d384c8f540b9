package main

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/tensor"
)

// still is a learning rate at which float32 weights stay what they are.
const still = 1e-30

// newExperiment is an experiment on the embedded set in a run directory of its own.
func newExperiment(t *testing.T) *experiment {
	t.Helper()
	x := &experiment{
		loss:     cli.Loss{Beta: cli.Beta{Weight: 0.05}, P: 80, Tau: 0.5, Kappa: 10},
		recipe:   cli.Recipe{Epochs: 1, Batch: 16, LR: 0.01, Seeds: 1},
		fine:     fine{LabelRate: 0.25, Epochs: 2, LR: 0.001, Encoder: "paper"},
		protocol: cli.Protocol{Protocols: []string{protocolVal}, Choices: []string{protocolVal, protocolTestMax}, Folds: 3},
		engine:   cli.Engine{Backend: "cpu"},
		settings: pretrain.DefaultSettings(),
	}
	if err := x.open(); err != nil {
		t.Fatal(err)
	}
	x.dir = rundirtest.Open(t, "semisupervised")
	return x
}

func (x *experiment) job(method string, seed int) *job {
	return &job{x: x, set: x.sets[0], method: method, seed: seed}
}

// curve fine-tunes on a fold.
func (j *job) curve(t *testing.T, s split, fold int) curve {
	t.Helper()
	out, err := j.tune(t.Context(), s, fold)
	if err != nil {
		t.Fatal(err)
	}
	return out.Curve
}

// TestParts: each part of a split has its own role, and no other.
func TestParts(t *testing.T) {
	x := newExperiment(t)
	j := x.job(methodNone, 0)
	set := j.set.data
	s := j.set.splits[protocolVal][0]
	want := j.curve(t, s, 0)
	// turned is the curve when the labels of a part are others.
	turned := func(samples []int) curve {
		turn := func(by int) {
			for _, i := range samples {
				set.Graphs[i].Class = (set.Graphs[i].Class + by) % set.Classes
			}
		}
		turn(1)
		defer turn(set.Classes - 1)
		return j.curve(t, s, 0)
	}
	if got := turned(s.Test); cmp.Equal(got.Test, want.Test) {
		t.Error("labels of the test fold do not count in the test")
	} else if got.Test = want.Test; !cmp.Equal(got, want) {
		t.Errorf("labels of the test fold count elsewhere:\n%s", cmp.Diff(want, got))
	}
	if got := turned(s.Validation); cmp.Equal(got.Validation, want.Validation) || cmp.Equal(got.ValidationLoss, want.ValidationLoss) {
		t.Error("labels of the validation fold do not count in the validation")
	} else if got.Validation, got.ValidationLoss = want.Validation, want.ValidationLoss; !cmp.Equal(got, want) {
		t.Errorf("labels of the validation fold count elsewhere:\n%s", cmp.Diff(want, got))
	}
	if got := turned(s.Labelled); cmp.Equal(got.Loss, want.Loss) {
		t.Error("the labels do not count in training")
	}
}

// TestStart: fine-tuning starts from the pre-trained weights and, but for them,
// from the seed; each fold has a classifier of its own.
func TestStart(t *testing.T) {
	x := newExperiment(t)
	for _, method := range []string{cli.InfoNCE, cli.SpecMatch} {
		for seed := range 2 {
			if _, err := x.job(method, seed).pretrain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// One batch and no training: the loss is that of the start.
	s := x.sets[0].splits[protocolVal][0]
	x.fine.Epochs, x.fine.LR, x.recipe.Batch = 1, still, len(s.Labelled)
	be := cpu.New(tensor.Float32)
	seen := map[float64]string{}
	for _, method := range []string{methodNone, cli.InfoNCE, cli.SpecMatch} {
		for seed := range 2 {
			j := x.job(method, seed)
			for fold := range 2 {
				loss := j.curve(t, s, fold).Loss[0]
				if other, ok := seen[loss]; ok {
					t.Errorf("%s, classifier of fold %d, starts like %s", j.name(), fold, other)
				}
				seen[loss] = j.name()

				model := j.pretraining().Model(be)
				if method != methodNone {
					if err := nn.LoadFile(j.weights(), model); err != nil {
						t.Fatal(err)
					}
				}
				c := newClassifier(be, model.Encoder, j.set.data.Classes, random.Stream(uint64(seed), purposeClassifier, 0, fold))
				loader, err := j.loader(s)
				if err != nil {
					t.Fatal(err)
				}
				for samples, batch := range loader.Epoch(t.Context(), 0) {
					var classes []int
					for _, i := range samples {
						classes = append(classes, j.set.data.Graphs[i].Class)
					}
					want := nn.CrossEntropy(c.logits(c.tape, batch, nn.Train), classes).Float()
					c.tape.Reset()
					if math.Abs(want-loss) > 1e-5 {
						t.Errorf("%s, classifier of fold %d: loss %v, want %v", j.name(), fold, loss, want)
					}
				}
			}
		}
	}
}

// TestLoader: an epoch has every labelled graph once, in an order of its own and
// of the seed's, and not in that of pre-training.
func TestLoader(t *testing.T) {
	x := newExperiment(t)
	s := x.sets[0].splits[protocolVal][0]
	order := func(seed, epoch int) (all []int) {
		loader, err := x.job(methodNone, seed).loader(s)
		if err != nil {
			t.Fatal(err)
		}
		for samples := range loader.Epoch(t.Context(), epoch) {
			all = append(all, samples...)
		}
		return all
	}
	first := order(0, 0)
	if slices.Equal(first, order(1, 0)) {
		t.Error("seeds 0 and 1 have the same order")
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(s.Labelled)), slices.Sorted(slices.Values(first))); d != "" {
		t.Errorf("an epoch is not the labelled graphs:\n%s", d)
	}
	// Without training, two epochs differ in their batches only.
	x.fine.LR = still
	if c := x.job(methodNone, 0).curve(t, s, 0); c.Loss[0] == c.Loss[1] {
		t.Error("two epochs have the same batches")
	}
}

// TestPretraining: the encoder, the features and the views are those of the regime.
func TestPretraining(t *testing.T) {
	x := newExperiment(t)
	j := x.job(cli.SpecMatch, 0)
	plain := dataset.Default()
	if got, want := j.set.data.FeatureWidth, plain.WithDegrees(100).FeatureWidth; got != want || got == plain.FeatureWidth {
		t.Errorf("features of width %d, want %d: those of the set and degrees", got, want)
	}
	be := cpu.New(tensor.Float32)
	for name, config := range map[string]func(int) gnn.ResGCNConfig{"paper": gnn.PaperResGCN, "reference": gnn.ReferenceResGCN} {
		x.fine.Encoder = name
		if got := j.pretraining().Model(be).Encoder.(*gnn.ResGCN).Config; got != config(j.set.data.FeatureWidth) {
			t.Errorf("-encoder %s is %+v", name, got)
		}
	}
	loader, err := x.job(cli.GraphCL, 0).pretraining().Loader()
	if err != nil {
		t.Fatal(err)
	}
	if v := loader.Collator.Views; len(v) != 2 || !cmp.Equal(v[0], v[1]) || loader.Order != augment.Reshuffle {
		t.Errorf("GraphCL's views are %v, in the order %v: of the unsupervised regime?", v, loader.Order)
	}
}

// TestRow: a row has the seeds of its method and set, read by its protocol.
func TestRow(t *testing.T) {
	x := newExperiment(t)
	other := &labelledSet{data: &dataset.Dataset{Name: "other"}}
	c := []tuned{{Seconds: 1, Curve: curve{ValidationLoss: []float64{1, 2}, Test: []float64{60, 90}}}}
	worse := []tuned{{Seconds: 1, Curve: curve{ValidationLoss: []float64{1, 2}, Test: []float64{10, 20}}}}
	both := func(t []tuned) map[string][]tuned { return map[string][]tuned{protocolVal: t, protocolTestMax: t} }
	jobs := []*job{
		{x: x, set: x.sets[0], method: cli.SpecMatch, curves: both(c), pretrained: pretrained{Seconds: 10, GraphsPerSecond: 7}},
		{x: x, set: x.sets[0], method: cli.SpecMatch, seed: 1, curves: both(worse), pretrained: pretrained{Seconds: 20, GraphsPerSecond: 9}},
		{x: x, set: x.sets[0], method: methodNone, curves: both(worse)},
		{x: x, set: other, method: cli.SpecMatch, curves: both(worse)},
	}
	for protocol, want := range map[string][]float64{protocolVal: {60, 10}, protocolTestMax: {90, 20}} {
		r := x.row(x.sets[0], cli.SpecMatch, protocol, jobs)
		if d := cmp.Diff(want, r.PerSeed); d != "" || r.Mean != (want[0]+want[1])/2 || r.Protocol != protocol {
			t.Errorf("%s: %+v\n%s", protocol, r, d)
		}
		if r.Beta != x.loss.Beta || r.P != 80 || r.Epochs != 1 || r.Seconds != 32 || r.GraphsPerSecond != 8 {
			t.Errorf("%s: %+v", protocol, r)
		}
	}
	if r := x.row(x.sets[0], methodNone, protocolVal, jobs); r.Beta != (cli.Beta{}) || !math.IsNaN(r.P) || r.Epochs != 0 || r.Seconds != 1 {
		t.Errorf("no pre-training: %+v", r)
	}
}
