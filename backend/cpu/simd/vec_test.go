package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// lengths are the sizes that elementwise kernels are tested at.
var lengths = func() []int {
	var s []int
	for n := range 140 {
		s = append(s, n)
	}
	return append(s, 255, 256, 257, 1000, chunk+1)
}()

// specials are the values around which functions go wrong.
var specials = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, math.Inf(1), math.Inf(-1), math.NaN(),
	0x1p-149, -0x1p-149, 0x1p-126, -0x1p-126, 0x1.8p-130, 0x1p-140, math.MaxFloat32, -math.MaxFloat32,
	88.7, 88.72283, 88.73, 89, 100, -87.3, -87.4, -88, -95, -103.9, -103.98, -104, -105, -1000, 1000, 1e-10, 0.6249, 0.625, 0.6251, 20, -20}

// fillSpecial mixes specials into normal numbers.
func fillSpecial[T Float](r *rand.Rand, s []T) {
	for i := range s {
		switch r.IntN(3) {
		case 0:
			s[i] = T(specials[r.IntN(len(specials))])
		case 1:
			s[i] = T(r.NormFloat64())
		default:
			s[i] = T(r.NormFloat64() * 30)
		}
	}
}

// ulps is the distance of got from want in units of want's last place in T.
// Equal infinities and NaN against NaN are 0.
func ulps[T Float](got T, want float64) float64 {
	g := float64(got)
	if g == want || g != g && want != want {
		return 0
	}
	if r := float64(T(want)); math.IsInf(r, 0) || math.IsInf(g, 0) {
		if r == g {
			return 0
		}
		// Just at the overflow threshold one of the two rounds to infinity.
		if math.Abs(want) > math.MaxFloat32*(1-1e-6) && math.Signbit(want) == math.Signbit(g) {
			return 0
		}
		return math.Inf(1)
	}
	ulp := math.Max(math.Abs(want)*2*epsOf[T](), math.SmallestNonzeroFloat64)
	if unsafe.Sizeof(got) == 4 {
		ulp = math.Max(ulp, math.SmallestNonzeroFloat32)
	}
	return math.Abs(g-want) / ulp
}

func both(t *testing.T, f32, f64 func(t *testing.T)) {
	t.Run("float32", f32)
	t.Run("float64", f64)
}

// elementwise is one function of up to three numbers, in float64.
type elementwise[T Float] struct {
	name string
	in   int // slices read
	f    func(dst []T, in [][]T)
	want func(x []float64) float64
	tol  float64 // in ulps
}

func elementwises[T Float]() []elementwise[T] {
	sgn := func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x
	}
	un := func(name string, f func(dst, a []T), want func(float64) float64, tol float64) elementwise[T] {
		return elementwise[T]{name, 1, func(d []T, in [][]T) { f(d, in[0]) }, func(x []float64) float64 { return want(x[0]) }, tol}
	}
	bin := func(name string, f func(dst, a, b []T), want func(a, b float64) float64, tol float64) elementwise[T] {
		return elementwise[T]{name, 2, func(d []T, in [][]T) { f(d, in[0], in[1]) }, func(x []float64) float64 { return want(x[0], x[1]) }, tol}
	}
	return []elementwise[T]{
		{"Axpy", 2, func(d []T, in [][]T) { copy(d, in[1]); Axpy(0.5, in[0], d) }, func(x []float64) float64 { return 0.5*x[0] + x[1] }, 1},
		{"Axpby", 2, func(d []T, in [][]T) { Axpby(d, 0.5, in[0], 2, in[1]) }, func(x []float64) float64 { return 0.5*x[0] + 2*x[1] }, 2},
		{"Affine", 1, func(d []T, in [][]T) { Affine(d, 0.25, in[0], -1) }, func(x []float64) float64 { return 0.25*x[0] - 1 }, 2},
		{"Scale", 1, func(d []T, in [][]T) { Scale(d, -3, in[0]) }, func(x []float64) float64 { return -3 * x[0] }, 0.51},
		bin("Add", Add[T], func(a, b float64) float64 { return a + b }, 0.51),
		bin("Sub", Sub[T], func(a, b float64) float64 { return a - b }, 0.51),
		bin("Mul", Mul[T], func(a, b float64) float64 { return a * b }, 0.51),
		bin("Div", Div[T], func(a, b float64) float64 { return a / b }, 0.51),
		bin("Maximum", Maximum[T], func(a, b float64) float64 { return math.Max(a, b) }, 0),
		bin("Greater", Greater[T], func(a, b float64) float64 {
			if a > b {
				return 1
			}
			return 0
		}, 0),
		bin("Gate", Gate[T], func(a, b float64) float64 {
			if b > 0 {
				return a
			}
			return 0
		}, 0),
		un("ReLU", ReLU[T], func(x float64) float64 {
			if x < 0 {
				return 0
			}
			return x
		}, 0),
		un("Abs", Abs[T], math.Abs, 0),
		un("Sign", Sign[T], sgn, 0),
		un("Sqrt", Sqrt[T], math.Sqrt, 0.51),
		un("Reciprocal", Reciprocal[T], func(x float64) float64 { return 1 / x }, 0.51),
		un("Exp", Exp[T], math.Exp, 1),
		un("Log", Log[T], math.Log, 1),
		un("Sigmoid", Sigmoid[T], func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 2),
		un("Softplus", Softplus[T], func(x float64) float64 {
			return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
		}, 2.5),
		un("Tanh", Tanh[T], math.Tanh, 2.5),
	}
}

func TestElementwise(t *testing.T) { both(t, testElementwise[float32], testElementwise[float64]) }

func testElementwise[T Float](t *testing.T) {
	first := map[string][]T{} // results on the first vector level: the others must equal them
	eachLevel(t, func(t *testing.T) {
		for _, e := range elementwises[T]() {
			t.Run(e.name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				for i, n := range lengths {
					in := make([][]T, e.in)
					for k := range in {
						in[k] = newGuarded[T](n, (i+k)%16).s
						fillSpecial(r, in[k])
					}
					dst := newGuarded[T](n, (3*i+1)%16)
					e.f(dst.s, in)
					dst.check(t, fmt.Sprintf("%s of %d", e.name, n))
					x := make([]float64, e.in)
					for j, got := range dst.s {
						for k := range in {
							x[k] = float64(in[k][j])
						}
						want := e.want(x)
						if d := ulps(got, want); d > e.tol && !cancels[T](e.name, x, got, want) {
							t.Fatalf("%s(%v)[%d of %d] = %v, want %v: %.2f ulp", e.name, x, j, n, got, want, d)
						}
					}
					if level != Generic {
						key := fmt.Sprint(e.name, n)
						if w, ok := first[key]; ok {
							equalNumbers(t, e.name+" on both levels", dst.s, w)
						} else {
							first[key] = append([]T(nil), dst.s...)
						}
					}
					// In place.
					e.f(in[0], in)
					if e.name != "Axpy" {
						equalNumbers(t, e.name+" in place", in[0], dst.s)
					}
				}
			})
		}
	})
}

// cancels reports whether the error is that of a rounded product which the sum
// cancels: small against the terms.
func cancels[T Float](name string, x []float64, got T, want float64) bool {
	if name != "Axpby" && name != "Affine" && name != "Axpy" {
		return false
	}
	scale := 1.0
	for _, v := range x {
		scale += 2 * math.Abs(v)
	}
	// Near overflow, an intermediate product may round to infinity.
	return math.Abs(float64(got)-want) <= 2*epsOf[T]()*scale || scale > math.MaxFloat32
}

// equalNumbers compares bits, except the payload of NaN.
func equalNumbers[T Float](t *testing.T, what string, got, want []T) {
	t.Helper()
	for i := range want {
		if bits(got[i]) != bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: element %d of %d: %v (%x), want %v (%x)", what, i, len(want), got[i], bits(got[i]), want[i], bits(want[i]))
		}
	}
}

// TestAccuracy sweeps the whole range of each transcendental function in
// float32 and checks the relative error that its comment promises.
func TestAccuracy(t *testing.T) {
	step := uint32(9973) // a prime, so that all low bits occur
	if testing.Short() {
		step = 999983
	}
	for _, x := range []struct {
		name string
		f    func(dst, a []float32)
		want func(float64) float64
		tol  float64
	}{
		{"Exp", Exp[float32], math.Exp, 1.2e-7},
		{"Log", Log[float32], math.Log, 1.2e-7},
		{"Sigmoid", Sigmoid[float32], func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 2e-7},
		{"Softplus", Softplus[float32], func(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, 3e-7},
		{"Tanh", Tanh[float32], math.Tanh, 3e-7},
	} {
		t.Run(x.name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T) {
				if level == Generic {
					return
				}
				worst, at := 0.0, float32(0)
				a, d := make([]float32, 4096), make([]float32, 4096)
				for b := uint32(0); ; {
					n := 0
					for n < len(a) && b < 1<<32-1-step {
						a[n] = math.Float32frombits(b)
						b += step
						n++
					}
					if n == 0 {
						break
					}
					x.f(d[:n], a[:n])
					for i, v := range a[:n] {
						want := x.want(float64(v))
						if math.IsNaN(want) || math.IsInf(want, 0) || math.Abs(want) < 0x1p-126 || math.Abs(want) > math.MaxFloat32 {
							if u := ulps(d[i], want); u > 1 {
								t.Fatalf("%s(%v) = %v, want %v: %v ulp", x.name, v, d[i], want, u)
							}
							continue
						}
						if e := math.Abs(float64(d[i])-want) / math.Abs(want); e > worst || e != e {
							worst, at = e, v
							if e != e {
								t.Fatalf("%s(%v) = %v, want %v", x.name, v, d[i], want)
							}
						}
					}
				}
				t.Logf("%s: largest relative error %.3g at %v", x.name, worst, at)
				if worst > x.tol {
					t.Errorf("%s: relative error %.3g at %v, want at most %g", x.name, worst, at, x.tol)
				}
			})
		})
	}
}

// mat is a random matrix in guarded memory.
func mat[T Float](r *rand.Rand, rows, cols, off int) *guarded[T] {
	g := newGuarded[T](rows*cols, off)
	fillRand(r, g.s)
	return g
}

var matSizes = [][2]int{{0, 5}, {5, 0}, {1, 1}, {3, 1}, {1, 3}, {7, 15}, {4, 16}, {5, 17}, {3, 31}, {20, 32}, {3, 33}, {2, 63}, {2, 64}, {3, 65}, {9, 100}, {5, 128}, {3, 300}, {2, 319}, {2, 321}, {3, 600}, {2, 1000}, {1100, 32}, {150, 300}, {2, chunk + 3}, {2, 2*chunk + 33}}

func TestRowsAndCols(t *testing.T) { both(t, testRowsAndCols[float32], testRowsAndCols[float64]) }

func testRowsAndCols[T Float](t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for k, size := range matSizes {
			rows, cols := size[0], size[1]
			for _, x := range []struct {
				name string
				f    func(dst, a, b []T)
				want func(a, b float64) float64
				col  bool
			}{
				{"AddRow", AddRow[T], func(a, b float64) float64 { return a + b }, false},
				{"SubRow", SubRow[T], func(a, b float64) float64 { return a - b }, false},
				{"MulRow", MulRow[T], func(a, b float64) float64 { return a * b }, false},
				{"DivRow", DivRow[T], func(a, b float64) float64 { return a / b }, false},
				{"AddRowReLU", AddRowReLU[T], func(a, b float64) float64 { return math.Max(a+b, 0) }, false},
				{"AddCol", AddCol[T], func(a, b float64) float64 { return a + b }, true},
				{"SubCol", SubCol[T], func(a, b float64) float64 { return a - b }, true},
				{"MulCol", MulCol[T], func(a, b float64) float64 { return a * b }, true},
				{"DivCol", DivCol[T], func(a, b float64) float64 { return a / b }, true},
			} {
				a := mat[T](r, rows, cols, k%16)
				n := cols
				if x.col {
					n = rows
				}
				if n == 0 {
					continue
				}
				b := mat[T](r, 1, n, k%7)
				dst := mat[T](r, rows, cols, (k+5)%16)
				x.f(dst.s, a.s, b.s)
				dst.check(t, x.name)
				for i := range rows {
					for j := range cols {
						v := b.s[max(0, min(j, n-1))]
						if x.col {
							v = b.s[i]
						}
						if want := x.want(float64(a.s[i*cols+j]), float64(v)); ulps(dst.s[i*cols+j], want) > 0.51 {
							t.Fatalf("%s %d×%d at (%d,%d): %v, want %v", x.name, rows, cols, i, j, dst.s[i*cols+j], want)
						}
					}
				}
			}
			a, b := mat[T](r, rows, cols, 1), mat[T](r, rows, cols, 2)
			p, q, s := mat[T](r, 1, cols, 3), mat[T](r, 1, cols, 4), mat[T](r, 1, cols, 5)
			d1, d2 := mat[T](r, rows, cols, k%9), mat[T](r, rows, cols, k%11)
			AffineRow(d1.s, a.s, p.s, q.s)
			CombineRow(d2.s, a.s, p.s, b.s, q.s, s.s)
			d1.check(t, "AffineRow")
			d2.check(t, "CombineRow")
			for i := range d1.s {
				j := i % cols
				x, y := float64(a.s[i])*float64(p.s[j]), float64(b.s[i])*float64(q.s[j])
				u, v := float64(q.s[j]), float64(s.s[j])
				if e := math.Abs(float64(d1.s[i]) - (x + u)); e > 2*epsOf[T]()*(math.Abs(x)+math.Abs(u)) {
					t.Fatalf("AffineRow %d×%d at %d: error %g", rows, cols, i, e)
				}
				if e := math.Abs(float64(d2.s[i]) - (x + y + v)); e > 4*epsOf[T]()*(math.Abs(x)+math.Abs(y)+math.Abs(v)) {
					t.Fatalf("CombineRow %d×%d at %d: error %g", rows, cols, i, e)
				}
			}
		}
	})
}

func TestReductions(t *testing.T) { both(t, testReductions[float32], testReductions[float64]) }

func testReductions[T Float](t *testing.T) {
	first := map[string]T{}
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for k, n := range append(lengths, chunk, 2*chunk+77) {
			a, b, dst := mat[T](r, 1, n, k%16), mat[T](r, 1, n, k%5), mat[T](r, 1, n, k%7)
			var sum, abs, sq, dots, absDots, es float64
			big := math.Inf(-1)
			for i, v := range a.s {
				x, y := float64(v), float64(b.s[i])
				sum += x
				abs += math.Abs(x)
				sq += x * x
				dots += x * y
				absDots += math.Abs(x * y)
				big = math.Max(big, x)
				es += math.Exp(0.5*x - 1)
			}
			tol := float64(n/lanes%512+12) * epsOf[T]()
			if unsafe.Sizeof(T(0)) == 8 {
				tol = float64(n+12) * epsOf[T]() // the oracle's own error
			}
			check := func(name string, got T, want, tol float64) {
				t.Helper()
				if !(math.Abs(float64(got)-want) <= tol) && !(float64(got) == want) {
					t.Fatalf("%s of %d: %v, want %v", name, n, got, want)
				}
				if level != Generic {
					key := fmt.Sprint(name, n)
					if w, ok := first[key]; ok && bits(w) != bits(got) {
						t.Fatalf("%s of %d: %v on %v, %v on another level", name, n, got, level, w)
					}
					first[key] = got
				}
			}
			check("Sum", Sum(a.s), sum, tol*abs)
			check("SumSquares", SumSquares(a.s), sq, tol*sq)
			check("Dot", Dot(a.s, b.s), dots, tol*absDots)
			check("Max", Max(a.s), big, 0)
			check("ExpSum", ExpSum(dst.s, 0.5, a.s, -1), es, (4*tol+4*epsOf[T]())*es)
			check("ExpSum without dst", ExpSum(nil, 0.5, a.s, -1), es, (4*tol+4*epsOf[T]())*es)
			dst.check(t, "ExpSum")
			for i, v := range a.s {
				if want := math.Exp(0.5*float64(v) - 1); math.Abs(float64(dst.s[i])-want) > 6*epsOf[T]()*want*(1+math.Abs(float64(v))) {
					t.Fatalf("ExpSum of %d: element %d is %v, want %v", n, i, dst.s[i], want)
				}
			}
			// The result must not depend on where the slice lies.
			for off := range 16 {
				c := newGuarded[T](n, off)
				copy(c.s, a.s)
				if got, want := Sum(c.s), Sum(a.s); bits(got) != bits(want) {
					t.Fatalf("Sum of %d at offset %d: %v, want %v", n, off, got, want)
				}
			}
			for i := 0; i < n; i += 1 + n/9 {
				c := append([]T(nil), a.s...)
				c[i] = T(math.NaN())
				if m := Max(c); m == m {
					t.Fatalf("Max of %d with NaN at %d is %v", n, i, m)
				}
				c[i] = T(math.Inf(1))
				if m := Max(c); !math.IsInf(float64(m), 1) {
					t.Fatalf("Max of %d with Inf at %d is %v", n, i, m)
				}
			}
		}
		if got := Max([]T{T(math.Inf(-1)), T(math.Inf(-1))}); !math.IsInf(float64(got), -1) {
			t.Errorf("Max of -Inf is %v", got)
		}
		// Chunks are added in float64: each 1 is half a unit in the last place of
		// what came before.
		large := make([]T, 8*chunk+1)
		for i := 0; i < len(large); i += chunk {
			large[i] = 1
		}
		large[0] = 1 << 24
		if got := Sum(large); got != 1<<24+8 {
			t.Errorf("Sum of 2²⁴ and eight ones is %v", got)
		}
		// e^c of lanes that do not exist would be infinite.
		if got := ExpSum(nil, 1, []T{-1000, -1001}, 1000); math.Abs(float64(got)-(1+math.Exp(-1))) > 1e-6 {
			t.Errorf("ExpSum with a shift of 1000 is %v", got)
		}
	})
}

func TestColumns(t *testing.T) { both(t, testColumns[float32], testColumns[float64]) }

func testColumns[T Float](t *testing.T) {
	first := map[string][]T{}
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for k, size := range matSizes {
			rows, cols := size[0], size[1]
			if cols == 0 {
				continue
			}
			x, y, mean := mat[T](r, rows, cols, k%16), mat[T](r, rows, cols, k%5), mat[T](r, 1, cols, k%3)
			s, d, v := mat[T](r, 1, cols, k%7), mat[T](r, 1, cols, k%4), mat[T](r, 1, cols, k%2)
			ColSums(s.s, x.s)
			ColDots(d.s, x.s, y.s)
			ColSquares(v.s, x.s, mean.s)
			s.check(t, "ColSums")
			d.check(t, "ColDots")
			v.check(t, "ColSquares")
			tol := float64(rows+3) * epsOf[T]()
			for j := range cols {
				var sum, abs, dots, absDots, dev float64
				for i := range rows {
					a, b := float64(x.s[i*cols+j]), float64(y.s[i*cols+j])
					sum += a
					abs += math.Abs(a)
					dots += a * b
					absDots += math.Abs(a * b)
					e := a - float64(mean.s[j])
					dev += e * e
				}
				for _, c := range []struct {
					name      string
					got       T
					want, tol float64
				}{{"ColSums", s.s[j], sum, tol * abs}, {"ColDots", d.s[j], dots, tol * absDots}, {"ColSquares", v.s[j], dev, 3*tol*dev + 8*epsOf[T]()}} {
					if !(math.Abs(float64(c.got)-c.want) <= c.tol) {
						t.Fatalf("%s of %d×%d, column %d: %v, want %v", c.name, rows, cols, j, c.got, c.want)
					}
				}
			}
			if level != Generic {
				all := append(append(append([]T(nil), s.s...), d.s...), v.s...)
				key := fmt.Sprint(size)
				if w, ok := first[key]; ok {
					equalNumbers(t, "columns "+key, all, w)
				}
				first[key] = all
			}
		}
	})
}

func TestSpMM(t *testing.T) { both(t, testSpMM[float32], testSpMM[float64]) }

func testSpMM[T Float](t *testing.T) {
	first := map[string][]T{}
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		widths := []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 37, 48, 64, 96, 100, 127, 128, 129, 191, 192, 193, 256, 300, 304, 320, 321, 600, 700}
		for k, cols := range widths {
			for _, weighted := range []bool{false, true} {
				for _, self := range []T{0, 1, 1.25} {
					rows := 23
					n := rows + 4
					ptr := []int32{2} // two entries that no row uses
					for range rows {
						d := int32(r.IntN(6))
						if r.IntN(4) == 0 {
							d = 0
						}
						ptr = append(ptr, ptr[len(ptr)-1]+d)
					}
					adj := make([]int32, ptr[rows]+3)
					for i := range adj {
						adj[i] = int32(r.IntN(n))
					}
					adj[0], adj[1] = 1<<30, -5 // must not be looked at
					var val []T
					if weighted {
						val = make([]T, len(adj))
						fillRand(r, val)
					}
					x := mat[T](r, n, cols, k%16)
					dst := mat[T](r, rows, cols, (k+3)%16)
					lo, hi := k%3, rows-k%2
					before := append([]T(nil), dst.s...)
					SpMM(dst.s, cols, lo, hi, ptr, adj, val, x.s, self)
					dst.check(t, "SpMM")
					for i := range rows {
						for j := range cols {
							got := dst.s[i*cols+j]
							if i < lo || i >= hi {
								if bits(got) != bits(before[i*cols+j]) {
									t.Fatalf("SpMM wrote row %d of %d..%d", i, lo, hi)
								}
								continue
							}
							want := float64(self) * float64(x.s[i*cols+j])
							abs := math.Abs(want)
							for e := ptr[i]; e < ptr[i+1]; e++ {
								v := float64(x.s[int(adj[e])*cols+j])
								if weighted {
									v *= float64(val[e])
								}
								want += v
								abs += math.Abs(v)
							}
							if !(math.Abs(float64(got)-want) <= 8*epsOf[T]()*abs) {
								t.Fatalf("SpMM width %d weighted %v self %v (%d,%d): %v, want %v", cols, weighted, self, i, j, got, want)
							}
						}
					}
					if level != Generic {
						key := fmt.Sprint(cols, weighted, self)
						if w, ok := first[key]; ok {
							equalNumbers(t, "SpMM "+key, dst.s, w)
						}
						first[key] = append([]T(nil), dst.s...)
					}
				}
			}
		}
		// Large enough for several calls; the range must make no difference.
		rows, cols := 5000, 32
		ptr := []int32{0}
		var adj []int32
		for range rows {
			for range r.IntN(40) {
				adj = append(adj, int32(r.IntN(rows)))
			}
			ptr = append(ptr, int32(len(adj)))
		}
		x, a, b := mat[T](r, rows, cols, 0), mat[T](r, rows, cols, 0), mat[T](r, rows, cols, 0)
		SpMM(a.s, cols, 0, rows, ptr, adj, nil, x.s, 1)
		for lo := 0; lo < rows; lo += 617 {
			SpMM(b.s, cols, lo, min(lo+617, rows), ptr, adj, nil, x.s, 1)
		}
		equalBits(t, "SpMM in blocks of rows", b.s, a.s)
	})
}

// TestSpMMLongRow: a row with more neighbours than one call may add has the sum
// of one chain all the same.
func TestSpMMLongRow(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(19, 20))
		const rows = 50
		for _, cols := range []int{1, 37, 300, 700} {
			for _, self := range []float32{0, 1.25} {
				long := 3*4*chunk/cols + 5
				ptr := []int32{0, 2, int32(2 + long), int32(4 + long)}
				adj := make([]int32, ptr[3])
				for i := range adj {
					adj[i] = int32(r.IntN(rows))
				}
				ones := make([]float32, len(adj))
				for i := range ones {
					ones[i] = 1
				}
				x := mat[float32](r, rows, cols, 3)
				want := make([]float32, 3*cols)
				for i := range 3 {
					for j := range cols {
						sum := float32(self * x.s[i*cols+j]) // rounded, also where the compiler could fuse
						for _, k := range adj[ptr[i]:ptr[i+1]] {
							sum += x.s[int(k)*cols+j]
						}
						want[i*cols+j] = sum
					}
				}
				for _, val := range [][]float32{nil, ones} {
					dst := mat[float32](r, 3, cols, 5)
					SpMM(dst.s, cols, 0, 3, ptr, adj, val, x.s, self)
					dst.check(t, "SpMM")
					equalBits(t, fmt.Sprintf("SpMM of a row with %d neighbours, width %d, self %v", long, cols, self), dst.s, want)
				}
			}
		}
	})
}

func TestGatherRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		src, dst := mat[float32](r, 9, 37, 3), mat[float32](r, 4, 37, 5)
		idx := []int32{8, 0, 8, 3}
		GatherRows(dst.s, src.s, 37, idx)
		dst.check(t, "GatherRows")
		for k, i := range idx {
			equalBits(t, "GatherRows", dst.s[k*37:][:37], src.s[i*37:][:37])
		}
	})
}

// TestIndexPanics: indices outside panic on every path and at every place.
func TestIndexPanics(t *testing.T) {
	panics := func(f func()) (ok bool) {
		defer func() { ok = recover() != nil }()
		f()
		return false
	}
	eachLevel(t, func(t *testing.T) {
		x := make([]float32, 10*3)
		for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 64, 100, chunk + 3} {
			for _, bad := range []int32{-1, 10, 1 << 30, math.MinInt32, math.MaxInt32} {
				for i := 0; i < n; i += 1 + n/17 {
					idx := make([]int32, n)
					for k := range idx {
						idx[k] = 9
					}
					dst := make([]float32, n*3)
					GatherRows(dst, x, 3, idx)
					SpMM(dst[:3], 3, 0, 1, []int32{0, int32(n)}, idx, nil, x, 0)
					idx[i] = bad
					if !panics(func() { GatherRows(dst, x, 3, idx) }) || !panics(func() { SpMM(dst[:3], 3, 0, 1, []int32{0, int32(n)}, idx, nil, x, 0) }) {
						t.Fatalf("index %d at %d of %d does not panic", bad, i, n)
					}
				}
			}
		}
		dst := make([]float32, 9)
		for name, f := range map[string]func(){
			"ptr beyond adj":  func() { SpMM(dst, 3, 0, 3, []int32{0, 1, 2, 4}, []int32{0, 0, 0}, nil, x, 1) },
			"ptr high inside": func() { SpMM(dst, 3, 0, 3, []int32{0, 9, 2, 3}, []int32{0, 0, 0}, nil, x, 1) },
			"ptr negative":    func() { SpMM(dst, 3, 0, 3, []int32{0, -1, 2, 3}, []int32{0, 0, 0}, nil, x, 1) },
			"ptr short":       func() { SpMM(dst, 3, 0, 3, []int32{0, 1, 2}, []int32{0, 0, 0}, nil, x, 1) },
			"val short":       func() { SpMM(dst, 3, 0, 3, []int32{0, 1, 2, 3}, []int32{0, 0, 0}, x[:2], x, 1) },
			"no self":         func() { SpMM(dst, 3, 0, 3, []int32{0, 1, 2, 3}, []int32{0, 0, 0}, nil, x[:3], 1) },
			"ragged":          func() { SpMM(dst[:8], 3, 0, 2, []int32{0, 1, 2, 3}, []int32{0, 0, 0}, nil, x, 1) },
			"axpy":            func() { Axpy(1, x, dst) },
			"add":             func() { Add(dst, dst, x) },
			"exp":             func() { Exp(dst, x) },
			"dot":             func() { Dot(dst, x) },
			"row":             func() { AddRow(dst, dst, x[:2]) },
			"col":             func() { MulCol(dst, dst, x[:2]) },
			"no row":          func() { AddRow(dst, dst, nil) },
			"affine":          func() { AffineRow(dst, dst, x[:3], x[:2]) },
			"combine":         func() { CombineRow(dst, dst, x[:3], dst, x[:3], x[:2]) },
			"expsum":          func() { ExpSum(dst, 1, x, 0) },
			"colsums":         func() { ColSums(dst[:4], x) },
			"adam":            func() { Adam(dst, dst, dst, x, AdamStep{Step: 1}) },
		} {
			if !panics(f) {
				t.Errorf("%s: no panic", name)
			}
		}
	})
}

// TestAdam compares with the formula in float64, over several steps.
func TestAdam(t *testing.T) { both(t, testAdam[float32], testAdam[float64]) }

func testAdam[T Float](t *testing.T) {
	var first []T
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		n := 1003
		p, g, m, v := mat[T](r, 1, n, 1), mat[T](r, 1, n, 2), newGuarded[T](n, 3), newGuarded[T](n, 4)
		clear(m.s)
		clear(v.s)
		q, m64, v64 := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range q {
			q[i] = float64(p.s[i])
		}
		c := AdamStep{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01, Rate: 0.003}
		for c.Step = 1; c.Step <= 5; c.Step++ {
			fillRand(r, g.s)
			Adam(p.s, g.s, m.s, v.s, c)
			for i := range q {
				x := float64(g.s[i]) + c.WeightDecay*q[i]
				m64[i] = c.Beta1*m64[i] + (1-c.Beta1)*x
				v64[i] = c.Beta2*v64[i] + (1-c.Beta2)*x*x
				q[i] -= c.Rate / (1 - math.Pow(c.Beta1, float64(c.Step))) * m64[i] / (math.Sqrt(v64[i])/math.Sqrt(1-math.Pow(c.Beta2, float64(c.Step))) + c.Eps)
			}
		}
		for i := range q {
			if e := math.Abs(float64(p.s[i]) - q[i]); e > 40*epsOf[T]()*(1+math.Abs(q[i])) {
				t.Fatalf("p[%d] = %v, want %v", i, p.s[i], q[i])
			}
		}
		for _, s := range []*guarded[T]{p, g, m, v} {
			s.check(t, "Adam")
		}
		if level != Generic {
			if first != nil {
				equalBits(t, "Adam on both levels", p.s, first)
			}
			first = append([]T(nil), p.s...)
		}
	})
}

// TestVecAllocs: no kernel allocates.
func TestVecAllocs(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		x, y, s := make([]float32, 320), make([]float32, 320), make([]float32, 32)
		ptr, adj := []int32{0, 1, 2}, []int32{0, 1}
		for name, f := range map[string]func(){
			"Axpy":       func() { Axpy(1, x, y) },
			"Add":        func() { Add(x, x, y) },
			"Exp":        func() { Exp(x, y) },
			"AddRowReLU": func() { AddRowReLU(x, x, s) },
			"AffineRow":  func() { AffineRow(x, x, s, s) },
			"Sum":        func() { s[0] = Sum(x) },
			"ExpSum":     func() { s[0] = ExpSum(nil, 1, y, 0) },
			"ColSums":    func() { ColSums(s, x) },
			"SpMM":       func() { SpMM(y[:64], 32, 0, 2, ptr, adj, nil, x, 1) },
			"Adam":       func() { Adam(x, y, x, y, AdamStep{Step: 1}) },
		} {
			if n := testing.AllocsPerRun(20, f); n != 0 && !raceDetector {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	})
}
