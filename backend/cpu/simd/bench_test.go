package simd

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
)

// gemmShapes are the products of training: C[m×n] = op(A)[m×k]·op(B)[k×n].
var gemmShapes = []struct {
	name    string
	tA, tB  blas.Transpose
	m, n, k int
}{
	// GIN 3×32 on TU data, 15000 nodes a batch.
	{"tu_l1_fwd", 'N', 'N', 15000, 32, 37},
	{"tu_l2_fwd", 'N', 'N', 15000, 32, 32},
	{"tu_l1_dW", 'T', 'N', 37, 32, 15000},
	{"tu_l2_dW", 'T', 'N', 32, 32, 15000},
	{"tu_l2_dX", 'N', 'T', 15000, 32, 32},
	// ResGCN 5×128.
	{"resgcn_fwd", 'N', 'N', 15000, 128, 128},
	{"resgcn_dW", 'T', 'N', 128, 128, 15000},
	{"resgcn_dX", 'N', 'T', 15000, 128, 128},
	// Molecular GIN 5×300, whose MLPs are 600 wide inside.
	{"tr_up_fwd", 'N', 'N', 7000, 600, 300},
	{"tr_dn_fwd", 'N', 'N', 7000, 300, 600},
	{"tr_up_dW", 'T', 'N', 300, 600, 7000},
	{"tr_dn_dW", 'T', 'N', 600, 300, 7000},
	{"tr_up_dX", 'N', 'T', 7000, 300, 600},
	{"tr_dn_dX", 'N', 'T', 7000, 600, 300},
	// Similarities of a batch, and their gradient.
	{"sim1024", 'N', 'T', 1024, 1024, 96},
	{"sim512", 'N', 'T', 512, 512, 96},
	{"dsim1024", 'N', 'N', 1024, 96, 1024},
	// Large squares, for reference.
	{"sq1024", 'N', 'N', 1024, 1024, 1024},
	{"sq2048", 'N', 'N', 2048, 2048, 2048},
}

// benchLevels runs f on every vector instruction set.
func benchLevels(b *testing.B, f func(b *testing.B)) {
	old := level
	defer func() { level = old }()
	for _, l := range Available() {
		level = l
		b.Run(l.String(), f)
	}
}

func BenchmarkSgemm(b *testing.B) { benchGemm[float32](b) }
func BenchmarkDgemm(b *testing.B) { benchGemm[float64](b) }

func benchGemm[T Float](b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range gemmShapes {
		b.Run(s.name, func(b *testing.B) {
			g := newGemmCase[T](r, s.tA, s.tB, s.m, s.n, s.k, 0, 0)
			g.alpha = 1
			benchLevels(b, func(b *testing.B) {
				for b.Loop() {
					g.run(g.c.s)
				}
				flops := 2 * float64(s.m) * float64(s.n) * float64(s.k)
				b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		})
	}
}
