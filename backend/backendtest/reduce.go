package backendtest

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/backend"
)

// sum makes a trial whose destinations are sums of the given number of terms: once on
// integers, whose sums are exact and must give ref's bits, and once on random numbers.
// build makes the trial from a source of matrices.
func (s *suite) sum(
	terms int, build func(data func(rows, cols int) matrix) trial,
) {
	s.Helper()
	exact := build(s.integers)
	exact.add("whole numbers")
	s.try(exact)
	random := build(s.random)
	if s.short && random.large {
		return
	}
	random.out[0].tol = tolerance{
		ulps:  4,
		terms: terms,
		scale: s.magnitude(random),
	}
	s.try(random)
}

// exact is the destination of a sum.
func exact(rows, cols int) []output {
	return []output{{before: poison(rows, cols)}}
}

func checkReduceRows(s *suite) {
	for _, op := range backend.RowOps() {
		s.reduceShapes(op)
		for _, cols := range []int{1, 2, 3, 8, 17, 33} {
			s.reduceSpecial(op, cols)
		}
	}
}

// reduce returns the trial of a row reduction of a.
func reduce(
	op backend.RowOp, a matrix, out output, note string, large bool,
) trial {
	return trial{
		op:    "ReduceRows " + op.String(),
		note:  note,
		large: large,
		in:    []matrix{a},
		out:   []output{out},
		call: func(o operands) {
			o.ReduceRows(o.out[0], op, o.in[0])
		},
	}
}

// logSumExp returns the destination of RowLogSumExp for a, with its tolerance: the rounding
// of the maximum, and of a sum whose terms are at most 1.
func (s *suite) logSumExp(a matrix) output {
	t := reduce(
		backend.RowLogSumExp, a, output{before: poison(a.rows, 1)}, "", false,
	)
	root := math.Sqrt(float64(a.cols))
	scale := s.define(t)[0].mapped(func(v float64) float64 {
		return math.Abs(v) + root
	})
	t.out[0].tol = tolerance{ulps: 4, scale: &scale}
	return t.out[0]
}

// reduceShapes tries a row reduction on every shape.
func (s *suite) reduceShapes(op backend.RowOp) {
	everyShape(func(rows, cols int, large bool) {
		out := output{before: poison(rows, 1)}
		switch op {
		case backend.RowSum:
			s.sum(cols, func(data func(r, c int) matrix) trial {
				return reduce(op, data(rows, cols), out, "", large)
			})
		case backend.RowMax:
			s.try(reduce(op, s.random(rows, cols), out, "", large))
			negative := s.random(rows, cols).mapped(func(v float64) float64 {
				return -1 - math.Abs(v)
			})
			s.try(reduce(op, negative, out, "all negative", large))
		case backend.RowLogSumExp:
			a := s.random(rows, cols)
			s.try(reduce(op, a, s.logSumExp(a), "", large))
			a = s.random(rows, cols).mapped(func(v float64) float64 {
				return 300 * v
			})
			s.try(reduce(op, a, s.logSumExp(a), "e^a overflows", large))
			a = s.random(rows, cols).mapped(func(v float64) float64 {
				return v - 2000
			})
			s.try(reduce(op, a, s.logSumExp(a), "e^a underflows", large))
		}
	})
}

// reduceSpecial tries a row reduction with a special value at every place of a row, before
// and after others, and with rows of one value.
func (s *suite) reduceSpecial(op backend.RowOp, cols int) {
	for _, v := range []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), s.largest, -s.largest,
		s.smallest,
	} {
		a := s.random(cols, cols).mapped(func(v float64) float64 {
			return v / 8
		})
		for i := range cols {
			a.v[i*cols+i] = v
		}
		out := output{before: poison(cols, 1)}
		switch op {
		case backend.RowLogSumExp:
			out = s.logSumExp(a)
		case backend.RowSum:
			t := reduce(op, a, out, "", false)
			out.tol = tolerance{ulps: 4, terms: cols, scale: s.magnitude(t)}
		}
		s.try(reduce(op, a, out, fmt.Sprintf("one %v in each row", v), false))
	}
	for _, v := range []float64{
		math.Inf(-1), math.Inf(1), 0, 1000, -1000, 1e30,
	} {
		a := constant(2, cols, v)
		out := output{before: poison(2, 1)}
		switch op {
		case backend.RowLogSumExp:
			out = s.logSumExp(a)
		case backend.RowSum:
			out.tol = tolerance{ulps: 4, terms: cols}
		}
		s.try(reduce(op, a, out, fmt.Sprintf("all %v", v), false))
	}
}

func checkColSums(s *suite) {
	colSums := func(a matrix, large bool) trial {
		return trial{
			op:    "ColSums",
			large: large,
			in:    []matrix{a},
			out:   exact(1, a.cols),
			call: func(o operands) {
				o.ColSums(o.out[0], o.in[0])
			},
		}
	}
	everyShape(func(rows, cols int, large bool) {
		s.sum(rows, func(data func(r, c int) matrix) trial {
			return colSums(data(rows, cols), large)
		})
	})
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, n := range []int{1, 3, 17, 64} {
			// One in each of some columns; the others must stay finite.
			a := s.integers(2*n, n)
			for j := range n {
				if j%3 != 1 {
					a.v[(n+j)*n+j] = v
				}
			}
			t := colSums(a, false)
			t.note = fmt.Sprintf("with %v", v)
			s.try(t)
		}
	}
}

func checkDot(s *suite) {
	everyShape(func(rows, cols int, large bool) {
		for _, n := range []int{1, 2} {
			s.sum(rows*cols, func(data func(r, c int) matrix) trial {
				t := trial{
					op:    "Dot",
					large: large,
					in:    []matrix{data(rows, cols)},
					out:   exact(1, 1),
					call: func(o operands) {
						o.Dot(o.out[0], o.in[0], nil)
					},
				}
				if n == 2 {
					t.op = "Dot of two"
					t.in = append(t.in, data(rows, cols))
					t.call = func(o operands) {
						o.Dot(o.out[0], o.in[0], o.in[1])
					}
				}
				return t
			})
		}
	})
	s.sum(33*17, func(data func(r, c int) matrix) trial {
		return trial{
			op:  "Dot of a tensor with itself",
			in:  []matrix{data(33, 17)},
			out: exact(1, 1),
			call: func(o operands) {
				o.Dot(o.out[0], o.in[0], o.in[0])
			},
		}
	})
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, i := range []int{0, 20, 38} {
			a := constant(3, 13, 2)
			a.v[i] = v
			s.try(trial{
				op:   "Dot of two",
				note: fmt.Sprintf("with %v", v),
				in:   []matrix{constant(3, 13, 1), a},
				out:  exact(1, 1),
				call: func(o operands) {
					o.Dot(o.out[0], o.in[0], o.in[1])
				},
			})
		}
	}
}

// segmentation is a division of rows into segments.
type segmentation struct {
	name  string
	ptr   []int32
	large bool
}

// longest returns the length of the longest segment, and n the number of rows.
func (p segmentation) longest() (longest, n int) {
	for g := range len(p.ptr) - 1 {
		longest = max(longest, int(p.ptr[g+1]-p.ptr[g]))
	}
	return longest, int(p.ptr[len(p.ptr)-1])
}

// segmentations returns divisions of every kind that batches of graphs have.
func (s *suite) segmentations() []segmentation {
	pointers := func(lengths ...int) []int32 {
		ptr := make([]int32, 1, len(lengths)+1)
		for i, n := range lengths {
			ptr = append(ptr, ptr[i]+int32(n))
		}
		return ptr
	}
	random := func(segments, longest int) []int32 {
		lengths := make([]int, segments)
		for i := range lengths {
			lengths[i] = s.rng.IntN(longest + 1) // some are empty
		}
		return pointers(lengths...)
	}
	return []segmentation{
		{"no segment", pointers(), false},
		{"one empty segment", pointers(0), false},
		{"only empty segments", pointers(0, 0, 0, 0, 0), false},
		{"one row", pointers(1), false},
		{"empty at both ends and inside", pointers(0, 3, 0, 0, 2, 1, 0), false},
		{"edges", pointers(edges...), false},
		{"one segment", pointers(129), false},
		{"two views", pointers(70, 61), false},
		{"long and short", pointers(1, 200, 1, 0, 1), false},
		{"many small", random(150, 5), false},
		{"two views, long", pointers(10007, 9001), true},
		{"very many small", random(5003, 6), true},
		{"graphs", random(301, 60), true},
		{"one very long among small", pointers(3, 0, 1, 9973, 2, 0, 4, 1), true},
	}
}

var segmentWidths = []int{0, 1, 3, 16, 17, 32, 33, 64, 65, 129}

// everySegmentation calls f for all segmentations and widths.
func (s *suite) everySegmentation(f func(p segmentation, width int)) {
	for i, p := range s.segmentations() {
		for j, width := range segmentWidths {
			if !p.large || (i+j)%4 == 0 || width == 32 {
				f(p, width)
			}
		}
	}
}

func checkSegmentSum(s *suite) {
	s.everySegmentation(func(p segmentation, width int) {
		longest, rows := p.longest()
		s.sum(longest, func(data func(r, c int) matrix) trial {
			return trial{
				op:    "SegmentSum",
				note:  p.name,
				large: p.large,
				in:    []matrix{data(rows, width)},
				idx:   [][]int32{p.ptr},
				out:   exact(len(p.ptr)-1, width),
				call: func(o operands) {
					o.SegmentSum(o.out[0], o.idx[0], o.in[0])
				},
			}
		})
	})
	// Padding belongs to no segment; here it is NaN.
	for _, rows := range []int{26, 64, 3000} {
		x := s.integers(rows, 9)
		for i := 25 * 9; i < len(x.v); i++ {
			x.v[i] = math.NaN()
		}
		s.try(trial{
			op:   "SegmentSum",
			note: "padding",
			in:   []matrix{x},
			idx:  [][]int32{{0, 3, 25}},
			out:  exact(2, 9),
			call: func(o operands) {
				o.SegmentSum(o.out[0], o.idx[0], o.in[0])
			},
		})
	}
	// A NaN, at either end of a segment, must not leave it.
	p := segmentation{ptr: []int32{0, 3, 3, 20, 24, 25}}
	for _, i := range []int{0, 2, 3, 19, 20, 24} {
		x := s.integers(25, 9)
		for j := range 9 {
			x.v[i*9+j] = math.NaN()
		}
		s.try(trial{
			op:   "SegmentSum",
			note: fmt.Sprintf("row %d is NaN", i),
			in:   []matrix{x},
			idx:  [][]int32{p.ptr},
			out:  exact(5, 9),
			call: func(o operands) {
				o.SegmentSum(o.out[0], o.idx[0], o.in[0])
			},
		})
	}
}

func checkSegmentExpand(s *suite) {
	for _, padding := range []int{1, 7, 40, 300} {
		ptr := []int32{0, 3, 3, 20, 24, 25}
		for _, width := range []int{1, 9, 33} {
			s.try(trial{
				op:   "SegmentExpand",
				note: fmt.Sprintf("%d rows of padding", padding),
				in:   []matrix{s.random(5, width)},
				idx:  [][]int32{ptr},
				out:  []output{exactly(25+padding, width)},
				call: func(o operands) {
					o.SegmentExpand(o.out[0], o.idx[0], o.in[0])
				},
			})
		}
	}
	s.everySegmentation(func(p segmentation, width int) {
		_, rows := p.longest()
		s.try(trial{
			op:    "SegmentExpand",
			note:  p.name,
			large: p.large,
			in:    []matrix{s.marked(len(p.ptr)-1, width)},
			idx:   [][]int32{p.ptr},
			out:   []output{exactly(rows, width)},
			call: func(o operands) {
				o.SegmentExpand(o.out[0], o.idx[0], o.in[0])
			},
		})
	})
}
