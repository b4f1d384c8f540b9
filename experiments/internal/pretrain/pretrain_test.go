package pretrain_test

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/plot"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/tensor"
)

func newRun(t *testing.T, method string) *pretrain.Run {
	t.Helper()
	ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: 30})
	if err != nil {
		t.Fatal(err)
	}
	return &pretrain.Run{
		Dataset: ds, Method: method, Seed: 3,
		Loss:     cli.Loss{Beta: cli.Beta{Weight: 0.5}, P: 80, Tau: 0.2, Kappa: 10},
		Recipe:   cli.Recipe{Epochs: 3, Batch: 10, LR: 0.01},
		Settings: pretrain.DefaultSettings(),
	}
}

// TestObjective: which switches a method uses.
func TestObjective(t *testing.T) {
	r := newRun(t, method.InfoNCE)
	if o := r.Objective(); o.Beta != (specmatch.BetaSchedule{}) || o.Contrast.Variant != specmatch.NTXent {
		t.Errorf("infonce: %+v", o)
	}
	if o := newRun(t, method.GraphCL).Objective(); o.Beta.Beta != 0 || o.Contrast.Variant != specmatch.CrossView {
		t.Errorf("graphcl: %+v", o)
	}
	r = newRun(t, method.SpecMatch)
	r.Loss = cli.Loss{Beta: cli.Beta{Weight: 0.5, Ratio: 0.1}, P: 70, Tau: 0.3, Kappa: 5}
	r.Settings = pretrain.Settings{Adjacency: specmatch.Hard, RandomWalk: true, ThetaGradient: true, OnH: true, Center: true, Sum: true, Warmup: 7}
	want := specmatch.Objective{
		Contrast: specmatch.InfoNCE{Temperature: 0.3, Sum: true},
		Match:    specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Kappa: 5, RandomWalk: true, Percentile: 70, ThresholdGradient: true},
		OnH:      true, Center: true,
		Beta: specmatch.BetaSchedule{Beta: 0.5, Ratio: 0.1, WarmupSteps: 7},
	}
	if d := cmp.Diff(want, r.Objective()); d != "" {
		t.Errorf("specmatch:\n%s", d)
	}
}

// TestRatio: 0, which is the usual ratio for package augment, is not accepted as one.
func TestRatio(t *testing.T) {
	for arg, ok := range map[string]bool{"0": false, "1.1": false, "-0.1": false, "NaN": false, "0.01": true, "1": true} {
		s := pretrain.DefaultSettings()
		f := cli.NewFlagSet("x", "", "")
		f.Add(&s)
		if err := f.Parse([]string{"-ratio", arg}, io.Discard); (err == nil) != ok {
			t.Errorf("-ratio %s: %v", arg, err)
		}
	}
}

// TestLoader: the methods differ in views and order as they say.
func TestLoader(t *testing.T) {
	view := func(policy string, impl augment.Impl, ratio float64) augment.Augmentation {
		v, err := augment.ParsePolicy(policy, impl, ratio)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	intended := view("dropN", augment.ImplIntended, 0.3)
	for _, c := range []struct {
		method        string
		faithful      bool
		first, second augment.Augmentation
		order         augment.Order
	}{
		{method.InfoNCE, true, intended, intended, augment.Reshuffle},
		{method.SpecMatch, true, intended, intended, augment.Reshuffle},
		{method.GraphCL, true, augment.Identity{SelfLoops: true}, view("dropN", augment.ImplUnsupervised, 0), augment.ShuffleOnce},
		{method.GraphCL, false, augment.Identity{}, intended, augment.Reshuffle},
	} {
		r := newRun(t, c.method)
		r.Settings.GraphCLCode, r.Settings.Policy, r.Settings.Ratio = c.faithful, "dropN", 0.3
		l, err := r.Loader()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]any{c.first, c.second, c.order}, []any{l.Collator.Views[0], l.Collator.Views[1], l.Order}); d != "" || len(l.Collator.Views) != 2 {
			t.Errorf("%s, faithful %v:\n%s", c.method, c.faithful, d)
		}
	}
	for _, name := range []string{"PROTEINS", "REDDIT-BINARY"} {
		r := newRun(t, method.InfoNCE)
		r.Dataset.Name = name
		policy, _ := augment.PolicyFor(name)
		if v, err := r.View(); err != nil || !cmp.Equal(v, view(policy, augment.ImplIntended, 0.2)) {
			t.Errorf("the augmentations of %s are not %s: %v, %v", name, policy, v, err)
		}
	}
	r := newRun(t, method.GraphCL)
	r.Semi = true
	l, err := r.Loader()
	if err != nil {
		t.Fatal(err)
	}
	code := view(augment.Random2, augment.ImplSemi, 0.2)
	if d := cmp.Diff([]any{code, code, augment.Reshuffle}, []any{l.Collator.Views[0], l.Collator.Views[1], l.Order}); d != "" {
		t.Errorf("graphcl, semi-supervised:\n%s", d)
	}
	r = newRun(t, method.InfoNCE)
	r.Settings.Policy = "random9"
	var usage *cli.UsageError
	if _, err := r.Loader(); !errors.As(err, &usage) {
		t.Errorf("unknown policy: got %v, want a usage error", err)
	}
}

// TestEncoder: the model is made of the encoder that the run asks for.
func TestEncoder(t *testing.T) {
	be := cpu.New(tensor.Float64)
	r := newRun(t, method.InfoNCE)
	if _, ok := r.Model(be).Encoder.(*gnn.GIN); !ok {
		t.Error("no GIN by default")
	}
	r.Encoder = func(be backend.Backend, width int, rng *rand.Rand) gnn.Encoder {
		return gnn.NewResGCN(be, gnn.ReferenceResGCN(width), rng)
	}
	if e, ok := r.Model(be).Encoder.(*gnn.ResGCN); !ok || e.Config.In != r.Dataset.FeatureWidth {
		t.Error("not the ResGCN that was asked for")
	}
}

func TestTrain(t *testing.T) {
	be := cpu.New(tensor.Float64)
	r := newRun(t, method.SpecMatch)
	model := r.Model(be)
	var epochs []int
	var history []pretrain.Epoch
	_, err := r.Train(t.Context(), be, model, func(epoch int, e pretrain.Epoch) error {
		epochs, history = append(epochs, epoch), append(history, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{1, 2, 3}, epochs); d != "" {
		t.Errorf("epochs:\n%s", d)
	}
	for _, e := range history {
		if e.Beta != 0.5 || !(e.LossC > 0 && e.LossG > 0 && e.Ratio > 0) {
			t.Errorf("an epoch without its losses: %+v", e)
		}
	}
	if history[2].Loss >= history[0].Loss {
		t.Errorf("the loss went from %v to %v", history[0].Loss, history[2].Loss)
	}
	accuracy, err := r.Evaluate(t.Context(), be, model, cli.Protocol{Protocols: []string{"linear"}, Folds: 3})
	if a := accuracy["linear"]; err != nil || !(a > 20 && a <= 100) {
		t.Errorf("accuracy %v, %v", accuracy, err)
	}

	stop := errors.New("stop")
	if _, err := r.Train(t.Context(), be, r.Model(be), func(int, pretrain.Epoch) error { return stop }); err != stop {
		t.Errorf("an error of each: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Train(ctx, be, r.Model(be), func(int, pretrain.Epoch) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
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
		model := r.Model(be)
		weights := func() (all [][]float64) {
			for _, p := range model.Parameters() {
				v := make([]float64, p.Value.Len())
				be.Download(v, p.Value)
				all = append(all, v)
			}
			return all
		}
		before := weights()
		var losses []rundir.Float
		if _, err := r.Train(t.Context(), be, model, func(_ int, e pretrain.Epoch) error {
			losses = append(losses, e.Loss)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if moved := !cmp.Equal(before, weights(), cmpopts.EquateApprox(0, 1e-20)); moved != c.moves {
			t.Errorf("rate %v: moved %v", c.rate, moved)
		}
		if losses[0] == losses[1] {
			t.Errorf("rate %v: two epochs have the loss %v", c.rate, losses[0])
		}
	}
}

// TestEvaluate: the folds are those of the seed, and GraphCL's code sees the raw
// graphs with self-loops.
func TestEvaluate(t *testing.T) {
	be := cpu.New(tensor.Float64)
	how := cli.Protocol{Protocols: []string{"linear"}, Folds: 3}
	evaluate := func(r *pretrain.Run, add func(b *graph.Batch, g *graph.Graph), seed uint32) float64 {
		model := r.Model(be)
		folds, err := dataset.StratifiedKFold(r.Dataset.Labels(), how.Folds, true, seed)
		if err != nil {
			t.Fatal(err)
		}
		h, err := gnn.Embed(t.Context(), be, model.Encoder, r.Dataset.Graphs, add)
		if err != nil {
			t.Fatal(err)
		}
		data := eval.Data{X: h, Dim: model.Encoder.Width(), Y: r.Dataset.Labels()}
		result, err := eval.Evaluate(t.Context(), eval.Linear, data, folds, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return 100 * result.Mean
	}
	for _, method := range []string{method.InfoNCE, method.GraphCL} {
		r := newRun(t, method)
		loops := func(b *graph.Batch, g *graph.Graph) {
			augment.Identity{SelfLoops: true}.Append(b, g, nil, new(augment.Workspace))
		}
		plain, looped := evaluate(r, nil, 3), evaluate(r, loops, 3)
		if other := evaluate(r, nil, 1); plain == looped || plain == other {
			t.Fatalf("accuracies %v, %v and %v do not tell folds or loops apart", plain, looped, other)
		}
		want := plain
		if method == method.GraphCL {
			want = looped
		}
		got, err := r.Evaluate(t.Context(), be, r.Model(be), how)
		if err != nil || got["linear"] != want {
			t.Errorf("%s: accuracy %v (%v), want %v", method, got, err, want)
		}
	}
}

// TestCheck: what training or evaluation would refuse is refused before either.
func TestCheck(t *testing.T) {
	how := cli.Protocol{Protocols: []string{"linear"}, Folds: 5}
	if err := pretrain.Check([]*pretrain.Run{newRun(t, method.InfoNCE)}, how); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(r *pretrain.Run, how *cli.Protocol){
		"-policy":                                func(r *pretrain.Run, _ *cli.Protocol) { r.Settings.Policy = "magic" },
		"motifs in 31 folds":                     func(_ *pretrain.Run, how *cli.Protocol) { how.Folds = 31 },
		"motifs in 5 folds: eval: all 30 points": func(r *pretrain.Run, _ *cli.Protocol) { classes(r.Dataset, func(int) int { return 0 }) },
		"motifs in 5 folds: eval: outer fold":    func(r *pretrain.Run, _ *cli.Protocol) { classes(r.Dataset, func(k int) int { return min(1, k/29) }) },
	} {
		r, how := newRun(t, method.InfoNCE), how
		change(r, &how)
		if err := pretrain.Check([]*pretrain.Run{newRun(t, method.InfoNCE), r}, how); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// classes gives graph k of a set the class of(k).
func classes(ds *dataset.Dataset, of func(k int) int) {
	ds.Classes = 0
	for k, g := range ds.Graphs {
		g.Class = of(k)
		ds.Classes = max(ds.Classes, g.Class+1)
	}
}

func TestCurve(t *testing.T) {
	run := func(losses ...rundir.Float) (h []pretrain.Epoch) {
		for _, l := range losses {
			h = append(h, pretrain.Epoch{LossC: l})
		}
		return h
	}
	lossC := func(e pretrain.Epoch) rundir.Float { return e.LossC }
	want := plot.Series{Name: "a", X: []float64{1, 2}, Y: []float64{2, 6}, Err: []float64{math.Sqrt2, 0}}
	if d := cmp.Diff(want, pretrain.Curve("a", [][]pretrain.Epoch{run(1, 6), run(3, 6)}, lossC)); d != "" {
		t.Error(d)
	}
	if s := pretrain.Curve("a", [][]pretrain.Epoch{nil}, lossC); len(s.X) != 0 {
		t.Errorf("runs without training have a curve: %v", s)
	}
}
