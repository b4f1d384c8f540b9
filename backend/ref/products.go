package ref

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// CheckProducts compares matrix products of several shapes on an engine with the reference
// engine's, and returns an error if one differs by more than 4 roundings of each term. It
// is a quick test that a device computes at all; package backendtest checks everything.
func CheckProducts(be backend.Backend) (err error) {
	defer backend.Recover(&err)
	eps := roundingOf(be)
	oracle := New()
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(float32(rng.NormFloat64()))
		}
		return v
	}
	for _, shape := range [][3]int{
		{1, 1, 1},
		{65, 33, 129},
		{512, 32, 37},
		{100, 300, 301},
	} {
		m, n, k := shape[0], shape[1], shape[2]
		allowed := 4 * eps * float64(k)
		for _, trans := range [][2]bool{
			{false, false},
			{true, false},
			{false, true},
			{true, true},
		} {
			a := draw(m * k)
			b := draw(k * n)
			got := multiply(be, m, n, k, trans, a, b)
			for i, expected := range multiply(oracle, m, n, k, trans, a, b) {
				if !(math.Abs(got[i]-expected) <= allowed) {
					return fmt.Errorf(
						"a product [%d×%d]·[%d×%d] (transposed %v) is wrong: "+
							"element %d is %v, want %v within %.2g",
						m,
						k,
						k,
						n,
						trans,
						i,
						got[i],
						expected,
						allowed,
					)
				}
			}
		}
	}
	return nil
}

// roundingOf returns the largest relative error of an operand or a sum on an engine.
func roundingOf(be backend.Backend) float64 {
	switch {
	case be.Precision() == tensor.Float64:
		return 0x1p-52
	case be.Name() == "cuda-tf32":
		return 0x1p-10 // inputs are truncated after ten bits
	case strings.HasSuffix(be.Name(), "-3xtf32"):
		return 0x1p-20 // what splitting loses of both operands, and the product of the rests
	case be.Name() == "cpu-bf16":
		return 0x1p-8 // inputs are rounded to eight bits
	}
	return 0x1p-23
}

// multiply returns op(a)·op(b) [m×n] with sums of k terms.
func multiply(
	be backend.Backend, m, n, k int, trans [2]bool, a, b []float64,
) []float64 {
	place := func(rows, cols int, trans bool, v []float64) *tensor.Tensor {
		if trans {
			rows, cols = cols, rows
		}
		t := be.Alloc(rows, cols)
		be.Upload(t, v)
		return t
	}
	x := place(m, k, trans[0], a)
	defer be.Free(x)
	y := place(k, n, trans[1], b)
	defer be.Free(y)
	dst := be.Alloc(m, n)
	defer be.Free(dst)
	be.Gemm(dst, trans[0], trans[1], 1, x, y, 0)
	out := make([]float64, m*n)
	be.Download(out, dst)
	return out
}
