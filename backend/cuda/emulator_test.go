//go:build emulate

package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

// TestEmulated holds the engine and its kernels, run on the processor, against
// the conformance suite.
func TestEmulated(t *testing.T) {
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) { return open(newEmulator(p), p) })
}

// TestEmulatedEveryKernel runs every kernel on memory of its own.
func TestEmulatedEveryKernel(t *testing.T) {
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		everyKernel(t, newEmulator(p), p)
	}
}

// TestSplitTraining: the losses of training with split products follow those with products of float32.
func TestSplitTraining(t *testing.T) {
	losses := func(split bool) (all []float64) {
		e := openWith(t, split)
		rng := rand.New(rand.NewPCG(1, 2))
		encoder := gnn.NewResGCN(e, gnn.ResGCNConfig{In: 5, Hidden: 33, Layers: 2, Residual: true}, rng)
		tr := specmatch.NewTrainer(e, specmatch.NewModel(e, encoder, rng), specmatch.Objective{
			Contrast: specmatch.InfoNCE{Tau: 0.2},
			Match:    specmatch.DefaultLaplacianMatch(),
			Beta:     specmatch.Beta{Weight: 0.1},
		}, 0.003)
		b := molecules(8, 12, 4, 5, false)
		for range 6 {
			stats, err := tr.Step(b, false)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, stats.Loss)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		return all
	}
	want := losses(false)
	got := losses(true)
	differ := false
	for i := range want {
		differ = differ || got[i] != want[i]
		if !(math.Abs(got[i]-want[i]) <= 1e-5*math.Abs(want[i])) {
			t.Errorf("step %d: the loss is %v, with products of float32 %v", i, got[i], want[i])
		}
	}
	if !differ || want[len(want)-1] >= want[0] {
		t.Errorf("losses %v and %v: nothing was split, or nothing learnt", got, want)
	}
}

// TestHubs sums rows of so many neighbours that every group of lanes of a block
// has a part, in exact numbers.
func TestHubs(t *testing.T) {
	e, err := open(newEmulator(tensor.Float32), tensor.Float32)
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{1, 5, 8, 33} {
		for _, degree := range []int{255, 256, 257, 2047, 2049, 8300} {
			const nodes = 40
			ptr, col := []int32{0, 3, int32(3 + degree), int32(5 + degree)}, make([]int32, degree+5)
			x := make([]float64, nodes*width)
			for k := range x {
				x[k] = float64(k*k%17 - 8)
			}
			want := make([]float64, 3*width)
			for k := range col {
				col[k] = int32(k * 7 % nodes)
				row := 1
				if k < 3 {
					row = 0
				} else if k >= 3+degree {
					row = 2
				}
				for j := range width {
					want[row*width+j] += x[int(col[k])*width+j]
				}
			}
			xt, dst := e.Alloc(nodes, width), e.Alloc(3, width)
			e.Upload(xt, x)
			a := &backend.CSR{Rows: 3, Cols: nodes, Ptr: e.Indices(ptr), Col: e.Indices(col)}
			e.SpMM(dst, a, xt, 0)
			got := make([]float64, len(want))
			e.Download(got, dst)
			if !slices.Equal(got, want) {
				t.Errorf("width %d, %d neighbours: %v, want %v", width, degree, got, want)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
