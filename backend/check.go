package backend

import (
	"fmt"
	"slices"

	"github.com/specmatch/specmatch/tensor"
)

// The Check functions hold the shape rules of the primitives in one place, so that
// every engine panics with the same message. Some return the dimensions that their
// caller needs.

// refuse panics with *[tensor.ShapeError] for op if bad, the condition on the
// shapes of ts, holds.
func refuse(bad bool, op, want string, ts ...*tensor.Tensor) {
	if bad {
		tensor.Mismatch(op, want, ts...)
	}
}

// CheckAlloc panics if a dimension is negative.
func CheckAlloc(rows, cols int) {
	if rows < 0 || cols < 0 {
		t := &tensor.Tensor{Rows: rows, Cols: cols}
		tensor.Mismatch(
			"backend: Alloc", "dimensions must not be negative", t,
		)
	}
}

// CheckHost panics unless n, the number of host values, is t.Len().
func CheckHost(op string, t *tensor.Tensor, n int) {
	if n != t.Len() {
		tensor.Mismatch(
			op, fmt.Sprintf("want %d host values, not %d", t.Len(), n), t,
		)
	}
}

// CheckSame panics unless all shapes are equal.
func CheckSame(op string, ts ...*tensor.Tensor) {
	for _, t := range ts[1:] {
		if !t.Like(ts[0]) {
			tensor.Mismatch(op, "shapes must be equal", ts...)
		}
	}
}

// CheckRow panics unless dst and a are N×F and row is 1×F.
func CheckRow(op string, dst, a, row *tensor.Tensor) {
	refuse(
		!dst.Like(a) || !row.Is(1, a.Cols), op,
		"want [N×F], [N×F], [1×F]", dst, a, row,
	)
}

// CheckCol panics unless dst and a are N×F and col is N×1.
func CheckCol(op string, dst, a, col *tensor.Tensor) {
	refuse(
		!dst.Like(a) || !col.Is(a.Rows, 1), op,
		"want [N×F], [N×F], [N×1]", dst, a, col,
	)
}

// CheckScalar panics unless dst and a are equal in shape and s is 1×1.
func CheckScalar(op string, dst, a, s *tensor.Tensor) {
	refuse(
		!dst.Like(a) || !s.Is(1, 1), op,
		"want [N×F], [N×F], [1×1]", dst, a, s,
	)
}

// CheckBlock panics unless both blocks lie inside their matrices.
func CheckBlock(
	dst *tensor.Tensor,
	di, dj int,
	src *tensor.Tensor,
	si, sj, rows, cols int,
) {
	negative := min(di, dj, si, sj, rows, cols) < 0
	outsideDst := di+rows > dst.Rows || dj+cols > dst.Cols
	outsideSrc := si+rows > src.Rows || sj+cols > src.Cols
	if negative || outsideDst || outsideSrc {
		message := fmt.Sprintf(
			"block [%d×%d] from (%d,%d) to (%d,%d) does not fit",
			rows,
			cols,
			si,
			sj,
			di,
			dj,
		)
		tensor.Mismatch("backend: CopyBlock", message, dst, src)
	}
}

// CheckTranspose panics unless the shapes are each other's transpose.
func CheckTranspose(dst, src *tensor.Tensor) {
	refuse(
		!dst.Is(src.Cols, src.Rows),
		"backend: Transpose",
		"want [C×R], [R×C]",
		dst,
		src,
	)
}

// CheckGather panics unless dst has one row for every index and src's width.
// It does not check the values of the indices.
func CheckGather(dst, src *tensor.Tensor, idx *Indices) {
	if !dst.Is(idx.Len(), src.Cols) {
		tensor.Mismatch(
			"backend: GatherRows",
			fmt.Sprintf("want [%d×F], [N×F]", idx.Len()),
			dst,
			src,
		)
	}
}

// CheckUpdateIndices panics unless every index vector has a host slice of its length.
func CheckUpdateIndices(xs []*Indices, hosts [][]int32) {
	equal := func(x *Indices, host []int32) bool {
		return x.Len() == len(host)
	}
	if slices.EqualFunc(xs, hosts, equal) {
		return
	}
	given := "host slices"
	for _, h := range hosts {
		given += fmt.Sprintf(" (%d)", len(h))
	}
	wanted := "want those of the vectors"
	for _, x := range xs {
		wanted += fmt.Sprintf(" (%d)", x.Len())
	}
	panic(&tensor.ShapeError{
		Op:   "backend: UpdateIndices",
		Have: given,
		Want: wanted,
	})
}

// CheckFetch panics unless t has at most 32 elements.
func CheckFetch(t *tensor.Tensor) {
	refuse(t.Len() > 32, "backend: Fetch", "want at most 32 elements", t)
}

// CheckSquare panics unless t is square.
func CheckSquare(op string, t *tensor.Tensor) {
	refuse(t.Rows != t.Cols, op, "want a square matrix", t)
}

// CheckReduceRows panics unless dst is N×1 and a is N×F.
func CheckReduceRows(op string, dst, a *tensor.Tensor) {
	refuse(!dst.Is(a.Rows, 1), op, "want [N×1], [N×F]", dst, a)
}

// CheckColSums panics unless dst is 1×F and a is N×F.
func CheckColSums(dst, a *tensor.Tensor) {
	refuse(
		!dst.Is(1, a.Cols), "backend: ColSums", "want [1×F], [N×F]", dst, a,
	)
}

// CheckDot panics unless dst is 1×1 and b, if any, has a's shape.
func CheckDot(dst, a, b *tensor.Tensor) {
	bad := !dst.Is(1, 1) || b != nil && !b.Like(a)
	refuse(
		bad, "backend: Dot", "want [1×1], [N×F], [N×F] or none", dst, a, b,
	)
}

// CheckSegments panics unless ptr delimits rows of long [N×F] for the rows of
// short [G×F].
func CheckSegments(
	op string, short *tensor.Tensor, ptr *Indices, long *tensor.Tensor,
) {
	badPointers := ptr.Len() != short.Rows+1 ||
		int(ptr.Host[ptr.Len()-1]) > long.Rows
	if badPointers || short.Cols != long.Cols {
		const format = "want [G×F] and [N×F] with G+1 = %d pointers that do not go beyond N"
		tensor.Mismatch(op, fmt.Sprintf(format, ptr.Len()), short, long)
	}
}

// CheckGemm returns M, N and K of dst [M×N] = op(a) [M×K] · op(b) [K×N].
func CheckGemm(
	dst *tensor.Tensor, transA, transB bool, a, b *tensor.Tensor,
) (m, n, k int) {
	m = a.Rows
	k = a.Cols
	if transA {
		m, k = k, m
	}
	kb := b.Rows
	n = b.Cols
	if transB {
		kb, n = n, kb
	}
	if k != kb || !dst.Is(m, n) {
		message := fmt.Sprintf(
			"want [M×N], [M×K], [K×N] (transposes %v, %v)",
			transA,
			transB,
		)
		tensor.Mismatch("backend: Gemm", message, dst, a, b)
	}
	return m, n, k
}

// CheckSpMM panics unless dst [R×F] = A [R×C] · x [C×F] and the parts of A fit
// together. It checks neither the pointers before the last nor the columns.
func CheckSpMM(dst *tensor.Tensor, a *CSR, x *tensor.Tensor, self float64) {
	const op = "backend: SpMM"
	nnz := a.Col.Len()
	badPointers := a.Ptr.Len() != a.Rows+1 || int(a.Ptr.Host[a.Rows]) > nnz
	if badPointers || a.Val != nil && !a.Val.Is(nnz, 1) {
		const format = "a sparse [%d×%d] with %d entries needs %d pointers that do not go beyond (have %d), " +
			"and values [%d×1] or none"
		tensor.Mismatch(
			op,
			fmt.Sprintf(
				format, a.Rows, a.Cols, nnz, a.Rows+1, a.Ptr.Len(), nnz,
			),
			a.Val,
		)
	}
	if !dst.Is(a.Rows, x.Cols) || x.Rows != a.Cols {
		tensor.Mismatch(
			op,
			fmt.Sprintf("want [R×F], [C×F] for a sparse [%d×%d]",
				a.Rows, a.Cols),
			dst,
			x,
		)
	}
	if self != 0 && a.Rows != a.Cols {
		message := fmt.Sprintf(
			"a self term needs a square matrix, not [%d×%d]",
			a.Rows,
			a.Cols,
		)
		tensor.Mismatch(op, message, dst, x)
	}
}

// CheckMessages panics where [CheckSpMM] does, unless every table is as wide as x, and
// unless the tables together have a row for each column of c.
func CheckMessages(
	y *tensor.Tensor,
	a *CSR,
	x *tensor.Tensor,
	self float64,
	c *tensor.Tensor,
	ws []*tensor.Tensor,
) {
	CheckSpMM(y, a, x, self)
	rows := 0
	for _, w := range ws {
		if w.Cols != x.Cols {
			tensor.Mismatch(
				"backend: Messages", "want a table as wide as x", x, w,
			)
		}
		rows += w.Rows
	}
	if !c.Is(a.Rows, rows) {
		tensor.Mismatch(
			"backend: Messages",
			fmt.Sprintf("want counts [%d×%d]", a.Rows, rows),
			c,
		)
	}
}

// CheckPercentile panics unless s is square, theta is 1×1, weights (if any) has
// s's shape and 0 ≤ p ≤ 100.
func CheckPercentile(theta, weights, s *tensor.Tensor, p float64) {
	bad := s.Rows != s.Cols || !theta.Is(1, 1) ||
		weights != nil && !weights.Like(s)
	refuse(
		bad, "backend: UpperPercentile",
		"want [1×1], [N×N] or none, [N×N]", theta, weights, s,
	)
	if !(p >= 0 && p <= 100) {
		panic(fmt.Sprintf(
			"backend: UpperPercentile: p = %v is outside [0, 100]",
			p,
		))
	}
}

// PercentilePosition defines the p-th percentile (0 ≤ p ≤ 100) of m sorted values. Its
// position is p/100·(m-1), counted from 0, with linear interpolation between the two
// neighbours, like NumPy's default. It returns the index k of the lower neighbour
// and the weight w of the upper one, k+1. If w is 0, k+1 may be out of range.
func PercentilePosition(m int, p float64) (k int, w float64) {
	// The conversion rounds: without it the product could be fused with pos - k, and
	// w could be negative.
	pos := float64(p / 100 * float64(m-1))
	k = min(int(pos), m-1)
	w = pos - float64(k)
	if k == m-1 {
		w = 0
	}
	return k, w
}

// CheckAdam panics unless p, g, m, v agree and rate and step are 1×1.
func CheckAdam(p, g, m, v, rate, step *tensor.Tensor) {
	CheckSame("backend: Adam", p, g, m, v)
	refuse(
		!rate.Is(1, 1) || !step.Is(1, 1),
		"backend: Adam",
		"rate and step must be [1×1]",
		rate,
		step,
	)
}

// CheckTrack panics unless the running statistics are [1×F] and the new ones
// [G×F] for G groups.
func CheckTrack(
	runningMean, runningVar, mean, variance *tensor.Tensor, groups *Indices,
) {
	g := groups.Len() - 1
	f := mean.Cols
	if !runningMean.Is(1, f) || !runningVar.Is(1, f) || !mean.Is(g, f) ||
		!variance.Is(g, f) {
		message := fmt.Sprintf(
			"want [1×F], [1×F], [G×F], [G×F] for %d groups",
			g,
		)
		tensor.Mismatch(
			"backend: TrackStatistics", message,
			runningMean, runningVar, mean, variance,
		)
	}
}

// Members returns the transpose of one-hot rows with n columns, given by their
// categories, in compressed sparse rows: row c lists the rows of category c,
// ascending. It returns the pointers [n+1] and the rows, in the memory of ptr and
// rows if that is large enough.
func Members(ptr, rows, category []int32, n int) ([]int32, []int32) {
	next := slices.Grow(ptr[:0], n+2)[:n+2]
	clear(next)
	rows = slices.Grow(rows[:0], len(category))[:len(category)]
	// Count the rows of each category, and sum the counts: next[c+1] is then the place
	// of the next row of category c.
	for _, c := range category {
		next[c+2]++
	}
	for c := 2; c < n+2; c++ {
		next[c] += next[c-1]
	}
	// Place the rows. In the end next[c+1] is the end of category c, and so the start
	// of c+1.
	for i, c := range category {
		rows[next[c+1]] = int32(i)
		next[c+1]++
	}
	return next[:n+1], rows
}

// CheckDropout panics unless step is 1×1 and 0 < keep ≤ 1.
func CheckDropout(dst *tensor.Tensor, keep float64, step *tensor.Tensor) {
	refuse(
		!step.Is(1, 1), "backend: DropoutMask",
		"want [N×F], [1×1]", dst, step,
	)
	if !(keep > 0 && keep <= 1) {
		panic(fmt.Sprintf(
			"backend: DropoutMask: keep = %v is outside (0, 1]",
			keep,
		))
	}
}

// DropoutKeep reports whether a dropout mask keeps an element. It is a counter-based
// generator (the finaliser of splitmix64, Steele et al. 2014): the answer depends on
// the arguments only, so all devices and threads agree.
func DropoutKeep(keep float64, seed, step, element uint64) bool {
	x := seed ^ mix(step+0x9e3779b97f4a7c15) ^
		mix(element*0xd1342543de82ef95+1)
	return float64(mix(x)>>11)/(1<<53) < keep
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
