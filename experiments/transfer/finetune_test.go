package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// still is a learning rate at which float32 weights stay what they are.
const still = 1e-30

func quiet(string, ...any) {}

// tune fine-tunes on the set of x with a seed.
func (x *experiment) tune(t *testing.T, method string, seed int) finetune.Result {
	t.Helper()
	unit := x.unit(&tuning{set: x.domain.sets[0], method: method, seed: seed})
	r, err := unit.Compute(t.Context(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	x.forget(t)
	r.Seconds = 0
	return r
}

// forget removes the checkpoints, as run.Do does at the end of a unit.
func (x *experiment) forget(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(x.Dir.Join("checkpoints")); err != nil {
		t.Fatal(err)
	}
}

// undefined counts what is not a number.
func undefined(values []float64) (n int) {
	for _, v := range values {
		if math.IsNaN(v) {
			n++
		}
	}
	return n
}

// TestParts: each part of the split has its own role, and no other. A part whose
// labels are all equal has no ROC-AUC, and one whose labels are missing no loss.
func TestParts(t *testing.T) {
	x := newExperiment(t)
	set := x.domain.sets[0]
	labels := slices.Clone(set.labels)
	skipped := func(r finetune.Result) int { return (&tuning{result: r}).skipped() }
	same := func(want, got finetune.Result, metrics ...string) {
		t.Helper()
		for _, name := range metrics {
			if d := cmp.Diff(want.Series(name), got.Series(name)); d != "" {
				t.Errorf("labels of another part change %s:\n%s", name, d)
			}
		}
	}
	want := x.tune(t, paper.None, 0)
	if undefined(want.Series("loss"))+undefined(want.Series(validAUC))+undefined(want.Series(testAUC)) > 0 || skipped(want) != 0 {
		t.Fatalf("with all labels: %+v", want)
	}
	fill := func(samples []int, label int8) {
		copy(set.labels, labels)
		for _, i := range samples {
			for k := range set.tasks {
				set.labels[i*set.tasks+k] = label
			}
		}
	}

	fill(set.split.Test, 1)
	r := x.tune(t, paper.None, 0)
	if undefined(r.Series(testAUC)) != x.fine.Epochs || skipped(r) != set.tasks {
		t.Errorf("a test set of one class: %+v", r)
	}
	same(want, r, "loss", validAUC)

	fill(set.split.Valid, -1)
	r = x.tune(t, paper.None, 0)
	if undefined(r.Series(validAUC)) != x.fine.Epochs {
		t.Errorf("a validation set of one class: %+v", r)
	}
	same(want, r, "loss", testAUC)

	fill(set.split.Train, 0)
	if err := set.check(); err == nil || !strings.Contains(err.Error(), "has a label") {
		t.Errorf("a training set without labels: %v", err)
	}
	// A single label: the loss is that of its batch, not a mean with the others.
	labelled := set.split.Train[7]
	set.labels[labelled*set.tasks] = 1
	x.fine, x.model.Dropout = paper.Finetuning{Epochs: 1, Batch: 1, LR: still}, 0
	many := x.tune(t, paper.None, 0).Series("loss")[0]
	set.split.Train = []int{labelled}
	if one := x.tune(t, paper.None, 0).Series("loss")[0]; many != one || !(one > 0) {
		t.Errorf("loss %v with one labelled graph of many, %v with this graph alone", many, one)
	}
}

// parameters are those of what fine-tunes, by name.
func parameters(l *finetune.Learner) map[string]*autodiff.Param {
	all := map[string]*autodiff.Param{}
	tensors, _ := l.State()
	for _, p := range tensors.Parameters() {
		all[p.Name] = p
	}
	return all
}

// TestAllLayersMove: the first step of fine-tuning moves every parameter, none by
// more than its learning rate, as Adam does.
func TestAllLayersMove(t *testing.T) {
	x := newExperiment(t)
	x.fine.LR = 0.003
	set := x.domain.sets[0]
	set.split.Train = set.split.Train[:x.fine.Batch] // one step
	learner := func() *finetune.Learner {
		l, err := x.learner(cpu.New(tensor.Float32), &tuning{set: set, method: paper.None, seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	before, after := learner(), learner()
	if _, err := train.Run(t.Context(), after, train.Options{Epochs: 1}, func(train.Progress) error { return nil }); err != nil {
		t.Fatal(err)
	}
	was := parameters(before)
	for name, p := range parameters(after) {
		most := 0.0
		for k, v := range values(p) {
			most = max(most, math.Abs(v-values(was[name])[k]))
		}
		least := 0.9 * x.fine.LR
		if strings.HasSuffix(name, ".mlp.2.bias") { // in front of a norm, where the gradient is rounding alone
			least = 0
		}
		if !(most > least && most < 1.1*x.fine.LR) {
			t.Errorf("%s moved by %v, want %v", name, most, x.fine.LR)
		}
	}
}

// TestStart: fine-tuning starts from the pre-trained weights and, but for them,
// from the seed.
func TestStart(t *testing.T) {
	x := newExperiment(t)
	pretrained := []string{method.InfoNCE, method.SpecMatch}
	for _, name := range pretrained {
		if _, err := x.pretrain(t.Context(), name, quiet); err != nil {
			t.Fatal(err)
		}
	}
	// One batch, no dropout, no training: the loss is that of the start.
	set := x.domain.sets[0]
	x.fine = paper.Finetuning{Epochs: 1, Batch: len(set.split.Train), LR: still}
	x.model.Dropout = 0
	var graphs []*graph.Graph
	var labels []int8
	for _, i := range set.split.Train {
		graphs, labels = append(graphs, set.graphs[i]), append(labels, set.labels[i*set.tasks:(i+1)*set.tasks]...)
	}
	be := cpu.New(tensor.Float32)
	seen := map[float64]string{}
	for _, name := range append([]string{paper.None}, pretrained...) {
		for _, seed := range []int{0, 1} {
			j := &tuning{set: set, method: name, seed: seed}
			loss := x.tune(t, name, seed).Series("loss")[0]
			if other, ok := seen[loss]; ok {
				t.Errorf("%s starts like %s", x.unit(j).Name, other)
			}
			seen[loss] = x.unit(j).Name

			rng := random.Stream(uint64(seed), purposeHead, 0, 0)
			e, err := x.encoder().New(be, rng)
			if err == nil && name != paper.None {
				err = model.LoadEncoder(x.Dir.Join("weights", "pretrained-"+name+"-0.safetensors"), e)
			}
			if err != nil {
				t.Fatal(err)
			}
			output := model.NewPredictor(e, model.Head{Kind: model.Binary, Outputs: set.tasks}, rng).Head
			tape := autodiff.NewTape(be)
			want := 0.0
			for k, s := range output.Forward(e.Forward(gnn.NewBatch(tape, graph.Collate(graphs...)), nn.Train)).Data() {
				want += math.Log1p(math.Exp(-s*float64(labels[k]))) / float64(len(labels))
			}
			tape.Reset()
			if math.Abs(want-loss) > 1e-6 {
				t.Errorf("%s starts with loss %v, want %v", x.unit(j).Name, loss, want)
			}
		}
	}
}

// TestTuningResume: fine-tuning that was interrupted, in the middle of an epoch or
// behind it, and taken up again has the losses and qualities that it would have had,
// dropout and all.
func TestTuningResume(t *testing.T) {
	x := newExperiment(t)
	x.fine = paper.Finetuning{Epochs: 3, Batch: 20, LR: 0.01}
	split := &x.domain.sets[0].split
	split.Train, split.Valid, split.Test = split.Train[:80], split.Valid[:40], split.Test[:40]
	want := x.tune(t, paper.None, 1)
	interrupted, seconds, ended := 0, 0.0, 0
	for { // each start takes a step of 12, or ends an epoch of 3
		if interrupted > 15 {
			t.Fatal("a start does not go on where the one before has ended")
		}
		// A start says something of the epochs that have ended, and then, after its
		// first step or at the end of an epoch, of the next one.
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		got, err := x.unit(&tuning{set: x.domain.sets[0], method: paper.None, seed: 1}).Compute(ctx, func(string, ...any) {
			if calls++; calls > ended {
				cancel()
			}
		})
		cancel()
		if got.Seconds <= seconds {
			t.Errorf("%v seconds in all, and %v before the interruption", got.Seconds, seconds)
		}
		seconds, ended = got.Seconds, len(got.Epochs)
		if errors.Is(err, context.Canceled) {
			interrupted++
			continue
		}
		if d := cmp.Diff(want.Epochs, got.Epochs); err != nil || d != "" {
			t.Errorf("after %d interruptions: %v\n%s", interrupted, err, d)
		}
		break
	}
	if interrupted < 3 {
		t.Errorf("%d interruptions", interrupted)
	}
}

// TestDropout: fine-tuning has it, unless its probability is 0.
func TestDropout(t *testing.T) {
	x := newExperiment(t)
	first := x.tune(t, paper.None, 0).Series("loss")[0]
	x.model.Dropout = 0
	if none := x.tune(t, paper.None, 0).Series("loss")[0]; none == first {
		t.Errorf("the loss is %v with dropout %v and without", none, 0.5)
	}
}

// TestBatches: an epoch has every training molecule once, in an order of its own
// and of the seed's.
func TestBatches(t *testing.T) {
	x := newExperiment(t)
	set := x.domain.sets[0]
	order := func(seed, epoch int) (all []int) {
		l, err := x.learner(cpu.New(tensor.Float32), &tuning{set: set, method: paper.None, seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for samples := range l.Epoch(t.Context(), epoch) {
			all = append(all, samples...)
		}
		return all
	}
	first := order(0, 0)
	if slices.Equal(first, order(1, 0)) {
		t.Error("seeds 0 and 1 have the same order")
	}
	if slices.Equal(first, order(0, 1)) {
		t.Error("two epochs have the same order")
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(set.split.Train)), slices.Sorted(slices.Values(first))); d != "" {
		t.Errorf("an epoch is not the training set:\n%s", d)
	}
}

// TestRow: a row has the seeds of its method and set, read by its protocol, and the
// settings that its method has.
func TestRow(t *testing.T) {
	x := newExperiment(t)
	x.Recipe.Seeds = 2
	set, other := x.domain.sets[0], &taskSet{name: "other"}
	run := func(set *taskSet, method string, seed int, valid, test [2]float64) *tuning {
		r := finetune.Result{Seconds: 1}
		for e := range valid {
			r.Epochs = append(r.Epochs, train.Metrics{validAUC: valid[e], testAUC: test[e]})
		}
		return &tuning{set: set, method: method, seed: seed, result: r}
	}
	runs := []*tuning{
		run(set, method.SpecMatch, 0, [2]float64{2, 1}, [2]float64{60, 70}),
		run(set, method.SpecMatch, 1, [2]float64{1, 2}, [2]float64{80, 90}),
		run(set, paper.None, 0, [2]float64{1, 2}, [2]float64{1, 2}),
		run(other, method.SpecMatch, 0, [2]float64{1, 2}, [2]float64{3, 4}),
	}
	trained := map[string]training.Trained{method.SpecMatch: {TrainSeconds: 10, GraphsPerSecond: 7}}
	g := x.gather(trained, runs)
	for protocol, want := range map[string][]float64{protocolLast: {70, 90}, protocolBest: {60, 90}} {
		r, _ := g.Row(set.name, method.SpecMatch, protocol)
		if d := cmp.Diff(want, r.PerSeed); d != "" || r.Mean != (want[0]+want[1])/2 {
			t.Errorf("%s: %+v\n%s", protocol, r, d)
		}
		if r.Beta != (train.Beta{Weight: 0.05}) || r.Percentile != 80 || r.Epochs != 3 || r.Seconds != 12 || r.GraphsPerSecond != 7 || r.Protocol != protocol {
			t.Errorf("%s: %+v", protocol, r)
		}
	}
	if r, _ := g.Row(set.name, paper.None, protocolLast); r.Beta != (train.Beta{}) || !math.IsNaN(r.Percentile) || r.Epochs != 0 || r.Seconds != 1 {
		t.Errorf("no pre-training: %+v", r)
	}
}

// pretrain pre-trains a method and keeps its model file.
func (x *experiment) pretrain(ctx context.Context, name string, status run.Status) (training.Trained, error) {
	return x.pretraining(name).Unit("pretrain/"+name, x.Engine, x.Dir).Compute(ctx, status)
}

// TestMethodsDiffer: every method trains in its own way, and the file of weights
// is of the encoder after training.
func TestMethodsDiffer(t *testing.T) {
	x := newExperiment(t)
	be := cpu.New(tensor.Float32)
	x.Recipe.Epochs = 2
	seen := map[float64]string{}
	for _, name := range methods[1:] {
		r, err := x.pretrain(t.Context(), name, quiet)
		if err != nil {
			t.Fatal(err)
		}
		loss := r.Epochs[1]["loss"]
		if other, ok := seen[loss]; ok {
			t.Errorf("%s has the losses of %s", name, other)
		}
		seen[loss] = name

		// The checkpoint of the last epoch holds what was trained.
		l, err := x.pretraining(name).Learner(be)
		if err != nil {
			t.Fatal(err)
		}
		path, err := x.Dir.Checkpoint("pretrain/" + name)
		if err != nil {
			t.Fatal(err)
		}
		tensors, _ := l.State()
		if err := nn.LoadFile(path, tensors); err != nil {
			t.Fatal(err)
		}
		saved, err := x.encoder().New(be, random.Stream(9, 0, 0, 0))
		if err == nil {
			err = model.LoadEncoder(x.pretraining(name).Weights(x.Dir.Path), saved)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range l.Model.Encoder.Parameters() {
			if d := cmp.Diff(values(p), values(saved.Parameters()[i])); d != "" {
				t.Errorf("%s: the saved %s is not the trained one", name, p.Name)
				break
			}
		}
		l.Close()
	}
}

func values(p *autodiff.Param) []float64 {
	v := make([]float64, p.Value.Len())
	p.Backend().Download(v, p.Value)
	return v
}

// TestEpochsDiffer: without training, two epochs of pre-training differ in their
// batches and views only.
func TestEpochsDiffer(t *testing.T) {
	x := newExperiment(t)
	x.Recipe.LR = still
	for _, name := range []string{method.InfoNCE, "attrmasking"} {
		r, err := x.pretrain(t.Context(), name, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if first, second := r.Epochs[0]["loss"], r.Epochs[1]["loss"]; first == second {
			t.Errorf("%s: two epochs have the loss %v", name, first)
		}
	}
}

// TestNothingToLearn: batches without a question do not count, and an epoch without
// any is an error.
func TestNothingToLearn(t *testing.T) {
	atoms := func(n int) graph.Features {
		return graph.Features{Width: feature.AtomTypes * feature.ChiralityTags, Category: make([]int32, n)}
	}
	// A ring of three has no pair without an edge, so that the loss is not drawn.
	ring := &graph.Graph{Ptr: []int32{0, 2, 4, 6}, Adj: []int32{1, 2, 0, 2, 0, 1}, EdgeLabel: make([]int32, 6), X: atoms(3)}
	atom := &graph.Graph{Ptr: []int32{0, 0}, X: atoms(1)}
	loss := func(corpus ...*graph.Graph) (float64, error) {
		x := newExperiment(t)
		x.domain.corpus = corpus
		x.Recipe.Epochs, x.Recipe.Batch, x.Recipe.LR = 1, 1, still
		r, err := x.pretrain(t.Context(), "edgepred", quiet)
		if err != nil {
			return 0, err
		}
		return r.Epochs[0]["loss"], nil
	}
	want, err := loss(ring)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := loss(atom, ring, atom); err != nil || got != want {
		t.Errorf("loss %v among single atoms (%v), want %v", got, err, want)
	}
	if _, err := loss(atom, atom); err == nil || !strings.Contains(err.Error(), "epoch 1: no batch had anything to learn from") {
		t.Errorf("single atoms alone: %v", err)
	}
}

// TestCorpusSize: a part of the corpus is drawn from all of it.
func TestCorpusSize(t *testing.T) {
	x := newExperiment(t)
	x.source.Size = 100
	d, err := x.openDomain(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.corpus) != 100 {
		t.Fatalf("%d molecules, want 100", len(d.corpus))
	}
	all := d.sets[0].graphs
	late := 0
	for _, g := range d.corpus {
		if slices.Index(all, g) >= len(all)/2 {
			late++
		}
	}
	if late < 30 || late > 70 {
		t.Errorf("%d of 100 are of the second half of the corpus", late)
	}
}
