package pretrain_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/plot"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
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
	r := newRun(t, cli.InfoNCE)
	if o := r.Objective(); o.Beta != (specmatch.BetaSchedule{}) || o.Contrast.Variant != specmatch.NTXent {
		t.Errorf("infonce: %+v", o)
	}
	if o := newRun(t, cli.GraphCL).Objective(); o.Beta.Beta != 0 || o.Contrast.Variant != specmatch.CrossView {
		t.Errorf("graphcl: %+v", o)
	}
	r = newRun(t, cli.SpecMatch)
	r.Settings.Adjacency, r.Settings.RandomWalk, r.Settings.OnH, r.Settings.Sum, r.Settings.Warmup = specmatch.Hard, true, true, true, 7
	want := specmatch.Objective{
		Contrast: specmatch.InfoNCE{Temperature: 0.2, Sum: true},
		Match:    specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Kappa: 10, RandomWalk: true, Percentile: 80},
		OnH:      true,
		Beta:     specmatch.BetaSchedule{Beta: 0.5, WarmupSteps: 7},
	}
	if d := cmp.Diff(want, r.Objective()); d != "" {
		t.Errorf("specmatch:\n%s", d)
	}
}

// TestLoader: the methods differ in views and order as they say.
func TestLoader(t *testing.T) {
	for _, c := range []struct {
		method   string
		faithful bool
		first    augment.Augmentation
		order    augment.Order
	}{
		{cli.InfoNCE, true, nil, augment.Reshuffle},
		{cli.SpecMatch, true, nil, augment.Reshuffle},
		{cli.GraphCL, true, augment.Identity{SelfLoops: true}, augment.ShuffleOnce},
		{cli.GraphCL, false, augment.Identity{}, augment.Reshuffle},
	} {
		r := newRun(t, c.method)
		r.Settings.GraphCLCode = c.faithful
		l, err := r.Loader()
		if err != nil {
			t.Fatal(err)
		}
		want := c.first
		if want == nil {
			want = l.Collator.Views[1] // both views are drawn from the same law
		}
		if d := cmp.Diff([]any{want, c.order}, []any{l.Collator.Views[0], l.Order}); d != "" || len(l.Collator.Views) != 2 {
			t.Errorf("%s, faithful %v:\n%s", c.method, c.faithful, d)
		}
	}
	r := newRun(t, cli.GraphCL)
	r.Semi = true
	l, err := r.Loader()
	if err != nil {
		t.Fatal(err)
	}
	code, err := augment.ParsePolicy(augment.Random2, augment.ImplSemi, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]any{code, code, augment.Reshuffle}, []any{l.Collator.Views[0], l.Collator.Views[1], l.Order}); d != "" {
		t.Errorf("graphcl, semi-supervised:\n%s", d)
	}
	r = newRun(t, cli.InfoNCE)
	r.Settings.Policy = "random9"
	var usage *cli.UsageError
	if _, err := r.Loader(); !errors.As(err, &usage) {
		t.Errorf("unknown policy: got %v, want a usage error", err)
	}
}

// TestEncoder: the model is made of the encoder that the run asks for.
func TestEncoder(t *testing.T) {
	be := cpu.New(tensor.Float64)
	r := newRun(t, cli.InfoNCE)
	if _, ok := r.Model(be).Encoder.(*gnn.GIN); !ok {
		t.Error("no GIN by default")
	}
	r.Encoder = func(be backend.Backend, width int, rng *rand.Rand) specmatch.Encoder {
		return gnn.NewResGCN(be, gnn.ReferenceResGCN(width), rng)
	}
	if e, ok := r.Model(be).Encoder.(*gnn.ResGCN); !ok || e.Config.In != r.Dataset.FeatureWidth {
		t.Error("not the ResGCN that was asked for")
	}
}

func TestTrain(t *testing.T) {
	be := cpu.New(tensor.Float64)
	r := newRun(t, cli.SpecMatch)
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
