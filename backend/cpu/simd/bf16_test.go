package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
)

// toBF16 rounds x to bfloat16: to the nearest, ties to even, subnormal numbers to 0.
func toBF16(x float32) float32 {
	b := math.Float32bits(x)
	switch {
	case x != x:
		return x
	case b>>23&0xff == 0:
		return flushed(x)
	}
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

// flushed returns x, or 0 of its sign if it is subnormal.
func flushed(x float32) float32 {
	if math.Abs(float64(x)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// mulAdd returns acc + a·b with one rounding, for numbers of bfloat16 a and b.
func mulAdd(acc, a, b float32) float32 {
	x, y := float64(acc), float64(a)*float64(b) // exact
	sum := x + y
	// The sum is rounded to odd in float64, so that rounding it again is rounding once
	// (Boldo and Melquiond 2008). The error of a sum is a number of float64 (Møller 1965).
	part := sum - x
	err := (x - (sum - part)) + (y - part)
	if err != 0 && !math.IsInf(sum, 0) && math.Float64bits(sum)&1 == 0 {
		sum = math.Nextafter(sum, math.Copysign(math.Inf(1), err))
	}
	return flushed(float32(sum))
}

// define computes the product as GemmBF16's comment defines it.
func (g *gemmCase[T]) define() []float32 {
	c := make([]float32, len(g.c.s))
	for i, v := range g.c.s {
		c[i] = float32(v)
	}
	longest := 2 * kcMax
	if g.n <= narrow {
		longest = 2 * kcNarrow
	}
	blocks := (g.k + longest - 1) / longest
	length := ((g.k+1)/2 + blocks - 1) / blocks * 2
	a, b := make([]float32, g.m*g.k), make([]float32, g.k*g.n)
	for l := range g.k {
		for i := range g.m {
			a[i*g.k+l] = toBF16(float32(g.at(i, l)))
		}
		for j := range g.n {
			b[j*g.k+l] = toBF16(float32(g.bt(l, j)))
		}
	}
	for i := range g.m {
		for j := range g.n {
			x, y := a[i*g.k:][:g.k], b[j*g.k:][:g.k]
			to := &c[i*g.ldc+j]
			for l := 0; l < g.k; l += length {
				var acc float32
				for p := l; p < min(l+length, g.k); p += 2 {
					var x1, y1 float32
					if p+1 < g.k {
						x1, y1 = x[p+1], y[p+1]
					}
					acc = mulAdd(mulAdd(acc, x1, y1), x[p], y[p])
				}
				switch {
				case l > 0:
					*to = float32(math.FMA(float64(g.alpha), float64(acc), float64(*to)))
				case g.beta != 0:
					*to = float32(math.FMA(float64(g.alpha), float64(acc), float64(float32(g.beta)**to)))
				default:
					*to = float32(g.alpha) * acc
				}
			}
		}
	}
	return c
}

// TestGemmBF16: the kernels give the bits of the definition for all heights of tiles,
// tails, transposes, blocks and special numbers.
func TestGemmBF16(t *testing.T) {
	if err := BF16Error(); err != nil {
		t.Skip(err)
	}
	r := rand.New(rand.NewPCG(15, 16))
	n := 0
	check := func(tr [2]blas.Transpose, m, nn, k int, change func(float32) float32) {
		n++
		g := newGemmCase[float32](r, tr[0], tr[1], m, nn, k, []int{0, 1, 7, 33}[n%4], n*7%16)
		// Powers of two, so that one rounding of float64 to float32 is one rounding.
		g.alpha, g.beta = []float32{1, -1, 0.5}[n%3], []float32{0, 1, 2, -0.5}[n/3%4]
		if change != nil {
			for _, s := range [][]float32{g.a.s, g.b.s} {
				for i, v := range s {
					s[i] = change(v)
				}
			}
		}
		want := g.define()
		GemmBF16(g.tA, g.tB, m, nn, k, g.alpha, g.a.s, g.lda, g.b.s, g.ldb, g.beta, g.c.s, g.ldc)
		g.c.check(t, "C of "+g.String())
		for i, w := range want {
			if got := g.c.s[i]; math.Float32bits(got) != math.Float32bits(w) && (got == got || w == w) {
				t.Fatalf("%v: element %d is %v (%08x), want %v (%08x)", g, i, got, math.Float32bits(got), w, math.Float32bits(w))
			}
		}
	}
	for _, tr := range transposes {
		for m := 1; m < 30; m++ {
			for _, nn := range []int{1, 15, 16, 17, 31, 32, 33, 70} {
				check(tr, m, nn, 1+(m*7+nn)%69, nil)
			}
		}
		for k := 1; k < 70; k++ {
			check(tr, 5, 35, k, nil)
		}
		for _, k := range []int{2*kcNarrow - 1, 2*kcNarrow + 1, 4*kcNarrow + 3, 2*kcMax - 1, 2*kcMax + 1, 1024} {
			check(tr, 15, narrow, k, nil)
			check(tr, 15, narrow+1, k, nil)
		}
		check(tr, 220, 45, 640, nil)
		check(tr, 1, 800, 2*kcMax, nil) // several blocks of columns
		for _, scale := range []float32{0x1p-64, 0x1p-126, 0x1p-129, 0x1p63, 0x1p126} {
			check(tr, 14, 33, 40, func(v float32) float32 { return v * scale })
		}
		check(tr, 14, 33, 3, func(v float32) float32 {
			return []float32{v, 0, float32(math.Inf(1)), float32(math.NaN()), 0x1p-149, -0x1.fffp-127, math.MaxFloat32,
				float32(math.Copysign(0, -1)), 1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1.1p-8}[r.IntN(11)]
		})
		// Every pair of random bits is a number of some kind.
		check(tr, 28, 64, 2, func(float32) float32 { return math.Float32frombits(r.Uint32()) })
	}
}

func TestBF16Error(t *testing.T) {
	old := level
	defer func() { level = old }()
	level = Generic
	if BF16Error() == nil {
		t.Error("bfloat16 in plain Go is not refused")
	}
	defer func() {
		if recover() == nil {
			t.Error("a product in plain Go does not panic")
		}
	}()
	GemmBF16('N', 'N', 1, 1, 1, 1, []float32{1}, 1, []float32{1}, 1, 0, []float32{1}, 1)
}
