package pretrain

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/tensor"
)

// TestCheckpoint interrupts runs and takes them up: the bits are those of a run
// that nothing has interrupted.
func TestCheckpoint(t *testing.T) {
	defer func(d time.Duration) { checkpointEvery = d }(checkpointEvery)
	checkpointEvery = 0
	ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: 30})
	if err != nil {
		t.Fatal(err)
	}
	newRun := func(method string, beta cli.Beta) *Run {
		r := &Run{
			Dataset: ds, Method: method, Seed: 3,
			Loss:     cli.Loss{Beta: beta, P: 80, Tau: 0.2, Kappa: 10},
			Recipe:   cli.Recipe{Epochs: 5, Batch: 10, LR: 0.01},
			Settings: DefaultSettings(),
		}
		r.Settings.Warmup = 8
		return r
	}
	be := cpu.New(tensor.Float32)
	stop := errors.New("stop")
	// train runs until the last epoch or, with an error, into another one.
	train := func(r *Run, until int) (epochs []Epoch, weights []byte, err error) {
		model := r.Model(be)
		_, err = r.Train(t.Context(), be, model, func(epoch int, e Epoch) error {
			if epoch != len(epochs)+1 {
				t.Errorf("epoch %d after %d", epoch, len(epochs))
			}
			if epoch == until {
				return stop
			}
			epochs = append(epochs, e)
			return nil
		})
		var b bytes.Buffer
		if err := nn.Save(&b, model, nil); err != nil {
			t.Fatal(err)
		}
		return epochs, b.Bytes(), err
	}
	for name, newRun := range map[string]func() *Run{
		"specmatch":         func() *Run { return newRun(method.SpecMatch, cli.Beta{Weight: 0.5}) },
		"specmatch, auto":   func() *Run { return newRun(method.SpecMatch, cli.Beta{Ratio: 0.2}) },
		"graphcl, its code": func() *Run { return newRun(method.GraphCL, cli.Beta{}) },
	} {
		t.Run(name, func(t *testing.T) {
			epochs, weights, err := train(newRun(), 0)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "run.safetensors")
			for _, until := range []int{1, 3, 3, 5, 0} {
				r := newRun()
				r.Checkpoint = file
				e, w, err := train(r, until)
				if until > 0 {
					if err != stop {
						t.Fatal(err)
					}
					continue
				}
				if err != nil || !bytes.Equal(w, weights) {
					t.Errorf("the weights differ, or %v", err)
				}
				if d := cmp.Diff(epochs, e); d != "" {
					t.Error(d)
				}
				// It is at its end now.
				if e, w, err := train(r, 0); err != nil || !bytes.Equal(w, weights) || len(e) != 5 {
					t.Errorf("once more: %d epochs, %v, or other weights", len(e), err)
				}
				r.Recipe.Epochs = 4
				if _, _, err := train(r, 0); err == nil || !strings.Contains(err.Error(), file+": is after 5 epochs, of a run of 4") {
					t.Errorf("of fewer epochs: %v", err)
				}
			}
			if err := os.WriteFile(file, []byte("nonsense"), 0o666); err != nil {
				t.Fatal(err)
			}
			r := newRun()
			r.Checkpoint = file
			if _, _, err := train(r, 0); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("nonsense: %v", err)
			}
		})
	}
}
