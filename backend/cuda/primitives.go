package cuda

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file maps primitives to kernels. What a kernel computes, and how it is
// spread over threads, stands with the kernel in kernels/kernels.cu; here are
// grids, which depend on shapes only, and parameters in the kernel's order.

// i and f make parameters of numbers.
func i(n int) uint64     { return uint64(uint32(n)) }
func f(v float64) uint64 { return math.Float64bits(v) }

func flag(b bool) uint64 {
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
	chunkRows = 128  // of a part, unless there are too many

	mergedColumns = 8 // of a block that merges parts
)

func ceil(a, b int) int { return (a + b - 1) / b }

// launch runs a kernel, or nothing on an empty grid.
func (e *engine) launch(kernel string, grid, block dims, params ...uint64) {
	if grid[0] == 0 || grid[1] == 0 {
		e.moves = 0
		return
	}
	n := copy(e.words[:], params)
	if err := e.d.launch(kernel, grid, block, e.words[:n]); err != nil {
		e.fail(kernel, err)
	}
	e.launched()
}

// flat runs a kernel that loops over n elements.
func (e *engine) flat(kernel string, n int, params ...uint64) {
	e.launch(kernel, dims{uint32(min(ceil(n, threads), maxFlat)), 1, 1}, dims{threads, 1, 1}, params...)
}

// blocks runs a kernel with a block for each of n items.
func (e *engine) blocks(kernel string, n int, params ...uint64) {
	e.launch(kernel, dims{uint32(n), 1, 1}, dims{threads, 1, 1}, params...)
}

// merge runs a kernel that merges what the blocks of another have left of each column.
func (e *engine) merge(kernel string, cols int, params ...uint64) {
	e.launch(kernel, dims{uint32(ceil(cols, mergedColumns)), 1, 1}, dims{warp, tileLanes, 1}, params...)
}

// tiles runs a kernel with a block for each item and each 32 columns.
func (e *engine) tiles(kernel string, items, cols int, params ...uint64) {
	e.launch(kernel, dims{uint32(items), uint32(ceil(cols, warp)), 1}, dims{warp, tileLanes, 1}, params...)
}

func (e *engine) Fill(dst *tensor.Tensor, v float64) {
	e.flat("fill", dst.Len(), e.ptr(dst), f(v), i(dst.Len()))
}

func (e *engine) CopyBlock(dst *tensor.Tensor, di, dj int, src *tensor.Tensor, si, sj, rows, cols int) {
	backend.CheckBlock(dst, di, dj, src, si, sj, rows, cols)
	d := e.part(dst, rows*cols) + uint64((di*dst.Cols+dj)*e.bytes)
	s := e.part(src, rows*cols) + uint64((si*src.Cols+sj)*e.bytes)
	e.flat("copy_block", rows*cols, d, s, i(dst.Cols), i(src.Cols), i(rows), i(cols))
}

func (e *engine) Transpose(dst, src *tensor.Tensor) {
	backend.CheckTranspose(dst, src)
	e.launch("transpose", dims{uint32(ceil(src.Cols, warp) * ceil(src.Rows, warp)), 1, 1}, dims{warp, tileLanes, 1},
		e.ptr(dst), e.ptr(src), i(src.Rows), i(src.Cols))
}

func (e *engine) GatherRows(dst, src *tensor.Tensor, idx *backend.Indices) {
	backend.CheckGather(dst, src, idx)
	e.flat("gather_rows", dst.Len(), e.ptr(dst), e.part(src, min(src.Len(), dst.Len())), e.idx(idx), i(dst.Rows), i(dst.Cols))
}

func (e *engine) FillDiagonal(dst *tensor.Tensor, v float64) {
	backend.CheckSquare("backend: FillDiagonal", dst)
	e.flat("fill_diagonal", dst.Rows, e.part(dst, dst.Rows), f(v), i(dst.Rows))
}

func (e *engine) Unary(dst *tensor.Tensor, op backend.UnaryOp, a *tensor.Tensor) {
	backend.CheckSame("backend: "+op.String(), dst, a)
	e.flat("unary", dst.Len(), e.ptr(dst), e.ptr(a), i(int(op)), i(dst.Len()))
}

// How an element of the second operand of kernel binary is found.
const (
	sameShape = iota
	fromRow
	fromCol
	fromScalar
)

func (e *engine) binary(dst *tensor.Tensor, op backend.BinaryOp, mode int, a, b *tensor.Tensor) {
	e.flat("binary", dst.Len(), e.ptr(dst), e.ptr(a), e.ptr(b), i(int(op)), i(mode), i(dst.Cols), i(dst.Len()))
}

func (e *engine) Binary(dst *tensor.Tensor, op backend.BinaryOp, a, b *tensor.Tensor) {
	backend.CheckSame("backend: "+op.String(), dst, a, b)
	e.binary(dst, op, sameShape, a, b)
}

func (e *engine) BinaryRow(dst *tensor.Tensor, op backend.BinaryOp, a, row *tensor.Tensor) {
	backend.CheckRow("backend: "+op.String()+"Row", dst, a, row)
	e.binary(dst, op, fromRow, a, row)
}

func (e *engine) BinaryCol(dst *tensor.Tensor, op backend.BinaryOp, a, col *tensor.Tensor) {
	backend.CheckCol("backend: "+op.String()+"Col", dst, a, col)
	e.binary(dst, op, fromCol, a, col)
}

func (e *engine) BinaryScalar(dst *tensor.Tensor, op backend.BinaryOp, a, s *tensor.Tensor) {
	backend.CheckScalar("backend: "+op.String()+"Scalar", dst, a, s)
	e.binary(dst, op, fromScalar, a, s)
}

func (e *engine) Affine(dst *tensor.Tensor, alpha float64, a *tensor.Tensor, c float64) {
	backend.CheckSame("backend: Affine", dst, a)
	e.flat("axpby", dst.Len(), e.ptr(dst), e.ptr(a), 0, f(alpha), f(0), f(c), i(dst.Len()))
}

func (e *engine) Axpby(dst *tensor.Tensor, alpha float64, a *tensor.Tensor, beta float64, b *tensor.Tensor) {
	backend.CheckSame("backend: Axpby", dst, a, b)
	e.flat("axpby", dst.Len(), e.ptr(dst), e.ptr(a), e.ptr(b), f(alpha), f(beta), f(0), i(dst.Len()))
}

func (e *engine) ReduceRows(dst *tensor.Tensor, op backend.RowOp, a *tensor.Tensor) {
	backend.CheckReduceRows("backend: "+op.String(), dst, a)
	e.blocks("reduce_rows", ceil(a.Rows, threads/warp), e.ptr(dst), e.ptr(a), i(int(op)), i(a.Rows), i(a.Cols))
}

func (e *engine) ColSums(dst, a *tensor.Tensor) {
	backend.CheckColSums(dst, a)
	e.segmentSum(dst, a, 0, 1)
}

func (e *engine) SegmentSum(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	backend.CheckSegments("backend: SegmentSum", dst, ptr, x)
	e.segmentSum(dst, x, e.idx(ptr), dst.Rows)
}

// chunks returns into how many parts the rows of a segment are cut.
func chunks(rows, segments int) int {
	return max(1, min(maxChunks, rows/max(segments, 1)/chunkRows))
}

// segmentSum sets dst [segments×cols] to the sums of rows of x: of those that ptr
// delimits, or all for 0.
func (e *engine) segmentSum(dst, x *tensor.Tensor, ptr uint64, segments int) {
	rows, cols := x.Rows, x.Cols
	parts := chunks(rows, segments)
	to := dst
	if parts > 1 {
		to = e.Alloc(segments*parts, cols)
	}
	e.tiles("segment_sum", segments*parts, cols, e.ptr(to), e.ptr(x), ptr, i(rows), i(parts), i(cols))
	e.mergeChunks(dst, to, segments, parts)
}

// mergeChunks sets dst [segments×cols] to the sums of so many parts of each segment, the
// rows of part, and frees part; unless part is dst.
func (e *engine) mergeChunks(dst, part *tensor.Tensor, segments, parts int) {
	if part == dst {
		return
	}
	e.launch("merge_partials", dims{uint32(segments), uint32(ceil(dst.Cols, mergedColumns)), 1}, dims{warp, tileLanes, 1},
		e.ptr(dst), e.ptr(part), 0, i(parts), i(mergedColumns), i(dst.Cols))
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
	e.blocks("dot_partials", parts, e.ptr(sums), e.ptr(a), e.ptr(b), i(n))
	e.blocks("sum_partials", 1, e.ptr(dst), e.ptr(sums), f(1), i(parts))
	e.Free(sums)
}

func (e *engine) SegmentExpand(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	backend.CheckSegments("backend: SegmentExpand", x, ptr, dst)
	e.tiles("segment_expand", max(x.Rows, 1), dst.Cols, e.ptr(dst), e.ptr(x), e.idx(ptr), i(x.Rows), i(dst.Rows), i(dst.Cols))
}

func (e *engine) Gemm(dst *tensor.Tensor, transA, transB bool, alpha float64, a, b *tensor.Tensor, beta float64) {
	m, n, k := backend.CheckGemm(dst, transA, transB, a, b)
	switch {
	case m == 0 || n == 0:
	case k == 0 && beta == 0:
		e.Fill(dst, 0)
	case k == 0:
		e.Affine(dst, beta, dst, 0)
	default:
		if beta != 0 {
			e.ptr(dst) // which is read too
		}
		e.check("Gemm", e.d.gemm(transA, transB, m, n, k, alpha,
			pointer(e.ptr(a)), a.Cols, pointer(e.ptr(b)), b.Cols, beta, pointer(e.ptr(dst))))
		e.launched()
		e.work.Flops += productFlops(m, n, k)
	}
}

func (e *engine) SpMM(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64) {
	backend.CheckSpMM(dst, a, x, self)
	if self == 0 && (a.Col.Len() >= 16*a.Rows || a.Col.Len() >= 4*a.Rows && a.Rows < 1024) {
		e.spmmLong(dst, a, x)
		return
	}
	e.spmm(dst, a, x, 0, self)
}

// maxKinds is the most rows of tables that the kernel messages takes, its KINDS.
const maxKinds = 16

// Messages reads the tables where they lie and adds their product on the way, so that y is
// written once.
func (e *engine) Messages(y *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64, c *tensor.Tensor, ws []*tensor.Tensor) {
	backend.CheckMessages(y, a, x, self, c, ws)
	if c.Cols == 0 || c.Cols > maxKinds {
		e.SpMM(y, a, x, self)
		w := e.Alloc(c.Cols, x.Cols)
		at := 0
		for _, part := range ws {
			e.CopyBlock(w, at, 0, part, 0, 0, part.Rows, part.Cols)
			at += part.Rows
		}
		e.Gemm(y, false, false, 1, c, w, 1)
		e.Free(w)
		return
	}
	rows := make([]uint64, 0, maxKinds)
	for _, w := range ws {
		at := e.ptr(w)
		for k := range w.Rows {
			rows = append(rows, at+uint64(k*w.Cols*e.bytes))
		}
	}
	lanes, across := lanesOf(x.Cols)
	e.table("Messages", rows, func(tables uint64) {
		e.launch("messages", dims{uint32(ceil(a.Rows, threads/lanes)), uint32(across), 1}, dims{threads, 1, 1},
			e.ptr(y), e.idx(a.Ptr), e.idx(a.Col), e.ptr(a.Val), e.ptr(x), e.ptr(c), tables, f(self), i(c.Cols), i(lanes), i(a.Rows), i(x.Cols))
	})
	e.work.Flops += productFlops(y.Rows, y.Cols, c.Cols)
}

func (e *engine) MessagesBackward(dx *tensor.Tensor, dws []*tensor.Tensor, dy *tensor.Tensor, at *backend.CSR, self float64, c *tensor.Tensor) {
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

// spmmLong is SpMM with a share of the places for each warp, whatever their rows. It takes
// two launches, which pay where rows are long, or too few for all multiprocessors: of the
// members of categories one may have most.
func (e *engine) spmmLong(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor) {
	const places = 32 // of a warp, the kernels' PLACES
	cols := x.Cols
	across := warp // columns of a warp
	if cols%4 == 0 {
		across *= 4
	}
	part := e.Alloc(ceil(a.Col.Len(), places)+a.Rows, cols)
	ptr := e.idx(a.Ptr)
	e.launch("spmm_places", dims{uint32(ceil(a.Col.Len(), places*tileLanes)), uint32(ceil(cols, across)), 1}, dims{threads, 1, 1},
		e.ptr(part), ptr, e.idx(a.Col), e.ptr(a.Val), e.ptr(x), i(a.Rows), i(cols))
	e.launch("merge_partials", dims{uint32(a.Rows), uint32(ceil(cols, warp)), 1}, dims{warp, tileLanes, 1},
		e.ptr(dst), e.ptr(part), ptr, 0, i(warp), i(cols))
	e.Free(part)
}

// lanesOf returns how many threads of spmm share a row, and how many times as many it takes
// for all its columns: the numbers that leave the fewest threads idle.
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

// spmm is SpMM on x, or on the rows of x that gather chooses.
func (e *engine) spmm(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, gather uint64, self float64) {
	lanes, across := lanesOf(x.Cols)
	e.launch("spmm", dims{uint32(ceil(a.Rows, threads/lanes)), uint32(across), 1}, dims{threads, 1, 1},
		e.ptr(dst), e.idx(a.Ptr), e.idx(a.Col), e.ptr(a.Val), e.ptr(x), gather, f(self), i(lanes), i(a.Rows), i(x.Cols))
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
		rank, second := backend.PercentilePosition(n*(n-1)/2, p)
		e.blocks("percentile_weights", 1, e.part(weights, 2), e.ptr(hist), e.part(s, n*(n-1)/2), f(second), i(n), i(rank))
	}
	e.Free(hist)
}

// percentile sets theta to the p-th percentiles of the upper triangles of one or two
// matrices of at least two rows, and returns the histograms of the selection.
func (e *engine) percentile(theta, s0, s1 *tensor.Tensor, p float64) (hist *tensor.Tensor) {
	const digits = 256
	n, passes, matrices := s0.Rows, e.bytes, 1
	first, other := uint64(e.at(s0)), uint64(0)
	if s1 != nil {
		matrices, other = 2, uint64(e.at(s1))
	}
	rank, second := backend.PercentilePosition(n*(n-1)/2, p)
	hist = e.scratch(matrices*2*passes*digits, 4)
	e.Fill(hist, 0) // zero has no bits
	for pass := range passes {
		e.moves += matrices * n * (n - 1) / 2 * e.bytes
		e.launch("percentile_count", dims{uint32(min(ceil(n*n, 16*threads), 128)), uint32(matrices), 1}, dims{threads, 1, 1},
			e.ptr(hist), first, other, i(n), i(rank), i(pass))
	}
	e.launch("percentile_value", dims{uint32(matrices), 1, 1}, dims{warp, 1, 1},
		e.ptr(theta), e.ptr(hist), first, other, f(second), i(n), i(rank))
	return hist
}

func (e *engine) DropoutMask(dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor) {
	backend.CheckDropout(dst, keep, step)
	e.flat("dropout_mask", dst.Len(), e.ptr(dst), e.ptr(step), f(keep), seed, i(dst.Len()))
}

func (e *engine) Adam(p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig) {
	backend.CheckAdam(p, g, m, v, rate, step)
	e.moves += 3 * p.Len() * e.bytes // p, m and v are written too
	e.flat("adam", p.Len(), e.ptr(p), e.ptr(g), e.ptr(m), e.ptr(v), e.ptr(rate), e.ptr(step),
		f(c.Beta1), f(c.Beta2), f(c.Eps), f(c.WeightDecay), i(p.Len()))
}
