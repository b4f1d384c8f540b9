// Package ref is the reference engine: every primitive of [backend.Backend] as the
// plain float64 loop that its formula describes.
//
// It is the oracle that the conformance suite (package backendtest) compares every
// other engine with, so it is written to be obviously right: no blocking, no
// threads, sums from first to last, and a function of the standard library
// wherever there is one. Read it to learn what a primitive means; use package
// cpu to train.
//
// It is also the strict engine. It panics on breaches of the contract that a fast
// engine may miss: a tensor used after Free, freed twice or made by another engine, a
// destination that is also an input where it must not be, an index vector whose host
// slice has changed. Memory is filled with NaN when it is allocated and when it is
// freed, so a value that was never written shows.
//
// Importing the package makes the engine known to [backend.Open] as "ref".
package ref

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

func init() {
	backend.Register("ref", func(p tensor.Precision) (backend.Backend, error) {
		if p != tensor.Float64 {
			return nil, fmt.Errorf(
				"backend \"ref\" computes in float64 only, not in %v; "+
					"ask for float64, or for another backend",
				p,
			)
		}
		return New(), nil
	})
}

// New returns a reference engine. It computes in float64.
func New() backend.Backend {
	return new(engine)
}

type engine struct {
	inUse int64 // bytes
}

// memory is the buffer of a tensor.
type memory struct {
	owner *engine // nil once freed
	data  []float64
}

// indexMemory is the buffer of an index vector: a copy of the host slice.
type indexMemory struct {
	owner *engine // nil once freed
	data  []int32
}

func (e *engine) Name() string                { return "ref" }
func (e *engine) Precision() tensor.Precision { return tensor.Float64 }
func (e *engine) InUse() int64                { return e.inUse }

func (e *engine) Alloc(rows, cols int) *tensor.Tensor {
	backend.CheckAlloc(rows, cols)
	data := make([]float64, rows*cols)
	fill(data, math.NaN())
	e.inUse += 8 * int64(len(data))
	return &tensor.Tensor{Rows: rows, Cols: cols, Buf: &memory{e, data}}
}

func (e *engine) Free(t *tensor.Tensor) {
	data := e.data("Free", t)
	fill(data, math.NaN())
	e.inUse -= 8 * int64(len(data))
	t.Buf.(*memory).owner = nil
}

// data returns the elements of t, row by row. It panics unless t is alive and
// belongs to e.
func (e *engine) data(op string, t *tensor.Tensor) []float64 {
	m, ok := t.Buf.(*memory)
	switch {
	case !ok || m.owner != nil && m.owner != e:
		panic(fmt.Sprintf(
			"backend ref: %s: the tensor %v belongs to another engine",
			op, t,
		))
	case m.owner == nil:
		panic(fmt.Sprintf("backend ref: %s: the tensor %v has been freed",
			op, t))
	case len(m.data) != t.Len():
		panic(fmt.Sprintf(
			"backend ref: %s: the shape %v was changed; the tensor has %d elements",
			op,
			t,
			len(m.data),
		))
	}
	return m.data
}

// apart panics if the memory of dst is also that of an input.
func apart(op string, dst *tensor.Tensor, inputs ...*tensor.Tensor) {
	for _, t := range inputs {
		if t != nil && t.Buf == dst.Buf {
			panic(fmt.Sprintf(
				"backend ref: %s: the destination %v is also an input",
				op, dst,
			))
		}
	}
}

func fill(x []float64, v float64) {
	for i := range x {
		x[i] = v
	}
}

func (e *engine) Upload(dst *tensor.Tensor, src []float64) {
	backend.CheckHost("backend: Upload", dst, len(src))
	copy(e.data("Upload", dst), src)
}

func (e *engine) Upload32(dst *tensor.Tensor, src []float32) {
	backend.CheckHost("backend: Upload32", dst, len(src))
	d := e.data("Upload32", dst)
	for i, v := range src {
		d[i] = float64(v)
	}
}

func (e *engine) Download(dst []float64, src *tensor.Tensor) {
	backend.CheckHost("backend: Download", src, len(dst))
	copy(dst, e.data("Download", src))
}

func (e *engine) Fetch(src *tensor.Tensor) backend.Pending {
	backend.CheckFetch(src)
	return &pending{slices.Clone(e.data("Fetch", src))}
}

// pending is the copy that Fetch made.
type pending struct{ values []float64 }

func (p *pending) Values(dst []float64) {
	if p.values == nil {
		panic("backend ref: Values was called twice")
	}
	if len(dst) != len(p.values) {
		panic(fmt.Sprintf("backend ref: Values: want %d host values, not %d",
			len(p.values), len(dst)))
	}
	copy(dst, p.values)
	p.values = nil
}

func (e *engine) Indices(host []int32) *backend.Indices {
	e.inUse += 4 * int64(len(host))
	return &backend.Indices{
		Host: host,
		Buf:  &indexMemory{e, slices.Clone(host)},
	}
}

func (e *engine) IndexBlock(hosts [][]int32) (xs []*backend.Indices) {
	for _, h := range hosts {
		xs = append(xs, e.Indices(h))
	}
	return xs
}

func (e *engine) UpdateIndices(xs []*backend.Indices, hosts [][]int32) {
	backend.CheckUpdateIndices(xs, hosts)
	for k, x := range xs {
		copy(e.memory("UpdateIndices", x).data, hosts[k])
		x.Host = hosts[k]
	}
}

func (e *engine) FreeIndices(x *backend.Indices) {
	e.inUse -= 4 * int64(len(e.indices("FreeIndices", x)))
	x.Buf.(*indexMemory).owner = nil
}

// indices returns the elements of x. It panics unless x is alive and belongs to e,
// and its host slice is unchanged.
func (e *engine) indices(op string, x *backend.Indices) []int32 {
	m := e.memory(op, x)
	if !slices.Equal(m.data, x.Host) {
		panic(fmt.Sprintf(
			"backend ref: %s: the host slice of the indices was changed while in use",
			op,
		))
	}
	return m.data
}

// memory returns the buffer of x. It panics unless x is alive and belongs to e.
func (e *engine) memory(op string, x *backend.Indices) *indexMemory {
	m, ok := x.Buf.(*indexMemory)
	switch {
	case !ok || m.owner != nil && m.owner != e:
		panic(fmt.Sprintf(
			"backend ref: %s: the indices belong to another engine",
			op,
		))
	case m.owner == nil:
		panic(fmt.Sprintf("backend ref: %s: the indices have been freed", op))
	}
	return m
}

func (e *engine) Fill(dst *tensor.Tensor, v float64) {
	fill(e.data("Fill", dst), v)
}

func (e *engine) CopyBlock(
	dst *tensor.Tensor, di, dj int, src *tensor.Tensor, si, sj, rows, cols int,
) {
	backend.CheckBlock(dst, di, dj, src, si, sj, rows, cols)
	apart("CopyBlock", dst, src)
	d := e.data("CopyBlock", dst)
	s := e.data("CopyBlock", src)
	for i := range rows {
		for j := range cols {
			d[(di+i)*dst.Cols+dj+j] = s[(si+i)*src.Cols+sj+j]
		}
	}
}

func (e *engine) Transpose(dst, src *tensor.Tensor) {
	backend.CheckTranspose(dst, src)
	apart("Transpose", dst, src)
	d := e.data("Transpose", dst)
	s := e.data("Transpose", src)
	for i := range src.Rows {
		for j := range src.Cols {
			d[j*src.Rows+i] = s[i*src.Cols+j]
		}
	}
}

func (e *engine) GatherRows(dst, src *tensor.Tensor, idx *backend.Indices) {
	backend.CheckGather(dst, src, idx)
	apart("GatherRows", dst, src)
	d := e.data("GatherRows", dst)
	s := e.data("GatherRows", src)
	for k, i := range e.indices("GatherRows", idx) {
		for j := range src.Cols {
			d[k*src.Cols+j] = s[int(i)*src.Cols+j]
		}
	}
}

func (e *engine) FillDiagonal(dst *tensor.Tensor, v float64) {
	backend.CheckSquare("backend: FillDiagonal", dst)
	d := e.data("FillDiagonal", dst)
	for i := range dst.Rows {
		d[i*dst.Cols+i] = v
	}
}

func (e *engine) Unary(
	dst *tensor.Tensor, op backend.UnaryOp, a *tensor.Tensor,
) {
	backend.CheckSame("backend: "+op.String(), dst, a)
	d := e.data(op.String(), dst)
	x := e.data(op.String(), a)
	for i := range d {
		d[i] = unary(op, x[i])
	}
}

func unary(op backend.UnaryOp, x float64) float64 {
	switch op {
	case backend.Exp:
		return math.Exp(x)
	case backend.Log:
		return log(x)
	case backend.Sqrt:
		return math.Sqrt(x)
	case backend.Sigmoid:
		if x < 0 { // e^-x overflows before e^x is 0
			return math.Exp(x) / (1 + math.Exp(x))
		}
		return 1 / (1 + math.Exp(-x))
	case backend.Softplus: // ln(1+e^x) = ln(e^m·(e^-m + e^(x-m))) for m = max(x, 0)
		return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	case backend.Tanh:
		return math.Tanh(x)
	case backend.ReLU:
		return max(x, 0)
	case backend.Abs:
		return math.Abs(x)
	case backend.Sign:
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x // 0 or NaN
	case backend.Reciprocal:
		return 1 / x
	case backend.InvSqrt:
		if x >= backend.LeastDegree(tensor.Float64) {
			return 1 / math.Sqrt(x)
		}
		return 0
	}
	panic(fmt.Sprintf("backend ref: no unary function %d", op))
}

// log is math.Log, except for subnormal numbers, for which the assembly of math.Log
// on amd64 is wrong.
func log(x float64) float64 {
	if 0 < x && x < 0x1p-1022 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

func (e *engine) Binary(
	dst *tensor.Tensor, op backend.BinaryOp, a, b *tensor.Tensor,
) {
	backend.CheckSame("backend: "+op.String(), dst, a, b)
	e.binary(dst, op, a, b, func(i, j int) int {
		return i*b.Cols + j
	})
}

func (e *engine) BinaryRow(
	dst *tensor.Tensor, op backend.BinaryOp, a, row *tensor.Tensor,
) {
	backend.CheckRow("backend: "+op.String()+"Row", dst, a, row)
	e.binary(dst, op, a, row, func(_, j int) int { return j })
}

func (e *engine) BinaryCol(
	dst *tensor.Tensor, op backend.BinaryOp, a, col *tensor.Tensor,
) {
	backend.CheckCol("backend: "+op.String()+"Col", dst, a, col)
	e.binary(dst, op, a, col, func(i, _ int) int { return i })
}

func (e *engine) BinaryScalar(
	dst *tensor.Tensor, op backend.BinaryOp, a, s *tensor.Tensor,
) {
	backend.CheckScalar("backend: "+op.String()+"Scalar", dst, a, s)
	e.binary(dst, op, a, s, func(_, _ int) int { return 0 })
}

// binary sets dst_ij = op(a_ij, b[index(i, j)]).
func (e *engine) binary(
	dst *tensor.Tensor,
	op backend.BinaryOp,
	a, b *tensor.Tensor,
	index func(i, j int) int,
) {
	d := e.data(op.String(), dst)
	x := e.data(op.String(), a)
	y := e.data(op.String(), b)
	for i := range dst.Rows {
		for j := range dst.Cols {
			d[i*dst.Cols+j] = binary(op, x[i*dst.Cols+j], y[index(i, j)])
		}
	}
}

func binary(op backend.BinaryOp, a, b float64) float64 {
	switch op {
	case backend.Add:
		return a + b
	case backend.Sub:
		return a - b
	case backend.Mul:
		return a * b
	case backend.Div:
		return a / b
	case backend.Max:
		return max(a, b)
	case backend.Greater:
		if a > b {
			return 1
		}
		return 0
	case backend.Gate:
		if b > 0 {
			return a
		}
		return 0
	}
	panic(fmt.Sprintf("backend ref: no binary function %d", op))
}

func (e *engine) Affine(
	dst *tensor.Tensor, alpha float64, a *tensor.Tensor, c float64,
) {
	backend.CheckSame("backend: Affine", dst, a)
	d := e.data("Affine", dst)
	x := e.data("Affine", a)
	for i := range d {
		d[i] = alpha*x[i] + c
	}
}

func (e *engine) Axpby(
	dst *tensor.Tensor,
	alpha float64,
	a *tensor.Tensor,
	beta float64,
	b *tensor.Tensor,
) {
	backend.CheckSame("backend: Axpby", dst, a, b)
	d := e.data("Axpby", dst)
	x := e.data("Axpby", a)
	y := e.data("Axpby", b)
	for i := range d {
		d[i] = alpha*x[i] + beta*y[i]
	}
}

func (e *engine) ReduceRows(
	dst *tensor.Tensor, op backend.RowOp, a *tensor.Tensor,
) {
	backend.CheckReduceRows("backend: "+op.String(), dst, a)
	apart(op.String(), dst, a)
	d := e.data(op.String(), dst)
	x := e.data(op.String(), a)
	for i := range d {
		d[i] = reduce(op, x[i*a.Cols:(i+1)*a.Cols])
	}
}

func reduce(op backend.RowOp, row []float64) float64 {
	sum := 0.0
	largest := math.Inf(-1)
	for _, v := range row {
		sum += v
		largest = max(largest, v) // NaN if either is
	}
	switch op {
	case backend.RowSum:
		return sum
	case backend.RowMax:
		return largest
	case backend.RowLogSumExp:
		if math.IsInf(largest, 0) { // Inf - Inf below would be NaN
			return largest
		}
		sum = 0
		for _, v := range row {
			sum += math.Exp(v - largest)
		}
		return largest + math.Log(sum)
	}
	panic(fmt.Sprintf("backend ref: no row reduction %d", op))
}

func (e *engine) ColSums(dst, a *tensor.Tensor) {
	backend.CheckColSums(dst, a)
	apart("ColSums", dst, a)
	d := e.data("ColSums", dst)
	x := e.data("ColSums", a)
	for j := range d {
		d[j] = 0
		for i := range a.Rows {
			d[j] += x[i*a.Cols+j]
		}
	}
}

func (e *engine) Dot(dst, a, b *tensor.Tensor) {
	backend.CheckDot(dst, a, b)
	apart("Dot", dst, a, b)
	d := e.data("Dot", dst)
	x := e.data("Dot", a)
	var y []float64 // nil for ones
	if b != nil {
		y = e.data("Dot", b)
	}
	d[0] = 0
	for i, v := range x {
		if y != nil {
			v *= y[i]
		}
		d[0] += v
	}
}

func (e *engine) SegmentSum(
	dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor,
) {
	backend.CheckSegments("backend: SegmentSum", dst, ptr, x)
	apart("SegmentSum", dst, x)
	d := e.data("SegmentSum", dst)
	s := e.data("SegmentSum", x)
	p := e.indices("SegmentSum", ptr)
	for g := range dst.Rows {
		for j := range dst.Cols {
			sum := 0.0
			for i := p[g]; i < p[g+1]; i++ {
				sum += s[int(i)*x.Cols+j]
			}
			d[g*dst.Cols+j] = sum
		}
	}
}

func (e *engine) SegmentExpand(
	dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor,
) {
	backend.CheckSegments("backend: SegmentExpand", x, ptr, dst)
	apart("SegmentExpand", dst, x)
	d := e.data("SegmentExpand", dst)
	s := e.data("SegmentExpand", x)
	p := e.indices("SegmentExpand", ptr)
	fill(d, 0)
	for g := range x.Rows {
		for i := p[g]; i < p[g+1]; i++ {
			for j := range x.Cols {
				d[int(i)*x.Cols+j] = s[g*x.Cols+j]
			}
		}
	}
}

func (e *engine) Gemm(
	dst *tensor.Tensor,
	transA, transB bool,
	alpha float64,
	a, b *tensor.Tensor,
	beta float64,
) {
	m, n, k := backend.CheckGemm(dst, transA, transB, a, b)
	apart("Gemm", dst, a, b)
	d := e.data("Gemm", dst)
	x := e.data("Gemm", a)
	y := e.data("Gemm", b)
	element := func(
		x []float64, t *tensor.Tensor, trans bool, i, j int,
	) float64 {
		if trans {
			i, j = j, i
		}
		return x[i*t.Cols+j]
	}
	for i := range m {
		for j := range n {
			sum := 0.0
			for l := range k {
				sum += element(x, a, transA, i, l) * element(y, b, transB, l, j)
			}
			old := 0.0
			if beta != 0 {
				old = beta * d[i*n+j]
			}
			d[i*n+j] = alpha*sum + old
		}
	}
}

func (e *engine) SpMM(
	dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64,
) {
	backend.CheckSpMM(dst, a, x, self)
	apart("SpMM", dst, x, a.Val)
	d := e.data("SpMM", dst)
	s := e.data("SpMM", x)
	ptr := e.indices("SpMM", a.Ptr)
	col := e.indices("SpMM", a.Col)
	var val []float64 // nil for ones
	if a.Val != nil {
		val = e.data("SpMM", a.Val)
	}
	for i := range dst.Rows {
		for j := range dst.Cols {
			sum := 0.0
			for k := ptr[i]; k < ptr[i+1]; k++ {
				v := s[int(col[k])*x.Cols+j]
				if val != nil {
					v *= val[k]
				}
				sum += v
			}
			if self != 0 {
				sum += self * s[i*x.Cols+j]
			}
			d[i*dst.Cols+j] = sum
		}
	}
}

func (e *engine) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	backend.CheckPercentile(theta, weights, s, p)
	apart("UpperPercentile", theta, weights, s)
	value := e.data("UpperPercentile", theta)
	x := e.data("UpperPercentile", s)
	w := make([]float64, len(x))
	if weights != nil {
		apart("UpperPercentile", weights, s)
		w = e.data("UpperPercentile", weights)
	}
	// Sort the strict upper triangle by value, and equal values by place.
	var upper []int // indices into x
	for i := range s.Rows {
		for j := i + 1; j < s.Cols; j++ {
			upper = append(upper, i*s.Cols+j)
		}
	}
	slices.SortFunc(upper, func(i, j int) int {
		return cmp.Or(cmp.Compare(x[i], x[j]), i-j)
	})
	// Interpolate between two neighbours.
	fill(w, 0)
	value[0] = 0
	if len(upper) == 0 {
		return
	}
	k, second := backend.PercentilePosition(len(upper), p)
	w[upper[k]] = 1 - second
	value[0] = x[upper[k]]
	if second != 0 {
		w[upper[k+1]] = second
		value[0] = (1-second)*x[upper[k]] + second*x[upper[k+1]]
	}
}

func (e *engine) DropoutMask(
	dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor,
) {
	backend.CheckDropout(dst, keep, step)
	apart("DropoutMask", dst, step)
	d := e.data("DropoutMask", dst)
	t := e.data("DropoutMask", step)
	for i := range d {
		d[i] = 0
		if backend.DropoutKeep(keep, seed, uint64(t[0]), uint64(i)) {
			d[i] = 1 / keep
		}
	}
}

func (e *engine) Adam(
	p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig,
) {
	backend.CheckAdam(p, g, m, v, rate, step)
	apart("Adam", p, g, m, v, rate, step)
	apart("Adam", m, g, v, rate, step)
	apart("Adam", v, g, rate, step)
	pd := e.data("Adam", p)
	gd := e.data("Adam", g)
	md := e.data("Adam", m)
	vd := e.data("Adam", v)
	r := e.data("Adam", rate)[0]
	t := e.data("Adam", step)[0]
	if math.IsNaN(t) {
		return
	}
	for i := range pd {
		grad := gd[i] + c.WeightDecay*pd[i]
		md[i] = c.Beta1*md[i] + (1-c.Beta1)*grad
		vd[i] = c.Beta2*vd[i] + (1-c.Beta2)*grad*grad
		root := math.Sqrt(vd[i]) / math.Sqrt(1-math.Pow(c.Beta2, t))
		pd[i] -= r / (1 - math.Pow(c.Beta1, t)) * md[i] / (root + c.Eps)
	}
}

// Capture keeps f itself: a replay runs it again.
func (e *engine) Capture(f func()) (backend.Step, error) {
	f()
	return &step{f}, nil
}

type step struct{ f func() }

func (s *step) Replay() error {
	if s.f == nil {
		return errors.New("backend ref: Replay of a closed step")
	}
	s.f()
	return nil
}

func (s *step) Close() error {
	s.f = nil
	return nil
}

// Close has nothing to do: the memory is Go's.
func (e *engine) Close() error {
	return nil
}
