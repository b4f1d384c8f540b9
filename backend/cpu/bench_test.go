package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// bench is one engine with what the benchmarks and the allocation test need:
// every primitive at the sizes of training.
type bench struct {
	be  backend.Backend
	rng *rand.Rand
}

// kernelCase is one call of one primitive, with the bytes that it must read and
// write at least, and its floating-point operations.
type kernelCase struct {
	name  string
	bytes int
	flops int
	call  func()
}

func newBench(p tensor.Precision, opts ...cpu.Option) *bench {
	return &bench{cpu.New(p, opts...), rand.New(rand.NewPCG(1, 2))}
}

// random returns a matrix of standard normal numbers.
func (b *bench) random(rows, cols int) *tensor.Tensor {
	v := make([]float64, rows*cols)
	for i := range v {
		v[i] = b.rng.NormFloat64()
	}
	t := b.be.Alloc(rows, cols)
	b.be.Upload(t, v)
	return t
}

func (b *bench) positive(rows, cols int) *tensor.Tensor {
	t := b.random(rows, cols)
	b.be.Unary(t, backend.Exp, t)
	return t
}

// molecules returns the adjacency of a batch of n nodes in rings of 24 with a
// few chords, 2.2 neighbours a node as in NCI1, and the pointers of its graphs.
func (b *bench) molecules(n int) (a *backend.CSR, graphs *backend.Indices) {
	const size = 24
	adj := make([][]int32, n)
	link := func(i, j int) {
		adj[i] = append(adj[i], int32(j))
		adj[j] = append(adj[j], int32(i))
	}
	segments := []int32{0}
	for lo := 0; lo < n; lo += size {
		hi := min(lo+size, n)
		for i := lo; i+1 < hi; i++ {
			link(i, i+1)
		}
		for range (hi - lo) / 6 {
			link(lo+b.rng.IntN(hi-lo), lo+b.rng.IntN(hi-lo))
		}
		segments = append(segments, int32(hi))
	}
	ptr := []int32{0}
	var col []int32
	for _, row := range adj {
		col = append(col, row...)
		ptr = append(ptr, int32(len(col)))
	}
	return &backend.CSR{Rows: n, Cols: n, Ptr: b.be.Indices(ptr), Col: b.be.Indices(col)}, b.be.Indices(segments)
}

// width lists the primitives on matrices of n nodes and f features.
func (b *bench) width(n, f int) []kernelCase {
	be := b.be
	x, y, dst := b.random(n, f), b.random(n, f), b.be.Alloc(n, f)
	pos := b.positive(n, f)
	row, col, scalar := b.positive(1, f), b.positive(n, 1), b.positive(1, 1)
	rowSums, w, dw := b.be.Alloc(1, f), b.random(f, f), b.be.Alloc(f, f)
	colOut, transposed := b.be.Alloc(n, 1), b.be.Alloc(f, n)
	adj, graphs := b.molecules(n)
	values := *adj
	values.Val = b.random(adj.Col.Len(), 1)
	pooled := b.random(graphs.Len()-1, f)
	views, viewSums := be.Indices([]int32{0, int32(n / 2), int32(n)}), be.Alloc(2, f)
	shuffled := make([]int32, n)
	for i, j := range b.rng.Perm(n) {
		shuffled[i] = int32(j)
	}
	idx := be.Indices(shuffled)
	m, v, step, rate := be.Alloc(n, f), be.Alloc(n, f), be.Alloc(1, 1), be.Alloc(1, 1)
	be.Fill(m, 0)
	be.Fill(v, 0)
	be.Fill(step, 3)
	be.Fill(rate, 1e-9)

	e := be.Precision().Bytes()
	nf, nnz := n*f*e, adj.Col.Len()
	shape := func(op string) string { return fmt.Sprintf("%s/%dx%d", op, n, f) }
	cases := []kernelCase{
		{shape("Fill"), nf, 0, func() { be.Fill(dst, 1) }},
		{shape("CopyBlock"), 2 * nf, 0, func() { be.CopyBlock(dst, 0, 0, x, 0, 0, n, f) }},
		{shape("CopyBlockCols"), nf, 0, func() { be.CopyBlock(dst, 0, f/2, x, 0, 0, n, f-f/2) }},
		{shape("Transpose"), 2 * nf, 0, func() { be.Transpose(transposed, x) }},
		{shape("GatherRows"), 2 * nf, 0, func() { be.GatherRows(dst, x, idx) }},
		{shape("Affine"), 2 * nf, 2 * n * f, func() { be.Affine(dst, 2, x, 1) }},
		{shape("Axpby"), 3 * nf, 3 * n * f, func() { be.Axpby(dst, 2, x, 3, y) }},
		{shape("RowSum"), nf, n * f, func() { be.ReduceRows(colOut, backend.RowSum, x) }},
		{shape("RowMax"), nf, n * f, func() { be.ReduceRows(colOut, backend.RowMax, x) }},
		{shape("RowLogSumExp"), nf, n * f, func() { be.ReduceRows(colOut, backend.RowLogSumExp, x) }},
		{shape("ColSums"), nf, n * f, func() { be.ColSums(rowSums, x) }},
		{shape("Sum"), nf, n * f, func() { be.Dot(scalar, x, nil) }},
		{shape("Dot"), 2 * nf, 2 * n * f, func() { be.Dot(scalar, x, y) }},
		{shape("SegmentSum"), nf, n * f, func() { be.SegmentSum(pooled, graphs, x) }},
		{shape("SegmentSumLong"), nf, n * f, func() { be.SegmentSum(viewSums, views, x) }},
		{shape("SegmentExpand"), nf, 0, func() { be.SegmentExpand(dst, graphs, pooled) }},
		{shape("GemmNN"), 2 * nf, 2 * n * f * f, func() { be.Gemm(dst, false, false, 1, x, w, 0) }},
		{shape("GemmNT"), 2 * nf, 2 * n * f * f, func() { be.Gemm(dst, false, true, 1, x, w, 0) }},
		{shape("GemmTN"), 2 * nf, 2 * n * f * f, func() { be.Gemm(dw, true, false, 1, x, y, 0) }},
		{shape("GemmTNAccumulate"), 2 * nf, 2 * n * f * f, func() { be.Gemm(dw, true, false, 1e-3, x, y, 0.5) }},
		{shape("SpMM"), nf + e*f*(nnz+n), f * (nnz + n), func() { be.SpMM(dst, adj, x, 1) }},
		{shape("SpMMValues"), nf + e*f*nnz, 2 * f * nnz, func() { be.SpMM(dst, &values, x, 0) }},
		{shape("DropoutMask"), nf, 0, func() { be.DropoutMask(dst, 0.9, 1, step) }},
		{shape("Adam"), 7 * nf, 12 * n * f, func() { be.Adam(dst, x, m, v, rate, step, backend.AdamConfig{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}) }},
	}
	for _, op := range backend.UnaryOps() {
		cases = append(cases, kernelCase{shape(op.String()), 2 * nf, n * f, func() { be.Unary(dst, op, pos) }})
	}
	for _, op := range backend.BinaryOps() {
		cases = append(cases,
			kernelCase{shape(op.String()), 3 * nf, n * f, func() { be.Binary(dst, op, x, pos) }},
			kernelCase{shape(op.String() + "Row"), 2 * nf, n * f, func() { be.BinaryRow(dst, op, x, row) }},
			kernelCase{shape(op.String() + "Col"), 2 * nf, n * f, func() { be.BinaryCol(dst, op, x, col) }},
			kernelCase{shape(op.String() + "Scalar"), 2 * nf, n * f, func() { be.BinaryScalar(dst, op, x, scalar) }})
	}
	return cases
}

// batch lists the primitives on the similarities of n embeddings of d numbers.
func (b *bench) batch(n, d int) []kernelCase {
	be := b.be
	z, s, w, g := b.random(n, d), be.Alloc(n, n), be.Alloc(n, n), be.Alloc(n, d)
	norm := be.Alloc(n, 1)
	be.Binary(g, backend.Mul, z, z)
	be.ReduceRows(norm, backend.RowSum, g)
	be.Unary(norm, backend.InvSqrt, norm)
	be.BinaryCol(z, backend.Mul, z, norm)
	be.Gemm(s, false, true, 1, z, z, 0)
	theta := be.Alloc(1, 1)
	e := be.Precision().Bytes()
	shape := func(op string) string { return fmt.Sprintf("%s/%dx%d", op, n, d) }
	return []kernelCase{
		{shape("Similarity"), e * n * n, 2 * n * n * d, func() { be.Gemm(s, false, true, 1, z, z, 0) }},
		{shape("SimilarityGradient"), e * n * n, 2 * n * n * d, func() { be.Gemm(g, false, false, 1, s, z, 0) }},
		{shape("SimilarityGradientT"), e * n * n, 2 * n * n * d, func() { be.Gemm(g, true, false, 1, s, z, 0) }},
		{shape("UpperPercentile"), e * n * n / 2, 0, func() { be.UpperPercentile(theta, nil, s, 80) }},
		{shape("UpperPercentileWeights"), e * n * n / 2, 0, func() { be.UpperPercentile(theta, w, s, 80) }},
		{shape("LogSumExpRows"), e * n * n, n * n, func() { be.ReduceRows(norm, backend.RowLogSumExp, s) }},
		{shape("FillDiagonal"), 0, 0, func() { be.FillDiagonal(w, 0) }},
	}
}

// layers lists the GIN layer on n nodes of f features, and on one-hot rows of 37
// categories, in both directions.
func (b *bench) layers(n, f int) (cases []kernelCase) {
	const categories = 37
	be := b.be
	gin := backend.CapabilitiesOf(be).GIN
	adj, graphs := b.molecules(n)
	half := graphs.Host[graphs.Len()/2]
	views := be.Indices([]int32{0, half, int32(n)})
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(b.rng.IntN(categories))
	}
	e := be.Precision().Bytes()
	nf, sums := n*f*e, f*(n+adj.Col.Len())
	for _, in := range []int{categories, f} {
		g := graphs.Len() - 1
		l := &backend.GINLayer{
			Adj: adj, AdjT: adj, Graphs: graphs, Views: views, Self: 1, Eps: 1e-5,
			W1: b.random(in, f), B1: b.random(1, f), W2: b.random(f, f), B2: b.random(1, f), Gamma: b.positive(1, f), Beta: b.random(1, f),
			Mean: be.Alloc(2, f), Var: be.Alloc(2, f),
			H1: be.Alloc(n, f), H2: be.Alloc(n, f), Sums: be.Alloc(g, f), Y: be.Alloc(n, f), Pooled: be.Alloc(g, f),
		}
		d := &backend.GINGradients{
			DY: b.random(n, f), DPooled: b.random(g, f),
			W1: be.Alloc(in, f), B1: be.Alloc(1, f), W2: be.Alloc(f, f), B2: be.Alloc(1, f), Gamma: be.Alloc(1, f), Beta: be.Alloc(1, f),
		}
		name, product := "GINOneHot", 2*n*f*f
		forward, backward := 3*nf, 4*nf // h1, h2, y; dy twice, h1, h2
		flops, flopsBack := sums+product, sums+2*product
		if in == f {
			name = "GIN"
			l.X, l.Agg, d.DX = b.random(n, in), be.Alloc(n, in), be.Alloc(n, in)
			forward, backward = forward+2*nf, backward+2*nf // x, agg; agg, dx
			flops, flopsBack = flops+product, flopsBack+2*product
		} else {
			l.Category = be.Indices(labels)
		}
		cases = append(cases,
			kernelCase{fmt.Sprintf("%sForward/%dx%d", name, n, f), forward, flops, func() { gin.GINForward(l) }},
			kernelCase{fmt.Sprintf("%sBackward/%dx%d", name, n, f), backward, flopsBack, func() { gin.GINBackward(l, d) }})
	}
	return cases
}

// losses lists both losses on two views of n embeddings of d numbers, in both
// directions.
func (b *bench) losses(n, d int) []kernelCase {
	be := b.be
	fuser := backend.CapabilitiesOf(be).Contrast
	m := 2 * n
	u, g, norm := b.random(m, d), be.Alloc(m, d), be.Alloc(m, 1)
	be.Binary(g, backend.Mul, u, u)
	be.ReduceRows(norm, backend.RowSum, g)
	be.Unary(norm, backend.InvSqrt, norm)
	be.BinaryCol(u, backend.Mul, u, norm)
	one := be.Alloc(1, 1)
	be.Fill(one, 1)
	e := be.Precision().Bytes()
	var cases []kernelCase
	for _, match := range []bool{false, true} {
		c := &backend.Contrast{
			U: u, Temperature: 0.2, Scale: 1 / float64(m), E: be.Alloc(m, m), InvZ: be.Alloc(m, 1), LossC: be.Alloc(1, 1),
		}
		name, dg, bytes := "InfoNCE", (*tensor.Tensor)(nil), e*m*m
		if match {
			c.Match, c.Kappa, c.Percentile = true, 10, 80
			c.A1, c.A2, c.R, c.W, c.LossG = be.Alloc(n, n), be.Alloc(n, n), be.Alloc(m, 1), be.Alloc(m, 1), be.Alloc(1, 1)
			name, dg, bytes = "InfoNCEAndLaplacian", one, bytes+2*e*n*n
		}
		cases = append(cases,
			kernelCase{fmt.Sprintf("%sForward/%dx%d", name, m, d), bytes, 2 * m * m * d, func() { fuser.ContrastForward(c) }},
			kernelCase{fmt.Sprintf("%sBackward/%dx%d", name, m, d), bytes, 2 * m * m * d, func() { fuser.ContrastBackward(c, one, dg, g) }})
	}
	return cases
}

// BenchmarkPrimitives runs every primitive, and what is fused of them, in the
// shapes of training: 12,288 nodes of 32, 128 and 300 features, and 512
// embeddings. Bytes are those of the operands, each counted once; operations are
// those of products and sums.
//
//	go test -run '^$' -bench Primitives/float32 -cpu 1,2 ./backend/cpu
func BenchmarkPrimitives(b *testing.B) {
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		b.Run(p.String(), func(b *testing.B) {
			for _, f := range []int{32, 128, 300} {
				for _, c := range newBench(p).width(12288, f) {
					c.run(b)
				}
				for _, c := range newBench(p).layers(12288, f) {
					c.run(b)
				}
			}
			for _, c := range append(newBench(p).batch(512, 96), newBench(p).losses(512, 96)...) {
				c.run(b)
			}
		})
	}
}

func (c kernelCase) run(b *testing.B) {
	b.Run(c.name, func(b *testing.B) {
		c.call()
		b.ReportAllocs()
		b.SetBytes(int64(c.bytes))
		for b.Loop() {
			c.call()
		}
		b.ReportMetric(float64(c.flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
}
