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
		rates(b, 0, 2*ts.mr*p.cols*p.k, func() {
			p.tiles = 1
			ts.kern[ts.mr][ts.nv-1](p)
		})
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
				size := int(unsafe.Sizeof(g.alpha))
				rates(b, size*(s.m*s.k+s.k*s.n+s.m*s.n), 2*s.m*s.n*s.k, func() { g.run(g.c.s) })
			})
			if g, ok := any(g).(*gemmCase[float32]); ok && BF16Error() == nil {
				b.Run("bf16", func(b *testing.B) {
					rates(b, 4*(s.m*s.k+s.k*s.n+s.m*s.n), 2*s.m*s.n*s.k, func() {
						GemmBF16(s.tA, s.tB, s.m, s.n, s.k, 1, g.a.s, g.lda, g.b.s, g.ldb, 0, g.c.s, g.ldc)
					})
				})
			}
		})
	}
}

// rates reports the bytes and the floating-point operations of one call. A
// fused multiply-add counts as two operations; an exponential and its kin, a root
// and a quotient as one.
func rates(b *testing.B, bytes, flops int, f func()) {
	b.SetBytes(int64(bytes))
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// vecSizes are the activations of training: 15000×32, 15000×128, 7000×600.
var vecSizes = []int{8192, 15000 * 32, 15000 * 128, 7000 * 600}

func BenchmarkElementwise(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range vecSizes {
		const cols = 32
		n := n / cols * cols
		x, y, z, m := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
		for _, s := range [][]float32{x, y, m} {
			fillRand(r, s)
			Abs(s, s)
		}
		row, col, out := make([]float32, cols), make([]float32, n/cols), make([]float32, cols)
		fillRand(r, row)
		fillRand(r, col)
		idx := make([]int32, n/cols)
		for i, j := range r.Perm(len(idx)) {
			idx[i] = int32(j)
		}
		for _, e := range []struct {
			name   string
			slices int // slices read or written
			flops  int // for each element
			f      func()
		}{
			{"copy", 2, 0, func() { copy(y, x) }},
			{"axpy", 3, 2, func() { Axpy(1e-9, x, z) }},
			{"axpby", 3, 3, func() { Axpby(z, 2, x, 3, y) }},
			{"affine", 2, 2, func() { Affine(z, 2, x, 1) }},
			{"scale", 2, 1, func() { Scale(z, 2, x) }},
			{"add", 3, 1, func() { Add(z, x, y) }},
			{"sub", 3, 1, func() { Sub(z, x, y) }},
			{"mul", 3, 1, func() { Mul(z, x, y) }},
			{"div", 3, 1, func() { Div(z, x, y) }},
			{"maximum", 3, 1, func() { Maximum(z, x, y) }},
			{"greater", 3, 1, func() { Greater(z, x, y) }},
			{"gate", 3, 1, func() { Gate(z, x, y) }},
			{"relu", 2, 1, func() { ReLU(z, x) }},
			{"abs", 2, 1, func() { Abs(z, x) }},
			{"sign", 2, 1, func() { Sign(z, x) }},
			{"sqrt", 2, 1, func() { Sqrt(z, x) }},
			{"reciprocal", 2, 1, func() { Reciprocal(z, x) }},
			{"exp", 2, 1, func() { Exp(z, x) }},
			{"log", 2, 1, func() { Log(z, x) }},
			{"sigmoid", 2, 1, func() { Sigmoid(z, x) }},
			{"softplus", 2, 1, func() { Softplus(z, x) }},
			{"tanh", 2, 1, func() { Tanh(z, x) }},
			{"addRow", 2, 1, func() { AddRow(z, x, row) }},
			{"subRow", 2, 1, func() { SubRow(z, x, row) }},
			{"mulRow", 2, 1, func() { MulRow(z, x, row) }},
			{"divRow", 2, 1, func() { DivRow(z, x, row) }},
			{"addCol", 2, 1, func() { AddCol(z, x, col) }},
			{"subCol", 2, 1, func() { SubCol(z, x, col) }},
			{"mulCol", 2, 1, func() { MulCol(z, x, col) }},
			{"divCol", 2, 1, func() { DivCol(z, x, col) }},
			{"addRowReLU", 2, 2, func() { AddRowReLU(z, x, row) }},
			{"affineRow", 2, 2, func() { AffineRow(z, x, row, row) }},
			{"combineRow", 3, 4, func() { CombineRow(z, x, row, y, row, row) }},
			{"sum", 1, 1, func() { out[0] = Sum(x) }},
			{"sumSquares", 1, 2, func() { out[0] = SumSquares(x) }},
			{"dot", 2, 2, func() { out[0] = Dot(x, y) }},
			{"max", 1, 1, func() { out[0] = Max(x) }},
			{"expSum", 2, 4, func() { out[0] = ExpSum(z, 1, x, 0) }},
			{"expSumOnly", 1, 4, func() { out[0] = ExpSum(nil, 1, x, 0) }},
			{"colSums", 1, 1, func() { ColSums(out, x) }},
			{"colDots", 2, 2, func() { ColDots(out, x, y) }},
			{"colSquares", 1, 3, func() { ColSquares(out, x, row) }},
			{"gatherRows", 2, 0, func() { GatherRows(z, x, cols, idx) }},
			// Eight sums and products, a root, two quotients, and two multiply-adds.
			{"adam", 7, 15, func() { Adam(z, x, y, m, AdamStep{Beta1: 0.9, Beta2: 0.999, Eps: 1, Step: 1}) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", e.name, n), func(b *testing.B) {
				benchLevels(b, func(b *testing.B) { rates(b, 4*n*e.slices, n*e.flops, e.f) })
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
						flops := cols * (rows + len(adj))
						if v != nil {
							flops += cols * len(adj)
						}
						rates(b, 4*cols*(2*rows+len(adj)), flops, func() { SpMM(y, cols, 0, rows, ptr, adj, v, x, 1) })
					})
				})
			}
		}
	}
}
