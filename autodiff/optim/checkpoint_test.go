package optim_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// TestCheckpoint: training that was interrupted and resumed ends where training
// without interruption does, to the last bit.
func TestCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint.safetensors")
	be := cpu.New(tensor.Float32)
	start := func() (*nn.Linear, *optim.Adam) {
		l := nn.NewLinear(be, "layer", 3, 2, nn.XavierUniform, rand.New(rand.NewPCG(1, 2)))
		return l, optim.NewAdam(be, l.Parameters(), 0.1)
	}
	steps := func(l *nn.Linear, adam *optim.Adam, from, to int) {
		tape := autodiff.NewTape(be)
		for k := from; k < to; k++ {
			x := tape.Matrix(2, 3, []float64{1, float64(k), 2, -1, 0.5, 3})
			tape.Backward(l.Forward(x).Tanh().Sum())
			adam.Step()
			tape.Reset()
		}
	}
	weights := func(l *nn.Linear) []float64 {
		w := make([]float64, l.W.Value.Len())
		be.Download(w, l.W.Value)
		return w
	}

	l, adam := start()
	steps(l, adam, 0, 3)
	if err := nn.SaveFile(path, optim.Checkpoint{Module: l, Optimizer: adam}, nil); err != nil {
		t.Fatal(err)
	}
	steps(l, adam, 3, 6)
	want := weights(l)

	l, adam = start()
	if err := nn.LoadFile(path, optim.Checkpoint{Module: l, Optimizer: adam}); err != nil {
		t.Fatal(err)
	}
	steps(l, adam, 3, 6)
	if got := weights(l); !slices.Equal(got, want) {
		t.Errorf("resumed: %v, want %v", got, want)
	}

	l, _ = start()
	if err := nn.LoadFile(path, l); err == nil {
		t.Error("a checkpoint was loaded as a model")
	}

	// The module's own buffers come along, here two.
	norm := nn.NewBatchNorm(be, "norm", 2)
	var names []string
	for _, b := range (optim.Checkpoint{Module: norm, Optimizer: optim.NewAdam(be, norm.Parameters(), 0.1)}).Buffers() {
		names = append(names, b.Name)
	}
	if want := []string{
		"norm.running_mean", "norm.running_var", "adam.step", "adam.missed",
		"adam.m.norm.weight", "adam.v.norm.weight", "adam.m.norm.bias", "adam.v.norm.bias",
	}; !slices.Equal(names, want) {
		t.Errorf("buffers %v, want %v", names, want)
	}
}

// TestCheckpointOfTwo: the memory of two optimizers of one module fits into one
// checkpoint.
func TestCheckpointOfTwo(t *testing.T) {
	be := cpu.New(tensor.Float32)
	l := nn.NewLinear(be, "layer", 3, 2, nn.XavierUniform, rand.New(rand.NewPCG(1, 2)))
	first, second := optim.NewAdam(be, l.Parameters(), 0.1), optim.NewAdam(be, l.Parameters(), 0.1)
	second.Name = "other"
	both := optim.Checkpoint{Module: optim.Checkpoint{Module: l, Optimizer: first}, Optimizer: second}
	seen := map[string]bool{}
	for _, b := range both.Buffers() {
		if seen[b.Name] {
			t.Errorf("two buffers are called %s", b.Name)
		}
		seen[b.Name] = true
	}
	if path := filepath.Join(t.TempDir(), "both"); nn.SaveFile(path, both, nil) != nil || nn.LoadFile(path, both) != nil {
		t.Error("it cannot be saved and loaded")
	}
}
