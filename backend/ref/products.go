package ref

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// CheckProducts returns an error unless matrix products of several shapes on an engine are
// those of the reference engine, to 4 roundings of each term: in a moment it tells whether a
// device computes at all. Package backendtest checks everything.
func CheckProducts(be backend.Backend) (err error) {
	defer backend.Recover(&err)
	eps := 0x1p-23
	switch {
	case be.Precision() == tensor.Float64:
		eps = 0x1p-52
	case be.Name() == "cuda-tf32":
		eps = 0x1p-10 // of inputs, truncated after ten bits
	case be.Name() == "cpu-bf16":
		eps = 0x1p-8 // of inputs, rounded to eight bits
	}
	oracle := New()
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(float32(rng.NormFloat64()))
		}
		return v
	}
	for _, s := range [][3]int{{1, 1, 1}, {65, 33, 129}, {512, 32, 37}, {100, 300, 301}} {
		m, n, k := s[0], s[1], s[2]
		for _, t := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			a, b := draw(m*k), draw(k*n)
			got, want := multiply(be, m, n, k, t, a, b), multiply(oracle, m, n, k, t, a, b)
			for i, w := range want {
				if allowed := 4 * eps * float64(k); !(math.Abs(got[i]-w) <= allowed) {
					return fmt.Errorf("a product [%d×%d]·[%d×%d] (transposed %v) is wrong: "+
						"element %d is %v, want %v within %.2g", m, k, k, n, t, i, got[i], w, allowed)
				}
			}
		}
	}
	return nil
}

// multiply returns op(a)·op(b) [m×n] with sums of k terms.
func multiply(be backend.Backend, m, n, k int, trans [2]bool, a, b []float64) []float64 {
	place := func(rows, cols int, trans bool, v []float64) *tensor.Tensor {
		if trans {
			rows, cols = cols, rows
		}
		t := be.Alloc(rows, cols)
		be.Upload(t, v)
		return t
	}
	x, y, dst := place(m, k, trans[0], a), place(k, n, trans[1], b), be.Alloc(m, n)
	defer be.Free(x)
	defer be.Free(y)
	defer be.Free(dst)
	be.Gemm(dst, trans[0], trans[1], 1, x, y, 0)
	out := make([]float64, m*n)
	be.Download(out, dst)
	return out
}
