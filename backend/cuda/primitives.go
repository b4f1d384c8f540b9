package cuda

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file maps primitives to kernels: their grids, which depend on shapes only, and
// their parameters, in the kernel's order. kernels/kernels.cu says what a kernel computes
// and how it is spread over threads.

// A parameter of a launch is a 64-bit word.

func intWord(n int) uint64       { return uint64(uint32(n)) }
func floatWord(v float64) uint64 { return math.Float64bits(v) }

func flagWord(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

const (
	threads   = 256 // of most blocks
	warp      = 32
	tileLanes = threads / warp
	maxFlat   = 4096 // blocks of a grid-stride loop
	maxChunks = 128  // parts of a sum over rows
	chunkRows = 128  // rows of a part, unless that makes too many parts

	mergedColumns = 8 // columns of a block that merges parts
)

var (
	lineBlock = dims{threads, 1, 1}
	tileBlock = dims{warp, tileLanes, 1}
)

func grid(x, y int) dims {
	return dims{uint32(x), uint32(y), 1}
}

// ceil returns a/b, rounded up.
func ceil(a, b int) int {
	return (a + b - 1) / b
}

// launch runs a kernel. It does nothing for an empty grid.
func (e *engine) launch(kernel string, grid, block dims, params ...uint64) {
	if grid[0] == 0 || grid[1] == 0 {
		e.moves = 0
		return
	}
	n := copy(e.words[:], params)
	e.check(kernel, e.d.launch(kernel, grid, block, e.words[:n]))
	e.launched()
}

// flat runs a kernel that loops over n elements.
func (e *engine) flat(kernel string, n int, params ...uint64) {
	e.launch(
		kernel, grid(min(ceil(n, threads), maxFlat), 1), lineBlock, params...,
	)
}

// blocks runs a kernel with a block for each of n items.
func (e *engine) blocks(kernel string, n int, params ...uint64) {
	e.launch(kernel, grid(n, 1), lineBlock, params...)
}

// merge runs a kernel that merges, for each column, the parts that another's blocks wrote.
func (e *engine) merge(kernel string, cols int, params ...uint64) {
	e.launch(kernel, grid(ceil(cols, mergedColumns), 1), tileBlock, params...)
}

// tiles runs a kernel with a block for each item and each 32 columns of it.
func (e *engine) tiles(kernel string, items, cols int, params ...uint64) {
	e.launch(kernel, grid(items, ceil(cols, warp)), tileBlock, params...)
}

func (e *engine) Fill(dst *tensor.Tensor, v float64) {
	e.flat("fill", dst.Len(), e.ptr(dst), floatWord(v), intWord(dst.Len()))
}

func (e *engine) CopyBlock(
	dst *tensor.Tensor, di, dj int, src *tensor.Tensor, si, sj, rows, cols int,
) {
	backend.CheckBlock(dst, di, dj, src, si, sj, rows, cols)
	d := e.part(dst, rows*cols) + uint64((di*dst.Cols+dj)*e.bytes)
	s := e.part(src, rows*cols) + uint64((si*src.Cols+sj)*e.bytes)
	e.flat("copy_block", rows*cols,
		d, s,
		intWord(dst.Cols), intWord(src.Cols), intWord(rows), intWord(cols))
}

// CopyBlocks has a row of the grid for each block, as many thread blocks as the largest needs.
func (e *engine) CopyBlocks(blocks []backend.Block) {
	const wordsOfBlock = 6
	words := make([]uint64, 0, wordsOfBlock*len(blocks))
	largest := 0
	for _, b := range blocks {
		backend.CheckBlock(
			b.Dst, b.DI, b.DJ,
			b.Src, b.SI, b.SJ,
			b.Rows, b.Cols,
		)
		n := b.Rows * b.Cols
		largest = max(largest, n)
		target := b.DI*b.Dst.Cols + b.DJ
		source := b.SI*b.Src.Cols + b.SJ
		words = append(
			words,
			e.part(b.Dst, n)+uint64(target*e.bytes),
			e.part(b.Src, n)+uint64(source*e.bytes),
			intWord(b.Dst.Cols),
			intWord(b.Src.Cols),
			intWord(b.Rows),
			intWord(b.Cols),
		)
	}
	across := min(ceil(largest, threads), maxFlat)
	e.table("CopyBlocks", words, func(address uint64) {
		e.launch(
			"copy_blocks",
			grid(across, len(blocks)),
			lineBlock,
			address,
			intWord(len(blocks)),
		)
	})
}

func (e *engine) Transpose(dst, src *tensor.Tensor) {
	backend.CheckTranspose(dst, src)
	e.launch(
		"transpose",
		grid(ceil(src.Cols, warp)*ceil(src.Rows, warp), 1),
		tileBlock,
		e.ptr(dst),
		e.ptr(src),
		intWord(src.Rows),
		intWord(src.Cols),
	)
}

func (e *engine) GatherRows(dst, src *tensor.Tensor, idx *backend.Indices) {
	backend.CheckGather(dst, src, idx)
	e.flat("gather_rows", dst.Len(),
		e.ptr(dst), e.part(src, min(src.Len(), dst.Len())), e.idx(idx),
		intWord(dst.Rows), intWord(dst.Cols))
}

func (e *engine) FillDiagonal(dst *tensor.Tensor, v float64) {
	backend.CheckSquare("backend: FillDiagonal", dst)
	e.flat("fill_diagonal", dst.Rows,
		e.part(dst, dst.Rows),
		floatWord(v), intWord(dst.Rows))
}

func (e *engine) Unary(
	dst *tensor.Tensor, op backend.UnaryOp, a *tensor.Tensor,
) {
	backend.CheckSame("backend: "+op.String(), dst, a)
	e.flat(
		"unary", dst.Len(), e.ptr(dst), e.ptr(a),
		intWord(int(op)), intWord(dst.Len()),
	)
}

// The modes of kernel binary: where it reads the second operand.
const (
	sameShape = iota
	fromRow
	fromCol
	fromScalar
)

func (e *engine) binary(
	dst *tensor.Tensor, op backend.BinaryOp, mode int, a, b *tensor.Tensor,
) {
	e.flat("binary", dst.Len(),
		e.ptr(dst), e.ptr(a), e.ptr(b),
		intWord(int(op)), intWord(mode), intWord(dst.Cols),
		intWord(dst.Len()))
}

func (e *engine) Binary(
	dst *tensor.Tensor, op backend.BinaryOp, a, b *tensor.Tensor,
) {
	backend.CheckSame("backend: "+op.String(), dst, a, b)
	e.binary(dst, op, sameShape, a, b)
}

func (e *engine) BinaryRow(
	dst *tensor.Tensor, op backend.BinaryOp, a, row *tensor.Tensor,
) {
	backend.CheckRow("backend: "+op.String()+"Row", dst, a, row)
	e.binary(dst, op, fromRow, a, row)
}

func (e *engine) BinaryCol(
	dst *tensor.Tensor, op backend.BinaryOp, a, col *tensor.Tensor,
) {
	backend.CheckCol("backend: "+op.String()+"Col", dst, a, col)
	e.binary(dst, op, fromCol, a, col)
}

func (e *engine) BinaryScalar(
	dst *tensor.Tensor, op backend.BinaryOp, a, s *tensor.Tensor,
) {
	backend.CheckScalar("backend: "+op.String()+"Scalar", dst, a, s)
	e.binary(dst, op, fromScalar, a, s)
}

func (e *engine) Affine(
	dst *tensor.Tensor, alpha float64, a *tensor.Tensor, c float64,
) {
	backend.CheckSame("backend: Affine", dst, a)
	e.flat("axpby", dst.Len(),
		e.ptr(dst), e.ptr(a), 0,
		floatWord(alpha), floatWord(0), floatWord(c), intWord(dst.Len()))
}

func (e *engine) Axpby(
	dst *tensor.Tensor,
	alpha float64,
	a *tensor.Tensor,
	beta float64,
	b *tensor.Tensor,
) {
	backend.CheckSame("backend: Axpby", dst, a, b)
	e.flat("axpby", dst.Len(),
		e.ptr(dst), e.ptr(a), e.ptr(b),
		floatWord(alpha), floatWord(beta), floatWord(0), intWord(dst.Len()))
}

func (e *engine) ReduceRows(
	dst *tensor.Tensor, op backend.RowOp, a *tensor.Tensor,
) {
	backend.CheckReduceRows("backend: "+op.String(), dst, a)
	e.blocks("reduce_rows", ceil(a.Rows, threads/warp),
		e.ptr(dst), e.ptr(a),
		intWord(int(op)), intWord(a.Rows), intWord(a.Cols))
}

func (e *engine) ColSums(dst, a *tensor.Tensor) {
	backend.CheckColSums(dst, a)
	e.segmentSum(dst, a, 0, 1)
}

func (e *engine) SegmentSum(
	dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor,
) {
	backend.CheckSegments("backend: SegmentSum", dst, ptr, x)
	e.segmentSum(dst, x, e.idx(ptr), dst.Rows)
}

// chunks returns the number of parts that the rows of a segment are cut into.
func chunks(rows, segments int) int {
	return max(1, min(maxChunks, rows/max(segments, 1)/chunkRows))
}

// segmentSum sets dst [segments×cols] to the sums of the rows of x in each segment that
// ptr delimits. If ptr is 0, the one segment has all rows.
func (e *engine) segmentSum(dst, x *tensor.Tensor, ptr uint64, segments int) {
	rows, cols := x.Rows, x.Cols
	parts := chunks(rows, segments)
	sums := dst
	if parts > 1 {
		sums = e.Alloc(segments*parts, cols)
	}
	e.tiles("segment_sum", segments*parts, cols,
		e.ptr(sums), e.ptr(x), ptr,
		intWord(rows), intWord(parts), intWord(cols))
	e.mergeChunks(dst, sums, segments, parts)
}

// mergeChunks sets dst [segments×cols] to the sum of the parts of each segment, which are
// rows of part, and frees part. It does nothing if part is dst.
func (e *engine) mergeChunks(dst, part *tensor.Tensor, segments, parts int) {
	if part == dst {
		return
	}
	e.launch(
		"merge_partials", grid(segments, ceil(dst.Cols, mergedColumns)),
		tileBlock, e.ptr(dst), e.ptr(part), 0, intWord(parts),
		intWord(mergedColumns), intWord(dst.Cols),
	)
	e.Free(part)
}

func (e *engine) Dot(dst, a, b *tensor.Tensor) {
	backend.CheckDot(dst, a, b)
	n := a.Len()
	if n == 0 {
		e.Fill(dst, 0)
		return
	}
	parts := min(ceil(n, 8*threads), 512)
	sums := e.scratch(parts, 8)
	e.blocks("dot_partials", parts, e.ptr(sums), e.ptr(a), e.ptr(b), intWord(n))
	e.blocks(
		"sum_partials", 1, e.ptr(dst),
		e.ptr(sums), floatWord(1), intWord(parts),
	)
	e.Free(sums)
}

func (e *engine) SegmentExpand(
	dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor,
) {
	backend.CheckSegments("backend: SegmentExpand", x, ptr, dst)
	e.tiles("segment_expand", max(x.Rows, 1), dst.Cols,
		e.ptr(dst), e.ptr(x), e.idx(ptr),
		intWord(x.Rows), intWord(dst.Rows), intWord(dst.Cols))
}

func (e *engine) Gemm(
	dst *tensor.Tensor,
	transA, transB bool,
	alpha float64,
	a, b *tensor.Tensor,
	beta float64,
) {
	m, n, k := backend.CheckGemm(dst, transA, transB, a, b)
	switch {
	case m == 0 || n == 0:
	case k == 0 && beta == 0:
		e.Fill(dst, 0)
	case k == 0:
		e.Affine(dst, beta, dst, 0)
	case transA && !transB && beta == 0 && e.isTall(m, n, k):
		e.gemmTall(dst, alpha, a, b)
	case e.split.splits(m, n, k, a, b):
		e.gemmSplit(dst, transA, transB, alpha, a, b, beta)
	default:
		if beta != 0 {
			e.ptr(dst) // read, too
		}
		e.check("Gemm", e.d.gemm(
			transA, transB, m, n, k, alpha, pointer(e.ptr(a)), a.Cols,
			pointer(e.ptr(b)), b.Cols, beta, pointer(e.ptr(dst)),
		))
		e.launched()
		e.work.Flops += productFlops(m, n, k)
	}
}

func (e *engine) SpMM(
	dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64,
) {
	backend.CheckSpMM(dst, a, x, self)
	if self == 0 &&
		(a.Col.Len() >= 16*a.Rows || a.Col.Len() >= 4*a.Rows && a.Rows < 1024) {
		e.spmmLong(dst, a, x)
		return
	}
	e.spmm(dst, a, x, 0, self)
}

// maxKinds is the largest number of rows of tables for the kernel messages, its KINDS.
const maxKinds = 16

// Messages reads the tables in place and adds their product in the same kernel, so y is
// written once. More than maxKinds rows take a product of their own.
func (e *engine) Messages(
	y *tensor.Tensor,
	a *backend.CSR,
	x *tensor.Tensor,
	self float64,
	c *tensor.Tensor,
	ws []*tensor.Tensor,
) {
	backend.CheckMessages(y, a, x, self, c, ws)
	if c.Cols == 0 || c.Cols > maxKinds {
		e.SpMM(y, a, x, self)
		w := e.Alloc(c.Cols, x.Cols)
		row := 0
		for _, part := range ws {
			e.CopyBlock(w, row, 0, part, 0, 0, part.Rows, part.Cols)
			row += part.Rows
		}
		e.Gemm(y, false, false, 1, c, w, 1)
		e.Free(w)
		return
	}
	rows := make([]uint64, 0, maxKinds)
	for _, w := range ws {
		first := e.ptr(w)
		for k := range w.Rows {
			rows = append(rows, first+uint64(k*w.Cols*e.bytes))
		}
	}
	lanes, across := lanesOf(x.Cols)
	e.table("Messages", rows, func(tables uint64) {
		e.launch(
			"messages", grid(ceil(a.Rows, threads/lanes), across),
			lineBlock, e.ptr(y), e.idx(a.Ptr), e.idx(a.Col), e.ptr(a.Val),
			e.ptr(x), e.ptr(c), tables, floatWord(self), intWord(c.Cols),
			intWord(lanes), intWord(a.Rows), intWord(x.Cols),
		)
	})
	e.work.Flops += productFlops(y.Rows, y.Cols, c.Cols)
}

func (e *engine) MessagesBackward(
	dx *tensor.Tensor,
	dws []*tensor.Tensor,
	dy *tensor.Tensor,
	at *backend.CSR,
	self float64,
	c *tensor.Tensor,
) {
	if dx != nil {
		e.SpMM(dx, at, dy, self)
	}
	if dws == nil {
		return
	}
	dw := e.Alloc(c.Cols, dy.Cols)
	e.Gemm(dw, true, false, 1, c, dy, 0)
	row := 0
	for _, d := range dws {
		e.CopyBlock(d, 0, 0, dw, row, 0, d.Rows, d.Cols)
		row += d.Rows
	}
	e.Free(dw)
}

// spmmLong is SpMM that gives each warp an equal number of entries, in whatever rows. Its
// two launches pay off if rows are long, or too few for all multiprocessors. An example is
// the members of categories, most of which one category may have.
func (e *engine) spmmLong(
	dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor,
) {
	const places = 32 // entries of a warp, the kernels' PLACES
	cols := x.Cols
	across := warp // columns of a warp
	if cols%4 == 0 {
		across *= 4
	}
	part := e.Alloc(ceil(a.Col.Len(), places)+a.Rows, cols)
	ptr := e.idx(a.Ptr)
	e.launch(
		"spmm_places",
		grid(ceil(a.Col.Len(), places*tileLanes), ceil(cols, across)),
		lineBlock,
		e.ptr(part),
		ptr,
		e.idx(a.Col),
		e.ptr(a.Val),
		e.ptr(x),
		intWord(a.Rows),
		intWord(cols),
	)
	e.launch("merge_partials", grid(a.Rows, ceil(cols, warp)), tileBlock,
		e.ptr(dst), e.ptr(part), ptr, 0,
		intWord(warp), intWord(cols))
	e.Free(part)
}

// lanesOf returns how many threads of spmm share a row, and how many blocks side by side
// cover all columns. It picks the numbers that leave the fewest threads idle.
func lanesOf(cols int) (lanes, across int) {
	moves := cols
	if moves%4 == 0 {
		moves /= 4
	}
	lanes = warp
	for n := warp / 2; n >= 8; n /= 2 {
		if n*ceil(moves, n) < lanes*ceil(moves, lanes) {
			lanes = n
		}
	}
	return lanes, ceil(moves, lanes)
}

// spmm is SpMM on x or, unless gather is 0, on the rows of x that it lists.
func (e *engine) spmm(
	dst *tensor.Tensor,
	a *backend.CSR,
	x *tensor.Tensor,
	gather uint64,
	self float64,
) {
	lanes, across := lanesOf(x.Cols)
	e.launch("spmm", grid(ceil(a.Rows, threads/lanes), across), lineBlock,
		e.ptr(dst), e.idx(a.Ptr), e.idx(a.Col), e.ptr(a.Val), e.ptr(x),
		gather,
		floatWord(self), intWord(lanes), intWord(a.Rows), intWord(x.Cols))
}

func (e *engine) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	backend.CheckPercentile(theta, weights, s, p)
	if weights != nil {
		e.Fill(weights, 0)
	}
	n := s.Rows
	if n < 2 {
		e.Fill(theta, 0)
		return
	}
	hist := e.percentile(theta, s, nil, p)
	if weights != nil {
		entries := n * (n - 1) / 2
		rank, weight := backend.PercentilePosition(entries, p)
		e.blocks("percentile_weights", 1,
			e.part(weights, 2), e.ptr(hist), e.part(s, entries),
			floatWord(weight), intWord(n), intWord(rank))
	}
	e.Free(hist)
}

// percentile sets theta to the p-th percentiles of the upper triangles of one or two
// matrices of at least two rows, and returns the histograms of the selection.
func (e *engine) percentile(
	theta, s0, s1 *tensor.Tensor, p float64,
) (hist *tensor.Tensor) {
	const digits = 256
	n := s0.Rows
	passes := e.bytes // a digit is a byte
	matrices := 1
	first := uint64(e.address(s0))
	second := uint64(0)
	if s1 != nil {
		matrices = 2
		second = uint64(e.address(s1))
	}
	rank, weight := backend.PercentilePosition(n*(n-1)/2, p)
	hist = e.scratch(matrices*2*passes*digits, 4)
	e.Fill(hist, 0) // the bits of 0.0 are those of 0
	for pass := range passes {
		e.moves += matrices * n * (n - 1) / 2 * e.bytes
		e.launch(
			"percentile_count", grid(min(ceil(n*n, 4*threads), 256), matrices),
			lineBlock, e.ptr(hist), first, second, intWord(n), intWord(rank),
			intWord(pass),
		)
	}
	e.launch("percentile_value", grid(matrices, 1), dims{warp, 1, 1},
		e.ptr(theta), e.ptr(hist), first, second,
		floatWord(weight), intWord(n), intWord(rank))
	return hist
}

func (e *engine) DropoutMask(
	dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor,
) {
	backend.CheckDropout(dst, keep, step)
	e.flat("dropout_mask", dst.Len(),
		e.ptr(dst), e.ptr(step),
		floatWord(keep), seed, intWord(dst.Len()))
}

func (e *engine) Adam(
	p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig,
) {
	backend.CheckAdam(p, g, m, v, rate, step)
	e.moves += 3 * p.Len() * e.bytes // p, m and v are written too
	e.flat("adam", p.Len(),
		e.ptr(p), e.ptr(g), e.ptr(m), e.ptr(v), e.ptr(rate), e.ptr(step),
		floatWord(c.Beta1), floatWord(c.Beta2), floatWord(c.Eps),
		floatWord(c.WeightDecay), intWord(p.Len()))
}
