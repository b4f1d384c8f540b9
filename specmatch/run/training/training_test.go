package training_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func newRun(t *testing.T, name string) *training.Run {
	t.Helper()
	ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: 30})
	if err != nil {
		t.Fatal(err)
	}
	return &training.Run{
		Dataset: ds, Regime: method.Unsupervised, Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: ds.FeatureWidth, Hidden: 32, Layers: 3}, Method: name, Seed: 3,
		Recipe:   cli.Recipe{Epochs: 3, Batch: 10, LR: 0.01},
		Settings: training.Settings{Options: method.Options{"beta": train.Beta{Weight: 0.5}}, OwnRecipes: true},
	}
}

func quiet(string, ...any) {}

// learner returns the run's learner, which the end of the test closes.
func learner(t *testing.T, r *training.Run, be backend.Backend) *method.Learner {
	t.Helper()
	l, err := r.Learner(be)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// parameters are the values of a module's.
func parameters(m nn.Module) (all [][]float64) {
	for _, p := range m.Parameters() {
		v := make([]float64, p.Value.Len())
		p.Backend().Download(v, p.Value)
		all = append(all, v)
	}
	return all
}

// flags returns the flags of the methods of the unsupervised regime, parsed.
func flags(t *testing.T, s *training.Settings, chosen []string, args ...string) error {
	t.Helper()
	f := cli.NewFlagSet("unsupervised", "", "")
	s.Register(f, method.Unsupervised, method.Names(method.Unsupervised), func() []string { return chosen })
	return f.Parse(args, io.Discard)
}

// TestObjective: every flag has its place in the loss.
func TestObjective(t *testing.T) {
	var s training.Settings
	args := "-adjacency hard -random-walk -theta-gradient -on-h -center -sum -warmup 7 -beta auto:0.1 -percentile 70 -tau 0.3 -kappa 5"
	if err := flags(t, &s, nil, strings.Fields(args)...); err != nil {
		t.Fatal(err)
	}
	want := specmatch.Objective{
		Contrast: specmatch.InfoNCE{Tau: 0.3, Sum: true},
		Match:    specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Kappa: 5, RandomWalk: true, Percentile: 70, ThresholdGradient: true},
		OnH:      true, Center: true,
		Beta: specmatch.Beta{Ratio: 0.1}, Warmup: 7,
	}
	if d := gocmp.Diff(want, method.Objective(s.Options)); d != "" {
		t.Error(d)
	}
	if err := flags(t, &s, nil, "-p", "60"); err != nil || method.Percentile.Of(s.Options) != 60 {
		t.Errorf("the old name of -percentile: %v, %v", method.Percentile.Of(s.Options), err)
	}
}

// TestRatio: 0, which is the usual ratio for package augment, is not accepted as one.
func TestRatio(t *testing.T) {
	for arg, ok := range map[string]bool{"0": false, "1.1": false, "-0.1": false, "NaN": false, "0.01": true, "1": true} {
		if err := flags(t, new(training.Settings), nil, "-ratio", arg); (err == nil) != ok {
			t.Errorf("-ratio %s: %v", arg, err)
		}
	}
}

// TestPolicy: "auto" is resolved by data set, and what else is asked for stays.
func TestPolicy(t *testing.T) {
	policy := func(r *training.Run) string {
		s, err := r.Setup(nil).Complete()
		if err != nil {
			t.Fatal(err)
		}
		return method.Policy.Of(s.Options)
	}
	r := newRun(t, method.InfoNCE)
	for _, name := range []string{"PROTEINS", "REDDIT-BINARY"} {
		r.Dataset.Name = name
		if want, _ := augment.PolicyFor(name); policy(r) != want {
			t.Errorf("the augmentations of %s are %s, want %s", name, policy(r), want)
		}
	}
	r.Settings.Options = method.Options{"policy": "dropN"}
	if policy(r) != "dropN" {
		t.Errorf("-policy dropN is %s", policy(r))
	}
}

// TestBatches: a learner's batches and views are those of the run's seed, regime and
// settings.
func TestBatches(t *testing.T) {
	view := func(impl augment.Impl, ratio float64) augment.Augmentation {
		v, err := augment.ParsePolicy("dropN", impl, ratio)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	raw, intended := augment.Augmentation(augment.Identity{}), view(augment.ImplIntended, 0.3)
	semi := view(augment.ImplSemi, 0.3)
	for name, c := range map[string]struct {
		method string
		change func(r *training.Run)
		views  []augment.Augmentation
		order  augment.Order
	}{
		"specmatch":            {method.SpecMatch, func(*training.Run) {}, []augment.Augmentation{intended, intended}, augment.Reshuffle},
		"graphcl, its code":    {method.GraphCL, func(*training.Run) {}, []augment.Augmentation{augment.Identity{SelfLoops: true}, view(augment.ImplUnsupervised, 0)}, augment.ShuffleOnce},
		"graphcl, as intended": {method.GraphCL, func(r *training.Run) { r.Settings.Options["graphcl-code"] = false }, []augment.Augmentation{raw, intended}, augment.Reshuffle},
		"graphcl, semi":        {method.GraphCL, func(r *training.Run) { r.Regime = method.SemiSupervised }, []augment.Augmentation{semi, semi}, augment.Reshuffle},
	} {
		r := newRun(t, c.method)
		r.Settings.Options = method.Options{"policy": "dropN", "ratio": 0.3}
		c.change(r)
		want := &augment.Loader{Graphs: r.Dataset.Graphs, Batch: 10, Order: c.order, Collator: augment.Collator{Views: c.views, Seed: 3}}
		l := learner(t, r, cpu.New(tensor.Float32))
		for epoch := range 2 {
			if d := gocmp.Diff(batches(want.Epoch(t.Context(), epoch)), batches(l.Epoch(t.Context(), epoch))); d != "" {
				t.Errorf("%s, epoch %d:\n%s", name, epoch, d)
			}
		}
	}
}

// batch is what a mini-batch holds.
type batch struct {
	Samples  []int
	ViewPtr  []int32
	Adj      []int32
	Category []int32
}

func batches(epoch func(yield func([]int, *graph.Batch) bool)) (all []batch) {
	for samples, b := range epoch {
		all = append(all, batch{slices.Clone(samples), slices.Clone(b.ViewPtr), slices.Clone(b.Adj), slices.Clone(b.X.Category)})
	}
	return all
}

// TestEncoder: the learner's encoder is the one that the run asks for, with the
// weights of the run's seed whatever the method.
func TestEncoder(t *testing.T) {
	be := cpu.New(tensor.Float64)
	r := newRun(t, method.InfoNCE)
	gin := learner(t, r, be).Model.Encoder
	if g, ok := gin.(*gnn.GIN); !ok || g.Width() != 96 {
		t.Errorf("GIN is a %T of width %d", gin, gin.Width())
	}
	r.Method = method.Untrained
	alone, err := r.NewEncoder(be)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]gnn.Encoder{"untrained": learner(t, r, be).Model.Encoder, "alone": alone} {
		if d := gocmp.Diff(parameters(gin), parameters(other)); d != "" {
			t.Errorf("%s, the encoder starts elsewhere:\n%s", name, d)
		}
	}
	r.Seed = 4
	if gocmp.Equal(parameters(gin), parameters(learner(t, r, be).Model.Encoder)) {
		t.Error("two seeds start from the same weights")
	}
	r.Encoder = gnn.Architecture{Kind: gnn.KindResGCN, In: r.Dataset.FeatureWidth, Hidden: 8, Layers: 2}
	if e, ok := learner(t, r, be).Model.Encoder.(*gnn.ResGCN); !ok || e.Config.In != r.Dataset.FeatureWidth || e.Config.Hidden != 8 {
		t.Error("not the ResGCN that was asked for")
	}
}

func TestTrain(t *testing.T) {
	be := cpu.New(tensor.Float64)
	r, dir := newRun(t, method.SpecMatch), runtest.Open(t, "unsupervised")
	l := learner(t, r, be)
	out, err := r.Train(t.Context(), l, dir, "motifs/specmatch", quiet)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Epochs) != 3 || !(out.TrainSeconds > 0) || math.Abs(float64(out.GraphsPerSecond)*out.TrainSeconds-90) > 1e-9 {
		t.Errorf("%d epochs of 30 graphs in %v s, %v graphs/s", len(out.Epochs), out.TrainSeconds, out.GraphsPerSecond)
	}
	rows := runtest.Metrics(t, dir.Path)
	if len(rows) != len(out.Epochs) {
		t.Fatalf("%d rows of metrics, want %d", len(rows), len(out.Epochs))
	}
	for e, m := range out.Epochs {
		if m["beta"] != 0.5 || !(m["loss_c"] > 0 && m["loss_g"] > 0 && m["gradient_ratio"] > 0) {
			t.Errorf("an epoch without its losses: %v", m)
		}
		want := map[string]string{"unit": "motifs/specmatch", "epoch": strconv.Itoa(e + 1), "dataset": "motifs", "method": "specmatch", "seed": "3"}
		for name, v := range m {
			want[name] = strconv.FormatFloat(v, 'g', -1, 64)
		}
		if d := gocmp.Diff(want, rows[e]); d != "" {
			t.Errorf("metrics of epoch %d:\n%s", e+1, d)
		}
	}
	if first, last := out.Epochs[0]["loss"], out.Epochs[2]["loss"]; last >= first {
		t.Errorf("the loss went from %v to %v", first, last)
	}
	// What is saved is what was trained.
	if err := r.Save(dir.Path, l, len(out.Epochs)); err != nil {
		t.Fatal(err)
	}
	encoder, err := r.NewEncoder(be)
	if err == nil {
		err = r.Load(dir.Path, encoder)
	}
	if d := gocmp.Diff(parameters(l.Model.Encoder), parameters(encoder), cmpopts.EquateApprox(1e-6, 1e-6)); err != nil || d != "" {
		t.Errorf("the encoder in %s: %v\n%s", r.Weights(dir.Path), err, d)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Train(ctx, learner(t, r, be), dir, "cancelled", quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	dir.Close()
	if _, err := r.Train(t.Context(), learner(t, r, be), dir, "closed", quiet); err == nil {
		t.Error("metrics that cannot be written are no error")
	}
}

// TestUntrained: the row without training has no epochs and no speed.
func TestUntrained(t *testing.T) {
	r, dir := newRun(t, method.Untrained), runtest.Open(t, "unsupervised")
	l := learner(t, r, cpu.New(tensor.Float32))
	before := parameters(l.Model.Encoder)
	out, err := r.Train(t.Context(), l, dir, "motifs/untrained", quiet)
	if err != nil || len(out.Epochs) != 0 || !math.IsNaN(float64(out.GraphsPerSecond)) || !gocmp.Equal(before, parameters(l.Model.Encoder)) {
		t.Errorf("%+v, %v, or other weights", out, err)
	}
}

// TestLearningRate: it is the one asked for; at next to none, epochs differ in
// their batches only.
func TestLearningRate(t *testing.T) {
	be := cpu.New(tensor.Float64)
	for _, c := range []struct {
		rate  float64
		moves bool
	}{
		{1e-30, false},
		{0.01, true},
	} {
		r := newRun(t, method.InfoNCE)
		r.Recipe.LR, r.Recipe.Epochs = c.rate, 2
		l := learner(t, r, be)
		before := parameters(l.Model)
		out, err := r.Train(t.Context(), l, runtest.Open(t, "unsupervised"), "unit", quiet)
		if err != nil {
			t.Fatal(err)
		}
		if moved := !gocmp.Equal(before, parameters(l.Model), cmpopts.EquateApprox(0, 1e-20)); moved != c.moves {
			t.Errorf("rate %v: moved %v", c.rate, moved)
		}
		if first, second := out.Epochs[0]["loss"], out.Epochs[1]["loss"]; first == second {
			t.Errorf("rate %v: two epochs have the loss %v", c.rate, first)
		}
	}
}

// TestOwnRecipes: a method trains as its paper does, unless all are to train alike.
func TestOwnRecipes(t *testing.T) {
	for _, m := range method.All(method.Unsupervised) {
		own := m.Recipe[method.Unsupervised]
		for _, wanted := range []bool{true, false} {
			r := newRun(t, m.Name)
			r.Settings.OwnRecipes = wanted
			want := method.Recipe{Epochs: 3, Rate: 0.01, Layers: 3}
			if wanted {
				want = method.Recipe{Epochs: cmp.Or(own.Epochs, 3), Rate: cmp.Or(own.Rate, 0.01), Layers: cmp.Or(own.Layers, 3)}
			}
			if m.Frozen {
				want.Epochs = 0
			}
			if got := (method.Recipe{Epochs: r.Epochs(), Rate: r.Rate(), Layers: r.Architecture().Layers}); got != want {
				t.Errorf("%s, its own recipe %v: %v, want %v", m.Name, wanted, got, want)
			}
		}
	}
	s := training.Settings{OwnRecipes: true}
	if note := s.Note(method.Unsupervised, []string{method.GraphCL, "simgrace"}); note != " By recipes of their own: SimGRACE: 5 layers." {
		t.Error(note)
	}
	if s.OwnRecipes = false; s.Note(method.Unsupervised, []string{"simgrace"}) != "" {
		t.Error("a note on recipes that nobody follows")
	}
}

// TestProvenance: a model says every switch that it was trained with, but no other
// method's, and the sums of its data.
func TestProvenance(t *testing.T) {
	be := cpu.New(tensor.Float64)
	r := newRun(t, "simgrace")
	r.Settings.Options = method.Options{"simgrace-eta": 0.7, "raw-statistics": true}
	r.Dataset.Sums = map[string]string{"b": "02", "a": "01"}
	m, err := learner(t, r, be).Trained(r.Dataset, 3)
	if err != nil {
		t.Fatal(err)
	}
	p := m.Card.Provenance
	for name, want := range map[string]string{"simgrace-eta": "0.7", "raw-statistics": "true", "tau": "0.2", "batch": "10"} {
		if p.Options[name] != want {
			t.Errorf("%s is %q, want %q", name, p.Options[name], want)
		}
	}
	for name := range p.Options {
		if strings.HasPrefix(name, "joao") || strings.HasPrefix(name, "graphcl") {
			t.Errorf("%s is another method's", name)
		}
		if name == "policy" || name == "ratio" || name == "adjacency" || name == "beta" {
			t.Errorf("SimGRACE does not read %s", name)
		}
	}
	if !slices.Equal(p.Data, []model.DataSource{{Name: "a", SHA256: "01"}, {Name: "b", SHA256: "02"}}) {
		t.Errorf("data %v", p.Data)
	}
	r.Method = "joaov2"
	if m, err = learner(t, r, be).Trained(r.Dataset, 3); err != nil || m.Card.Provenance.Options["joao-gamma"] != "0.1" {
		t.Errorf("JOAOv2: %v, %v", m.Card.Provenance.Options, err)
	}
}

// TestUnread: a flag that none of the methods reads is a mistake.
func TestUnread(t *testing.T) {
	for _, c := range []struct {
		args    string
		methods []string
		want    string
	}{
		{"-ratio 0.3", []string{"graphcl"}, "-ratio has no effect on graphcl"},
		{"-ratio 0.3 -graphcl-code=false", []string{"graphcl"}, ""},
		{"-ratio 0.3", []string{"graphcl", "infonce"}, ""},
		{"-tau 0.3", []string{"infograph", "untrained"}, "-tau has no effect on infograph, untrained"},
		{"-policy random3", []string{"joao", "simgrace"}, "-policy has no effect on joao, simgrace"},
		{"-policy random3", []string{"none", "joao"}, ""},
		{"-policy random3 -cuco-inverted", []string{"cuco"}, "-policy has no effect on cuco"},
		{"-p 50", []string{"cuco", "infonce"}, ""},
		{"-p 50", []string{"cuco", "ema"}, "-percentile has no effect on cuco, ema"},
		{"-beta 0.5", []string{"infonce", "graphcl", "jitter"}, "-beta has no effect on infonce, graphcl, jitter"},
		{"-beta 0.5", []string{"infonce", "specmatch"}, ""},
		{"-p 50", []string{"cuco"}, "-percentile has no effect on cuco"},
		{"-joao-gamma 0.2", []string{"graphcl"}, "-joao-gamma has no effect on graphcl"},
		{"-mssgcl-global 0.2", []string{"mssgcl"}, "want both above 0"},
		{"-raw-statistics -joao-probe-moves", []string{"joao"}, "want one of them"},
		{"-self-loops", []string{"infonce", "graphcl"}, "-self-loops would add a second self-loop to GraphCL's raw graphs"},
		{"-self-loops -graphcl-code=false", []string{"infonce", "graphcl"}, ""},
	} {
		err := flags(t, new(training.Settings), c.methods, strings.Fields(c.args)...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s of %s: %v, want %q", c.args, c.methods, err, c.want)
		}
	}
}
