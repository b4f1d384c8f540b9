package training_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// TestCheckpoint interrupts runs and takes them up: weights, losses and
// metrics.csv are those of a run that nothing has interrupted.
func TestCheckpoint(t *testing.T) {
	be := cpu.New(tensor.Float32)
	trained := func(ctx context.Context, r *training.Run, dir *run.Dir, status run.Status) ([]train.Metrics, [][]float64, error) {
		l := learner(t, r, be)
		out, err := r.Train(ctx, l, dir, "unit", status)
		return out.Epochs, parameters(l.Model), err
	}
	for name, c := range map[string]struct {
		method string
		beta   train.Beta
	}{
		"specmatch":         {method.SpecMatch, train.Beta{Weight: 0.5}},
		"specmatch, auto":   {method.SpecMatch, train.Beta{Ratio: 0.2}},
		"graphcl, its code": {method.GraphCL, train.Beta{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, c.method)
			r.Settings.Options, r.Recipe.Epochs = method.Options{"beta": c.beta, "warmup": 8}, 5
			whole, dir := runtest.Open(t, "unsupervised"), runtest.Open(t, "unsupervised")
			epochs, weights, err := trained(t.Context(), r, whole, quiet)
			if err != nil {
				t.Fatal(err)
			}
			// A start says something after its first step, and is then cancelled.
			interrupted := 0
			for { // each start takes a step of 15
				if interrupted > 15 {
					t.Fatal("a start does not go on where the one before has ended")
				}
				ctx, cancel := context.WithCancel(t.Context())
				got, w, err := trained(ctx, r, dir, func(string, ...any) { cancel() })
				cancel()
				if errors.Is(err, context.Canceled) {
					interrupted++
					dir = runtest.Reopen(t, dir)
					continue
				}
				if d := cmp.Diff(epochs, got) + cmp.Diff(weights, w); err != nil || d != "" {
					t.Errorf("%v\n%s", err, d)
				}
				break
			}
			if interrupted < 2 {
				t.Errorf("%d interruptions", interrupted)
			}
			if d := cmp.Diff(runtest.Metrics(t, whole.Path), runtest.Metrics(t, dir.Path)); d != "" {
				t.Errorf("metrics.csv:\n%s", d)
			}
			// It is at its end now.
			if got, w, err := trained(t.Context(), r, dir, quiet); err != nil || !cmp.Equal(epochs, got) || !cmp.Equal(weights, w) {
				t.Errorf("once more: %d epochs, %v, or other weights", len(got), err)
			}
			file, err := dir.Checkpoint("unit")
			if err != nil {
				t.Fatal(err)
			}
			r.Recipe.Epochs = 4
			if _, _, err := trained(t.Context(), r, dir, quiet); err == nil || !strings.Contains(err.Error(), file+": the checkpoint has 5 epochs, but the run has only 4") {
				t.Errorf("of fewer epochs: %v", err)
			}
			if err := os.WriteFile(file, []byte("nonsense"), 0o666); err != nil {
				t.Fatal(err)
			}
			if _, _, err := trained(t.Context(), r, dir, quiet); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("nonsense: %v", err)
			}
		})
	}
}
