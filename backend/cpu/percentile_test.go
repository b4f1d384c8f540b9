package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// TestTiledThreshold: θ of losses in tiles is UpperPercentile of the same similarities
// to the bit, with and without ties, on every side of zero.
func TestTiledThreshold(t *testing.T) {
	t.Run("float32", func(t *testing.T) { tiledThreshold(t, open(tensor.Float32, kernels32(), options{workers: 2})) })
	t.Run("float64", func(t *testing.T) { tiledThreshold(t, open(tensor.Float64, kernels64(), options{workers: 2})) })
}

func tiledThreshold[T float](t *testing.T, e *engine[T]) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 17, 128, 300} {
		for _, levels := range []float64{2, 16, math.Inf(1)} { // the numbers that a row may hold, so ties
			v := make([]float64, 2*n*3)
			for i := range v {
				v[i] = rng.NormFloat64()
				if !math.IsInf(levels, 0) {
					v[i] = math.Round(v[i]*levels) / levels
				}
			}
			u, x, s := e.Alloc(2*n, 3), e.Alloc(n, 3), e.Alloc(n, n)
			e.Upload(u, v)
			for _, p := range []float64{0, 37.3, 50, 80, 100} {
				one := func() *tensor.Tensor { return e.Alloc(1, 1) }
				e.ContrastForward(&backend.Contrast{
					U: u, Match: true, Kappa: 1, Percentile: p, R: e.Alloc(2*n, 1), W: e.Alloc(2*n, 1), LossG: one(),
				})
				for view := range 2 {
					e.CopyBlock(x, 0, 0, u, view*n, 0, n, 3)
					e.Gemm(s, false, true, 1, x, x, 0)
					theta := one()
					e.UpperPercentile(theta, nil, s, p)
					if got, want := e.contrast.theta[view], e.data(theta)[0]; got != want {
						t.Errorf("%d graphs, %v levels, p = %v: θ is %v, want %v", n, levels, p, got, want)
					}
				}
			}
		}
	}
}
