package checkpoint_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/experiments/internal/checkpoint"
)

type standing struct {
	Epochs int
	Losses []float64
}

// TestCheckpoint: what was saved is loaded, without a file nothing changes, and a
// file without a standing is refused.
func TestCheckpoint(t *testing.T) {
	be := ref.New()
	state := func(seed uint64) (optim.Checkpoint, func() []float64) {
		l := nn.NewLinear(be, "l", 3, 2, nn.XavierUniform, rand.New(rand.NewPCG(seed, 0)))
		return optim.Checkpoint{Module: l, Optimizer: optim.NewAdam(be, l.Parameters(), 0.1)}, func() []float64 {
			v := make([]float64, 6)
			be.Download(v, l.W.Value)
			return v
		}
	}
	path := filepath.Join(t.TempDir(), "c.safetensors")
	from, want := state(1)
	to, got := state(2)
	before, at := got(), standing{Epochs: 7}
	if err := checkpoint.Load(path, to, &at); err != nil || at.Epochs != 7 || !slices.Equal(got(), before) {
		t.Errorf("without a file: %+v, %v", at, err)
	}
	if err := checkpoint.Save(path, from, standing{2, []float64{1. / 3, -0.1}}); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Load(path, to, &at); err != nil || at.Epochs != 2 || !slices.Equal(at.Losses, []float64{1. / 3, -0.1}) || !slices.Equal(got(), want()) {
		t.Errorf("loaded %+v, %v", at, err)
	}
	if err := nn.SaveFile(path, from, nil); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Load(path, to, &at); err == nil || !strings.Contains(err.Error(), path+": where the training stands") {
		t.Errorf("a file of weights: %v", err)
	}
}
