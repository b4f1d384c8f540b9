package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/blas/testblas"
)

// eachLevel runs f as a subtest on every instruction set of this machine.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	old := level
	defer func() { level = old }()
	for _, l := range Available() {
		level = l
		t.Run(l.String(), func(t *testing.T) {
			if Level() != l {
				t.Fatalf("level %v, want %v", Level(), l)
			}
			f(t)
		})
	}
}

const guardLen = 40

// guarded is a slice with guard words around it, offset elements from where
// the allocator put it.
type guarded[T Float] struct {
	all, s []T
}

func guardValue[T Float]() T {
	if unsafe.Sizeof(T(0)) == 4 {
		return T(math.Float32frombits(0x7fc0dead)) // a NaN that no computation makes
	}
	return T(math.Float64frombits(0x7ff8_dead_beef_dead))
}

func newGuarded[T Float](n, offset int) *guarded[T] {
	g := &guarded[T]{all: make([]T, n+2*guardLen+offset)}
	for i := range g.all {
		g.all[i] = guardValue[T]()
	}
	g.s = g.all[guardLen+offset:][:n:n]
	return g
}

func (g *guarded[T]) check(t *testing.T, what string) {
	t.Helper()
	n := len(g.s)
	off := len(g.all) - n - guardLen
	for i, v := range g.all {
		if (i < off || i >= off+n) && bits(v) != bits(guardValue[T]()) {
			t.Fatalf("%s: wrote element %d of a slice of %d", what, i-off, n)
		}
	}
}

func fillRand[T Float](r *rand.Rand, s []T) {
	for i := range s {
		s[i] = T(r.NormFloat64())
	}
}

// epsOf is the rounding error of one operation.
func epsOf[T Float]() float64 {
	if unsafe.Sizeof(T(0)) == 4 {
		return 0x1p-24
	}
	return 0x1p-53
}

// sgemmAny calls Sgemm or Dgemm.
func gemmAny[T Float](tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	switch a := any(a).(type) {
	case []float32:
		BLAS{}.Sgemm(tA, tB, m, n, k, float32(alpha), a, lda, any(b).([]float32), ldb, float32(beta), any(c).([]float32), ldc)
	case []float64:
		BLAS{}.Dgemm(tA, tB, m, n, k, float64(alpha), a, lda, any(b).([]float64), ldb, float64(beta), any(c).([]float64), ldc)
	}
}

// gemmCase is one product with its matrices in guarded memory.
type gemmCase[T Float] struct {
	tA, tB        blas.Transpose
	m, n, k       int
	alpha, beta   T
	lda, ldb, ldc int
	a, b, c       *guarded[T]
}

// newGemmCase makes a random product whose leading dimensions are pad more
// than needed and whose slices start off elements from an allocation.
func newGemmCase[T Float](r *rand.Rand, tA, tB blas.Transpose, m, n, k, pad, off int) *gemmCase[T] {
	g := &gemmCase[T]{tA: tA, tB: tB, m: m, n: n, k: k}
	dims := func(t blas.Transpose, rows, cols int) (*guarded[T], int) {
		if t == blas.Trans {
			rows, cols = cols, rows
		}
		ld := max(1, cols) + pad
		s := newGuarded[T](max(0, (rows-1)*ld+cols), off)
		if rows > 0 {
			for i := range rows {
				fillRand(r, s.s[i*ld:][:cols])
			}
		}
		return s, ld
	}
	g.a, g.lda = dims(tA, m, k)
	g.b, g.ldb = dims(tB, k, n)
	g.c, g.ldc = dims(blas.NoTrans, m, n)
	return g
}

func (g *gemmCase[T]) String() string {
	return fmt.Sprintf("%c%c m=%d n=%d k=%d alpha=%v beta=%v ld=%d,%d,%d", g.tA, g.tB, g.m, g.n, g.k, g.alpha, g.beta, g.lda, g.ldb, g.ldc)
}

func (g *gemmCase[T]) run(c []T) {
	gemmAny(g.tA, g.tB, g.m, g.n, g.k, g.alpha, g.a.s, g.lda, g.b.s, g.ldb, g.beta, c, g.ldc)
}

func (g *gemmCase[T]) at(i, l int) float64 {
	if g.tA == blas.Trans {
		return float64(g.a.s[l*g.lda+i])
	}
	return float64(g.a.s[i*g.lda+l])
}

func (g *gemmCase[T]) bt(l, j int) float64 {
	if g.tB == blas.Trans {
		return float64(g.b.s[j*g.ldb+l])
	}
	return float64(g.b.s[l*g.ldb+j])
}

// check runs the product and compares it with the naive one in float64.
func (g *gemmCase[T]) check(t *testing.T) {
	t.Helper()
	old := append([]T(nil), g.c.s...)
	g.run(g.c.s)
	g.c.check(t, "C of "+g.String())
	columns := make([]float64, g.n*g.k) // of op(B)
	for j := range g.n {
		for l := range g.k {
			columns[j*g.k+l] = g.bt(l, j)
		}
	}
	row := make([]float64, g.k) // of op(A)
	for i := range g.m {
		for l := range row {
			row[l] = g.at(i, l)
		}
		for j := range g.ldc {
			if i*g.ldc+j >= len(old) {
				break
			}
			got, was := g.c.s[i*g.ldc+j], old[i*g.ldc+j]
			if j >= g.n {
				if bits(got) != bits(was) {
					t.Fatalf("%v: wrote beside C at (%d,%d)", g, i, j)
				}
				continue
			}
			var sum, abs float64
			for l, b := range columns[j*g.k:][:g.k] {
				x := row[l] * b
				sum += x
				abs += math.Abs(x)
			}
			want := float64(g.alpha) * sum
			abs *= math.Abs(float64(g.alpha))
			if g.beta != 0 {
				want += float64(g.beta) * float64(was)
				abs += math.Abs(float64(g.beta) * float64(was))
			}
			// Blocked sums: error below (kc+blocks+4)·eps·Σ|ab|, Higham's bound.
			tol := float64(min(g.k, kcMax)+g.k/kcMax+4) * epsOf[T]() * abs
			if !(math.Abs(float64(got)-want) <= tol) {
				t.Fatalf("%v: C(%d,%d) = %v, want %v, error %g > %g", g, i, j, got, want, math.Abs(float64(got)-want), tol)
			}
		}
	}
}

var transposes = [][2]blas.Transpose{{blas.NoTrans, blas.NoTrans}, {blas.Trans, blas.NoTrans}, {blas.NoTrans, blas.Trans}, {blas.Trans, blas.Trans}}

func TestGemm(t *testing.T) {
	t.Run("float32", testGemm[float32])
	t.Run("float64", testGemm[float64])
}

func testGemm[T Float](t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		factors := []T{0, 1, -1, 0.5}
		n := 0
		next := func() { // every case has other factors, padding and offset
			n++
		}
		check := func(tr [2]blas.Transpose, m, nn, k int) {
			next()
			g := newGemmCase[T](r, tr[0], tr[1], m, nn, k, []int{0, 0, 1, 7, 33}[n%5], n*7%16)
			g.alpha, g.beta = factors[n%7%4], factors[n%4]
			if n%3 > 0 {
				g.alpha = factors[1+n%3]
			}
			g.check(t)
		}
		for _, tr := range transposes {
			// All tile heights and all tails.
			for m := range 31 {
				for _, nn := range []int{1, 5, 8, 13, 16, 17, 31, 32, 33} {
					check(tr, m, nn, 1+(m*7+nn)%19)
				}
			}
			for nn := range 70 {
				for _, m := range []int{1, 6, 14, 15, 29} {
					check(tr, m, nn, (m+nn)%11)
				}
			}
			for _, k := range []int{0, 1, 2, 3, kcNarrow - 1, kcNarrow, kcNarrow + 1, 2*kcNarrow - 1, 2 * kcNarrow, 2*kcNarrow + 3, 1000} {
				check(tr, 3, 5, k)
				check(tr, 37, 32, k)
				check(tr, 30, 45, k)
			}
			for _, k := range []int{kcMax - 1, kcMax, kcMax + 1, 2 * kcMax, 2*kcMax + 3} {
				check(tr, 30, narrow, k)
				check(tr, 30, narrow+1, k)
			}
			check(tr, 301, 70, 129)
			check(tr, 150, 300, 300)
			check(tr, 17, 1100, 270)
			check(tr, 3, 1600, kcMax) // several blocks of columns
			// More tiles below each other than one call may get.
			check(tr, 220, 32, kcNarrow)
			check(tr, 430, 16, kcNarrow)
		}
	})
}

// TestGemmPackedA: rows of A a power of two apart are packed for tall tiles.
func TestGemmPackedA(t *testing.T) { both(t, testGemmPackedA[float32], testGemmPackedA[float64]) }

func testGemmPackedA[T Float](t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, m := range []int{1, 7, 8, 9, 13, 14, 15, 16, 17, 28, 29, 45} {
			for _, k := range []int{512, 511, 509, 505, 7} {
				g := newGemmCase[T](r, blas.NoTrans, blas.NoTrans, m, 70, k, 512-k, 3)
				g.alpha = 1
				g.check(t)
			}
		}
	})
}

// TestGemmFactors runs every pair of factors on one shape with an inner block.
func TestGemmFactors(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, tr := range transposes {
			for _, alpha := range []float32{0, 1, -1, 0.5} {
				for _, beta := range []float32{0, 1, -1, 0.5} {
					g := newGemmCase[float32](r, tr[0], tr[1], 15, narrow+5, kcMax+5, 3, 1)
					g.alpha, g.beta = alpha, beta
					g.check(t)
				}
			}
		}
	})
}

// TestGemmNaN: beta = 0 overwrites, alpha = 0 does not read, and otherwise NaN
// and Inf reach exactly the elements that IEEE arithmetic says.
func TestGemmNaN(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, tr := range transposes {
			g := newGemmCase[float32](r, tr[0], tr[1], 16, 35, 40, 0, 0)
			fill := func(s []float32, v float32) {
				for i := range s {
					s[i] = v
				}
			}
			g.alpha, g.beta = 1, 0
			fill(g.c.s, nan)
			g.run(g.c.s)
			for _, v := range g.c.s {
				if v != v {
					t.Fatalf("%v: NaN of C survives beta = 0", g)
				}
			}
			a := append([]float32(nil), g.a.s...)
			fill(g.a.s, nan)
			g.alpha, g.beta = 0, 1
			before := append([]float32(nil), g.c.s...)
			g.run(g.c.s)
			for i, v := range g.c.s {
				if v != before[i] {
					t.Fatalf("%v: alpha = 0 reads A", g)
				}
			}
			copy(g.a.s, a)

			// One NaN in B against zeros in A.
			fill(g.a.s, 0)
			bad := 3*g.ldb + 2
			row, col := 3, 2
			if tr[1] == blas.Trans {
				row, col = col, row
			}
			for _, v := range []float32{nan, inf, -inf} {
				g.b.s[bad] = v
				g.alpha, g.beta = 1, 0
				g.run(g.c.s)
				for i := range g.m {
					for j := range g.n {
						if x := g.c.s[i*g.ldc+j]; (x != x) != (j == col) {
							t.Fatalf("%v: B(%d,%d) = %v, C(%d,%d) = %v", g, row, col, v, i, j, x)
						}
					}
				}
			}
		}
	})
}

// TestGemmDenormal: denormal numbers are neither flushed nor read as zero.
func TestGemmDenormal(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		a := []float32{0x1p-140, 0x1p-100}
		b := []float32{8, 0x1p-45}
		c := []float32{0x1p-149}
		BLAS{}.Sgemm(blas.NoTrans, blas.NoTrans, 1, 1, 2, 1, a, 2, b, 1, 1, c, 1)
		if want := float32(0x1p-137 + 0x1p-145 + 0x1p-149); c[0] != want {
			t.Errorf("got %g, want %g", c[0], want)
		}
	})
}

// TestGemmSplit: blocks of rows and of columns give the bits of the whole.
func TestGemmSplit(t *testing.T) {
	t.Run("float32", testGemmSplit[float32])
	t.Run("float64", testGemmSplit[float64])
}

func testGemmSplit[T Float](t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, tr := range transposes {
			for _, dim := range [][3]int{{61, 70, 300}, {200, 32, 37}, {37, 32, 1500}, {29, 12, 64}} {
				for _, beta := range []T{0, 0.3} {
					m, n, k := dim[0], dim[1], dim[2]
					g := newGemmCase[T](r, tr[0], tr[1], m, n, k, 0, 3)
					g.alpha, g.beta = 0.7, beta
					whole := append([]T(nil), g.c.s...)
					g.run(whole)
					for _, step := range []int{1, 5, 14, 23} {
						got := append([]T(nil), g.c.s...)
						for i := 0; i < m; i += step {
							a := g.a.s
							if tr[0] == blas.Trans {
								a = a[i:]
							} else {
								a = a[i*g.lda:]
							}
							gemmAny(g.tA, g.tB, min(step, m-i), n, k, g.alpha, a, g.lda, g.b.s, g.ldb, g.beta, got[i*g.ldc:], g.ldc)
						}
						equalBits(t, fmt.Sprintf("%v in rows of %d", g, step), got, whole)
						copy(got, g.c.s)
						for j := 0; j < n; j += step {
							b := g.b.s
							if tr[1] == blas.Trans {
								b = b[j*g.ldb:]
							} else {
								b = b[j:]
							}
							gemmAny(g.tA, g.tB, m, min(step, n-j), k, g.alpha, g.a.s, g.lda, b, g.ldb, g.beta, got[j:], g.ldc)
						}
						equalBits(t, fmt.Sprintf("%v in columns of %d", g, step), got, whole)
					}
				}
			}
		}
	})
}

func equalBits[T Float](t *testing.T, what string, got, want []T) {
	t.Helper()
	for i := range want {
		if bits(got[i]) != bits(want[i]) {
			t.Fatalf("%s: element %d: %v (%x), want %v (%x)", what, i, got[i], bits(got[i]), want[i], bits(want[i]))
		}
	}
}

// TestGemmLevels: the vector instruction sets agree bit for bit.
func TestGemmLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, tr := range transposes {
		g := newGemmCase[float32](r, tr[0], tr[1], 45, 77, 600, 0, 0)
		g.alpha, g.beta = 1.3, 0.2
		var want []float32
		eachLevel(t, func(t *testing.T) {
			if level == Generic {
				return
			}
			got := append([]float32(nil), g.c.s...)
			g.run(got)
			if want == nil {
				want = got
			}
			equalBits(t, g.String(), got, want)
		})
	}
}

// TestGemmPanics: bad arguments give gonum's panics.
func TestGemmPanics(t *testing.T) {
	message := func(f func()) (msg any) {
		defer func() { msg = recover() }()
		f()
		return nil
	}
	s := func(n int) []float32 { return make([]float32, n) }
	type args struct {
		tA, tB  blas.Transpose
		m, n, k int
		a       []float32
		lda     int
		b       []float32
		ldb     int
		c       []float32
		ldc     int
	}
	N, T := blas.NoTrans, blas.Trans
	for _, x := range []args{
		{'X', N, 2, 3, 4, s(8), 4, s(12), 3, s(6), 3},
		{N, 'X', 2, 3, 4, s(8), 4, s(12), 3, s(6), 3},
		{N, N, -1, 3, 4, s(8), 4, s(12), 3, s(6), 3},
		{N, N, 2, -1, 4, s(8), 4, s(12), 3, s(6), 3},
		{N, N, 2, 3, -1, s(8), 4, s(12), 3, s(6), 3},
		{N, N, 2, 3, 4, s(8), 3, s(12), 3, s(6), 3},
		{T, N, 2, 3, 4, s(8), 1, s(12), 3, s(6), 3},
		{N, N, 2, 3, 4, s(8), 4, s(12), 2, s(6), 3},
		{N, T, 2, 3, 4, s(8), 4, s(12), 3, s(6), 3},
		{N, N, 2, 3, 4, s(8), 4, s(12), 3, s(6), 2},
		{N, N, 2, 3, 4, s(7), 4, s(12), 3, s(6), 3},
		{T, N, 2, 3, 4, s(7), 2, s(12), 3, s(6), 3},
		{N, N, 2, 3, 4, s(8), 4, s(11), 3, s(6), 3},
		{N, T, 2, 3, 4, s(8), 4, s(11), 4, s(6), 3},
		{N, N, 2, 3, 4, s(8), 4, s(12), 3, s(5), 3},
		{N, N, 2, 3, 4, s(8), 4, s(12), 3, s(6), 3},
		{N, N, 0, 3, 4, nil, 4, nil, 3, nil, 3},
		{N, N, 2, 3, 0, nil, 1, nil, 3, s(6), 3},
		{N, N, 2, 3, 0, nil, 0, nil, 3, s(6), 3},
	} {
		got := message(func() { BLAS{}.Sgemm(x.tA, x.tB, x.m, x.n, x.k, 1, x.a, x.lda, x.b, x.ldb, 1, x.c, x.ldc) })
		want := message(func() {
			gonum.Implementation{}.Sgemm(x.tA, x.tB, x.m, x.n, x.k, 1, x.a, x.lda, x.b, x.ldb, 1, x.c, x.ldc)
		})
		if got != want {
			t.Errorf("%+v: panic %v, want %v", x, got, want)
		}
	}
}

// sgemmer runs gonum's float64 suite on Sgemm: its values are exact in float32.
type sgemmer struct{}

func (sgemmer) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	f32 := func(s []float64) []float32 {
		out := make([]float32, len(s))
		for i, v := range s {
			out[i] = float32(v)
		}
		return out
	}
	c32 := f32(c)
	BLAS{}.Sgemm(tA, tB, m, n, k, float32(alpha), f32(a), lda, f32(b), ldb, float32(beta), c32, ldc)
	for i, v := range c32 {
		c[i] = float64(v)
	}
}

func TestGonumSuite(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		testblas.TestDgemm(t, BLAS{})
		t.Run("float32", func(t *testing.T) { testblas.TestDgemm(t, sgemmer{}) })
	})
}

// raceDetector is set in builds with the race detector.
var raceDetector bool

func TestGemmAllocs(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		g := newGemmCase[float32](r, blas.NoTrans, blas.Trans, 50, 60, 70, 0, 0)
		g.alpha = 1
		if n := testing.AllocsPerRun(20, func() { g.run(g.c.s) }); n != 0 && !raceDetector {
			t.Errorf("%v allocations per product", n)
		}
	})
}

// TestTranspose: parts of matrices, of all sizes around a vector, on both sides.
func TestTranspose(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		const lds, ldd = 40, 30
		src := make([]float32, 20*lds)
		for i := range src {
			src[i] = float32(i)
		}
		for rows := range 20 {
			for n := range 35 {
				dst := newGuarded[float32](35*ldd, 0)
				clear(dst.s)
				Transpose(dst.s, ldd, src, lds, rows, n)
				for i, v := range dst.s {
					var want float32
					if k, r := i/ldd, i%ldd; k < n && r < rows {
						want = src[r*lds+k]
					}
					if v != want {
						t.Fatalf("%d×%d: element %d is %v, want %v", rows, n, i, v, want)
					}
				}
				dst.check(t, "Transpose")
			}
		}
	})
}
