package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSelect(t *testing.T) { both(t, testSelect[float32], testSelect[float64]) }

func testSelect[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]func() T{
		"normal":   func() T { return T(r.NormFloat64()) },
		"uniform":  func() T { return T(r.Float64()) },
		"equal":    func() T { return 3 },
		"few":      func() T { return T(r.IntN(3)) - 1 },
		"close":    func() T { return 1 + T(r.IntN(50))*T(2*epsOf[T]()) },
		"specials": func() T { return T(specials[r.IntN(len(specials))]) },
	}
	for name, f := range kinds {
		for _, n := range []int{1, 2, 3, 31, 33, 100, 1000, 20000} {
			a := make([]T, n)
			for i := range a {
				a[i] = f()
				if a[i] != a[i] {
					a[i] = T(math.NaN())
				}
			}
			sorted := slices.Clone(a)
			slices.SortFunc(sorted, func(x, y T) int {
				switch { // NaN last, as documented; -0 before 0
				case x == y:
					if x == 0 {
						return int(math.Copysign(1, float64(x))) - int(math.Copysign(1, float64(y)))
					}
					return 0
				case x < y || y != y && x == x:
					return -1
				case x > y || x != x && y == y:
					return 1
				}
				return 0
			})
			before := slices.Clone(a)
			for i := range min(n, 60) {
				k := i
				if n > 60 {
					k = []int{0, n - 1, n - 2, n * 4 / 5, r.IntN(n)}[i%5]
				}
				kth, next := Select(a, k)
				equalNumbers(t, fmt.Sprintf("%s: places %d, %d of %d", name, k, k+1, n), []T{kth, next}, []T{sorted[k], sorted[min(k+1, n-1)]})
			}
			equalNumbers(t, "the input of Select", a, before)
		}
	}
	for _, k := range []int{-1, 3} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("place %d of 3 does not panic", k)
				}
			}()
			Select(make([]T, 3), k)
		}()
	}
	a := make([]T, 1000)
	if n := testing.AllocsPerRun(10, func() { Select(a, 5) }); n != 0 && !raceDetector {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSelect(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	a := make([]float32, 512*511/2)
	for i := range a {
		a[i] = float32(0.3 * r.NormFloat64())
	}
	b.SetBytes(int64(4 * len(a)))
	for b.Loop() {
		Select(a, len(a)*4/5)
	}
}
