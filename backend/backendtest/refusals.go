package backendtest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file checks what an engine refuses: shapes and constants that the contract rules out.

// badCall is a call that the contract rules out.
type badCall struct {
	name string
	call func()
}

// checkShapes makes every documented shape error, and passes constants out of range.
func checkShapes(s *suite) {
	for _, c := range slices.Concat(
		s.badMoves(), s.badElementwise(), s.badSums(),
		s.badProducts(), s.badSparse(), s.badTraining(),
	) {
		s.trying = c.name
		err, _ := panicOf(c.call).(error)
		var shape *tensor.ShapeError
		if !errors.As(err, &shape) {
			s.errorf("%s: panicked with %v, want a *tensor.ShapeError",
				c.name, err)
		} else if shape.Op == "" || shape.Have == "" || shape.Want == "" {
			s.errorf(
				"%s: the error %q lacks the operator, the shapes given or the shapes wanted",
				c.name,
				shape,
			)
		}
	}
	for _, c := range s.badConstants() {
		if panicOf(c.call) == nil {
			s.errorf("%s did not panic", c.name)
		}
	}
}

// ones uploads a matrix of ones.
func (s *suite) ones(rows, cols int) *tensor.Tensor {
	return s.upload(constant(rows, cols, 1))
}

// vector uploads a vector of indices.
func (s *suite) vector(v ...int32) *backend.Indices {
	return s.index(v)
}

// badConstants returns calls with a constant out of range.
func (s *suite) badConstants() []badCall {
	b := s.b
	t := s.ones
	return []badCall{
		{"UpperPercentile(p = -10)", func() {
			b.UpperPercentile(t(1, 1), nil, t(2, 2), -10)
		}},
		{"UpperPercentile(p = 110)", func() {
			b.UpperPercentile(t(1, 1), nil, t(2, 2), 110)
		}},
		{"UpperPercentile(p = NaN)", func() {
			b.UpperPercentile(t(1, 1), nil, t(2, 2), math.NaN())
		}},
		{"DropoutMask(keep = 0)", func() {
			b.DropoutMask(t(2, 2), 0, 1, t(1, 1))
		}},
		{"DropoutMask(keep = 1.5)", func() {
			b.DropoutMask(t(2, 2), 1.5, 1, t(1, 1))
		}},
	}
}

// badMoves returns a call for every shape error of the primitives that allocate and move data.
func (s *suite) badMoves() []badCall {
	b := s.b
	t := s.ones
	idx := s.vector
	return []badCall{
		{"Alloc(-1, 2)", func() { b.Alloc(-1, 2) }},
		{"Alloc(2, -1)", func() { b.Alloc(2, -1) }},
		{"Upload: short", func() { b.Upload(t(2, 3), make([]float64, 5)) }},
		{"Upload: long", func() { b.Upload(t(2, 3), make([]float64, 7)) }},
		{"Upload32: short", func() { b.Upload32(t(2, 3), make([]float32, 5)) }},
		{"Upload32: long", func() { b.Upload32(t(2, 3), make([]float32, 7)) }},
		{"Download: short", func() { b.Download(make([]float64, 5), t(2, 3)) }},
		{"Download: long", func() { b.Download(make([]float64, 7), t(2, 3)) }},

		{"CopyBlock: dst rows", func() {
			b.CopyBlock(t(3, 3), 2, 0, t(3, 3), 0, 0, 2, 1)
		}},
		{"CopyBlock: dst cols", func() {
			b.CopyBlock(t(3, 3), 0, 2, t(3, 3), 0, 0, 1, 2)
		}},
		{"CopyBlock: src rows", func() {
			b.CopyBlock(t(3, 3), 0, 0, t(3, 3), 2, 0, 2, 1)
		}},
		{"CopyBlock: src cols", func() {
			b.CopyBlock(t(3, 3), 0, 0, t(3, 3), 0, 2, 1, 2)
		}},
		{"CopyBlock: negative place", func() {
			b.CopyBlock(t(3, 3), -1, 0, t(3, 3), 0, 0, 1, 1)
		}},
		{"CopyBlock: negative size", func() {
			b.CopyBlock(t(3, 3), 0, 0, t(3, 3), 0, 0, 1, -1)
		}},
		{"Transpose", func() { b.Transpose(t(2, 3), t(2, 3)) }},
		{"GatherRows: count", func() {
			b.GatherRows(t(2, 3), t(4, 3), idx(0, 1, 2))
		}},
		{"GatherRows: width", func() {
			b.GatherRows(t(3, 2), t(4, 3), idx(0, 1, 2))
		}},
		{"FillDiagonal", func() { b.FillDiagonal(t(2, 3), 1) }},

		{"Fetch", func() { b.Fetch(t(3, 11)) }},
		{"UpdateIndices: count", func() {
			b.UpdateIndices([]*backend.Indices{idx(1)}, nil)
		}},
		{"UpdateIndices: length", func() {
			b.UpdateIndices(
				[]*backend.Indices{idx(1), idx(1, 2)}, [][]int32{{1}, {2}},
			)
		}},
	}
}

// badElementwise returns a call for every shape error of the elementwise primitives.
func (s *suite) badElementwise() []badCall {
	b := s.b
	t := s.ones
	return []badCall{
		{"Unary", func() { b.Unary(t(2, 3), backend.Exp, t(3, 2)) }},
		{"Binary: a", func() {
			b.Binary(t(2, 3), backend.Add, t(3, 2), t(2, 3))
		}},
		{"Binary: b", func() {
			b.Binary(t(2, 3), backend.Add, t(2, 3), t(1, 3))
		}},
		{"BinaryRow: dst", func() {
			b.BinaryRow(t(3, 3), backend.Add, t(2, 3), t(1, 3))
		}},
		{"BinaryRow: row", func() {
			b.BinaryRow(t(2, 3), backend.Add, t(2, 3), t(1, 2))
		}},
		{"BinaryRow: column", func() {
			b.BinaryRow(t(3, 3), backend.Add, t(3, 3), t(3, 1))
		}},
		{"BinaryCol: dst", func() {
			b.BinaryCol(t(2, 2), backend.Add, t(2, 3), t(2, 1))
		}},
		{"BinaryCol: col", func() {
			b.BinaryCol(t(2, 3), backend.Add, t(2, 3), t(3, 1))
		}},
		{"BinaryCol: row", func() {
			b.BinaryCol(t(3, 3), backend.Add, t(3, 3), t(1, 3))
		}},
		{"BinaryScalar: dst", func() {
			b.BinaryScalar(t(2, 2), backend.Add, t(2, 3), t(1, 1))
		}},
		{"BinaryScalar: s", func() {
			b.BinaryScalar(t(2, 3), backend.Add, t(2, 3), t(2, 3))
		}},
		{"Affine", func() { b.Affine(t(2, 3), 1, t(6, 1), 0) }},
		{"Axpby: a", func() { b.Axpby(t(2, 3), 1, t(6, 1), 1, t(2, 3)) }},
		{"Axpby: b", func() { b.Axpby(t(2, 3), 1, t(2, 3), 1, t(2, 1)) }},
	}
}

// badSums returns a call for every shape error of the sums over rows, columns and segments.
func (s *suite) badSums() []badCall {
	b := s.b
	t := s.ones
	idx := s.vector
	return []badCall{
		{"ReduceRows: rows", func() {
			b.ReduceRows(t(3, 1), backend.RowSum, t(2, 3))
		}},
		{"ReduceRows: a row", func() {
			b.ReduceRows(t(1, 2), backend.RowSum, t(2, 3))
		}},
		{"ColSums: a column", func() { b.ColSums(t(3, 1), t(2, 3)) }},
		{"ColSums: width", func() { b.ColSums(t(1, 2), t(2, 3)) }},
		{"Dot: dst", func() { b.Dot(t(1, 2), t(2, 3), t(2, 3)) }},
		{"Dot: b", func() { b.Dot(t(1, 1), t(2, 3), t(3, 2)) }},
		{"Dot: dst without b", func() { b.Dot(t(2, 1), t(2, 3), nil) }},
		{"SegmentSum: pointers", func() {
			b.SegmentSum(t(2, 3), idx(0, 2), t(2, 3))
		}},
		{"SegmentSum: width", func() {
			b.SegmentSum(t(2, 2), idx(0, 1, 4), t(4, 3))
		}},
		{"SegmentSum: end", func() {
			b.SegmentSum(t(2, 3), idx(0, 1, 5), t(4, 3))
		}},
		{"SegmentExpand: pointers", func() {
			b.SegmentExpand(t(2, 3), idx(0, 2), t(2, 3))
		}},
		{"SegmentExpand: width", func() {
			b.SegmentExpand(t(4, 3), idx(0, 1, 4), t(2, 2))
		}},
		{"SegmentExpand: end", func() {
			b.SegmentExpand(t(4, 3), idx(0, 1, 5), t(2, 3))
		}},
	}
}

// badSparse returns a call for every shape error of SpMM.
func (s *suite) badSparse() []badCall {
	b := s.b
	t := s.ones
	idx := s.vector
	square := func() *backend.CSR {
		return &backend.CSR{
			Rows: 2,
			Cols: 2,
			Ptr:  idx(0, 1, 2),
			Col:  idx(1, 0),
		}
	}
	rectangle := &backend.CSR{
		Rows: 2,
		Cols: 3,
		Ptr:  idx(0, 1, 2),
		Col:  idx(2, 0),
	}
	// multiply returns a call with a valid matrix that change makes invalid.
	multiply := func(change func(a *backend.CSR)) func() {
		return func() {
			a := square()
			change(a)
			b.SpMM(t(2, 4), a, t(2, 4), 0)
		}
	}
	return []badCall{
		{"SpMM: dst rows", func() { b.SpMM(t(3, 4), square(), t(2, 4), 0) }},
		{"SpMM: dst width", func() { b.SpMM(t(2, 3), square(), t(2, 4), 0) }},
		{"SpMM: x rows", func() { b.SpMM(t(2, 4), rectangle, t(2, 4), 0) }},
		{"SpMM: self of a rectangle", func() {
			b.SpMM(t(2, 4), rectangle, t(3, 4), 1)
		}},
		{"SpMM: pointers", multiply(func(a *backend.CSR) {
			a.Ptr = idx(0, 2)
		})},
		{"SpMM: end", multiply(func(a *backend.CSR) {
			a.Ptr = idx(0, 1, 3)
		})},
		{"SpMM: values", multiply(func(a *backend.CSR) {
			a.Val = t(3, 1)
		})},
		{"SpMM: a row of values", multiply(func(a *backend.CSR) {
			a.Val = t(1, 2)
		})},
	}
}

// badTraining returns a call for every shape error of the primitives for losses and training.
func (s *suite) badTraining() []badCall {
	b := s.b
	t := s.ones
	adam := func(g, m, v, rate, step *tensor.Tensor) {
		config := backend.AdamConfig{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
		b.Adam(t(2, 3), g, m, v, rate, step, config)
	}
	return []badCall{
		{"UpperPercentile: s", func() {
			b.UpperPercentile(t(1, 1), nil, t(2, 3), 50)
		}},
		{"UpperPercentile: theta", func() {
			b.UpperPercentile(t(1, 2), nil, t(3, 3), 50)
		}},
		{"UpperPercentile: weights", func() {
			b.UpperPercentile(t(1, 1), t(2, 2), t(3, 3), 50)
		}},
		{"DropoutMask", func() { b.DropoutMask(t(2, 3), 0.5, 1, t(1, 2)) }},
		{"Adam: g", func() {
			adam(t(3, 2), t(2, 3), t(2, 3), t(1, 1), t(1, 1))
		}},
		{"Adam: m", func() {
			adam(t(2, 3), t(1, 3), t(2, 3), t(1, 1), t(1, 1))
		}},
		{"Adam: v", func() {
			adam(t(2, 3), t(2, 3), t(2, 1), t(1, 1), t(1, 1))
		}},
		{"Adam: rate", func() {
			adam(t(2, 3), t(2, 3), t(2, 3), t(2, 3), t(1, 1))
		}},
		{"Adam: step", func() {
			adam(t(2, 3), t(2, 3), t(2, 3), t(1, 1), t(0, 0))
		}},
	}
}

// badProducts returns the shape errors of Gemm, for all transposes.
func (s *suite) badProducts() (calls []badCall) {
	place := func(shape [2]int, trans bool) *tensor.Tensor {
		if trans {
			return s.ones(shape[1], shape[0])
		}
		return s.ones(shape[0], shape[1])
	}
	for _, trans := range transposes {
		gemm := func(what string, dst, a, x [2]int) {
			calls = append(calls, badCall{
				fmt.Sprintf("Gemm %v: %s", trans, what),
				func() {
					s.b.Gemm(
						place(dst, false), trans[0], trans[1], 1,
						place(a, trans[0]), place(x, trans[1]), 0,
					)
				},
			})
		}
		a := [2]int{2, 3}
		x := [2]int{3, 4}
		dst := [2]int{2, 4}
		gemm("inner", dst, [2]int{2, 5}, x)
		gemm("rows", [2]int{3, 4}, a, x)
		gemm("cols", [2]int{2, 3}, a, x)
		gemm("transposed dst", [2]int{4, 2}, a, x)
	}
	return calls
}

// panicOf returns the value that f panics with, or nil.
func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}
