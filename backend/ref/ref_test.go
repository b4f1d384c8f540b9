package ref_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// TestConformance compares ref with itself: what it adds to the tests by hand
// below is shapes, memory, aliasing, replay and determinism. ref has one loop for all sizes.
func TestConformance(t *testing.T) {
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) { return backend.Open("ref", p) },
		backendtest.Only(tensor.Float64), backendtest.Serial(), backendtest.Small())
}

var (
	inf = math.Inf(1)
	nan = math.NaN()
)

// bench is an engine with short names for what the tests below do all the time.
type bench struct {
	backend.Backend
	t *testing.T
}

func open(t *testing.T) *bench { return &bench{ref.New(), t} }

// matrix places the rows on the engine.
func (b *bench) matrix(rows ...[]float64) *tensor.Tensor {
	cols := 0
	if len(rows) > 0 {
		cols = len(rows[0])
	}
	x := b.Alloc(len(rows), cols)
	var v []float64
	for _, r := range rows {
		v = append(v, r...)
	}
	b.Upload(x, v)
	return x
}

func (b *bench) row(v ...float64) *tensor.Tensor { return b.matrix(v) }

func (b *bench) col(v ...float64) *tensor.Tensor {
	x := b.Alloc(len(v), 1)
	b.Upload(x, v)
	return x
}

// want compares x with numbers worked out by hand: equal, NaN for NaN, or
// within a few units of the last of 15 decimals.
func (b *bench) want(what string, x *tensor.Tensor, want ...float64) {
	b.t.Helper()
	got := make([]float64, x.Len())
	b.Download(got, x)
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-14, 0)); d != "" {
		b.t.Errorf("%s %v (-want +got):\n%s", what, x, d)
	}
}

// dst returns a destination; ref's memory is NaN when it is new.
func (b *bench) dst(rows, cols int) *tensor.Tensor { return b.Alloc(rows, cols) }

func TestMoves(t *testing.T) {
	b := open(t)
	a := b.matrix([]float64{1, 2, 3}, []float64{4, 5, 6})

	d := b.dst(2, 3)
	b.want("Alloc", d, nan, nan, nan, nan, nan, nan)
	b.Fill(d, -2.5)
	b.want("Fill", d, -2.5, -2.5, -2.5, -2.5, -2.5, -2.5)

	d = b.dst(3, 2)
	b.Transpose(d, a)
	b.want("Transpose", d, 1, 4, 2, 5, 3, 6)

	d = b.dst(3, 3)
	b.Fill(d, 0)
	b.CopyBlock(d, 1, 0, a, 0, 1, 2, 2)
	b.want("CopyBlock", d, 0, 0, 0, 2, 3, 0, 5, 6, 0)

	d = b.dst(4, 3)
	b.GatherRows(d, a, b.Indices([]int32{1, 0, 1, 1}))
	b.want("GatherRows", d, 4, 5, 6, 1, 2, 3, 4, 5, 6, 4, 5, 6)

	d = b.matrix([]float64{1, 2}, []float64{3, 4})
	b.FillDiagonal(d, 9)
	b.want("FillDiagonal", d, 9, 2, 3, 9)

	d = b.dst(1, 3)
	b.Upload32(d, []float32{0.5, -1, 0.1})
	b.want("Upload32", d, 0.5, -1, 0.10000000149011612)
}

func TestUnary(t *testing.T) {
	b := open(t)
	tested := map[backend.UnaryOp]bool{}
	for _, c := range []struct {
		op   backend.UnaryOp
		x    []float64
		want []float64
	}{
		{backend.Exp, []float64{0, 1, -1, 800, -800, inf, -inf, nan}, []float64{1, math.E, 1 / math.E, inf, 0, inf, 0, nan}},
		{backend.Log, []float64{1, math.E, 0, -1, inf, nan}, []float64{0, 1, -inf, nan, inf, nan}},
		{backend.Sqrt, []float64{0, 4, 2, -1, inf}, []float64{0, 2, math.Sqrt2, nan, inf}},
		// 1/(1+e^-ln 3) = 1/(1+1/3)
		{backend.Sigmoid, []float64{0, math.Log(3), -math.Log(3), 800, -800, inf, -inf, nan}, []float64{0.5, 0.75, 0.25, 1, 0, 1, 0, nan}},
		// ln(1+e^ln 3) = ln 4, and for large x it is x, for small e^x
		{backend.Softplus, []float64{0, math.Log(3), 800, -40, -800, inf, -inf, nan}, []float64{math.Ln2, 2 * math.Ln2, 800, 4.248354255291589e-18, 0, inf, 0, nan}},
		// tanh(ln 2) = (2-1/2)/(2+1/2)
		{backend.Tanh, []float64{0, math.Ln2, -math.Ln2, 1e-9, 800, -inf, nan}, []float64{0, 0.6, -0.6, 1e-9, 1, -1, nan}},
		{backend.ReLU, []float64{2, 0, -2, inf, -inf, nan}, []float64{2, 0, 0, inf, 0, nan}},
		{backend.Abs, []float64{2, 0, -2, -inf, nan}, []float64{2, 0, 2, inf, nan}},
		{backend.Sign, []float64{2, 0, -2, inf, -inf, 5e-324, nan}, []float64{1, 0, -1, 1, -1, 1, nan}},
		{backend.Reciprocal, []float64{4, -0.5, 0, math.Copysign(0, -1), inf, nan}, []float64{0.25, -2, inf, -inf, 0, nan}},
		{backend.InvSqrt, []float64{4, 0.25, 0, -4, inf, nan, 0x1p-1000, 0x1.fp-1001}, []float64{0.5, 2, 0, 0, 0, 0, 0x1p500, 0}},
	} {
		d := b.dst(1, len(c.x))
		b.Unary(d, c.op, b.row(c.x...))
		b.want(c.op.String(), d, c.want...)
		tested[c.op] = true
	}
	for _, op := range backend.UnaryOps() {
		if !tested[op] {
			t.Errorf("the table of TestUnary has no known values of %v", op)
		}
	}
}

// TestSigmoidDenormal: e^-710 and e^-740 are denormal; e^710 would overflow.
func TestSigmoidDenormal(t *testing.T) {
	b := open(t)
	d := b.dst(1, 2)
	b.Unary(d, backend.Sigmoid, b.row(-710, -740))
	got := make([]float64, 2)
	b.Download(got, d)
	for i, want := range []float64{4.476286225675e-309, 4.2e-322} {
		if !(math.Abs(got[i]-want) <= 1e-12*want+math.SmallestNonzeroFloat64) {
			t.Errorf("sigmoid is %g, want %g", got[i], want)
		}
	}
}

func TestBinary(t *testing.T) {
	b := open(t)
	x, y := []float64{6, -1, 0, nan, 3}, []float64{2, -1, 0, 1, nan}
	for _, c := range []struct {
		op   backend.BinaryOp
		want []float64
	}{
		{backend.Add, []float64{8, -2, 0, nan, nan}},
		{backend.Sub, []float64{4, 0, 0, nan, nan}},
		{backend.Mul, []float64{12, 1, 0, nan, nan}},
		{backend.Div, []float64{3, 1, nan, nan, nan}},
		{backend.Max, []float64{6, -1, 0, nan, nan}},
		{backend.Greater, []float64{1, 0, 0, 0, 0}},
		{backend.Gate, []float64{6, 0, 0, nan, 0}},
	} {
		d := b.dst(1, 5)
		b.Binary(d, c.op, b.row(x...), b.row(y...))
		b.want(c.op.String(), d, c.want...)
	}

	// The forms differ in the element of the second argument alone.
	a := b.matrix([]float64{1, 2, 3}, []float64{4, 5, 6})
	d := b.dst(2, 3)
	b.BinaryRow(d, backend.Sub, a, b.row(10, 20, 30))
	b.want("BinaryRow", d, -9, -18, -27, -6, -15, -24)
	b.BinaryCol(d, backend.Sub, a, b.col(10, 20))
	b.want("BinaryCol", d, -9, -8, -7, -16, -15, -14)
	b.BinaryScalar(d, backend.Sub, a, b.row(10))
	b.want("BinaryScalar", d, -9, -8, -7, -6, -5, -4)
	b.BinaryRow(a, backend.Mul, a, b.row(1, 0, -1))
	b.want("BinaryRow in place", a, 1, 0, -3, 4, 0, -6)
}

func TestLinear(t *testing.T) {
	b := open(t)
	d := b.dst(1, 3)
	b.Affine(d, -2, b.row(1, 0, inf), 0.5)
	b.want("Affine", d, -1.5, 0.5, -inf)
	b.Axpby(d, 2, b.row(1, 2, 3), -1, b.row(10, 20, 30))
	b.want("Axpby", d, -8, -16, -24)
}

func TestReductions(t *testing.T) {
	b := open(t)
	a := b.matrix(
		[]float64{1, 2, 4},
		[]float64{-1, -2, -4},
		[]float64{0, nan, 1},
		[]float64{1000, 1000, -inf},
		[]float64{-inf, -inf, -inf},
		[]float64{0, inf, 0},
	)
	for _, c := range []struct {
		op   backend.RowOp
		want []float64
		none float64 // of no columns
	}{
		{backend.RowSum, []float64{7, -7, nan, -inf, -inf, inf}, 0},
		{backend.RowMax, []float64{4, -1, nan, 1000, -inf, inf}, -inf},
		// ln(e+e²+e⁴) and ln(1/e+1/e²+1/e⁴), by CPython 3's math.log
		{backend.RowLogSumExp, []float64{4.169846019556285, -0.6509877832318135, nan, 1000 + math.Ln2, -inf, inf}, -inf},
	} {
		d := b.dst(6, 1)
		b.ReduceRows(d, c.op, a)
		b.want(c.op.String(), d, c.want...)
		d = b.dst(2, 1)
		b.ReduceRows(d, c.op, b.Alloc(2, 0))
		b.want(c.op.String()+" of no columns", d, c.none, c.none)
	}

	a = b.matrix([]float64{1, 2, 3}, []float64{4, 5, 6})
	d := b.dst(1, 3)
	b.ColSums(d, a)
	b.want("ColSums", d, 5, 7, 9)
	b.ColSums(d, b.Alloc(0, 3))
	b.want("ColSums of no rows", d, 0, 0, 0)

	d = b.dst(1, 1)
	b.Dot(d, a, b.matrix([]float64{1, 0, -1}, []float64{10, 0, 0.5}))
	b.want("Dot", d, 1-3+40+3)
	b.Dot(d, a, nil)
	b.want("Dot with ones", d, 21)
	b.Dot(d, b.Alloc(0, 3), nil)
	b.want("Dot of nothing", d, 0)
}

func TestSegments(t *testing.T) {
	b := open(t)
	ptr := b.Indices([]int32{0, 2, 2, 5})
	d := b.dst(3, 2)
	b.SegmentSum(d, ptr, b.matrix([]float64{1, 10}, []float64{2, 20}, []float64{3, 30}, []float64{4, 40}, []float64{5, 50}))
	b.want("SegmentSum", d, 3, 30, 0, 0, 12, 120)
	x := b.matrix([]float64{1, 10}, []float64{2, 20}, []float64{3, 30})
	d = b.dst(5, 2)
	b.SegmentExpand(d, ptr, x)
	b.want("SegmentExpand", d, 1, 10, 1, 10, 3, 30, 3, 30, 3, 30)

	// A row behind the last segment is padding.
	padded := b.dst(6, 2)
	b.SegmentExpand(padded, ptr, x)
	b.want("SegmentExpand with padding", padded, 1, 10, 1, 10, 3, 30, 3, 30, 3, 30, 0, 0)
	b.Upload(padded, []float64{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, nan, nan})
	b.SegmentSum(x, ptr, padded)
	b.want("SegmentSum with padding", x, 3, 30, 0, 0, 12, 120)
}

func TestGemm(t *testing.T) {
	b := open(t)
	// [1 2 3; 4 5 6]·[1 0; 2 1; -1 3] = [2 11; 8 23]
	a, at := b.matrix([]float64{1, 2, 3}, []float64{4, 5, 6}), b.matrix([]float64{1, 4}, []float64{2, 5}, []float64{3, 6})
	x, xt := b.matrix([]float64{1, 0}, []float64{2, 1}, []float64{-1, 3}), b.matrix([]float64{1, 2, -1}, []float64{0, 1, 3})
	for _, c := range []struct {
		transA, transB bool
		a, x           *tensor.Tensor
	}{{false, false, a, x}, {true, false, at, x}, {false, true, a, xt}, {true, true, at, xt}} {
		name := fmt.Sprintf("Gemm(%v, %v)", c.transA, c.transB)
		d := b.dst(2, 2)
		b.Gemm(d, c.transA, c.transB, 1, c.a, c.x, 0)
		b.want(name, d, 2, 11, 8, 23)
		b.Gemm(d, c.transA, c.transB, 10, c.a, c.x, -1)
		b.want(name+", alpha 10, beta -1", d, 18, 99, 72, 207)
	}
	d := b.matrix([]float64{7})
	b.Gemm(d, false, false, 1, b.Alloc(1, 0), b.Alloc(0, 1), 0.5)
	b.want("Gemm of nothing", d, 3.5)
}

func TestSpMM(t *testing.T) {
	b := open(t)
	// A = [0 1 2; 0 0 0; 4 0 0], whose entry 2 is a repeated 1 without values.
	a := &backend.CSR{Rows: 3, Cols: 3, Ptr: b.Indices([]int32{0, 2, 2, 3}), Col: b.Indices([]int32{2, 1, 0})}
	x := b.matrix([]float64{1, 10}, []float64{2, 20}, []float64{3, 30})
	d := b.dst(3, 2)
	b.SpMM(d, a, x, 0)
	b.want("SpMM", d, 5, 50, 0, 0, 1, 10)
	b.SpMM(d, a, x, 1.5)
	b.want("SpMM, self 1.5", d, 6.5, 65, 3, 30, 5.5, 55)
	a.Val = b.col(2, 1, 4)
	b.SpMM(d, a, x, 0)
	b.want("SpMM with values", d, 8, 80, 0, 0, 4, 40)

	wide := &backend.CSR{Rows: 1, Cols: 3, Ptr: b.Indices([]int32{0, 3}), Col: b.Indices([]int32{0, 2, 2})}
	d = b.dst(1, 2)
	b.SpMM(d, wide, x, 0)
	b.want("SpMM of a rectangle", d, 7, 70)
}

func TestUpperPercentile(t *testing.T) {
	b := open(t)
	// The strict upper triangle, row by row: 5, 1, 3, 1, 4, 2.
	// Sorted: 1 (0,2), 1 (1,2), 2 (2,3), 3 (0,3), 4 (1,3), 5 (0,1).
	s := b.matrix(
		[]float64{9, 5, 1, 3},
		[]float64{0, 9, 1, 4},
		[]float64{0, 0, 9, 2},
		[]float64{0, 0, 0, 9},
	)
	for _, c := range []struct {
		p, theta float64
		weights  map[int]float64 // by place in s, row by row
	}{
		{0, 1, map[int]float64{2: 1}},
		{20, 1, map[int]float64{6: 1}},
		{50, 2.5, map[int]float64{11: 0.5, 3: 0.5}},
		{80, 4, map[int]float64{7: 1}},
		{85, 4.25, map[int]float64{7: 0.75, 1: 0.25}},
		{100, 5, map[int]float64{1: 1}},
	} {
		theta, weights := b.dst(1, 1), b.dst(4, 4)
		b.UpperPercentile(theta, weights, s, c.p)
		want := make([]float64, 16)
		for i, w := range c.weights {
			want[i] = w
		}
		b.want(fmt.Sprintf("theta for p=%v", c.p), theta, c.theta)
		b.want(fmt.Sprintf("weights for p=%v", c.p), weights, want...)
		b.UpperPercentile(theta, nil, s, c.p)
		b.want(fmt.Sprintf("theta for p=%v without weights", c.p), theta, c.theta)
	}
	theta, weights := b.dst(1, 1), b.dst(1, 1)
	b.UpperPercentile(theta, weights, b.row(3), 50)
	b.want("theta of one", theta, 0)
	b.want("weights of one", weights, 0)
}

func TestDropoutMask(t *testing.T) {
	b := open(t)
	d := b.dst(3, 4)
	b.DropoutMask(d, 0.25, 7, b.row(2))
	got := make([]float64, 12)
	b.Download(got, d)
	for i, v := range got {
		want := 0.0
		if backend.DropoutKeep(0.25, 7, 2, uint64(i)) {
			want = 4
		}
		if v != want {
			t.Errorf("element %d is %v, want %v", i, v, want)
		}
	}
	b.DropoutMask(d, 1, 7, b.row(2))
	b.want("DropoutMask that keeps all", d, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
}

func TestAdam(t *testing.T) {
	b := open(t)
	c := backend.AdamConfig{Beta1: 0.5, Beta2: 0.75, Eps: 1}
	p, m, v := b.row(1), b.row(0), b.row(0)
	// Step 1: m = 2, v = 4; m/(1-0.5) = 4, √(v/0.25) = 4: p = 1 - 0.1·4/5.
	b.Adam(p, b.row(4), m, v, b.row(0.1), b.row(1), c)
	b.want("m after one step", m, 2)
	b.want("v after one step", v, 4)
	b.want("p after one step", p, 0.92)
	// Step 2: m = 1+1 = 2, v = 3+1 = 4; m/0.75 = 8/3, √(4/0.4375) = 8/√7.
	b.Adam(p, b.row(2), m, v, b.row(0.1), b.row(2), c)
	b.want("m after two steps", m, 2)
	b.want("v after two steps", v, 4)
	b.want("p after two steps", p, 0.92-0.1*(8.0/3)/(8/math.Sqrt(7)+1))

	// A step that is no number changes nothing.
	p, m, v = b.row(1), b.row(2), b.row(4)
	b.Adam(p, b.row(4), m, v, b.row(0.1), b.row(nan), c)
	b.want("p after step NaN", p, 1)
	b.want("m after step NaN", m, 2)
	b.want("v after step NaN", v, 4)

	// The decay belongs to the gradient: 3 + 0.5·2 = 4, and then as above.
	c.WeightDecay = 0.5
	p, m, v = b.row(2), b.row(0), b.row(0)
	b.Adam(p, b.row(3), m, v, b.row(0.1), b.row(1), c)
	b.want("p with weight decay", p, 1.92)
	b.want("m with weight decay", m, 2)
}

func TestCapture(t *testing.T) {
	b := open(t)
	x := b.row(1)
	step, err := b.Capture(func() { b.Affine(x, 2, x, 1) })
	if err != nil {
		t.Fatal(err)
	}
	b.want("x after Capture", x, 3)
	if err := step.Replay(); err != nil {
		t.Fatal(err)
	}
	b.want("x after Replay", x, 7)
	if err := step.Close(); err != nil {
		t.Fatal(err)
	}
	if err := step.Replay(); err == nil {
		t.Error("Replay of a closed step gave no error")
	}
}

// TestOpen says that float32 is refused with the cure.
func TestOpen(t *testing.T) {
	b, err := backend.Open("ref", tensor.Float64)
	if err != nil || b.Name() != "ref" || b.Precision() != tensor.Float64 {
		t.Errorf("Open(ref, float64) = %v, %v", b, err)
	}
	if _, err = backend.Open("ref", tensor.Float32); err == nil || !strings.Contains(err.Error(), "float64") {
		t.Errorf("Open(ref, float32) gave the error %v, want one that names float64", err)
	}
}

// TestStrict makes the errors that the contract forbids and ref detects.
func TestStrict(t *testing.T) {
	b, other := open(t), open(t)
	freed, freedIdx := b.Alloc(2, 2), b.Indices([]int32{0, 1})
	b.Free(freed)
	b.FreeIndices(freedIdx)
	x, idx := b.matrix([]float64{1, 2}, []float64{3, 4}), b.Indices([]int32{0, 1})
	host := []int32{0, 1}
	changed := b.Indices(host)
	host[1] = 0
	reshaped := b.Alloc(2, 3)
	reshaped.Rows = 1
	csr := &backend.CSR{Rows: 2, Cols: 2, Ptr: b.Indices([]int32{0, 1, 2}), Col: idx, Val: b.col(1, 1)}
	one := b.row(1)

	for _, c := range []struct {
		name, message string
		call          func()
	}{
		{"use after Free", "has been freed", func() { b.Unary(b.Alloc(2, 2), backend.Exp, freed) }},
		{"write after Free", "has been freed", func() { b.Fill(freed, 1) }},
		{"Download after Free", "has been freed", func() { b.Download(make([]float64, 4), freed) }},
		{"Free twice", "has been freed", func() { b.Free(freed) }},
		{"indices after FreeIndices", "have been freed", func() { b.GatherRows(b.Alloc(2, 2), x, freedIdx) }},
		{"FreeIndices twice", "have been freed", func() { b.FreeIndices(freedIdx) }},
		{"another engine's tensor", "another engine", func() { b.Transpose(b.Alloc(2, 2), other.Alloc(2, 2)) }},
		{"another engine's indices", "another engine", func() { b.GatherRows(b.Alloc(1, 2), x, other.Indices([]int32{0})) }},
		{"a tensor of no engine", "another engine", func() { b.Fill(&tensor.Tensor{Rows: 1, Cols: 1}, 0) }},
		{"indices of no engine", "another engine", func() { b.FreeIndices(&backend.Indices{}) }},
		{"indices changed", "was changed", func() { b.GatherRows(b.Alloc(2, 2), x, changed) }},
		{"shape changed", "was changed", func() { b.Fill(reshaped, 0) }},
		{"index out of range", "out of range", func() { b.GatherRows(b.Alloc(1, 2), x, b.Indices([]int32{2})) }},
		{"negative index", "out of range", func() { b.GatherRows(b.Alloc(1, 2), x, b.Indices([]int32{-1})) }},

		{"Transpose in place", "also an input", func() { b.Transpose(x, x) }},
		{"CopyBlock in place", "also an input", func() { b.CopyBlock(x, 0, 0, x, 1, 0, 1, 2) }},
		{"GatherRows in place", "also an input", func() { b.GatherRows(x, x, idx) }},
		{"ReduceRows in place", "also an input", func() { b.ReduceRows(one, backend.RowSum, one) }},
		{"ColSums in place", "also an input", func() { b.ColSums(one, one) }},
		{"Dot in place", "also an input", func() { b.Dot(one, one, nil) }},
		{"Dot in place of b", "also an input", func() { b.Dot(one, b.row(1), one) }},
		{"SegmentSum in place", "also an input", func() { b.SegmentSum(x, csr.Ptr, x) }},
		{"SegmentExpand in place", "also an input", func() { b.SegmentExpand(x, csr.Ptr, x) }},
		{"Gemm in place of a", "also an input", func() { b.Gemm(x, false, false, 1, x, b.Alloc(2, 2), 0) }},
		{"Gemm in place of b", "also an input", func() { b.Gemm(x, false, false, 1, b.Alloc(2, 2), x, 0) }},
		{"SpMM in place", "also an input", func() { b.SpMM(x, csr, x, 0) }},
		{"SpMM in place of the values", "also an input", func() { b.SpMM(csr.Val, csr, b.col(1, 2), 0) }},
		{"UpperPercentile of its theta", "also an input", func() { b.UpperPercentile(one, nil, one, 50) }},
		{"UpperPercentile with theta for weights", "also an input", func() { b.UpperPercentile(one, one, b.row(1), 50) }},
		{"UpperPercentile in place", "also an input", func() { b.UpperPercentile(b.Alloc(1, 1), x, x, 50) }},
		{"DropoutMask of its step", "also an input", func() { b.DropoutMask(one, 0.5, 1, one) }},
		{"Adam with a moment for the gradient", "also an input", func() { b.Adam(b.Alloc(1, 1), one, b.Alloc(1, 1), one, b.row(1), b.row(1), backend.AdamConfig{}) }},
		{"Values twice", "called twice", func() { p := b.Fetch(one); p.Values(make([]float64, 1)); p.Values(make([]float64, 1)) }},
		{"Values of another length", "want 1 host values, not 2", func() { b.Fetch(one).Values(make([]float64, 2)) }},
		{"Adam with one tensor for both moments", "also an input", func() { b.Adam(b.Alloc(1, 1), b.Alloc(1, 1), one, one, b.row(1), b.row(1), backend.AdamConfig{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), c.message) {
					t.Errorf("panicked with %v, want a panic that says %q", r, c.message)
				}
			}()
			c.call()
		})
	}
}

// TestFreedMemory says that no other handle reaches the memory of a freed tensor.
func TestFreedMemory(t *testing.T) {
	b := open(t)
	x := b.row(1, 2)
	alias := &tensor.Tensor{Rows: 1, Cols: 2, Buf: x.Buf}
	b.Free(x)
	defer func() {
		if recover() == nil {
			t.Error("another handle on freed memory did not panic")
		}
	}()
	b.Download(make([]float64, 2), alias)
}

// TestShapeError shows the message of a shape error.
func TestShapeError(t *testing.T) {
	b := open(t)
	defer func() {
		err, _ := recover().(error)
		var shape *tensor.ShapeError
		if !errors.As(err, &shape) {
			t.Fatalf("panicked with %v, want a *tensor.ShapeError", err)
		}
		const want = "backend: Gemm: [2×2], [2×3], [4×2]: want [M×N], [M×K], [K×N] (transposes false, false)"
		if err.Error() != want {
			t.Errorf("the error is\n%s, want\n%s", err, want)
		}
	}()
	b.Gemm(b.Alloc(2, 2), false, false, 1, b.Alloc(2, 3), b.Alloc(4, 2), 0)
}
