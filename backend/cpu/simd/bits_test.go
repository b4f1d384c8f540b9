package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
)

// vectorBits is the hash of what each float32 function makes of the inputs of
// TestVectorBits. A new value means that a kernel's rounding changed: say so in
// its comment, and take the value that every instruction set agrees on.
var vectorBits = map[string]uint64{
	"Axpy":          0x0faa2ea4df713d20,
	"Axpby":         0x5b2fbce1c2445cb2,
	"Affine":        0x079bcacc2a7550b4,
	"Scale":         0xe73be54213b8ddda,
	"Add":           0xdd7acca0b5c88d6d,
	"Sub":           0xe28c663807a32ca8,
	"Mul":           0x6b599e5d0c41fb8c,
	"Div":           0xf13e3182146423fc,
	"Maximum":       0x5f0ec7c968429089,
	"Greater":       0x872990880c84cca7,
	"Gate":          0x2e3d7ada9b2dc1db,
	"ReLU":          0xa2f6325986dfcf1b,
	"Abs":           0xfa2d201f999e8975,
	"Sign":          0xc185f6ac55c4cca7,
	"Sqrt":          0x56d9f95649a4c370,
	"Reciprocal":    0x1ff3198ab929c6ed,
	"Exp":           0xefc364bdcd574c35,
	"Log":           0x4d82160b9ddf0f62,
	"Sigmoid":       0x467c5fa2b09002d5,
	"Softplus":      0xa769d819b6396b8b,
	"Tanh":          0xfa9ce9f8998f11ef,
	"reductions":    0xf11a68dd7e98d718,
	"ExpSum":        0xe288a80fcfce83c1,
	"AddRowReLU":    0xe270ddfbf0d189e7,
	"DivCol":        0x75208300bde32210,
	"AffineRow":     0xfe8aba0f0f054bc1,
	"CombineRow":    0xc53fcc8f505a8bce,
	"columns":       0xf7ac4475dc801c05,
	"SpMM":          0x9c4be503adf1678d,
	"SpMM weighted": 0x6f39fe4d0becd9a1,
	"Adam":          0xbef0802194828e77,
	"Sgemm NN":      0x737c6ae4fb13399a,
	"Sgemm NT":      0x0ab39999d6b72018,
	"Sgemm TN":      0xa4525ee02a5d5254,
	"Sgemm TT":      0x9395a8598272c761,
}

// bitsHash is FNV-1a over the bits of s, one NaN being like the other.
func bitsHash(s []float32) uint64 {
	h := uint64(14695981039346656037)
	for _, v := range s {
		b := math.Float32bits(v)
		if v != v {
			b = 0x7fc00000
		}
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// TestVectorBits: all vector instruction sets, of all machines, give equal bits.
func TestVectorBits(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		if level == Generic {
			t.Skip("plain Go rounds products, and its exponentials are others")
		}
		r := rand.New(rand.NewPCG(17, 18))
		// No function of math here: it may round otherwise on another machine.
		numbers := func(n int, special bool) []float32 {
			s := make([]float32, n)
			for i := range s {
				s[i] = float32(r.IntN(1<<20)-1<<19) / (1 << 16)
				if special && r.IntN(4) == 0 {
					s[i] = float32(specials[r.IntN(len(specials))])
				}
			}
			return s
		}
		check := func(name string, s ...float32) {
			t.Helper()
			if got := bitsHash(s); got != vectorBits[name] {
				t.Errorf("%q: %#016x, want %#016x", name, got, vectorBits[name])
			}
		}
		const n, cols = 4999, 37
		const rows = n / cols
		for _, e := range elementwises[float32]() {
			in := [][]float32{numbers(n, true), numbers(n, true)}[:e.in]
			dst := make([]float32, n)
			e.f(dst, in)
			check(e.name, dst...)
		}
		x, y := numbers(n, false), numbers(n, false)
		check("reductions", Sum(x), SumSquares(x), Dot(x, y), Max(x), ExpSum(nil, 0.5, x, -1))
		dst := make([]float32, n)
		check("ExpSum", append(dst, ExpSum(dst, 0.5, x, -1))...)

		x, y, dst = x[:rows*cols], y[:rows*cols], dst[:rows*cols]
		row, col := numbers(cols, false), numbers(rows, false)
		AddRowReLU(dst, x, row)
		check("AddRowReLU", dst...)
		DivCol(dst, x, col)
		check("DivCol", dst...)
		AffineRow(dst, x, row, y[:cols])
		check("AffineRow", dst...)
		CombineRow(dst, x, row, y, x[:cols], y[:cols])
		check("CombineRow", dst...)
		sums := make([]float32, 3*cols)
		ColSums(sums[:cols], x)
		ColDots(sums[cols:2*cols], x, y)
		ColSquares(sums[2*cols:], x, row)
		check("columns", sums...)

		ptr, adj := []int32{0}, []int32{}
		for range rows {
			for range r.IntN(6) {
				adj = append(adj, int32(r.IntN(rows)))
			}
			ptr = append(ptr, int32(len(adj)))
		}
		SpMM(dst, cols, 0, rows, ptr, adj, nil, x, 1.25)
		check("SpMM", dst...)
		SpMM(dst, cols, 0, rows, ptr, adj, y[:len(adj)], x, 0)
		check("SpMM weighted", dst...)

		m, v := numbers(n, false), numbers(n, false)
		Abs(v, v)
		p := numbers(n, false)
		Adam(p, numbers(n, false), m, v, AdamStep{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01, Rate: 0.003, Step: 7})
		check("Adam", append(append(p, m...), v...)...)

		const gm, gn, gk = 31, 45, 700
		for _, tA := range []blas.Transpose{'N', 'T'} {
			for _, tB := range []blas.Transpose{'N', 'T'} {
				a, b, c := numbers(gm*gk, false), numbers(gk*gn, false), numbers(gm*gn, false)
				lda, ldb := gk, gn
				if tA == 'T' {
					lda = gm
				}
				if tB == 'T' {
					ldb = gk
				}
				BLAS{}.Sgemm(tA, tB, gm, gn, gk, 0.75, a, lda, b, ldb, -1.5, c, gn)
				check("Sgemm "+string(tA)+string(tB), c...)
			}
		}
	})
}
