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
	"github.com/specmatch/specmatch/experiments/internal/checkpoint"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/pretext"
	"github.com/specmatch/specmatch/tensor"
)

// still is a learning rate at which float32 weights stay what they are.
const still = 1e-30

func quiet(string, ...any) {}

// tune fine-tunes on the set of x with a seed.
func (x *experiment) tune(t *testing.T, method string, seed int) tuned {
	t.Helper()
	r, err := x.finetune(t.Context(), &tuning{set: x.domain.sets[0], method: method, seed: seed}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	x.forget(t)
	r.Seconds = 0
	return r
}

// forget removes the checkpoints, as rundir.Do does at the end of a unit.
func (x *experiment) forget(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(x.dir.Join("checkpoints")); err != nil {
		t.Fatal(err)
	}
}

// undefined counts what is not a number.
func undefined(values []rundir.Float) (n int) {
	for _, v := range values {
		if math.IsNaN(float64(v)) {
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
	want := x.tune(t, methodNone, 0)
	if undefined(want.Valid) > 0 || undefined(want.Test) > 0 || want.Skipped != 0 {
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
	r := x.tune(t, methodNone, 0)
	if undefined(r.Test) != x.fine.Epochs || r.Skipped != set.tasks {
		t.Errorf("a test set of one class: %+v", r)
	}
	if d := cmp.Diff(want.Loss, r.Loss) + cmp.Diff(want.Valid, r.Valid); d != "" {
		t.Errorf("labels of the test set change training or validation:\n%s", d)
	}

	fill(set.split.Valid, -1)
	r = x.tune(t, methodNone, 0)
	if undefined(r.Valid) != x.fine.Epochs {
		t.Errorf("a validation set of one class: %+v", r)
	}
	if d := cmp.Diff(want.Loss, r.Loss) + cmp.Diff(want.Test, r.Test); d != "" {
		t.Errorf("labels of the validation set change training or test:\n%s", d)
	}

	fill(set.split.Train, 0)
	if err := set.check(); err == nil || !strings.Contains(err.Error(), "has a label") {
		t.Errorf("a training set without labels: %v", err)
	}
	// A single label: the loss is that of its batch, not a mean with the others.
	labelled := set.split.Train[7]
	set.labels[labelled*set.tasks] = 1
	x.fine, x.model.Dropout = fine{Epochs: 1, Batch: 1, LR: still}, 0
	many := x.tune(t, methodNone, 0).Loss[0]
	set.split.Train = []int{labelled}
	if one := x.tune(t, methodNone, 0).Loss[0]; many != one || !(one > 0) {
		t.Errorf("loss %v with one labelled graph of many, %v with this graph alone", many, one)
	}
}

// TestAllLayersMove: the first step of fine-tuning moves every parameter, none by
// more than its learning rate, as Adam does.
func TestAllLayersMove(t *testing.T) {
	x := newExperiment(t)
	x.fine.LR = 0.003
	x.source.Checkpoint = 1 << 62
	j := &tuning{set: x.domain.sets[0], method: methodNone, seed: 1}
	ctx, cancel := context.WithCancel(t.Context())
	x.afterStep = cancel
	if _, err := x.finetune(ctx, j, quiet); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	be := cpu.New(tensor.Float32)
	before, err := x.tuner(be, j)
	if err != nil {
		t.Fatal(err)
	}
	after, err := x.tuner(be, j)
	if err != nil {
		t.Fatal(err)
	}
	path, err := x.dir.Checkpoint(j.name())
	if err != nil {
		t.Fatal(err)
	}
	var at tuningStand
	if err := checkpoint.Load(path, after.checkpoint(), &at); err != nil || at.Batches != 1 {
		t.Fatal(at, err)
	}
	was := before.Parameters()
	for i, p := range after.Parameters() {
		most := 0.0
		for k, v := range values(p) {
			most = max(most, math.Abs(v-values(was[i])[k]))
		}
		if !(most > 0.9*x.fine.LR && most < 1.1*x.fine.LR) {
			t.Errorf("%s moved by %v, want %v", p.Name, most, x.fine.LR)
		}
	}
}

// TestStart: fine-tuning starts from the pre-trained weights and, but for them,
// from the seed.
func TestStart(t *testing.T) {
	x := newExperiment(t)
	for _, method := range []string{cli.InfoNCE, cli.SpecMatch} {
		if _, err := x.pretrain(t.Context(), method, quiet); err != nil {
			t.Fatal(err)
		}
	}
	// One batch, no dropout, no training: the loss is that of the start.
	set := x.domain.sets[0]
	x.fine = fine{Epochs: 1, Batch: len(set.split.Train), LR: still}
	x.model.Dropout = 0
	got := map[rundir.Float]string{}
	for _, method := range []string{methodNone, cli.InfoNCE, cli.SpecMatch} {
		for _, seed := range []int{0, 1} {
			j := &tuning{set: set, method: method, seed: seed}
			loss := x.tune(t, method, seed).Loss[0]
			if other, ok := got[loss]; ok {
				t.Errorf("%s starts like %s", j.name(), other)
			}
			got[loss] = j.name()

			be := cpu.New(tensor.Float32)
			rng := random.Stream(uint64(seed), purposeHead, 0, 0)
			e := x.domain.encoder(be, x.model, true, rng)
			if method != methodNone {
				if err := nn.LoadFile(x.weights(method), e); err != nil {
					t.Fatal(err)
				}
			}
			p := &predictor{Encoder: e, be: be, tape: autodiff.NewTape(be), output: nn.NewLinear(be, "predictor", e.Width(), set.tasks, nn.KaimingUniform, rng)}
			p.output.ResetBias(be, rng)
			for samples, batch := range x.loader(j).Epoch(t.Context(), 0) {
				if want := p.loss(batch, set, samples).Float(); math.Abs(want-float64(loss)) > 1e-6 {
					t.Errorf("%s starts with loss %v, want %v", j.name(), loss, want)
				}
			}
			p.tape.Reset()
			be.Close()
		}
	}
}

// TestTuningResume: fine-tuning that was interrupted, in the middle of an epoch or
// behind it, and taken up again has the losses and qualities that it would have had,
// dropout and all.
func TestTuningResume(t *testing.T) {
	x := newExperiment(t)
	x.fine = fine{Epochs: 3, Batch: 20, LR: 0.01}
	x.source.Checkpoint = 1 << 62
	split := &x.domain.sets[0].split
	split.Train, split.Valid, split.Test = split.Train[:80], split.Valid[:40], split.Test[:40]
	j := &tuning{set: x.domain.sets[0], method: methodNone, seed: 1}
	perEpoch := x.loader(j).Batches()
	want := x.tune(t, methodNone, 1)
	if perEpoch < 3 {
		t.Fatalf("%d batches an epoch; the test wants a middle", perEpoch)
	}
	for _, steps := range []int{1, perEpoch - 1, perEpoch, 2*perEpoch + 2} {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		x.afterStep = func() {
			if calls++; calls == steps {
				cancel()
			}
		}
		interrupted, err := x.finetune(ctx, j, quiet)
		if !errors.Is(err, context.Canceled) || calls != steps {
			t.Fatalf("interrupted after %d of %d steps: %v", calls, steps, err)
		}
		x.afterStep = func() { calls++ }
		got, err := x.finetune(t.Context(), j, quiet)
		if err != nil || calls != 3*perEpoch {
			t.Fatalf("%d steps in all, want %d: %v", calls, 3*perEpoch, err)
		}
		if got.Seconds <= interrupted.Seconds {
			t.Errorf("%v seconds in all, and %v before the interruption", got.Seconds, interrupted.Seconds)
		}
		got.Seconds = 0
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("interrupted after %d steps of %d an epoch:\n%s", steps, perEpoch, d)
		}
		x.forget(t)
	}
	// Without an interruption there are checkpoints too.
	x.source.Checkpoint = 0
	saved := 0
	x.afterStep = func() {
		if left, _ := os.ReadDir(x.dir.Join("checkpoints")); len(left) == 1 {
			saved++
		}
	}
	if got := x.tune(t, methodNone, 1); !cmp.Equal(want, got) || saved != 3*perEpoch {
		t.Errorf("%d checkpoints, and the result %+v, want %+v", saved, got, want)
	}
}

// TestDropout: fine-tuning has it, unless its probability is 0.
func TestDropout(t *testing.T) {
	x := newExperiment(t)
	first := x.tune(t, methodNone, 0).Loss[0]
	x.model.Dropout = 0
	if none := x.tune(t, methodNone, 0).Loss[0]; none == first {
		t.Errorf("the loss is %v with dropout %v and without", none, 0.5)
	}
}

// TestLoader: an epoch has every training molecule once, in an order of its own and
// of the seed's.
func TestLoader(t *testing.T) {
	x := newExperiment(t)
	set := x.domain.sets[0]
	order := func(seed, epoch int) (all []int) {
		for samples := range x.loader(&tuning{set: set, seed: seed}).Epoch(t.Context(), epoch) {
			all = append(all, samples...)
		}
		return all
	}
	first := order(0, 0)
	if slices.Equal(first, order(1, 0)) {
		t.Error("seeds 0 and 1 have the same order")
	}
	sorted, train := slices.Sorted(slices.Values(first)), slices.Sorted(slices.Values(set.split.Train))
	if d := cmp.Diff(train, sorted); d != "" {
		t.Errorf("an epoch is not the training set:\n%s", d)
	}
	// Without training, two epochs differ in their batches only.
	x.fine.LR, x.model.Dropout = still, 0
	if r := x.tune(t, methodNone, 0); r.Loss[0] == r.Loss[1] {
		t.Error("two epochs have the same batches")
	}
}

// TestAUC compares the mean over tasks with each task's own, over the labels that
// are there.
func TestAUC(t *testing.T) {
	be := cpu.New(tensor.Float64)
	x := newExperiment(t)
	set := x.domain.sets[0]
	samples := set.split.Train[:60]
	for k, i := range samples {
		set.labels[i*set.tasks+k%2] = 0 // half of them are missing
	}
	rng := random.Stream(1, purposeHead, 0, 0)
	e := x.domain.encoder(be, x.model, false, rng)
	p := &predictor{Encoder: e, be: be, tape: autodiff.NewTape(be), output: nn.NewLinear(be, "predictor", e.Width(), set.tasks, nn.KaimingUniform, rng)}
	got, skipped, err := p.auc(t.Context(), set, samples)
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for task := range set.tasks {
		var scores, labels []float64
		for _, i := range samples {
			l := set.labels[i*set.tasks+task]
			if l == 0 {
				continue
			}
			h, err := gnn.Embed(t.Context(), be, e, set.graphs[i:i+1], nil)
			if err != nil {
				t.Fatal(err)
			}
			tape := autodiff.NewInference(be)
			scores = append(scores, p.output.Forward(tape.Matrix(1, e.Width(), h)).Data()[task])
			tape.Reset()
			labels = append(labels, max(0, float64(l)))
		}
		if len(labels) != 30 {
			t.Fatalf("task %d has %d labels, want 30", task, len(labels))
		}
		a, err := eval.ROCAUC(scores, labels)
		if err != nil {
			t.Fatal(err)
		}
		want += 100 * a / float64(set.tasks)
	}
	if math.Abs(got-want) > 1e-9 || skipped != 0 {
		t.Errorf("ROC-AUC %v (%d skipped), want %v", got, skipped, want)
	}
}

// TestRow: a row has the seeds of its method and set, read by its protocol, and the
// settings that its method has.
func TestRow(t *testing.T) {
	x := newExperiment(t)
	x.recipe.Seeds = 2
	set, other := x.domain.sets[0], &taskSet{name: "other"}
	run := func(set *taskSet, method string, seed int, valid, test []rundir.Float) *tuning {
		return &tuning{set: set, method: method, seed: seed, result: tuned{Valid: valid, Test: test, Seconds: 1}}
	}
	runs := []*tuning{
		run(set, cli.SpecMatch, 0, []rundir.Float{2, 1}, []rundir.Float{60, 70}),
		run(set, cli.SpecMatch, 1, []rundir.Float{1, 2}, []rundir.Float{80, 90}),
		run(set, methodNone, 0, []rundir.Float{1, 2}, []rundir.Float{1, 2}),
		run(other, cli.SpecMatch, 0, []rundir.Float{1, 2}, []rundir.Float{3, 4}),
	}
	trained := map[string]pretrained{cli.SpecMatch: {Seconds: 10, GraphsPerSecond: 7}}
	for protocol, want := range map[string][]float64{protocolLast: {70, 90}, protocolBest: {60, 90}} {
		r := x.row(set, cli.SpecMatch, protocol, trained, runs)
		if d := cmp.Diff(want, r.PerSeed); d != "" || r.Mean != (want[0]+want[1])/2 {
			t.Errorf("%s: %+v\n%s", protocol, r, d)
		}
		if r.Beta != x.loss.Beta || r.P != 80 || r.Epochs != 3 || r.Seconds != 12 || r.GraphsPerSecond != 7 || r.Protocol != protocol {
			t.Errorf("%s: %+v", protocol, r)
		}
	}
	if r := x.row(set, methodNone, protocolLast, trained, runs); r.Beta != (cli.Beta{}) || !math.IsNaN(r.P) || r.Epochs != 0 || r.Seconds != 1 {
		t.Errorf("no pre-training: %+v", r)
	}
}

// TestPaired: differences are to the first method, seed by seed.
func TestPaired(t *testing.T) {
	x := newExperiment(t)
	x.source.Methods = []string{methodNone, cli.GraphCL, cli.SpecMatch}
	set := x.domain.sets[0].name
	row := func(method, protocol string, seeds ...float64) rundir.Row {
		return rundir.Row{Dataset: set, Method: method, Protocol: protocol, PerSeed: seeds}
	}
	rows := []rundir.Row{
		row(methodNone, protocolLast, 60, 70), row(cli.GraphCL, protocolLast, 61, 75), row(cli.SpecMatch, protocolLast, 50, 60),
		row(methodNone, protocolBest, 60, 70), row(cli.GraphCL, protocolBest, 60, 70), row(cli.SpecMatch, protocolBest, 61, 71),
	}
	for protocol, want := range map[string][][]string{
		protocolLast: {{"GraphCL", "3.00 ± 2.00"}, {"SpecMatch-CL", "−10.00 ± 0.00"}},
		protocolBest: {{"GraphCL", "0.00 ± 0.00"}, {"SpecMatch-CL", "1.00 ± 0.00"}},
	} {
		if d := cmp.Diff(want, rundirtest.Rows(t, x.pairedTable(protocol, rows))); d != "" {
			t.Errorf("%s:\n%s", protocol, d)
		}
	}
}

// TestMethodsDiffer: every method trains in its own way, and the file of weights
// is of the encoder after training.
func TestMethodsDiffer(t *testing.T) {
	x := newExperiment(t)
	be := cpu.New(tensor.Float32)
	defer be.Close()
	x.recipe.Epochs = 2
	seen := map[rundir.Float]string{}
	for _, method := range methods[1:] {
		r, err := x.pretrain(t.Context(), method, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[r.Epochs[1].Loss]; ok {
			t.Errorf("%s has the losses of %s", method, other)
		}
		seen[r.Epochs[1].Loss] = method

		// The checkpoint of the last epoch holds what was trained.
		s := x.stepper(be, method)
		var at standing
		if err := checkpoint.Load(x.checkpoint(method), s.state(), &at); err != nil || len(at.Epochs) != x.recipe.Epochs {
			t.Fatal(at, err)
		}
		saved := x.domain.encoder(be, x.model, false, random.Stream(9, purposeInit, 0, 0))
		if err := nn.LoadFile(x.weights(method), saved); err != nil {
			t.Fatal(err)
		}
		for i, p := range s.encoder.Parameters() {
			if d := cmp.Diff(values(p), values(saved.Parameters()[i])); d != "" {
				t.Errorf("%s: the saved %s is not the trained one", method, p.Name)
				break
			}
		}
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
	x.recipe.LR = still
	for _, method := range []string{cli.InfoNCE, methodMasking} {
		r, err := x.pretrain(t.Context(), method, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if r.Epochs[0].Loss == r.Epochs[1].Loss {
			t.Errorf("%s: two epochs have the loss %v", method, r.Epochs[0].Loss)
		}
	}
}

// TestTaskDraws: what a pretext task hides is drawn anew for every batch and epoch.
func TestTaskDraws(t *testing.T) {
	x := newExperiment(t)
	x.recipe.LR = still
	s := x.stepper(cpu.New(tensor.Float32), methodMasking)
	loss := func(epoch, k int) float64 {
		stats, ok, err := s.step(graph.Collate(x.domain.corpus[:20]...), epoch, k)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return stats.Loss
	}
	first := loss(0, 1)
	if again, batch, epoch := loss(0, 1), loss(0, 2), loss(1, 1); again != first || batch == first || epoch == first || batch == epoch {
		t.Errorf("losses %v and, the same, %v; of another batch %v, of another epoch %v", first, again, batch, epoch)
	}
}

// TestContextSteps: the neighbourhood is what the encoder sees.
func TestContextSteps(t *testing.T) {
	x := newExperiment(t)
	for layers, want := range map[int][3]int{2: {2, 1, 4}, 5: {5, 4, 7}} {
		x.model.Layers = layers
		p := x.stepper(cpu.New(tensor.Float32), methodContext).all.(*pretext.ContextPrediction)
		if got := [3]int{p.Hops, p.Inner, p.Outer}; got != want || p.First {
			t.Errorf("%d layers: %v steps, want %v", layers, got, want)
		}
		if depth := p.Context.(*gnn.ChemGIN).Config.Layers; depth != 3 {
			t.Errorf("an encoder of contexts of %d layers, want 3", depth)
		}
	}
}

// TestNothingToLearn: batches without a question do not count, and an epoch without
// any is an error.
func TestNothingToLearn(t *testing.T) {
	atoms := func(n int) graph.Features {
		return graph.Features{Width: graph.AtomTypes * graph.ChiralityTags, Category: make([]int32, n)}
	}
	// A ring of three has no pair without an edge, so that the loss is not drawn.
	ring := &graph.Graph{Ptr: []int32{0, 2, 4, 6}, Adj: []int32{1, 2, 0, 2, 0, 1}, EdgeLabel: make([]int32, 6), X: atoms(3)}
	atom := &graph.Graph{Ptr: []int32{0, 0}, X: atoms(1)}
	loss := func(corpus ...*graph.Graph) (rundir.Float, error) {
		x := newExperiment(t)
		x.domain.corpus = corpus
		x.recipe.Epochs, x.recipe.Batch, x.recipe.LR = 1, 1, still
		r, err := x.pretrain(t.Context(), methodEdges, quiet)
		if err != nil {
			return 0, err
		}
		return r.Epochs[0].Loss, nil
	}
	want, err := loss(ring)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := loss(atom, ring, atom); err != nil || got != want {
		t.Errorf("loss %v among single atoms (%v), want %v", got, err, want)
	}
	if _, err := loss(atom, atom); err == nil || !strings.Contains(err.Error(), "epoch 1: no batch of the corpus has anything that edgepred could learn from") {
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

func TestRandomSplit(t *testing.T) {
	s := randomSplit(95, splitSeed)
	if len(s.Train) != 76 || len(s.Valid) != 9 || len(s.Test) != 10 {
		t.Errorf("parts of %d, %d and %d", len(s.Train), len(s.Valid), len(s.Test))
	}
	all := slices.Sorted(slices.Values(slices.Concat(s.Train, s.Valid, s.Test)))
	for i, k := range all {
		if i != k {
			t.Fatalf("sample %d is missing or twice", i)
		}
	}
	if slices.IsSorted(s.Train) {
		t.Error("not at random")
	}
}
