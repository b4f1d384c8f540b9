//go:build emulate || cuda

package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/tensor"
)

// TestTallProducts: sums over many rows, as the gradient of a wide layer's weights has them, are as near to float64 as
// other products of float32, whether their parts are equal or not.
func TestTallProducts(t *testing.T) {
	e := openWith(t, false)
	const m, n = 272, 256
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{tallTerms, tallTerms + 5} {
		if !e.isTall(m, n, k) {
			t.Fatalf("[%d×%d] of %d terms is not tall", m, n, k)
		}
		random := func(cols int) []float64 {
			v := make([]float64, k*cols)
			for i := range v {
				v[i] = float64(float32(rng.NormFloat64()))
			}
			return v
		}
		left := random(m)
		right := random(n)
		a, b, dst := e.Alloc(k, m), e.Alloc(k, n), e.Alloc(m, n)
		e.Upload(a, left)
		e.Upload(b, right)
		before := e.Work()
		e.Gemm(dst, true, false, 0.5, a, b, 0)
		flops := e.Work().Flops - before.Flops
		if flops != productFlops(m, n, k) {
			t.Errorf("%d terms: %d operations were counted", k, flops)
		}
		got := make([]float64, m*n)
		e.Download(got, dst)
		for _, at := range [][2]int{{0, 0}, {0, n - 1}, {m - 1, 0}, {m - 1, n - 1}, {17, 200}, {200, 17}} {
			want, scale := 0.0, 0.0
			for row := range k {
				term := left[row*m+at[0]] * right[row*n+at[1]] / 2
				want += term
				scale += math.Abs(term)
			}
			if v := got[at[0]*n+at[1]]; !(math.Abs(v-want) <= 1e-6*scale) {
				t.Errorf("%d terms, element %v: %v, want %v", k, at, v, want)
			}
		}
		for _, x := range []*tensor.Tensor{a, b, dst} {
			e.Free(x)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
