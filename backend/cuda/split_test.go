//go:build emulate || cuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/tensor"
)

// TestSplitEngine holds the engine that splits all its products against the conformance suite.
func TestSplitEngine(t *testing.T) {
	openWith(t, true) // or skips
	open := func(p tensor.Precision) (backend.Backend, error) {
		if p == tensor.Float64 {
			return nil, errors.New("no product of float64 is split")
		}
		return openWith(t, true), nil
	}
	backendtest.Run(t, open, backendtest.Only(tensor.Float32))
}

// TestSplitErrors compares the errors of products against float64, relative to the sums of the absolute terms, with
// those of float32: for sums of 1 to 16,384 terms and magnitudes from 1e-30 to 1e30. With -v it prints
// the table.
func TestSplitErrors(t *testing.T) {
	plain := openWith(t, false)
	split := openWith(t, true)
	fmt.Println("|      n | magnitudes of a and b | float32 | split | ratio |")
	for _, n := range []int{1, 2, 3, 5, 16, 64, 300, 1024, 4096, 16384} {
		for _, magnitudes := range [][2]float64{{1, 1}, {1e-30, 1}, {1e30, 1e-30}, {1e-15, 1e-15}, {1e15, 1e15}} {
			a, b, want, scale := products(n, magnitudes)
			reference := rootError(multiply(plain, a, b, n), want, scale)
			got := rootError(multiply(split, a, b, n), want, scale)
			fmt.Printf("| %6d | %5.0g, %5.0g | %.2g | %.2g | %.2f |\n", n, magnitudes[0], magnitudes[1], reference, got, got/reference)
			if !(got <= 4*reference) {
				t.Errorf("%d terms of %g: the error is %.3g, of float32 %.3g", n, magnitudes, got, reference)
			}
		}
	}
}

// side is the number of rows of a and columns of b in a test of errors.
const side = 24

// products returns a [side×n] and b [n×side] of random numbers, their product, and the sums of the
// absolute terms.
func products(n int, magnitudes [2]float64) (a, b, want, scale []float64) {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	random := func(magnitude float64) []float64 {
		v := make([]float64, side*n)
		for i := range v {
			v[i] = float64(float32(magnitude * rng.NormFloat64()))
		}
		return v
	}
	a = random(magnitudes[0])
	b = random(magnitudes[1])
	want = make([]float64, side*side)
	scale = make([]float64, side*side)
	for i := range side {
		for k := range n {
			for j := range side {
				term := a[i*n+k] * b[k*side+j]
				want[i*side+j] += term
				scale[i*side+j] += math.Abs(term)
			}
		}
	}
	return a, b, want, scale
}

// rootError returns the root of the mean squared error, of each element in units of its scale.
func rootError(got, want, scale []float64) float64 {
	sum := 0.0
	for i := range got {
		e := (got[i] - want[i]) / scale[i]
		sum += e * e
	}
	return math.Sqrt(sum / float64(len(got)))
}

// openWith opens an engine of float32, emulated if the build can, which splits all products or none.
func openWith(t *testing.T, split bool) *engine {
	t.Helper()
	name := "cuda"
	if slices.Contains(backend.Names(), "cuda-emulator") {
		name = "cuda-emulator"
	}
	if split {
		name += "-3xtf32"
	}
	be, err := backend.Open(name, tensor.Float32)
	if err != nil {
		t.Skip(err)
	}
	e := be.(*engine)
	if split {
		e.split = new(splitting)
	}
	return e
}

// multiply returns a·b for a with n columns.
func multiply(e *engine, a, b []float64, n int) []float64 {
	rows, cols := len(a)/n, len(b)/n
	x, y, z := e.Alloc(rows, n), e.Alloc(n, cols), e.Alloc(rows, cols)
	e.Upload(x, a)
	e.Upload(y, b)
	e.Gemm(z, false, false, 1, x, y, 0)
	got := make([]float64, rows*cols)
	e.Download(got, z)
	e.Free(x)
	e.Free(y)
	e.Free(z)
	return got
}

// TestSplitSpecials: NaN and infinities of the operands give what they give in float32. A finite
// product that overflows is infinite there, and here infinite or NaN.
func TestSplitSpecials(t *testing.T) {
	plain := openWith(t, false)
	split := openWith(t, true)
	special := []float64{0, 1, -1, 1.1, 3e38, -2e20, 1e-30, 1e-33, math.Inf(1), math.Inf(-1), math.NaN()}
	n := len(special)
	for _, terms := range []int{1, 2} { // the special one, and one more
		var a []float64
		for _, v := range special {
			a = append(a, []float64{v, 2}[:terms]...)
		}
		b := slices.Clone(special)
		for range n * (terms - 1) {
			b = append(b, 0.5)
		}
		want := multiply(plain, a, b, terms)
		got := multiply(split, a, b, terms)
		for i := range want {
			x := special[i/n]
			y := special[i%n]
			same := got[i] == want[i] || math.IsNaN(got[i]) && math.IsNaN(want[i])
			near := math.Abs(got[i]-want[i]) <= 0x1p-20*(math.Abs(x*y)+float64(terms-1))+0x1p-140
			overflows := x-x == 0 && y-y == 0 && math.IsInf(want[i], 0) && got[i]-got[i] != 0
			if !same && !near && !overflows {
				t.Errorf("%v·%v in a sum of %d: %v, in float32 %v", x, y, terms, got[i], want[i])
			}
		}
	}
}
