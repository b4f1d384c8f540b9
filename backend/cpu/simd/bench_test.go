package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

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

// BenchmarkPeak runs the largest float32 tile on the same few words again and
// again: what the multiply-add units give when nothing waits for memory.
func BenchmarkPeak(b *testing.B) {
	benchLevels(b, func(b *testing.B) {
		ts := tiles32()
		a, bb, c := make([]float32, 1024), make([]float32, 1024), make([]float32, 1024)
		p := &gemmArgs{k: 4096, cols: ts.lanes * ts.nv, ldc: uintptr(4 * ts.lanes * ts.nv)}
		if ts.pack {
			b.Skip("the plain tiles read packed blocks")
		}
		p.a, p.b, p.c = unsafe.Pointer(&a[0]), unsafe.Pointer(&bb[0]), unsafe.Pointer(&c[0])
		setMask(p, ts.lanes, ts.lanes, 4)
		for b.Loop() {
			p.tiles = 1
			ts.kern[ts.mr][ts.nv-1](p)
		}
		b.ReportMetric(2*float64(ts.mr*p.cols*p.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
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

// vecSizes are the activations of training: 15000×32, 15000×128, 7000×600.
var vecSizes = []int{8192, 15000 * 32, 15000 * 128, 7000 * 600}

func BenchmarkElementwise(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range vecSizes {
		x, y, z := make([]float32, n), make([]float32, n), make([]float32, n)
		fillRand(r, x)
		fillRand(r, y)
		s, s2 := make([]float32, 32), make([]float32, 32)
		w := n / 32 * 32
		for _, e := range []struct {
			name   string
			slices int // slices read or written
			f      func()
		}{
			{"copy", 2, func() { copy(y, x) }},
			{"axpy", 3, func() { Axpy(1e-9, x, y) }},
			{"add", 3, func() { Add(z, x, y) }},
			{"relu", 2, func() { ReLU(z, x) }},
			{"gate", 3, func() { Gate(z, x, y) }},
			{"exp", 2, func() { Exp(z, x) }},
			{"log", 2, func() { Log(z, x) }},
			{"sigmoid", 2, func() { Sigmoid(z, x) }},
			{"softplus", 2, func() { Softplus(z, x) }},
			{"tanh", 2, func() { Tanh(z, x) }},
			{"addRowReLU", 2, func() { AddRowReLU(z[:w], x[:w], s) }},
			{"affineRow", 2, func() { AffineRow(z[:w], x[:w], s, s) }},
			{"sum", 1, func() { s2[0] = Sum(x) }},
			{"dot", 2, func() { s2[0] = Dot(x, y) }},
			{"max", 1, func() { s2[0] = Max(x) }},
			{"expSum", 2, func() { s2[0] = ExpSum(z, 1, x, 0) }},
			{"colSums", 1, func() { ColSums(s2, x[:w]) }},
			{"adam", 7, func() { Adam(z, x, y, y, AdamStep{Beta1: 0.9, Beta2: 0.999, Eps: 1, Step: 1}) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", e.name, n), func(b *testing.B) {
				benchLevels(b, func(b *testing.B) {
					b.SetBytes(int64(4 * n * e.slices))
					for b.Loop() {
						e.f()
					}
				})
			})
		}
	}
}

// benchGraph is 512 random trees of 30 nodes and a few more edges, like a batch
// of molecules: 15360 nodes.
func benchGraph(r *rand.Rand, edgesPerGraph int) (ptr, adj []int32) {
	const graphs, nodes = 512, 30
	lists := make([][]int32, graphs*nodes)
	for g := range graphs {
		for e := range edgesPerGraph {
			u, v := e+1, r.IntN(min(e, nodes-1)+1)
			if e >= nodes-1 {
				u = r.IntN(nodes)
			}
			u, v = u%nodes+g*nodes, v%nodes+g*nodes
			if u != v {
				lists[u] = append(lists[u], int32(v))
				lists[v] = append(lists[v], int32(u))
			}
		}
	}
	ptr = []int32{0}
	for _, l := range lists {
		adj = append(adj, l...)
		ptr = append(ptr, int32(len(adj)))
	}
	return ptr, adj
}

func BenchmarkSpMM(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, edges := range []int{32, 64} {
		ptr, adj := benchGraph(r, edges)
		for _, cols := range []int{32, 128, 300} {
			rows := len(ptr) - 1
			x, y := make([]float32, rows*cols), make([]float32, rows*cols)
			fillRand(r, x)
			val := make([]float32, len(adj))
			fillRand(r, val)
			for _, v := range [][]float32{nil, val} {
				b.Run(fmt.Sprintf("edges=%d/width=%d/weighted=%v", len(adj), cols, v != nil), func(b *testing.B) {
					benchLevels(b, func(b *testing.B) {
						b.SetBytes(int64(4 * cols * (2*rows + len(adj))))
						for b.Loop() {
							SpMM(y, cols, 0, rows, ptr, adj, v, x, 1)
						}
					})
				})
			}
		}
	}
}
