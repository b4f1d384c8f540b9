package backendtest

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/backend"
)

// marked returns a matrix whose elements all differ and include the special
// values, for primitives that only move.
func (s *suite) marked(rows, cols int) matrix {
	m := constant(rows, cols, 0)
	special := s.special()
	for i := range m.v {
		m.v[i] = float64(i + 1)
		if k := i / 7; i%7 == 6 && k < len(special) {
			m.v[i] = special[k]
		}
	}
	return m
}

// everyShape calls f for the small and the large shapes.
func everyShape(f func(rows, cols int, large bool)) {
	smallShapes(f)
	for _, shape := range largeShapes {
		f(shape[0], shape[1], true)
	}
}

// smallShapes calls f for the small shapes.
func smallShapes(f func(rows, cols int, large bool)) {
	for _, shape := range shapes {
		f(shape[0], shape[1], false)
	}
}

// aLargeShape calls f for one of the large shapes, another for each turn: enough
// for one of many functions that are computed by the same loops.
func aLargeShape(turn int, f func(rows, cols int, large bool)) {
	shape := largeShapes[turn%len(largeShapes)]
	f(shape[0], shape[1], true)
}

func checkFill(s *suite) {
	for i, v := range s.special() {
		shape := shapes[i%len(shapes)]
		s.fill(shape[0], shape[1], v, false)
	}
	everyShape(func(rows, cols int, large bool) {
		s.fill(rows, cols, 0, large)
		s.fill(rows, cols, 1.1, large)
	})
}

func (s *suite) fill(rows, cols int, v float64, large bool) {
	s.Helper()
	s.try(trial{
		op:    "Fill",
		note:  fmt.Sprint(v),
		large: large,
		out:   []output{exactly(rows, cols)},
		call: func(o operands) {
			o.Fill(o.out[0], v)
		},
	})
}

func checkTranspose(s *suite) {
	everyShape(func(rows, cols int, large bool) {
		s.try(trial{
			op:    "Transpose",
			large: large,
			in:    []matrix{s.marked(rows, cols)},
			out:   []output{exactly(cols, rows)},
			call: func(o operands) {
				o.Transpose(o.out[0], o.in[0])
			},
		})
	})
}

func checkCopyBlock(s *suite) {
	block := func(dst, src matrix, di, dj, si, sj, rows, cols int, large bool) {
		s.Helper()
		s.try(trial{
			op:    "CopyBlock",
			large: large,
			note: fmt.Sprintf("[%d×%d] from (%d, %d) to (%d, %d)",
				rows, cols, si, sj, di, dj),
			in:  []matrix{src},
			out: []output{{dst, tolerance{bits: true}}},
			call: func(o operands) {
				o.CopyBlock(o.out[0], di, dj, o.in[0], si, sj, rows, cols)
			},
		})
	}
	// The whole, and blocks at each edge. The rest of the destination must stay, so
	// it has contents of its own.
	everyShape(func(rows, cols int, large bool) {
		src := s.marked(rows, cols)
		block(poison(rows, cols), src, 0, 0, 0, 0, rows, cols, large)
		// Put into a larger matrix.
		block(s.random(rows+2, cols+3), src, 1, 2, 0, 0, rows, cols, large)
		// Take out of a larger matrix.
		block(
			s.random(rows, cols), s.marked(rows+3, cols+2),
			0, 0, 2, 1, rows, cols, large,
		)
		// The last corner.
		block(
			s.random(rows+1, cols+1), s.marked(rows+1, cols+1),
			1, 1, 1, 1, rows, cols, large,
		)
		// The first corner.
		block(
			s.random(rows+1, cols+1), s.marked(rows+1, cols+1),
			0, 0, 0, 0, rows, cols, large,
		)
		// Nothing.
		block(
			s.random(rows+1, cols+1), s.marked(rows+1, cols+1),
			rows+1, cols+1, rows+1, cols+1, 0, 0, large,
		)
		// The rows below.
		block(s.random(2*rows, cols), src, rows, 0, 0, 0, rows, cols, large)
		// The columns on the right.
		block(s.random(rows, 2*cols), src, 0, cols, 0, 0, rows, cols, large)
		// An inner block.
		block(
			s.random(rows+1, 2*cols+5), s.marked(rows+2, 3*cols+1),
			1, cols, 2, 2*cols+1, rows, max(cols-1, 0), large,
		)
		// Two of which each fills its part, and one that is empty.
		s.try(trial{
			op:    "CopyBlock",
			large: large,
			note:  fmt.Sprintf("several, [%d×%d] and [%d×1]", rows, cols, rows),
			in:    []matrix{src, s.marked(rows, 1)},
			out: []output{{
				s.random(rows+1, cols+1),
				tolerance{bits: true},
			}},
			call: func(o operands) {
				target := o.out[0]
				matrix := backend.Block{
					Dst:  target,
					DI:   1,
					Src:  o.in[0],
					Rows: rows,
					Cols: cols,
				}
				column := backend.Block{
					Dst:  target,
					DJ:   cols,
					Src:  o.in[1],
					Rows: rows,
					Cols: 1,
				}
				empty := backend.Block{
					Dst: target,
					Src: o.in[0],
				}
				backend.CopyBlocks(
					o.Backend, []backend.Block{matrix, column, empty},
				)
			},
		})
	})
}

func checkGatherRows(s *suite) {
	gather := func(src matrix, idx []int32, note string, large bool) {
		s.Helper()
		s.try(trial{
			op:    "GatherRows",
			note:  note,
			large: large,
			in:    []matrix{src},
			idx:   [][]int32{idx},
			out:   []output{exactly(len(idx), src.cols)},
			call: func(o operands) {
				o.GatherRows(o.out[0], o.in[0], o.idx[0])
			},
		})
	}
	everyShape(func(rows, cols int, large bool) {
		src := s.marked(rows, cols)
		gather(src, nil, "none", large)
		if rows == 0 {
			return
		}
		idx := make([]int32, rows)
		for i := range idx {
			idx[i] = int32(rows - 1 - i)
		}
		gather(src, idx, "reversed", large)
		gather(src, []int32{int32(rows - 1)}, "last", large)
		gather(src, make([]int32, 5), "five times the first", large)
		idx = make([]int32, 2*rows+3)
		for i := range idx {
			idx[i] = int32(s.rng.IntN(rows))
		}
		gather(src, idx, "with repeats", large)
	})
}

func checkFillDiagonal(s *suite) {
	for _, n := range append([]int{517}, edges...) {
		for _, v := range []float64{
			0, 1.1, math.Copysign(0, -1), math.Inf(-1),
		} {
			s.try(trial{
				op:    "FillDiagonal",
				note:  fmt.Sprint(v),
				large: n > 500,
				out:   []output{{s.marked(n, n), tolerance{bits: true}}},
				call: func(o operands) {
					o.FillDiagonal(o.out[0], v)
				},
			})
		}
	}
}
