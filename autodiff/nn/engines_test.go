package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// engines are those that the tests of this package run on, with the relative
// error that a short computation may have.
var engines = []struct {
	name string
	open func() backend.Backend
	tol  float64
}{
	{"ref", ref.New, 1e-13},
	{"cpu float64", func() backend.Backend { return cpu.New(tensor.Float64) }, 1e-13},
	{"cpu float32", func() backend.Backend { return cpu.New(tensor.Float32) }, 1e-6},
}

// onEngines runs f on every engine.
func onEngines(t *testing.T, f func(t *testing.T, be backend.Backend, tol float64)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { f(t, e.open(), e.tol) })
	}
}

// checkClose compares two vectors entry by entry, relative to the largest entry.
func checkClose(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(v))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*scale) {
			t.Errorf("%s: entry %d is %.17g, want %.17g", what, i, got[i], want[i])
			return
		}
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func normal(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

func values(p *autodiff.Param) []float64 {
	v := make([]float64, p.Value.Len())
	p.Backend().Download(v, p.Value)
	return v
}

func bufferValues(be backend.Backend, b *nn.Buffer) []float64 {
	v := make([]float64, b.Value.Len())
	be.Download(v, b.Value)
	return v
}

// forms are the two forms of fused operators.
var forms = map[string][]autodiff.Option{"fused": nil, "composed": {autodiff.Composed()}}

// onExactEngines runs f in both forms on every float64 engine.
func onExactEngines(t *testing.T, f func(t *testing.T, be backend.Backend, opts []autodiff.Option)) {
	for _, e := range engines {
		if be := e.open(); be.Precision() == tensor.Float64 {
			for form, opts := range forms {
				t.Run(e.name+"/"+form, func(t *testing.T) { f(t, be, opts) })
			}
		}
	}
}
