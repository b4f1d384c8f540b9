//go:build emulate

package cuda

import (
	"slices"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
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
