package backendtest

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/backend"
)

// product is a matrix product dst [M×N] = alpha·op(a)·op(b) + beta·dst with the
// inner dimension K.
type product struct {
	m, n, k        int
	transA, transB bool
	alpha, beta    float64
	large          bool
}

// transposes are the flags of Gemm.
var transposes = [][2]bool{
	{false, false},
	{true, false},
	{false, true},
	{true, true},
}

// gemm returns the trial of p with numbers from data.
func (s *suite) gemm(p product, data func(rows, cols int) matrix) trial {
	a, b := data(p.m, p.k), data(p.k, p.n)
	if p.transA {
		a.rows, a.cols = a.cols, a.rows
	}
	if p.transB {
		b.rows, b.cols = b.cols, b.rows
	}
	dst := poison(p.m, p.n)
	if p.beta != 0 {
		dst = data(p.m, p.n)
	}
	// Name the flags as BLAS does.
	name := "Gemm "
	for _, t := range []bool{p.transA, p.transB} {
		if t {
			name += "T"
		} else {
			name += "N"
		}
	}
	call := func(alpha, beta float64) func(o operands) {
		return func(o operands) {
			o.Gemm(o.out[0], p.transA, p.transB, alpha, o.in[0], o.in[1], beta)
		}
	}
	t := trial{
		op:    name,
		note:  fmt.Sprintf("alpha=%v beta=%v", p.alpha, p.beta),
		large: p.large,
		in:    []matrix{a, b},
		out:   []output{{before: dst}},
		call:  call(math.Abs(p.alpha), math.Abs(p.beta)),
	}
	if !p.large || !s.short {
		t.out[0].tol = tolerance{ulps: 4, terms: p.k + 1, scale: s.magnitude(t)}
	}
	t.call = call(p.alpha, p.beta)
	return t
}

func checkGemm(s *suite) {
	for _, t := range transposes {
		s.gemmShapes(t)
	}
	// A Gram matrix multiplies a tensor with itself.
	for _, trans := range []bool{false, true} {
		s.sum(21, func(data func(r, c int) matrix) trial {
			x := data(33, 21)
			if trans {
				x.rows, x.cols = x.cols, x.rows
			}
			return trial{
				op:   "Gemm of a tensor with itself",
				note: fmt.Sprintf("transA=%v", trans),
				in:   []matrix{x},
				out:  exact(33, 33),
				call: func(o operands) {
					o.Gemm(o.out[0], trans, !trans, 1, o.in[0], o.in[0], 0)
				},
			}
		})
	}
}

// gemmShapes tries products of every shape with one pair of flags, and with all alphas and
// betas in turn.
func (s *suite) gemmShapes(trans [2]bool) {
	try := func(m, n, k int, alpha, beta float64, large bool) {
		s.Helper()
		p := product{m, n, k, trans[0], trans[1], alpha, beta, large}
		exact := s.gemm(p, s.integers)
		exact.add("whole numbers")
		exact.out[0].tol = tolerance{}
		s.try(exact)
		s.try(s.gemm(p, s.random))
	}
	scales := []float64{0, 1, -1, 0.5}
	turn := 0
	// shape tries a product with the next alpha and beta.
	shape := func(m, n, k int, large bool) {
		s.Helper()
		turn++
		try(m, n, k, scales[turn%4], scales[turn/4%4], large)
		if turn%4 == 0 || large { // a zero alpha shows little
			try(m, n, k, 1, 0, large)
		}
	}
	for _, alpha := range scales {
		for _, beta := range scales {
			try(5, 7, 6, alpha, beta, false)
			try(33, 17, 18, alpha, beta, false)
			try(5, 7, 0, alpha, beta, false)
		}
	}
	small := []int{0, 1, 2, 3, 5}
	for _, m := range small {
		for _, n := range small {
			for _, k := range small {
				shape(m, n, k, false)
			}
		}
	}
	for _, n := range edges {
		shape(n, 6, 5, false)
		shape(6, n, 5, false)
		shape(6, 5, n, false)
		shape(n, 1, 4, false)
		shape(1, n, 4, false)
		shape(1, 1, n, false)
	}
	shape(16, 16, 16, false)
	shape(17, 33, 65, false)
	shape(64, 64, 64, false)
	shape(63, 65, 64, false)
	shape(128, 64, 32, false)
	shape(1, 1, 1000, false)
	shape(129, 127, 130, true)
	shape(5003, 33, 17, true) // a layer on the nodes of a batch
	shape(33, 17, 5003, true) // its weights' gradient
	shape(257, 259, 33, true) // similarities
	shape(3, 5003, 9, true)
}

// sparse is a sparse matrix in host memory.
type sparse struct {
	name       string
	rows, cols int
	ptr, col   []int32
}

// sparse returns a matrix whose row i has degree(i) entries in columns that are
// neither sorted nor distinct.
func (s *suite) sparse(
	name string, rows, cols int, degree func(i int) int,
) sparse {
	a := sparse{name, rows, cols, make([]int32, 1, rows+1), nil}
	for i := range rows {
		if cols > 0 {
			for range degree(i) {
				a.col = append(a.col, int32(s.rng.IntN(cols)))
			}
		}
		a.ptr = append(a.ptr, int32(len(a.col)))
	}
	return a
}

// longestRow returns the number of entries of the longest row.
func (a sparse) longestRow() int {
	longest := 0
	for i := range a.rows {
		longest = max(longest, int(a.ptr[i+1]-a.ptr[i]))
	}
	return longest
}

// spmm returns the trial dst = A·x + self·x with the values val, or ones.
func (s *suite) spmm(
	a sparse, x matrix, val *matrix, self float64, large bool,
) trial {
	t := trial{
		op:    "SpMM",
		note:  fmt.Sprintf("%s [%d×%d], self=%v", a.name, a.rows, a.cols, self),
		large: large,
		in:    []matrix{x},
		idx:   [][]int32{a.ptr, a.col},
		out:   exact(a.rows, x.cols),
	}
	if self != 0 {
		t.op += " with self"
	}
	if val != nil {
		t.op += " with values"
		t.in = append(t.in, *val)
	}
	t.call = func(o operands) {
		csr := &backend.CSR{
			Rows: a.rows,
			Cols: a.cols,
			Ptr:  o.idx[0],
			Col:  o.idx[1],
		}
		if val != nil {
			csr.Val = o.in[1]
		}
		o.SpMM(o.out[0], csr, o.in[0], self)
	}
	return t
}

// few gives a row up to four entries.
func (s *suite) few(int) int {
	return s.rng.IntN(5)
}

// sparseMatrices returns small matrices of every kind that graphs make, and large ones.
func (s *suite) sparseMatrices() (small, large []sparse) {
	everyThird := func(i int) int {
		return i % 3 / 2 * 4
	}
	longAt := func(long, n int) func(i int) int {
		return func(i int) int {
			if i == long {
				return n
			}
			return i % 3
		}
	}
	few := s.few
	for _, n := range edges {
		small = append(small, s.sparse("few", n, n, few))
	}
	small = append(small,
		s.sparse("no entries", 17, 17, func(int) int { return 0 }),
		s.sparse("two empty rows in three", 33, 33, everyThird),
		s.sparse("first row long", 33, 33, longAt(0, 1000)),
		s.sparse("last row long", 33, 33, longAt(32, 257)),
		s.sparse("one row, long", 1, 1, longAt(0, 100)),
		s.sparse("all", 20, 20, func(int) int { return 20 }),
		s.sparse("wide", 5, 40, few),
		s.sparse("tall", 40, 5, few),
		s.sparse("one row", 1, 65, longAt(0, 33)),
		s.sparse("one column", 65, 1, few),
		s.sparse("no columns", 5, 0, few),
		s.sparse("no rows", 0, 5, few),
	)
	large = append(large,
		s.sparse("a batch", 5003, 5003, few),
		s.sparse("a batch with a hub", 5003, 5003, longAt(2500, 4999)),
		s.sparse("wide", 301, 9001, few),
		s.sparse("tall", 9001, 301, few),
	)
	return small, large
}

func checkSpMM(s *suite) {
	small, large := s.sparseMatrices()
	for i, a := range append(small, large...) {
		isLarge := i >= len(small)
		for j, width := range segmentWidths {
			// Two widths of three for small matrices, one of five, and 32, for large ones.
			if isLarge && (i+j)%5 != 0 && width != 32 ||
				!isLarge && (i+j)%3 == 0 {
				continue
			}
			for k, self := range []float64{0, 1, 1.5} {
				for _, withVal := range []bool{false, true} {
					if self != 0 && a.rows != a.cols ||
						isLarge && withVal != (k == 1) {
						continue
					}
					s.sum(a.longestRow()+1,
						func(data func(r, c int) matrix) trial {
							var val *matrix
							if withVal {
								v := data(len(a.col), 1)
								val = &v
							}
							return s.spmm(
								a, data(a.cols, width), val, self, isLarge,
							)
						})
				}
			}
		}
	}
	// A row of NaN reaches only its neighbours, whatever lies next to it in memory.
	a := s.sparse("few", 40, 40, s.few)
	for _, i := range []int{0, 1, 20, 39} {
		x := s.integers(40, 17)
		for j := range x.cols {
			x.v[i*x.cols+j] = math.NaN()
		}
		t := s.spmm(a, x, nil, 0, false)
		t.add(fmt.Sprintf("row %d is NaN", i))
		s.try(t)
	}
}
