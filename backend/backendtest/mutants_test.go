package backendtest

import (
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// A mutant is an engine with one error of a kind that kernels have: it embeds a
// sound engine and spoils one of its methods. The check of the given name must
// find it.
type mutant struct {
	check, error string
	open         func(b backend.Backend) backend.Backend
}

var mutants = []mutant{
	{"Alloc", "frees nothing", func(b backend.Backend) backend.Backend { return freesNothing{b} }},
	{"Alloc", "gives the same memory to two tensors", func(b backend.Backend) backend.Backend {
		return &sharesMemory{b, nil, map[*tensor.Tensor]tensor.Buffer{}}
	}},
	{"Alloc", "counts no bytes", func(b backend.Backend) backend.Backend { return countsNothing{b} }},
	{"Upload", "leaves out the last of many values", func(b backend.Backend) backend.Backend { return uploadShort{b} }},
	{"Upload", "keeps the host slice", func(b backend.Backend) backend.Backend { return &keepsHost{Backend: b} }},
	{"Upload", "Upload32 flushes denormals", func(b backend.Backend) backend.Backend { return upload32Flushes{b} }},
	{"Upload", "Download leaves out the last value", func(b backend.Backend) backend.Backend { return downloadShort{b} }},
	{"Indices", "holds 4096 indices at most", func(b backend.Backend) backend.Backend { return indicesShort{b} }},
	{"Indices", "FreeIndices frees nothing", func(b backend.Backend) backend.Backend { return freesNoIndices{b} }},
	{"IndexBlock", "refills the first vector only", func(b backend.Backend) backend.Backend { return refillsFirst{b} }},
	{"IndexBlock", "refills at the next use", func(b backend.Backend) backend.Backend { return &refillsLate{Backend: b} }},
	{"IndexBlock", "gathers when the result is read, by the indices of then", func(b backend.Backend) backend.Backend { return &gathersLate{Backend: b} }},
	{"Fetch", "reads when it is asked", func(b backend.Backend) backend.Backend { return fetchesLate{b} }},
	{"Fill", "loses the sign of zero", func(b backend.Backend) backend.Backend { return fillUnsigned{b} }},
	{"Fill", "leaves out the odd last element", func(b backend.Backend) backend.Backend { return fillEven{b} }},
	{"Fill", "writes past the end", func(b backend.Backend) backend.Backend { return &fillPast{Backend: b} }},
	{"CopyBlock", "leaves out the last column of wide blocks", func(b backend.Backend) backend.Backend { return blockNarrow{b} }},
	{"CopyBlock", "clears what is outside the block", func(b backend.Backend) backend.Backend { return blockClears{b} }},
	{"CopyBlock", "swaps the source's row and column", func(b backend.Backend) backend.Backend { return blockSwaps{b} }},
	{"Transpose", "copies", func(b backend.Backend) backend.Backend { return transposeCopies{b} }},
	{"Transpose", "leaves out the tail behind blocks of 32", func(b backend.Backend) backend.Backend { return transposeBlocks{b} }},
	{"GatherRows", "sorts the indices", func(b backend.Backend) backend.Backend { return gatherSorted{b} }},
	{"GatherRows", "writes a repeated row once", func(b backend.Backend) backend.Backend { return gatherOnce{b} }},
	{"FillDiagonal", "stops one early", func(b backend.Backend) backend.Backend { return diagonalShort{b} }},
	{"FillDiagonal", "clears the rest", func(b backend.Backend) backend.Backend { return diagonalClears{b} }},
	{"Unary", "Softplus overflows", unaryMutant(backend.Softplus, func(x float64) float64 { return math.Log(1 + math.Exp(x)) })},
	{"Unary", "Softplus loses small values", unaryMutant(backend.Softplus, func(x float64) float64 { return max(x, 0) + math.Log(1+math.Exp(-math.Abs(x))) })},
	{"Unary", "Sigmoid overflows", unaryMutant(backend.Sigmoid, func(x float64) float64 { return math.Exp(x) / (1 + math.Exp(x)) })},
	{"Unary", "ReLU swallows NaN", unaryMutant(backend.ReLU, func(x float64) float64 {
		if x > 0 {
			return x
		}
		return 0
	})},
	{"Unary", "Sign of NaN is 0", unaryMutant(backend.Sign, func(x float64) float64 {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return 0
	})},
	{"Unary", "InvSqrt of a degree that is too small", unaryMutant(backend.InvSqrt, func(x float64) float64 {
		if x > 0 {
			return 1 / math.Sqrt(x)
		}
		return 0
	})},
	{"Unary", "InvSqrt has a pole", unaryMutant(backend.InvSqrt, func(x float64) float64 { return 1 / math.Sqrt(x) })},
	{"Unary", "Exp is of lower precision", unaryMutant(backend.Exp, func(x float64) float64 { return math.Exp(x) * (1 + 0x1p-48) })},
	{"Unary", "Log of a negative is -Inf", unaryMutant(backend.Log, func(x float64) float64 { return math.Log(max(x, 0)) })},
	{"Unary", "Tanh cancels near 0", unaryMutant(backend.Tanh, func(x float64) float64 { return 1 - 2/(math.Exp(2*x)+1) })},
	{"Unary", "spoils its input", func(b backend.Backend) backend.Backend { return unarySpoils{b} }},
	{"Binary", "Greater is not strict", binaryMutant(backend.Greater, func(a, b float64) float64 {
		if a >= b {
			return 1
		}
		return 0
	})},
	{"Binary", "Max swallows NaN", binaryMutant(backend.Max, func(a, b float64) float64 {
		if a > b {
			return a
		}
		return b
	})},
	{"Binary", "Gate lets pass at 0", binaryMutant(backend.Gate, func(a, b float64) float64 {
		if b >= 0 {
			return a
		}
		return 0
	})},
	{"Binary", "Div multiplies by a rounded reciprocal", binaryMutant(backend.Div, func(a, b float64) float64 { return a * float64(float32(1/b)) })},
	{"Binary", "is wrong in place", func(b backend.Backend) backend.Backend { return binaryInPlace{b} }},
	{"BinaryRow", "takes the row for a column where both fit", func(b backend.Backend) backend.Backend { return rowIsColumn{b} }},
	{"BinaryRow", "swaps the arguments of Gate", func(b backend.Backend) backend.Backend { return rowSwaps{b} }},
	{"BinaryScalar", "adds where it should subtract", func(b backend.Backend) backend.Backend { return scalarAdds{b} }},
	{"Affine", "forgets c where alpha is 1", func(b backend.Backend) backend.Backend { return affineForgets{b} }},
	{"Axpby", "forgets beta in place", func(b backend.Backend) backend.Backend { return axpbyForgets{b} }},
	{"ReduceRows", "the maximum is not subtracted", rowMutant(backend.RowLogSumExp, func(x []float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += math.Exp(v)
		}
		return math.Log(sum)
	})},
	{"ReduceRows", "ln Σ e^-Inf is NaN", rowMutant(backend.RowLogSumExp, func(x []float64) float64 {
		sum, m := 0.0, math.Inf(-1)
		for _, v := range x {
			m = max(m, v)
		}
		for _, v := range x {
			sum += math.Exp(v - m)
		}
		return m + math.Log(sum)
	})},
	{"ReduceRows", "the maximum is at least 0", rowMutant(backend.RowMax, func(x []float64) float64 {
		m := 0.0
		for _, v := range x {
			m = max(m, v)
		}
		return m
	})},
	{"ReduceRows", "the maximum swallows NaN", rowMutant(backend.RowMax, func(x []float64) float64 {
		m := math.Inf(-1)
		for _, v := range x {
			if v > m {
				m = v
			}
		}
		return m
	})},
	{"ReduceRows", "sums are in float32", rowMutant(backend.RowSum, func(x []float64) float64 {
		sum := float32(0)
		for _, v := range x {
			sum += float32(v)
		}
		return float64(sum)
	})},
	{"ColSums", "adds to what was there", func(b backend.Backend) backend.Backend { return colSumsAdds{b} }},
	{"Dot", "of one tensor is of its squares", func(b backend.Backend) backend.Backend { return dotSquares{b} }},
	{"Dot", "is rounded to float32", func(b backend.Backend) backend.Backend { return dotRounds{b} }},
	{"Dot", "keeps its scratch memory", func(b backend.Backend) backend.Backend { return dotKeeps{b} }},
	{"Dot", "differs from call to call", func(b backend.Backend) backend.Backend { return &dotDrifts{Backend: b} }},
	{"SegmentSum", "includes the end", func(b backend.Backend) backend.Backend { return segmentEnd{b} }},
	{"SegmentSum", "leaves empty segments as they were", func(b backend.Backend) backend.Backend { return segmentEmpty{b} }},
	{"SegmentExpand", "leaves out the last segment", func(b backend.Backend) backend.Backend { return expandShort{b} }},
	{"SegmentExpand", "leaves padding as it was", func(b backend.Backend) backend.Backend { return expandPadding{b} }},
	{"SegmentSum", "adds padding to the last segment", func(b backend.Backend) backend.Backend { return segmentPadding{b} }},
	{"Adam", "goes on with step NaN", func(b backend.Backend) backend.Backend { return adamGoesOn{b} }},
	{"SegmentExpand", "counts empty segments out", func(b backend.Backend) backend.Backend { return expandSkips{b} }},
	{"Gemm", "ignores beta", func(b backend.Backend) backend.Backend { return gemmNoBeta{b} }},
	{"Gemm", "scales beta by alpha", func(b backend.Backend) backend.Backend { return gemmBetaAlpha{b} }},
	{"Gemm", "reads dst with beta 0", func(b backend.Backend) backend.Backend { return gemmReads{b} }},
	{"Gemm", "ignores a transpose of square matrices", func(b backend.Backend) backend.Backend { return gemmSquare{b} }},
	{"Gemm", "leaves dst where K is 0", func(b backend.Backend) backend.Backend { return gemmEmpty{b} }},
	{"Gemm", "loses a term of long sums", func(b backend.Backend) backend.Backend { return gemmLongSum{b} }},
	{"Gemm", "rounds its inputs to float32", func(b backend.Backend) backend.Backend { return gemmRounds{b} }},
	{"SpMM", "ignores values", func(b backend.Backend) backend.Backend { return spmmNoValues{b} }},
	{"SpMM", "gives rows without neighbours no self term", func(b backend.Backend) backend.Backend { return spmmIsolated{b} }},
	{"SpMM", "takes any self term for 1", func(b backend.Backend) backend.Backend { return spmmSelfOne{b} }},
	{"SpMM", "cuts rows at 256 neighbours", func(b backend.Backend) backend.Backend { return spmmCuts{b} }},
	{"SpMM", "counts a repeated neighbour once", func(b backend.Backend) backend.Backend { return spmmOnce{b} }},
	{"SpMM", "leaves empty rows as they were", func(b backend.Backend) backend.Backend { return spmmEmpty{b} }},
	{"UpperPercentile", "includes the diagonal", func(b backend.Backend) backend.Backend { return percentileDiagonal{b} }},
	{"UpperPercentile", "is NaN where any element is", func(b backend.Backend) backend.Backend { return percentileSpoilt{b} }},
	{"UpperPercentile", "does not interpolate", func(b backend.Backend) backend.Backend { return percentileNearest{b} }},
	{"UpperPercentile", "gives equal values in reverse order", func(b backend.Backend) backend.Backend { return percentileReversed{b} }},
	{"UpperPercentile", "leaves old weights", func(b backend.Backend) backend.Backend { return percentileOld{b} }},
	{"UpperPercentile", "puts -0 before 0", func(b backend.Backend) backend.Backend { return percentileSigned{b} }},
	{"UpperPercentile", "spreads the weight over ties", func(b backend.Backend) backend.Backend { return percentileSpreads{b} }},
	{"DropoutMask", "does not scale", func(b backend.Backend) backend.Backend { return maskUnscaled{b} }},
	{"DropoutMask", "ignores the step", func(b backend.Backend) backend.Backend { return maskStep{b} }},
	{"DropoutMask", "has seeds of 32 bits", func(b backend.Backend) backend.Backend { return maskSeed{b} }},
	{"DropoutMask", "starts anew in each row", func(b backend.Backend) backend.Backend { return maskRows{b} }},
	{"Adam", "decays weights as AdamW", func(b backend.Backend) backend.Backend { return adamW{b} }},
	{"Adam", "has no correction of bias", adamMutant(func(m, v, c1, c2, eps float64) float64 { return m / (math.Sqrt(v) + eps) })},
	{"Adam", "has eps within the root", adamMutant(func(m, v, c1, c2, eps float64) float64 { return m / c1 / math.Sqrt(v/c2+eps) })},
	{"Adam", "corrects after adding eps", adamMutant(func(m, v, c1, c2, eps float64) float64 { return m / c1 / ((math.Sqrt(v) + eps) / math.Sqrt(c2)) })},
	{"Adam", "has corrections of bias in float32", adamMutant(func(m, v, c1, c2, eps float64) float64 {
		return m / float64(float32(c1)) / (math.Sqrt(v)/math.Sqrt(float64(float32(c2))) + eps)
	})},
	{"Capture", "does not run at capture", func(b backend.Backend) backend.Backend { return capturesOnly{b} }},
	{"Capture", "runs twice at a replay", func(b backend.Backend) backend.Backend { return replaysTwice{b} }},
	{"Capture", "replays the last recording", func(b backend.Backend) backend.Backend { return &replaysLast{Backend: b} }},
	{"Gemm", "replays nothing", func(b backend.Backend) backend.Backend { return replaysNothing{b} }},
	{"Shapes", "panics with text", func(b backend.Backend) backend.Backend { return panicsWithText{b} }},
	{"Shapes", "accepts any diagonal", func(b backend.Backend) backend.Backend { return diagonalOfAny{b} }},
	{"Shapes", "takes what fits", func(b backend.Backend) backend.Backend { return gathersWhatFits{b} }},
}

// largeMutants show in large trials only.
var largeMutants = []mutant{
	{"BinaryCol", "is one row late behind 5000", func(b backend.Backend) backend.Backend { return colLate{b} }},
	{"ReduceRows", "a sum loses its last term behind 50000", rowMutant(backend.RowSum, func(x []float64) float64 {
		sum := 0.0
		for i, v := range x {
			if i < 50000 || i < len(x)-1 {
				sum += v
			}
		}
		return sum
	})},
	{"ReduceRows", "sums depend on the number of threads", rowMutant(backend.RowSum, func(x []float64) float64 {
		parts := make([]float64, runtime.GOMAXPROCS(0))
		for i, v := range x {
			parts[i*len(parts)/len(x)] += v
		}
		sum := 0.0
		for _, v := range parts {
			sum += v
		}
		return sum
	})},
	{"ColSums", "loses the last of many rows", func(b backend.Backend) backend.Backend { return colSumsLoses{b} }},
	{"SegmentSum", "loses the last row of very long segments", func(b backend.Backend) backend.Backend { return segmentLong{b} }},
	{"Gemm", "leaves out the last of many rows", func(b backend.Backend) backend.Backend { return gemmLastRow{b} }},
}

// edit changes the elements of t in place.
func edit(b backend.Backend, t *tensor.Tensor, f func(x []float64)) {
	m := download(b, t)
	f(m.v)
	b.Upload(t, m.v)
}

type freesNothing struct{ backend.Backend }

func (b freesNothing) Free(*tensor.Tensor) {}

type sharesMemory struct {
	backend.Backend
	last *tensor.Tensor
	own  map[*tensor.Tensor]tensor.Buffer
}

func (b *sharesMemory) Alloc(rows, cols int) *tensor.Tensor {
	t := b.Backend.Alloc(rows, cols)
	b.own[t] = t.Buf
	if b.last != nil && b.last.Is(rows, cols) {
		t.Buf = b.last.Buf
	}
	b.last = t
	return t
}

func (b *sharesMemory) Free(t *tensor.Tensor) {
	t.Buf, b.last = b.own[t], nil
	b.Backend.Free(t)
}

type countsNothing struct{ backend.Backend }

func (countsNothing) InUse() int64 { return 0 }

type uploadShort struct{ backend.Backend }

func (b uploadShort) Upload(dst *tensor.Tensor, src []float64) {
	src = slices.Clone(src)
	if len(src) > 100000 {
		src[len(src)-1] = 0
	}
	b.Backend.Upload(dst, src)
}

type keepsHost struct {
	backend.Backend
	dst *tensor.Tensor
	src []float32
}

func (b *keepsHost) Upload32(dst *tensor.Tensor, src []float32) { b.dst, b.src = dst, src }

func (b *keepsHost) Download(dst []float64, src *tensor.Tensor) {
	if src == b.dst {
		b.Backend.Upload32(src, b.src)
	}
	b.Backend.Download(dst, src)
}

type upload32Flushes struct{ backend.Backend }

func (b upload32Flushes) Upload32(dst *tensor.Tensor, src []float32) {
	src = slices.Clone(src)
	for i, v := range src {
		if math.Abs(float64(v)) < 0x1p-126 {
			src[i] = 0
		}
	}
	b.Backend.Upload32(dst, src)
}

type downloadShort struct{ backend.Backend }

func (b downloadShort) Download(dst []float64, src *tensor.Tensor) {
	x := slices.Clone(dst)
	b.Backend.Download(x, src)
	copy(dst[:max(len(dst)-1, 0)], x)
}

type indicesShort struct{ backend.Backend }

func (b indicesShort) GatherRows(dst, src *tensor.Tensor, idx *backend.Indices) {
	part := slices.Clone(idx.Host)
	clear(part[min(len(part), 4096):])
	x := b.Backend.Indices(part)
	b.Backend.GatherRows(dst, src, x)
	b.FreeIndices(x)
}

type refillsFirst struct{ backend.Backend }

func (b refillsFirst) UpdateIndices(x []*backend.Indices, hosts [][]int32) {
	backend.CheckUpdateIndices(x, hosts)
	b.Backend.UpdateIndices(x[:1], hosts[:1])
}

// refillsLate makes a refill visible to the second gather after it.
type refillsLate struct {
	backend.Backend
	x     []*backend.Indices
	hosts [][]int32
}

func (b *refillsLate) UpdateIndices(x []*backend.Indices, hosts [][]int32) {
	backend.CheckUpdateIndices(x, hosts)
	b.x, b.hosts = x, hosts
}

func (b *refillsLate) GatherRows(dst, src *tensor.Tensor, idx *backend.Indices) {
	b.Backend.GatherRows(dst, src, idx)
	if b.x != nil {
		b.Backend.UpdateIndices(b.x, b.hosts)
		b.x = nil
	}
}

type gathersLate struct {
	backend.Backend
	queue []func()
}

func (b *gathersLate) GatherRows(dst, src *tensor.Tensor, idx *backend.Indices) {
	b.queue = append(b.queue, func() { b.Backend.GatherRows(dst, src, idx) })
}

func (b *gathersLate) Download(dst []float64, src *tensor.Tensor) {
	for _, gather := range b.queue {
		gather()
	}
	b.queue = nil
	b.Backend.Download(dst, src)
}

type fetchesLate struct{ backend.Backend }

func (b fetchesLate) Fetch(src *tensor.Tensor) backend.Pending {
	backend.CheckFetch(src)
	return lateValues{b, src}
}

type lateValues struct {
	b   fetchesLate
	src *tensor.Tensor
}

func (v lateValues) Values(dst []float64) { v.b.Download(dst, v.src) }

type expandPadding struct{ backend.Backend }

func (b expandPadding) SegmentExpand(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	before := download(b, dst)
	b.Backend.SegmentExpand(dst, ptr, x)
	edit(b, dst, func(v []float64) {
		at := int(ptr.Host[ptr.Len()-1]) * dst.Cols
		copy(v[at:], before.v[at:])
	})
}

type segmentPadding struct{ backend.Backend }

func (b segmentPadding) SegmentSum(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	host := slices.Clone(ptr.Host)
	host[len(host)-1] = int32(x.Rows)
	all := b.Indices(host)
	b.Backend.SegmentSum(dst, all, x)
	b.FreeIndices(all)
}

type adamGoesOn struct{ backend.Backend }

func (b adamGoesOn) Adam(p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig) {
	backend.CheckAdam(p, g, m, v, rate, step)
	if math.IsNaN(download(b, step).v[0]) {
		b.Fill(p, math.NaN())
	}
	b.Backend.Adam(p, g, m, v, rate, step, c)
}

type freesNoIndices struct{ backend.Backend }

func (freesNoIndices) FreeIndices(*backend.Indices) {}

type fillUnsigned struct{ backend.Backend }

func (b fillUnsigned) Fill(dst *tensor.Tensor, v float64) { b.Backend.Fill(dst, v+0) }

type fillEven struct{ backend.Backend }

func (b fillEven) Fill(dst *tensor.Tensor, v float64) {
	edit(b, dst, func(x []float64) {
		for i := range x[:len(x)/2*2] {
			x[i] = v
		}
	})
}

// fillPast knows which tensor was allocated after which.
type fillPast struct {
	backend.Backend
	all []*tensor.Tensor
}

func (b *fillPast) Alloc(rows, cols int) *tensor.Tensor {
	t := b.Backend.Alloc(rows, cols)
	b.all = append(b.all, t)
	return t
}

func (b *fillPast) Free(t *tensor.Tensor) {
	b.all = slices.DeleteFunc(b.all, func(u *tensor.Tensor) bool { return t == u })
	b.Backend.Free(t)
}

func (b *fillPast) Fill(dst *tensor.Tensor, v float64) {
	b.Backend.Fill(dst, v)
	if i := slices.Index(b.all, dst) + 1; i < len(b.all) && b.all[i].Len() > 0 {
		edit(b, b.all[i], func(x []float64) { x[0] = v })
	}
}

type blockNarrow struct{ backend.Backend }

func (b blockNarrow) CopyBlock(dst *tensor.Tensor, di, dj int, src *tensor.Tensor, si, sj, rows, cols int) {
	if cols > 64 {
		cols--
	}
	b.Backend.CopyBlock(dst, di, dj, src, si, sj, rows, cols)
}

type blockClears struct{ backend.Backend }

func (b blockClears) CopyBlock(dst *tensor.Tensor, di, dj int, src *tensor.Tensor, si, sj, rows, cols int) {
	b.Fill(dst, 0)
	b.Backend.CopyBlock(dst, di, dj, src, si, sj, rows, cols)
}

type blockSwaps struct{ backend.Backend }

func (b blockSwaps) CopyBlock(dst *tensor.Tensor, di, dj int, src *tensor.Tensor, si, sj, rows, cols int) {
	if sj+rows <= src.Rows && si+cols <= src.Cols {
		si, sj = sj, si
	}
	b.Backend.CopyBlock(dst, di, dj, src, si, sj, rows, cols)
}

type transposeCopies struct{ backend.Backend }

func (b transposeCopies) Transpose(dst, src *tensor.Tensor) {
	b.Upload(dst, download(b, src).v)
}

type transposeBlocks struct{ backend.Backend }

func (b transposeBlocks) Transpose(dst, src *tensor.Tensor) {
	b.Backend.Transpose(dst, src)
	if dst.Cols > 32 && dst.Cols%32 != 0 {
		edit(b, dst, func(x []float64) { x[len(x)-1] = math.NaN() })
	}
}

type gatherSorted struct{ backend.Backend }

func (b gatherSorted) GatherRows(dst, src *tensor.Tensor, idx *backend.Indices) {
	x := b.Indices(slices.Sorted(slices.Values(idx.Host)))
	b.Backend.GatherRows(dst, src, x)
	b.FreeIndices(x)
}

type gatherOnce struct{ backend.Backend }

func (b gatherOnce) GatherRows(dst, src *tensor.Tensor, idx *backend.Indices) {
	old := download(b, dst)
	b.Backend.GatherRows(dst, src, idx)
	edit(b, dst, func(x []float64) {
		for k, i := range idx.Host {
			if slices.Contains(idx.Host[:k], i) {
				copy(x[k*src.Cols:(k+1)*src.Cols], old.v[k*src.Cols:])
			}
		}
	})
}

type diagonalShort struct{ backend.Backend }

func (b diagonalShort) FillDiagonal(dst *tensor.Tensor, v float64) {
	edit(b, dst, func(x []float64) {
		for i := range dst.Rows - 1 {
			x[i*dst.Cols+i] = v
		}
	})
}

type diagonalClears struct{ backend.Backend }

func (b diagonalClears) FillDiagonal(dst *tensor.Tensor, v float64) {
	b.Fill(dst, 0)
	b.Backend.FillDiagonal(dst, v)
}

type diagonalOfAny struct{ backend.Backend }

func (b diagonalOfAny) FillDiagonal(dst *tensor.Tensor, v float64) {
	edit(b, dst, func(x []float64) {
		for i := range min(dst.Rows, dst.Cols) {
			x[i*dst.Cols+i] = v
		}
	})
}

type gathersWhatFits struct{ backend.Backend }

func (b gathersWhatFits) GatherRows(dst, src *tensor.Tensor, idx *backend.Indices) {
	if dst.Is(idx.Len(), src.Cols) {
		b.Backend.GatherRows(dst, src, idx)
	}
}

type panicsWithText struct{ backend.Backend }

func (b panicsWithText) ColSums(dst, a *tensor.Tensor) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprint(r))
		}
	}()
	b.Backend.ColSums(dst, a)
}

type unaryWrong struct {
	backend.Backend
	op backend.UnaryOp
	f  func(float64) float64
}

func (b unaryWrong) Unary(dst *tensor.Tensor, op backend.UnaryOp, a *tensor.Tensor) {
	if op != b.op {
		b.Backend.Unary(dst, op, a)
		return
	}
	b.Upload(dst, download(b, a).mapped(b.f).v)
}

func unaryMutant(op backend.UnaryOp, f func(float64) float64) func(backend.Backend) backend.Backend {
	return func(b backend.Backend) backend.Backend { return unaryWrong{b, op, f} }
}

type unarySpoils struct{ backend.Backend }

func (b unarySpoils) Unary(dst *tensor.Tensor, op backend.UnaryOp, a *tensor.Tensor) {
	b.Backend.Unary(dst, op, a)
	if op == backend.Tanh && a.Len() > 0 && a != dst { // in place, the result would be wrong
		edit(b, a, func(x []float64) { x[0]++ })
	}
}

type binaryWrong struct {
	backend.Backend
	op backend.BinaryOp
	f  func(a, b float64) float64
}

func (b binaryWrong) Binary(dst *tensor.Tensor, op backend.BinaryOp, x, y *tensor.Tensor) {
	if op != b.op {
		b.Backend.Binary(dst, op, x, y)
		return
	}
	u, v := download(b, x), download(b, y)
	for i := range u.v {
		u.v[i] = b.f(u.v[i], v.v[i])
	}
	b.Upload(dst, u.v)
}

func binaryMutant(op backend.BinaryOp, f func(a, b float64) float64) func(backend.Backend) backend.Backend {
	return func(b backend.Backend) backend.Backend { return binaryWrong{b, op, f} }
}

// binaryInPlace copies a to dst before it reads b.
type binaryInPlace struct{ backend.Backend }

func (b binaryInPlace) Binary(dst *tensor.Tensor, op backend.BinaryOp, x, y *tensor.Tensor) {
	if dst != x {
		b.Upload(dst, download(b, x).v)
	}
	b.Backend.Binary(dst, op, dst, y)
}

type rowIsColumn struct{ backend.Backend }

func (b rowIsColumn) BinaryRow(dst *tensor.Tensor, op backend.BinaryOp, a, row *tensor.Tensor) {
	if a.Rows != a.Cols {
		b.Backend.BinaryRow(dst, op, a, row)
		return
	}
	col := b.Alloc(a.Rows, 1)
	b.Transpose(col, row)
	b.BinaryCol(dst, op, a, col)
	b.Free(col)
}

type rowSwaps struct{ backend.Backend }

func (b rowSwaps) BinaryRow(dst *tensor.Tensor, op backend.BinaryOp, a, row *tensor.Tensor) {
	if op != backend.Gate {
		b.Backend.BinaryRow(dst, op, a, row)
		return
	}
	x, y := download(b, a), download(b, row)
	for i, v := range x.v {
		x.v[i] = 0
		if v > 0 {
			x.v[i] = y.v[i%a.Cols]
		}
	}
	b.Upload(dst, x.v)
}

type colLate struct{ backend.Backend }

func (b colLate) BinaryCol(dst *tensor.Tensor, op backend.BinaryOp, a, col *tensor.Tensor) {
	late := b.Alloc(col.Rows, 1)
	x := download(b, col)
	for i := len(x.v) - 1; i > 5000; i-- {
		x.v[i] = x.v[i-1]
	}
	b.Upload(late, x.v)
	b.Backend.BinaryCol(dst, op, a, late)
	b.Free(late)
}

type scalarAdds struct{ backend.Backend }

func (b scalarAdds) BinaryScalar(dst *tensor.Tensor, op backend.BinaryOp, a, s *tensor.Tensor) {
	if op == backend.Sub {
		op = backend.Add
	}
	b.Backend.BinaryScalar(dst, op, a, s)
}

type affineForgets struct{ backend.Backend }

func (b affineForgets) Affine(dst *tensor.Tensor, alpha float64, a *tensor.Tensor, c float64) {
	if alpha == 1 {
		c = 0
	}
	b.Backend.Affine(dst, alpha, a, c)
}

type axpbyForgets struct{ backend.Backend }

func (b axpbyForgets) Axpby(dst *tensor.Tensor, alpha float64, x *tensor.Tensor, beta float64, y *tensor.Tensor) {
	if dst == y {
		beta = 1
	}
	b.Backend.Axpby(dst, alpha, x, beta, y)
}

type rowWrong struct {
	backend.Backend
	op backend.RowOp
	f  func([]float64) float64
}

func (b rowWrong) ReduceRows(dst *tensor.Tensor, op backend.RowOp, a *tensor.Tensor) {
	if op != b.op {
		b.Backend.ReduceRows(dst, op, a)
		return
	}
	x := download(b, a)
	edit(b, dst, func(d []float64) {
		for i := range d {
			d[i] = b.f(x.v[i*a.Cols : (i+1)*a.Cols])
		}
	})
}

func rowMutant(op backend.RowOp, f func(row []float64) float64) func(backend.Backend) backend.Backend {
	return func(b backend.Backend) backend.Backend { return rowWrong{b, op, f} }
}

type colSumsAdds struct{ backend.Backend }

func (b colSumsAdds) ColSums(dst, a *tensor.Tensor) {
	old := download(b, dst)
	b.Backend.ColSums(dst, a)
	edit(b, dst, func(x []float64) {
		for i := range x {
			x[i] += old.v[i]
		}
	})
}

type colSumsLoses struct{ backend.Backend }

func (b colSumsLoses) ColSums(dst, a *tensor.Tensor) {
	b.Backend.ColSums(dst, a)
	if a.Rows > 5000 && a.Cols > 0 {
		last := download(b, a).v[(a.Rows-1)*a.Cols:]
		edit(b, dst, func(x []float64) { x[0] -= last[0] })
	}
}

type dotSquares struct{ backend.Backend }

func (b dotSquares) Dot(dst, x, y *tensor.Tensor) {
	if y == nil {
		y = x
	}
	b.Backend.Dot(dst, x, y)
}

type dotRounds struct{ backend.Backend }

func (b dotRounds) Dot(dst, x, y *tensor.Tensor) {
	b.Backend.Dot(dst, x, y)
	edit(b, dst, func(x []float64) { x[0] = float64(float32(x[0])) })
}

type dotKeeps struct{ backend.Backend }

func (b dotKeeps) Dot(dst, x, y *tensor.Tensor) {
	b.Backend.Dot(dst, x, y)
	b.Alloc(1, 1)
}

type dotDrifts struct {
	backend.Backend
	up bool
}

func (b *dotDrifts) Dot(dst, x, y *tensor.Tensor) {
	b.Backend.Dot(dst, x, y)
	b.up = !b.up
	edit(b, dst, func(x []float64) {
		if b.up && x[0] != math.Trunc(x[0]) {
			x[0] = math.Nextafter(x[0], math.Inf(1))
		}
	})
}

type segmentEnd struct{ backend.Backend }

func (b segmentEnd) SegmentSum(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	b.Backend.SegmentSum(dst, ptr, x)
	m := download(b, x)
	edit(b, dst, func(d []float64) {
		for i := range d {
			if end := int(ptr.Host[i/dst.Cols+1]); end < x.Rows {
				d[i] += m.v[end*x.Cols+i%dst.Cols]
			}
		}
	})
}

type segmentEmpty struct{ backend.Backend }

func (b segmentEmpty) SegmentSum(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	old := download(b, dst)
	b.Backend.SegmentSum(dst, ptr, x)
	edit(b, dst, func(d []float64) {
		for i := range d {
			if g := i / dst.Cols; ptr.Host[g] == ptr.Host[g+1] {
				d[i] = old.v[i]
			}
		}
	})
}

type segmentLong struct{ backend.Backend }

func (b segmentLong) SegmentSum(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	b.Backend.SegmentSum(dst, ptr, x)
	m := download(b, x)
	edit(b, dst, func(d []float64) {
		for i := range d {
			if g := i / dst.Cols; ptr.Host[g+1]-ptr.Host[g] > 9000 {
				d[i] -= m.v[int(ptr.Host[g+1]-1)*x.Cols+i%dst.Cols]
			}
		}
	})
}

type expandShort struct{ backend.Backend }

func (b expandShort) SegmentExpand(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	b.Backend.SegmentExpand(dst, ptr, x)
	edit(b, dst, func(d []float64) {
		for i := int(ptr.Host[max(len(ptr.Host)-2, 0)]) * dst.Cols; i < len(d); i++ {
			d[i] = math.NaN()
		}
	})
}

type expandSkips struct{ backend.Backend }

func (b expandSkips) SegmentExpand(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	if p := b.Indices(slices.Compact(slices.Clone(ptr.Host))); len(p.Host) == len(ptr.Host) || x.Rows == 0 {
		b.Backend.SegmentExpand(dst, ptr, x)
	} else {
		part := b.Alloc(len(p.Host)-1, x.Cols)
		b.CopyBlock(part, 0, 0, x, 0, 0, part.Rows, part.Cols)
		b.Backend.SegmentExpand(dst, p, part)
	}
}

type gemmNoBeta struct{ backend.Backend }

func (b gemmNoBeta) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	b.Backend.Gemm(dst, tA, tB, alpha, x, y, 0)
}

type gemmBetaAlpha struct{ backend.Backend }

func (b gemmBetaAlpha) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	b.Backend.Gemm(dst, tA, tB, alpha, x, y, alpha*beta)
}

type gemmReads struct{ backend.Backend }

func (b gemmReads) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	old := download(b, dst)
	b.Backend.Gemm(dst, tA, tB, alpha, x, y, beta)
	edit(b, dst, func(d []float64) {
		for i := range d {
			d[i] += 0 * old.v[i]
		}
	})
}

type gemmSquare struct{ backend.Backend }

func (b gemmSquare) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	b.Backend.Gemm(dst, tA, tB && y.Rows != y.Cols, alpha, x, y, beta)
}

type gemmEmpty struct{ backend.Backend }

func (b gemmEmpty) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	if _, _, k := backend.CheckGemm(dst, tA, tB, x, y); k > 0 {
		b.Backend.Gemm(dst, tA, tB, alpha, x, y, beta)
	}
}

type gemmLastRow struct{ backend.Backend }

func (b gemmLastRow) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	b.Backend.Gemm(dst, tA, tB, alpha, x, y, beta)
	if dst.Rows > 1000 {
		edit(b, dst, func(d []float64) { clear(d[(dst.Rows-1)*dst.Cols:]) })
	}
}

type gemmLongSum struct{ backend.Backend }

func (b gemmLongSum) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	if !tA || x.Rows < 1000 {
		b.Backend.Gemm(dst, tA, tB, alpha, x, y, beta)
		return
	}
	part := b.Alloc(x.Rows, x.Cols)
	m := download(b, x)
	clear(m.v[len(m.v)-x.Cols:])
	b.Upload(part, m.v)
	b.Backend.Gemm(dst, tA, tB, alpha, part, y, beta)
	b.Free(part)
}

type gemmRounds struct{ backend.Backend }

func (b gemmRounds) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	part := b.Alloc(x.Rows, x.Cols)
	b.Upload(part, download(b, x).mapped(func(v float64) float64 { return float64(float32(v)) }).v)
	b.Backend.Gemm(dst, tA, tB, alpha, part, y, beta)
	b.Free(part)
}

type spmmNoValues struct{ backend.Backend }

func (b spmmNoValues) SpMM(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64) {
	c := *a
	c.Val = nil
	b.Backend.SpMM(dst, &c, x, self)
}

type spmmIsolated struct{ backend.Backend }

func (b spmmIsolated) SpMM(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64) {
	b.Backend.SpMM(dst, a, x, self)
	edit(b, dst, func(d []float64) {
		for i := range d {
			if r := i / dst.Cols; a.Ptr.Host[r] == a.Ptr.Host[r+1] {
				d[i] = 0
			}
		}
	})
}

type spmmSelfOne struct{ backend.Backend }

func (b spmmSelfOne) SpMM(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64) {
	if self != 0 {
		self = 1
	}
	b.Backend.SpMM(dst, a, x, self)
}

// spmmPruned drops the entries for which drop is true: of row i, the k-th.
type spmmPruned struct {
	backend.Backend
	drop func(a *backend.CSR, i, k int) bool
}

func (b spmmPruned) SpMM(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64) {
	ptr, col, val := []int32{0}, []int32{}, []float64{}
	for i := range a.Rows {
		for k := a.Ptr.Host[i]; k < a.Ptr.Host[i+1]; k++ {
			if b.drop(a, i, int(k-a.Ptr.Host[i])) {
				continue
			}
			col = append(col, a.Col.Host[k])
			if a.Val != nil {
				val = append(val, download(b, a.Val).v[k])
			}
		}
		ptr = append(ptr, int32(len(col)))
	}
	c := &backend.CSR{Rows: a.Rows, Cols: a.Cols, Ptr: b.Indices(ptr), Col: b.Indices(col)}
	if a.Val != nil {
		c.Val = b.Alloc(len(val), 1)
		b.Upload(c.Val, val)
		defer b.Free(c.Val)
	}
	b.Backend.SpMM(dst, c, x, self)
	b.FreeIndices(c.Ptr)
	b.FreeIndices(c.Col)
}

type spmmCuts struct{ backend.Backend }

func (b spmmCuts) SpMM(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64) {
	spmmPruned{b.Backend, func(_ *backend.CSR, _, k int) bool { return k >= 256 }}.SpMM(dst, a, x, self)
}

type spmmOnce struct{ backend.Backend }

func (b spmmOnce) SpMM(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64) {
	spmmPruned{b.Backend, func(a *backend.CSR, i, k int) bool {
		start := int(a.Ptr.Host[i])
		return slices.Contains(a.Col.Host[start:start+k], a.Col.Host[start+k])
	}}.SpMM(dst, a, x, self)
}

type spmmEmpty struct{ backend.Backend }

func (b spmmEmpty) SpMM(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64) {
	old := download(b, dst)
	b.Backend.SpMM(dst, a, x, self)
	edit(b, dst, func(d []float64) {
		for i := range d {
			if r := i / dst.Cols; a.Ptr.Host[r] == a.Ptr.Host[r+1] && self == 0 {
				d[i] = old.v[i]
			}
		}
	})
}

type percentileDiagonal struct{ backend.Backend }

func (b percentileDiagonal) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	n := s.Rows
	wide, w := b.Alloc(n+1, n+1), b.Alloc(n+1, n+1) // the diagonal of s is above that of wide
	b.Fill(wide, 0)
	b.CopyBlock(wide, 0, 1, s, 0, 0, n, n)
	b.Backend.UpperPercentile(theta, w, wide, p)
	if weights != nil {
		b.CopyBlock(weights, 0, 0, w, 0, 1, n, n)
	}
	b.Free(wide)
	b.Free(w)
}

type percentileSpoilt struct{ backend.Backend }

func (b percentileSpoilt) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	b.Backend.UpperPercentile(theta, weights, s, p)
	if slices.ContainsFunc(download(b, s).v, math.IsNaN) {
		b.Fill(theta, math.NaN())
	}
}

type percentileNearest struct{ backend.Backend }

func (b percentileNearest) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	if m := s.Rows * (s.Rows - 1) / 2; m > 1 {
		p = 100 * math.Round(p/100*float64(m-1)) / float64(m-1)
	}
	b.Backend.UpperPercentile(theta, weights, s, p)
}

// percentileSorted sorts with a rule of its own: it hands the ranks on.
type percentileSorted struct {
	backend.Backend
	less func(s matrix, i, j int) int
}

func (b percentileSorted) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	m := download(b, s)
	var upper []int
	for i := range m.v {
		if i/m.cols < i%m.cols {
			upper = append(upper, i)
		}
	}
	slices.SortFunc(upper, func(i, j int) int { return b.less(m, i, j) })
	ranks := constant(m.rows, m.cols, 0)
	for rank, i := range upper {
		ranks.v[i] = float64(rank)
	}
	b.Backend.UpperPercentile(theta, nil, s, p)
	if weights != nil {
		r, th := b.Alloc(m.rows, m.cols), b.Alloc(1, 1)
		b.Upload(r, ranks.v)
		b.Backend.UpperPercentile(th, weights, r, p)
		b.Free(r)
		b.Free(th)
	}
}

type percentileReversed struct{ backend.Backend }

func (b percentileReversed) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	percentileSorted{b.Backend, func(m matrix, i, j int) int {
		if m.v[i] != m.v[j] {
			if m.v[i] < m.v[j] {
				return -1
			}
			return 1
		}
		return j - i
	}}.UpperPercentile(theta, weights, s, p)
}

type percentileSigned struct{ backend.Backend }

func (b percentileSigned) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	percentileSorted{b.Backend, func(m matrix, i, j int) int {
		if u, v := m.v[i], m.v[j]; u < v || u == v && math.Signbit(u) && !math.Signbit(v) {
			return -1
		} else if u > v || math.Signbit(u) != math.Signbit(v) {
			return 1
		}
		return i - j
	}}.UpperPercentile(theta, weights, s, p)
}

type percentileOld struct{ backend.Backend }

func (b percentileOld) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	if weights == nil {
		b.Backend.UpperPercentile(theta, weights, s, p)
		return
	}
	old := download(b, weights)
	b.Backend.UpperPercentile(theta, weights, s, p)
	edit(b, weights, func(w []float64) {
		for i := range w {
			if w[i] == 0 {
				w[i] = old.v[i]
			}
		}
	})
}

type percentileSpreads struct{ backend.Backend }

func (b percentileSpreads) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	b.Backend.UpperPercentile(theta, weights, s, p)
	if weights == nil || s.Rows < 2 {
		return
	}
	th, m := download(b, theta).v[0], download(b, s)
	edit(b, weights, func(w []float64) {
		var ties []int
		for i, v := range m.v {
			if i/m.cols < i%m.cols && v == th {
				ties = append(ties, i)
			}
		}
		for _, i := range ties {
			if len(ties) > 1 {
				w[i] = 1 / float64(len(ties))
			}
		}
	})
}

type maskUnscaled struct{ backend.Backend }

func (b maskUnscaled) DropoutMask(dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor) {
	b.Backend.DropoutMask(dst, keep, seed, step)
	b.Affine(dst, keep, dst, 0)
}

type maskStep struct{ backend.Backend }

func (b maskStep) DropoutMask(dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor) {
	one := b.Alloc(1, 1)
	b.Fill(one, 1)
	b.Backend.DropoutMask(dst, keep, seed, one)
	b.Free(one)
}

type maskSeed struct{ backend.Backend }

func (b maskSeed) DropoutMask(dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor) {
	b.Backend.DropoutMask(dst, keep, uint64(uint32(seed)), step)
}

type maskRows struct{ backend.Backend }

func (b maskRows) DropoutMask(dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor) {
	b.Backend.DropoutMask(dst, keep, seed, step)
	edit(b, dst, func(x []float64) {
		for i := dst.Cols; i < len(x); i++ {
			x[i] = x[i%dst.Cols]
		}
	})
}

type adamW struct{ backend.Backend }

func (b adamW) Adam(p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig) {
	b.Affine(p, 1-c.WeightDecay*download(b, rate).v[0], p, 0)
	c.WeightDecay = 0
	b.Backend.Adam(p, g, m, v, rate, step, c)
}

// adamWrong has another formula for the update divided by the rate, of the
// moments and of 1-β₁ᵗ and 1-β₂ᵗ.
type adamWrong struct {
	backend.Backend
	update func(m, v, c1, c2, eps float64) float64
}

func (b adamWrong) Adam(p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig) {
	old := download(b, p)
	b.Backend.Adam(p, g, m, v, rate, step, c)
	r, t := download(b, rate).v[0], download(b, step).v[0]
	md, vd := download(b, m), download(b, v)
	edit(b, p, func(x []float64) {
		for i := range x {
			x[i] = old.v[i] - r*b.update(md.v[i], vd.v[i], 1-math.Pow(c.Beta1, t), 1-math.Pow(c.Beta2, t), c.Eps)
		}
	})
}

func adamMutant(update func(m, v, c1, c2, eps float64) float64) func(backend.Backend) backend.Backend {
	return func(b backend.Backend) backend.Backend { return adamWrong{b, update} }
}

// spoiltStep replays with a function of its own.
type spoiltStep struct {
	backend.Step
	replay func() error
}

func (s spoiltStep) Replay() error { return s.replay() }

type capturesOnly struct{ backend.Backend }

func (b capturesOnly) Capture(f func()) (backend.Step, error) {
	step, err := b.Backend.Capture(func() {})
	return spoiltStep{step, func() error { f(); return nil }}, err
}

type replaysTwice struct{ backend.Backend }

func (b replaysTwice) Capture(f func()) (backend.Step, error) {
	step, err := b.Backend.Capture(f)
	return spoiltStep{step, func() error { f(); f(); return nil }}, err
}

type replaysNothing struct{ backend.Backend }

func (b replaysNothing) Capture(f func()) (backend.Step, error) {
	step, err := b.Backend.Capture(f)
	return spoiltStep{step, func() error { return nil }}, err
}

type replaysLast struct {
	backend.Backend
	f func()
}

func (b *replaysLast) Capture(f func()) (backend.Step, error) {
	if b.f == nil {
		b.f = f
	}
	step, err := b.Backend.Capture(f)
	return spoiltStep{step, func() error { b.f(); return nil }}, err
}
