package autodiff_test

import (
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// row is one line of the gradient table: an operator applied to inputs of the
// given shapes.
type row struct {
	op     string
	f      func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var
	shapes [][][2]int // several points, each a list of input shapes
	adjust func(v float64) float64
}

func one(shapes ...[2]int) (points [][][2]int) {
	for _, s := range shapes {
		points = append(points, [][2]int{s})
	}
	return points
}

var (
	plain   = one([2]int{1, 1}, [2]int{3, 5}, [2]int{7, 2})
	squares = one([2]int{2, 2}, [2]int{3, 3}, [2]int{6, 6})
	pairs   = [][][2]int{{{1, 1}, {1, 1}}, {{3, 5}, {3, 5}}, {{7, 2}, {7, 2}}}
	rows    = [][][2]int{{{1, 1}, {1, 1}}, {{3, 5}, {1, 5}}, {{7, 2}, {1, 2}}}
	cols    = [][][2]int{{{1, 1}, {1, 1}}, {{3, 5}, {3, 1}}, {{7, 2}, {7, 1}}}
	scalars = [][][2]int{{{1, 1}, {1, 1}}, {{3, 5}, {1, 1}}, {{7, 2}, {1, 1}}}
)

func unary(f func(x *autodiff.Var) *autodiff.Var) func(*autodiff.Tape, []*autodiff.Var) *autodiff.Var {
	return func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { return f(in[0]) }
}

func binary(f func(x, b *autodiff.Var) *autodiff.Var) func(*autodiff.Tape, []*autodiff.Var) *autodiff.Var {
	return func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { return f(in[0], in[1]) }
}

// positive moves a value away from 0, to the right; away moves it off 0 on its
// own side, so that a central difference does not cross a kink or a pole.
func positive(v float64) float64 { return 0.3 + math.Abs(v) }
func away(v float64) float64     { return v + math.Copysign(0.2, v) }

// segments cuts n rows into three segments, the middle one empty.
func segments(t *autodiff.Tape, n int) *backend.Indices {
	return t.Indices([]int32{0, int32(n / 3), int32(n / 3), int32(n)})
}

// ring is a sparse [r×c] matrix whose row i has the columns i and 2i mod c,
// with values unless val is nil; a repeated column counts twice.
func ring(t *autodiff.Tape, r, c int, weighted bool) *autodiff.Sparse {
	build := func(r, c int, entries [][3]float64) *backend.CSR {
		ptr, col, val := make([]int32, r+1), []int32{}, []float64{}
		for i := range r {
			for _, e := range entries {
				if int(e[0]) == i {
					col, val = append(col, int32(e[1])), append(val, e[2])
				}
			}
			ptr[i+1] = int32(len(col))
		}
		m := &backend.CSR{Rows: r, Cols: c, Ptr: t.Indices(ptr), Col: t.Indices(col)}
		if weighted {
			m.Val = t.Matrix(len(val), 1, val).Value()
		}
		return m
	}
	var a, at [][3]float64
	for i := range r {
		for k, j := range []int{i % c, 2 * i % c} {
			v := 0.5 + float64(i+k)
			a, at = append(a, [3]float64{float64(i), float64(j), v}), append(at, [3]float64{float64(j), float64(i), v})
		}
	}
	return &autodiff.Sparse{A: build(r, c, a), T: build(c, r, at)}
}

var table = []row{
	{"Add", binary((*autodiff.Var).Add), pairs, nil},
	{"Sub", binary((*autodiff.Var).Sub), pairs, nil},
	{"Mul", binary((*autodiff.Var).Mul), pairs, nil},
	{"Div", binary((*autodiff.Var).Div), pairs, away},
	{"AddRow", binary((*autodiff.Var).AddRow), rows, nil},
	{"SubRow", binary((*autodiff.Var).SubRow), rows, nil},
	{"MulRow", binary((*autodiff.Var).MulRow), rows, nil},
	{"DivRow", binary((*autodiff.Var).DivRow), rows, away},
	{"AddCol", binary((*autodiff.Var).AddCol), cols, nil},
	{"SubCol", binary((*autodiff.Var).SubCol), cols, nil},
	{"MulCol", binary((*autodiff.Var).MulCol), cols, nil},
	{"DivCol", binary((*autodiff.Var).DivCol), cols, away},
	{"AddScalar", binary((*autodiff.Var).AddScalar), scalars, nil},
	{"SubScalar", binary((*autodiff.Var).SubScalar), scalars, nil},
	{"MulScalar", binary((*autodiff.Var).MulScalar), scalars, nil},
	{"DivScalar", binary((*autodiff.Var).DivScalar), scalars, away},
	{"Scale", unary(func(x *autodiff.Var) *autodiff.Var { return x.Scale(-1.7) }), plain, nil},
	{"Shift", unary(func(x *autodiff.Var) *autodiff.Var { return x.Shift(2).Square() }), plain, nil},
	{"Exp", unary((*autodiff.Var).Exp), plain, nil},
	{"Log", unary((*autodiff.Var).Log), plain, positive},
	{"Sqrt", unary((*autodiff.Var).Sqrt), plain, positive},
	{"Square", unary((*autodiff.Var).Square), plain, nil},
	{"Sigmoid", unary((*autodiff.Var).Sigmoid), plain, nil},
	{"Softplus", unary((*autodiff.Var).Softplus), plain, nil},
	{"Tanh", unary((*autodiff.Var).Tanh), plain, nil},
	{"ReLU", unary((*autodiff.Var).ReLU), one([2]int{2, 3}, [2]int{3, 5}, [2]int{7, 2}), away},
	{"AddRowReLU", binary((*autodiff.Var).AddRowReLU), [][][2]int{{{4, 1}, {1, 1}}, {{3, 5}, {1, 5}}, {{7, 2}, {1, 2}}}, nil},
	{"Abs", unary((*autodiff.Var).Abs), plain, away},
	{"InvSqrt", unary((*autodiff.Var).InvSqrt), plain, positive},
	{"Dropout", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return in[0].Dropout(0.6, 9, t.Scalar(3).Value())
	}, one([2]int{2, 3}, [2]int{3, 5}, [2]int{7, 2}), nil},

	{"MatMul", binary((*autodiff.Var).MatMul), [][][2]int{{{1, 1}, {1, 1}}, {{3, 5}, {5, 4}}, {{7, 2}, {2, 3}}}, nil},
	{"MatMulT", binary((*autodiff.Var).MatMulT), [][][2]int{{{1, 1}, {1, 1}}, {{3, 5}, {4, 5}}, {{7, 2}, {3, 2}}}, nil},
	{"TMatMul", binary((*autodiff.Var).TMatMul), [][][2]int{{{1, 1}, {1, 1}}, {{5, 3}, {5, 4}}, {{2, 7}, {2, 3}}}, nil},
	{"MatMulT", unary(func(x *autodiff.Var) *autodiff.Var { return x.MatMulT(x) }), plain, nil},
	{"T", unary(func(x *autodiff.Var) *autodiff.Var { return x.T().Square() }), plain, nil},
	{"SpMM", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return in[0].SpMM(ring(t, in[0].Rows(), in[0].Rows(), false), 1.5)
	}, plain, nil},
	{"SpMM", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return in[0].SpMM(ring(t, 4, in[0].Rows(), true), 0)
	}, plain, nil},

	{"Sum", unary((*autodiff.Var).Sum), plain, nil},
	{"Mean", unary((*autodiff.Var).Mean), plain, nil},
	{"Dot", binary((*autodiff.Var).Dot), pairs, nil},
	{"RowSums", unary(func(x *autodiff.Var) *autodiff.Var { return x.RowSums().Square() }), plain, nil},
	{"ColSums", unary(func(x *autodiff.Var) *autodiff.Var { return x.ColSums().Square() }), plain, nil},
	{"LogSumExp", unary((*autodiff.Var).LogSumExp), plain, nil},
	{"LogSoftmax", unary((*autodiff.Var).LogSoftmax), one([2]int{1, 2}, [2]int{3, 5}, [2]int{7, 2}), nil},
	{"Softmax", unary((*autodiff.Var).Softmax), one([2]int{1, 2}, [2]int{3, 5}, [2]int{7, 2}), nil},
	{"L2Normalize", unary((*autodiff.Var).L2Normalize), one([2]int{1, 2}, [2]int{3, 5}, [2]int{7, 2}), nil},
	{"SegmentSum", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return in[0].SegmentSum(segments(t, in[0].Rows())).Square()
	}, plain, nil},
	{"SegmentMean", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return in[0].SegmentMean(segments(t, in[0].Rows())).Square()
	}, plain, nil},
	{"SegmentExpand", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return in[0].SegmentExpand(segments(t, 7), 8).Square()
	}, one([2]int{3, 1}, [2]int{3, 5}, [2]int{3, 2}), nil},
	{"UpperPercentile", unary(func(x *autodiff.Var) *autodiff.Var { return x.UpperPercentile(35) }), squares, nil},

	{"SliceRows", unary(func(x *autodiff.Var) *autodiff.Var { return x.SliceRows(x.Rows()/2, x.Rows()) }), plain, nil},
	{"SliceCols", unary(func(x *autodiff.Var) *autodiff.Var { return x.SliceCols(x.Cols()/2, x.Cols()) }), plain, nil},
	{"FillDiagonal", unary(func(x *autodiff.Var) *autodiff.Var { return x.FillDiagonal(3).Square() }), squares, nil},
	{"GatherRows", unary(func(x *autodiff.Var) *autodiff.Var { return x.GatherRows([]int32{2, 0, 2, 1, 2}).Square() }), one([2]int{3, 1}, [2]int{4, 5}, [2]int{7, 2}), nil},
	{"ScatterAddRows", unary(func(x *autodiff.Var) *autodiff.Var { return x.ScatterAddRows([]int32{4, 0, 4}, 6).Square() }), one([2]int{3, 1}, [2]int{3, 5}, [2]int{3, 2}), nil},
	{"ConcatCols", func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return autodiff.ConcatCols(in[0], in[1], in[0]).Square()
	}, [][][2]int{{{1, 1}, {1, 1}}, {{3, 5}, {3, 2}}, {{7, 2}, {7, 4}}}, nil},
	{"ConcatRows", func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return autodiff.ConcatRows(in[0], in[1], in[0]).Square()
	}, [][][2]int{{{1, 1}, {1, 1}}, {{3, 5}, {2, 5}}, {{7, 2}, {4, 2}}}, nil},
	{"ConcatCols", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { // behind a constant
		return autodiff.ConcatCols(t.Matrix(3, 2, []float64{1, 2, 3, 4, 5, 6}), in[0]).Square()
	}, one([2]int{3, 5}), nil},
	{"ConcatRows", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return autodiff.ConcatRows(t.Matrix(2, 5, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), in[0]).Square()
	}, one([2]int{3, 5}), nil},
	{"BatchNorm", norm(func(*autodiff.Tape, *autodiff.Norm, []*autodiff.Var) {}), normShapes, nil},
	{"BatchNorm", norm(weigh), normShapes, nil},
	{"BatchNorm", norm(func(_ *autodiff.Tape, n *autodiff.Norm, _ []*autodiff.Var) { n.ReLU = true }), normShapes, nil},
	{"BatchNorm", norm(func(t *autodiff.Tape, n *autodiff.Norm, in []*autodiff.Var) {
		n.ReLU = true
		weigh(t, n, in)
	}), normShapes, nil},
	{"BatchNorm", biasNorm(false), biasNormShapes, nil},
	{"BatchNorm", biasNorm(true), biasNormShapes[1:], nil},
	{"GatherRowsOf", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		members := &backend.CSR{Rows: in[0].Rows(), Cols: 4, Ptr: t.Indices(append([]int32{0, 1, 1}, slices.Repeat([]int32{4}, in[0].Rows()-2)...)), Col: t.Indices([]int32{1, 0, 2, 3})}
		return in[0].GatherRowsOf(t.Indices([]int32{2, 0, 2, 2}), members).Square()
	}, one([2]int{3, 1}, [2]int{4, 5}, [2]int{7, 2}), nil},
	{"SliceRows", unary(func(x *autodiff.Var) *autodiff.Var { // blocks that meet in a gradient that is lent, then owned
		z, y, n := x.Scale(-0.5), x.Scale(1.5), x.Rows()
		return autodiff.ConcatRows(y.SliceRows(n/2, n), y.SliceRows(0, n), y.Add(z)).Square()
	}), plain, nil},
	{"SegmentMax", func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return in[0].SegmentMax(segments(t, in[0].Rows())).Square()
	}, one([2]int{1, 1}, [2]int{3, 5}, [2]int{13, 2}), nil},
}

// norm is batch norm of three groups, of which one is empty, with what set adds.
func norm(set func(t *autodiff.Tape, n *autodiff.Norm, in []*autodiff.Var)) func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
	return func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		n := autodiff.Norm{Groups: t.Indices([]int32{0, 3, 3, int32(in[0].Rows())}), Eps: 1e-2}
		set(t, &n, in)
		y, _, _ := in[0].BatchNorm(in[1], in[2], n)
		return y
	}
}

// weigh lets rows count up to three times.
func weigh(t *autodiff.Tape, n *autodiff.Norm, in []*autodiff.Var) {
	weights := make([]float64, in[0].Rows())
	for i := range weights {
		weights[i] = float64(1 + i%3)
	}
	n.Weights = t.Matrix(len(weights), 1, weights).Value()
}

var normShapes = [][][2]int{{{5, 1}, {1, 1}, {1, 1}}, {{6, 5}, {1, 5}, {1, 5}}, {{9, 2}, {1, 2}, {1, 2}}}

// biasNorm adds the bias to the result, where it has a gradient.
func biasNorm(relu bool) func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
	f := norm(func(_ *autodiff.Tape, n *autodiff.Norm, in []*autodiff.Var) { n.Bias, n.ReLU = in[3], relu })
	return func(t *autodiff.Tape, in []*autodiff.Var) *autodiff.Var { return f(t, in).AddRow(in[3]) }
}

var biasNormShapes = [][][2]int{{{5, 1}, {1, 1}, {1, 1}, {1, 1}}, {{6, 5}, {1, 5}, {1, 5}, {1, 5}}, {{9, 2}, {1, 2}, {1, 2}, {1, 2}}}

// noGradient lists the methods of Var that are not differentiable operators.
var noGradient = map[string]string{
	"Greater": "a step", "Detach": "cuts the gradient",
	"Value": "accessor", "Tape": "accessor", "Rows": "accessor", "Cols": "accessor", "Op": "accessor",
	"NeedsGrad": "accessor", "Data": "accessor", "Float": "accessor", "Grad": "accessor",
	"AddGrad": "used by VJPs", "LendGrad": "used by VJPs",
	"Inputs": "inspection", "VJP": "inspection", "String": "inspection",
}

func engines() map[string]backend.Backend {
	all := map[string]backend.Backend{"ref": ref.New()}
	for _, open := range fusing {
		be := open(tensor.Float64)
		all[be.Name()] = be
	}
	return all
}

func TestGradients(t *testing.T) {
	for name, be := range engines() {
		for _, opts := range [][]autodiff.Option{nil, {autodiff.Composed()}} {
			seen := map[string]uint64{} // rows of an operator
			for _, r := range table {
				k := seen[r.op]
				seen[r.op]++
				for _, shapes := range r.shapes {
					t.Run(fmt.Sprintf("%s/%d options/%s/%d%v", name, len(opts), r.op, k, shapes), func(t *testing.T) {
						// Other rows do not change what this one draws.
						rng := rand.New(rand.NewPCG(uint64(crc32.ChecksumIEEE([]byte(r.op))), k))
						var in []gradcheck.Input
						for _, s := range shapes {
							x := gradcheck.Random(rng, s[0], s[1])
							if r.adjust != nil {
								for i, v := range x.Values {
									x.Values[i] = r.adjust(v)
								}
							}
							in = append(in, x)
						}
						gradcheck.Check(t, be, r.f, in, gradcheck.Options{Tape: opts})
					})
				}
			}
		}
		if n := be.InUse(); n != 0 {
			t.Errorf("%s: %d bytes in use at the end", name, n)
		}
	}
}

// TestEveryOperatorIsChecked: a method of Var without a row in the table, or
// with fewer than three shapes, fails.
func TestEveryOperatorIsChecked(t *testing.T) {
	shapes := map[string]int{}
	for _, r := range table {
		shapes[r.op] += len(r.shapes)
	}
	typ := reflect.TypeFor[*autodiff.Var]()
	for i := range typ.NumMethod() {
		name := typ.Method(i).Name
		if _, listed := noGradient[name]; !listed && shapes[name] < 3 {
			t.Errorf("%s is gradient-checked at %d shapes; want 3, or an entry in noGradient", name, shapes[name])
		}
	}
	for _, name := range []string{"ConcatCols", "ConcatRows"} {
		if shapes[name] < 3 {
			t.Errorf("%s is gradient-checked at %d shapes", name, shapes[name])
		}
	}
}

// anyShape lists the operators that take every shape.
var anyShape = []string{
	"Scale", "Shift", "Exp", "Log", "Sqrt", "Square", "Sigmoid", "Softplus", "Tanh", "ReLU", "Abs", "InvSqrt", "T",
	"Sum", "Mean", "RowSums", "ColSums", "LogSumExp", "LogSoftmax", "Softmax", "L2Normalize",
}

// TestShapes: every operator that does not take every shape refuses the wrong ones
// under its own name, shows the shapes of its operands only, and says what it wants.
func TestShapes(t *testing.T) {
	for name, be := range engines() {
		for _, opts := range [][]autodiff.Option{nil, {autodiff.Composed()}} {
			tape := autodiff.NewTape(be, opts...)
			m := func(rows, cols int) *autodiff.Var { return tape.Matrix(rows, cols, make([]float64, rows*cols)) }
			x, two, segments := m(3, 4), m(2, 4), tape.Indices([]int32{0, 2, 4})
			norm := func(gamma, b *autodiff.Var, n autodiff.Norm) func() { return func() { x.BatchNorm(gamma, b, n) } }
			whole := autodiff.Norm{Groups: tape.Indices([]int32{0, 3})}
			weighted, biased := whole, whole
			weighted.Weights, biased.Bias = m(1, 3).Value(), m(1, 3)
			of := func(f func(*autodiff.Var) *autodiff.Var, b *autodiff.Var) func() { return func() { f(b) } }
			members := ring(tape, 3, 5, false).A
			checked := map[string]bool{}
			for want, f := range map[string]func(){
				"Add: [3×4] + [2×4]: shapes must be equal":                        of(x.Add, two),
				"Sub: [3×4] - [2×4]: shapes must be equal":                        of(x.Sub, two),
				"Mul: [3×4] ∘ [2×4]: shapes must be equal":                        of(x.Mul, two),
				"Div: [3×4] / [3×3]: shapes must be equal":                        of(x.Div, m(3, 3)),
				"Dot: [3×4]·[4×3]: shapes must be equal":                          of(x.Dot, m(4, 3)),
				"AddRow: [3×4] + [1×3]: want [1×4] for the second":                of(x.AddRow, m(1, 3)),
				"SubRow: [3×4] - [2×4]: want [1×4] for the second":                of(x.SubRow, two),
				"MulRow: [3×4] ∘ [4×1]: want [1×4] for the second":                of(x.MulRow, m(4, 1)),
				"DivRow: [3×4] / [1×1]: want [1×4] for the second":                of(x.DivRow, m(1, 1)),
				"AddRowReLU: [3×4] + [1×3]: want [1×4] for the second":            of(x.AddRowReLU, m(1, 3)),
				"AddCol: [3×4] + [4×1]: want [3×1] for the second":                of(x.AddCol, m(4, 1)),
				"SubCol: [3×4] - [1×3]: want [3×1] for the second":                of(x.SubCol, m(1, 3)),
				"MulCol: [3×4] ∘ [3×2]: want [3×1] for the second":                of(x.MulCol, m(3, 2)),
				"DivCol: [3×4] / [2×1]: want [3×1] for the second":                of(x.DivCol, m(2, 1)),
				"AddScalar: [3×4] + [1×4]: want [1×1] for the second":             of(x.AddScalar, m(1, 4)),
				"SubScalar: [3×4] - [3×1]: want [1×1] for the second":             of(x.SubScalar, m(3, 1)),
				"MulScalar: [3×4]·[3×4]: want [1×1] for the second":               of(x.MulScalar, x),
				"DivScalar: [3×4] / [2×1]: want [1×1] for the second":             of(x.DivScalar, m(2, 1)),
				"Greater: [3×4] > [1×4]: want [1×1] for the second":               of(x.Greater, m(1, 4)),
				"Dropout: [3×4] at step [2×1]: want a step [1×1]":                 func() { x.Dropout(0.5, 1, m(2, 1).Value()) },
				"MatMul: [3×4]·[5×2]: inner dimensions 4 and 5 differ":            of(x.MatMul, m(5, 2)),
				"MatMulT: [3×4]·[4×2]ᵀ: inner dimensions 4 and 2 differ":          of(x.MatMulT, m(4, 2)),
				"TMatMul: [3×4]ᵀ·[4×2]: inner dimensions 3 and 4 differ":          of(x.TMatMul, m(4, 2)),
				"SpMM: sparse [2×5]·[3×4]: inner dimensions 5 and 3 differ":       func() { x.SpMM(ring(tape, 2, 5, true), 0) },
				"SpMM: sparse [2×3]·[3×4]: a self term needs a square matrix":     func() { x.SpMM(ring(tape, 2, 3, true), 1) },
				"SegmentSum: [3×4]: the last of 2 segments ends at row 4 of 3":    func() { x.SegmentSum(segments) },
				"SegmentMean: [3×4]: the last of 2 segments ends at row 4 of 3":   func() { x.SegmentMean(segments) },
				"SegmentMax: [3×4]: the last of 2 segments ends at row 4 of 3":    func() { x.SegmentMax(segments) },
				"SegmentExpand: [2×4]: the last of 2 segments ends at row 4 of 3": func() { two.SegmentExpand(segments, 3) },
				"SegmentExpand: [3×4]: want a row for each of 2 segments":         func() { x.SegmentExpand(segments, 4) },
				"UpperPercentile: [3×4]: want a square matrix":                    func() { x.UpperPercentile(50) },
				"FillDiagonal: [3×4]: want a square matrix":                       func() { x.FillDiagonal(0) },
				"SliceRows: [3×4]: the block [2×4] at (2,0) is outside":           func() { x.SliceRows(2, 4) },
				"SliceCols: [3×4]: the block [3×1] at (0,-1) is outside":          func() { x.SliceCols(-1, 0) },
				"ConcatRows: [3×4] above [3×3]: columns must agree":               func() { autodiff.ConcatRows(x, m(3, 3)) },
				"ConcatCols: [3×4] beside [2×4]: rows must agree":                 func() { autodiff.ConcatCols(x, two) },
				"GatherRows: index 3 at position 1 is outside 0..2":               func() { x.GatherRows([]int32{0, 3}) },
				"GatherRowsOf: [3×4] by 2 indices: want members [3×2], not [3×5]": func() { x.GatherRowsOf(tape.Indices([]int32{0, 1}), members) },
				"ScatterAddRows: [3×4]: 2 indices for the rows":                   func() { x.ScatterAddRows([]int32{0, 1}, 2) },
				"BatchNorm: [3×4], γ [1×3], b [1×4]: want γ and b [1×4]":          norm(m(1, 3), m(1, 4), whole),
				"BatchNorm: [3×4]: the last of 2 segments ends at row 4 of 3":     norm(m(1, 4), m(1, 4), autodiff.Norm{Groups: segments}),
				"BatchNorm: [3×4]: want weights [3×1], not [1×3]":                 norm(m(1, 4), m(1, 4), weighted),
				"BatchNorm: [3×4] + [1×3]: want a bias [1×4]":                     norm(m(1, 4), m(1, 4), biased),
				"BatchNorm: [3×4], γ [1×4], b [4×1]: want γ and b [1×4]":          norm(m(1, 4), m(4, 1), whole),
			} {
				op, _, _ := strings.Cut(want, ":")
				checked[op] = true
				v := recovered(f)
				if _, ok := v.(*tensor.ShapeError); !ok && op != "GatherRows" {
					t.Errorf("%s, %d options: %s panics with %T", name, len(opts), op, v)
				}
				if got := fmt.Sprint(v); got != "autodiff: "+want {
					t.Errorf("%s, %d options: panic %q, want %q", name, len(opts), got, want)
				}
			}
			for _, r := range table {
				if checked[r.op] == slices.Contains(anyShape, r.op) {
					t.Errorf("%s: wrong shapes are tested: %v; want that, or an entry in anyShape", r.op, checked[r.op])
				}
			}
			tape.Reset()
		}
	}
}

// TestSubgradients pins the values chosen at kinks.
func TestSubgradients(t *testing.T) {
	for name, be := range engines() {
		tape := autodiff.NewTape(be)
		for op, f := range map[string]func(x *autodiff.Var) *autodiff.Var{
			"ReLU": (*autodiff.Var).ReLU, "Abs": (*autodiff.Var).Abs, "InvSqrt": (*autodiff.Var).InvSqrt, "L2Normalize": func(x *autodiff.Var) *autodiff.Var { return x.T().L2Normalize().Scale(1e-12) },
		} {
			x := tape.Leaf(2, 1, []float64{0, 0})
			tape.Backward(f(x).Sum())
			want := 0.0
			if op == "L2Normalize" {
				want = 1
			}
			for _, g := range x.Grad() {
				if !(math.Abs(g-want) <= 1e-12) {
					t.Errorf("%s: %s at 0 has gradient %v, want %v", name, op, g, want)
				}
			}
		}
		// Under its floor the norm is constant, and not only at 0.
		x := tape.Leaf(1, 2, []float64{3e-13, -4e-13})
		tape.Backward(x.L2Normalize().Scale(1e-12).Sum())
		for _, g := range x.Grad() {
			if !(math.Abs(g-1) <= 1e-12) {
				t.Errorf("%s: L2Normalize of a row of length 5e-13 has gradient %v, want 1", name, g)
			}
		}
		tape.Reset()
	}
}

// TestSegmentMax: it is the largest to the bit, whatever the size of a segment, without what
// is in none, and its gradient is shared by equal ones.
func TestSegmentMax(t *testing.T) {
	const f = 3
	ptr := []int32{0, 1, 1, 6, 8, 25}
	for name, be := range engines() {
		tape := autodiff.NewTape(be)
		rng := rand.New(rand.NewPCG(1, 2))
		x := make([]float64, 27*f)
		for i := range x {
			x[i] = math.Round(4*rng.NormFloat64()) / 3 // many are equal
		}
		leaf := tape.Leaf(27, f, x)
		y := leaf.SegmentMax(tape.Indices(ptr))
		tape.Backward(y.Sum())
		got, grad := y.Data(), leaf.Grad()
		for g := range len(ptr) - 1 {
			for j := range f {
				want, ties := 0.0, 0.0
				for i := ptr[g]; i < ptr[g+1]; i++ {
					if v := x[int(i)*f+j]; i == ptr[g] || v > want {
						want, ties = v, 1
					} else if v == want {
						ties++
					}
				}
				if got[g*f+j] != want {
					t.Errorf("%s: segment %d: %v, want %v", name, g, got[g*f+j], want)
				}
				for i := ptr[g]; i < ptr[g+1]; i++ {
					share := 0.0
					if x[int(i)*f+j] == want {
						share = 1 / ties
					}
					if !(math.Abs(grad[int(i)*f+j]-share) <= 1e-15) {
						t.Errorf("%s: row %d has the gradient %v, want %v", name, i, grad[int(i)*f+j], share)
					}
				}
			}
		}
		if rest := grad[25*f:]; slices.Max(rest) != 0 || slices.Min(rest) != 0 {
			t.Errorf("%s: rows in no segment have gradients %v", name, rest)
		}
		tape.Reset()
	}
}

// TestDropout: the mask is that of [backend.DropoutKeep] for the seed, the step and
// the place; where all is kept there is none.
func TestDropout(t *testing.T) {
	const keep, seed, step = 0.6, 9, 3
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	for name, be := range engines() {
		tape := autodiff.NewTape(be)
		leaf := tape.Leaf(4, 4, x)
		y := leaf.Dropout(keep, seed, tape.Scalar(step).Value()).Data()
		for i, v := range x {
			want := 0.0
			if backend.DropoutKeep(keep, seed, step, uint64(i)) {
				want = v / keep
			}
			if !(math.Abs(y[i]-want) <= 1e-14*v) {
				t.Errorf("%s: entry %d is %v, want %v", name, i, y[i], want)
			}
		}
		if leaf.Dropout(1, seed, tape.Scalar(step).Value()) != leaf {
			t.Errorf("%s: dropout that keeps all makes another variable", name)
		}
		tape.Reset()
	}
}
