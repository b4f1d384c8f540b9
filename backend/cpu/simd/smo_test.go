package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSMO compares the solver's loops with their definitions, to the last bit, at
// all short lengths, all offsets of a vector, with ties, masked-out variables and
// kernel values of one, whose denominator is zero.
func TestSMO(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for n := range 70 {
			for offset := range 9 {
				f, before := newGuarded[float64](n, offset), make([]float64, n)
				up, low := newGuarded[float64](n, 8-offset), newGuarded[float64](n, offset)
				ka, kb := newGuarded[float32](n, offset), newGuarded[float32](n, 1)
				for i := range n {
					// Few values, so that the largest occurs more than once.
					f.s[i] = float64(r.IntN(5)-2) / 2
					if r.IntN(4) == 0 {
						f.s[i] = r.NormFloat64()
					}
					ka.s[i], kb.s[i] = float32(r.IntN(9))/8, float32(r.Float64())
					up.s[i], low.s[i] = 0, 2
					if r.IntN(3) == 0 {
						up.s[i] = math.Inf(-1)
					}
					if r.IntN(3) == 0 {
						low.s[i] = math.Inf(1)
					}
				}
				what := fmt.Sprintf("n = %d, offset %d", n, offset)

				top, at := 0.6, -1
				var best float64
				for i := range n {
					gap := top - f.s[i]
					quad := low.s[i] - 2*float64(ka.s[i])
					if quad <= 0 {
						quad = 1e-12
					}
					if gain := gap * gap / quad; gap > 0 && gain > 0 && gain >= best {
						best, at = gain, i
					}
				}
				if got := ArgmaxGain(f.s, low.s, ka.s, top, 1e-12); got != at {
					t.Fatalf("%s: ArgmaxGain is %d, want %d", what, got, at)
				}

				copy(before, f.s)
				a, b := r.NormFloat64(), float64(r.IntN(2))
				want := make([]float64, n)
				best, at = -math.MaxFloat64, -1
				for i := range n {
					x, y := float64(float64(ka.s[i])*a), float64(float64(kb.s[i])*b) // the conversion keeps them from being fused
					sum := x + y
					want[i] = before[i] - sum
					if v := want[i] + up.s[i]; v >= best {
						best, at = v, i
					}
				}
				value, got := SubtractArgmax(f.s, up.s, ka.s, kb.s, a, b)
				if got != at || value != best {
					t.Fatalf("%s: SubtractArgmax is %v at %d, want %v at %d", what, value, got, best, at)
				}
				for i := range n {
					if math.Float64bits(f.s[i]) != math.Float64bits(want[i]) {
						t.Fatalf("%s: f[%d] is %v, want %v", what, i, f.s[i], want[i])
					}
				}

				copy(before, f.s)
				AddRows(f.s, ka.s, kb.s, a, b)
				for i, v := range before {
					x, y := float64(float64(ka.s[i])*a), float64(float64(kb.s[i])*b) // the conversion keeps them from being fused
					v += x
					v += y
					if math.Float64bits(f.s[i]) != math.Float64bits(v) {
						t.Fatalf("%s: AddRows: f[%d] is %v, want %v", what, i, f.s[i], v)
					}
				}

				for i := range n {
					before[i] = r.ExpFloat64() * 100
				}
				copy(f.s, before)
				s := float64(r.IntN(20))
				ExpScaled(f.s, ka.s, -s)
				for i, v := range before { // one alone goes through the plain loop
					one := []float64{v}
					ExpScaled(one, kb.s[:1], -s)
					if f.s[i] != one[0] || ka.s[i] != float32(one[0]) || math.Abs(one[0]-math.Exp(-s*v)) > 1e-304+4e-16*one[0] {
						t.Fatalf("%s: ExpScaled: %v becomes %v and %v, want %v", what, v, f.s[i], ka.s[i], one[0])
					}
				}
				f.check(t, what)
				up.check(t, what)
				low.check(t, what)
				ka.check(t, what)
				kb.check(t, what)
			}
		}
	})
}

// TestSquaredDistances compares with plain sums, to the last bit.
func TestSquaredDistances(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for n := range 40 {
			columns, x := newGuarded[float64](16*n, n%8), newGuarded[float64](n, n%5)
			for i := range columns.s {
				columns.s[i] = r.NormFloat64()
			}
			for i := range x.s {
				x.s[i] = 10 + r.NormFloat64()
			}
			var got, want [16]float64
			got[3] = 1 // is overwritten
			SquaredDistances(&got, columns.s, x.s)
			for k, v := range x.s {
				for b := range want {
					e := v - columns.s[16*k+b]
					want[b] += float64(e * e)
				}
			}
			if got != want {
				t.Fatalf("%d rows: %v, want %v", n, got, want)
			}
		}
	})
}

// TestPrefetch: asking for memory changes none of it, whatever there is of it.
func TestPrefetch(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for n := range 70 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(i)
			}
			Prefetch(v)
			for i := range v {
				if v[i] != float32(i) {
					t.Fatalf("element %d of %d is %v", i, n, v[i])
				}
			}
		}
	})
}
