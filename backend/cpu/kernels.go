package cpu

import (
	"math"
	"unsafe"

	"github.com/chewxy/math32"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
	"gonum.org/v1/gonum/blas"
)

// kernels are the vector loops of one precision, by operation. Looking a loop up in
// a table once per chunk keeps branches out of the loops. Slices have equal lengths;
// dst may be the same as an input.
//
// Package simd has the loops: vector instructions for float32 where the machine
// has them, plain Go otherwise.
type kernels[T float] struct {
	// gemm sets C = alpha·op(A)·op(B) + beta·C, as in BLAS, on the calling
	// goroutine. Element (i, j) depends on row i of op(A) and column j of op(B)
	// only, so a product may be cut into blocks of rows.
	gemm gemmFunc[T]
	// exact is gemm without rounding to bfloat16, in every engine.
	exact gemmFunc[T]

	// The functions of a [search]. Several goroutines may call them.
	searchUpper func(x []T, n, k int, pair bool) search
	findUpper   func(x []T, n int, key uint64, place int) int
	countDigits func(c *digitCounts, x []T, s *search)
	ofKey       func(k uint64) T

	unary  [11]func(dst, a []T)     // by backend.UnaryOp
	binary [7]func(dst, a, b []T)   // by backend.BinaryOp
	byRow  [7]func(dst, a, row []T) // dst_ij = op(a_ij, row_j)
	byCol  [7]func(dst, a, col []T) // dst_ij = op(a_ij, col_i)
	reduce [3]func(a []T) T         // by backend.RowOp

	biasReLU func(dst, a, row []T)
}

// gemmFunc is the signature of a product in package blas.
type gemmFunc[T float] func(
	tA, tB blas.Transpose,
	m, n, k int,
	alpha T,
	a []T,
	lda int,
	b []T,
	ldb int,
	beta T,
	c []T,
	ldc int,
)

// multiply sets C [m×n] = A·B for contiguous A [m×k] and B [k×n].
func (gemm gemmFunc[T]) multiply(c, a, b []T, m, n, k int) {
	gemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, a, k, b, n, 0, c, n)
}

// multiplyNT sets C [m×n] = A·Bᵀ for contiguous A [m×k] and B [n×k].
func (gemm gemmFunc[T]) multiplyNT(c, a, b []T, m, n, k int) {
	gemm(blas.NoTrans, blas.Trans, m, n, k, 1, a, k, b, k, 0, c, n)
}

// multiplyTN sets C [m×n] = Aᵀ·B for contiguous A [k×m] and B [k×n].
func (gemm gemmFunc[T]) multiplyTN(c, a, b []T, m, n, k int) {
	gemm(blas.Trans, blas.NoTrans, m, n, k, 1, a, m, b, n, 0, c, n)
}

func kernels32() kernels[float32] {
	k := loops(float32(backend.LeastDegree(tensor.Float32)))
	k.gemm = simd.BLAS{}.Sgemm
	k.exact = simd.BLAS{}.Sgemm
	setSearch(&k, math.Float32frombits)
	if simd.Level() == simd.Generic {
		// Without vector instructions, these functions are faster than those of
		// package math and as accurate in float32. (The others of math32 are not: on
		// amd64 its Exp is off by up to 5 units in the last place, and its Log of a
		// subnormal number is -88.)
		k.unary[backend.Tanh] = func(dst, a []float32) {
			for i, x := range a[:len(dst)] {
				dst[i] = math32.Tanh(x)
			}
		}
		k.unary[backend.Softplus] = func(dst, a []float32) {
			for i, x := range a[:len(dst)] {
				e := float32(math.Exp(-math.Abs(float64(x))))
				dst[i] = max(x, 0) + math32.Log1p(e)
			}
		}
	}
	return k
}

func kernels64() kernels[float64] {
	k := loops(backend.LeastDegree(tensor.Float64))
	k.gemm = simd.BLAS{}.Dgemm
	k.exact = simd.BLAS{}.Dgemm
	setSearch(&k, math.Float64frombits)
	return k
}

// setSearch sets the functions of a [search] for numbers with bits of type K.
func setSearch[T float, K uint32 | uint64](k *kernels[T], fromBits func(K) T) {
	bits := func(x []T) []K {
		return unsafe.Slice((*K)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
	}
	var free freeList[digitCounts]
	k.searchUpper = func(x []T, n, k int, pair bool) search {
		c := free.take()
		defer free.give(c)
		return searchUpper(c, bits(x), n, k, pair)
	}
	k.findUpper = func(x []T, n int, key uint64, place int) int {
		return findUpper(bits(x), n, K(key), place)
	}
	k.countDigits = func(c *digitCounts, x []T, s *search) {
		countDigits(c, bits(x), s)
	}
	k.ofKey = func(key uint64) T {
		return fromBits(ofKey(K(key)))
	}
}

// loops returns all kernels but gemm and those of a search. Degrees below leastDegree
// count as 0.
func loops[T float](leastDegree T) kernels[T] {
	return kernels[T]{
		unary: [...]func(dst, a []T){
			backend.Exp:        simd.Exp[T],
			backend.Log:        simd.Log[T],
			backend.Sqrt:       simd.Sqrt[T],
			backend.Sigmoid:    simd.Sigmoid[T],
			backend.Softplus:   simd.Softplus[T],
			backend.Tanh:       simd.Tanh[T],
			backend.ReLU:       simd.ReLU[T],
			backend.Abs:        simd.Abs[T],
			backend.Sign:       simd.Sign[T],
			backend.Reciprocal: simd.Reciprocal[T],
			backend.InvSqrt: func(dst, a []T) {
				invSqrt(dst, a, leastDegree)
			},
		},
		binary: [...]func(dst, a, b []T){
			backend.Add:     simd.Add[T],
			backend.Sub:     simd.Sub[T],
			backend.Mul:     simd.Mul[T],
			backend.Div:     simd.Div[T],
			backend.Max:     simd.Maximum[T],
			backend.Greater: simd.Greater[T],
			backend.Gate:    simd.Gate[T],
		},
		byRow: [...]func(dst, a, row []T){
			backend.Add:     simd.AddRow[T],
			backend.Sub:     simd.SubRow[T],
			backend.Mul:     simd.MulRow[T],
			backend.Div:     simd.DivRow[T],
			backend.Max:     eachRow(simd.Maximum[T]),
			backend.Greater: eachRow(simd.Greater[T]),
			backend.Gate:    eachRow(simd.Gate[T]),
		},
		byCol: [...]func(dst, a, col []T){
			backend.Add:     simd.AddCol[T],
			backend.Sub:     simd.SubCol[T],
			backend.Mul:     simd.MulCol[T],
			backend.Div:     simd.DivCol[T],
			backend.Max:     eachCol(larger[T]),
			backend.Greater: eachCol(greater[T]),
			backend.Gate:    eachCol(gate[T]),
		},
		biasReLU: simd.AddRowReLU[T],
		reduce: [...]func(a []T) T{
			backend.RowSum: simd.Sum[T],
			backend.RowMax: simd.Max[T],
			backend.RowLogSumExp: func(a []T) T {
				m := simd.Max(a)
				if math.IsInf(float64(m), 0) {
					return m // Inf - Inf below would be NaN
				}
				return m + T(math.Log(float64(simd.ExpSum(nil, 1, a, -m))))
			},
		},
	}
}

// eachRow returns a kernel that runs op on every row of a, each with the same row.
func eachRow[T float](op func(dst, a, b []T)) func(dst, a, row []T) {
	return func(dst, a, row []T) {
		for ; len(dst) > 0; dst = dst[len(row):] {
			op(dst[:len(row)], a[:len(row)], row)
			a = a[len(row):]
		}
	}
}

// eachCol returns a kernel that runs op on every element of a and the element of col for its
// row. No model does this often enough to deserve vector kernels.
func eachCol[T float](op func(a, b T) T) func(dst, a, col []T) {
	return func(dst, a, col []T) {
		cols := len(dst) / max(1, len(col))
		for i, c := range col {
			d := rowOf(dst, i, cols)
			for j, x := range rowOf(a, i, cols) {
				d[j] = op(x, c)
			}
		}
	}
}

// invSqrt computes dst_i = a_i^-½, or 0 where a_i is below leastDegree. It runs over
// the degrees of nodes: too few numbers for a vector kernel.
func invSqrt[T float](dst, a []T, leastDegree T) {
	for i, x := range a[:len(dst)] {
		if x >= leastDegree {
			dst[i] = 1 / T(math.Sqrt(float64(x)))
		} else {
			dst[i] = 0
		}
	}
}

func larger[T float](a, b T) T {
	return max(a, b)
}

func greater[T float](a, b T) T {
	if a > b {
		return 1
	}
	return 0
}

func gate[T float](a, b T) T {
	if b > 0 {
		return a
	}
	return 0
}

func fill[T float](dst []T, v T) {
	if v == 0 && !math.Signbit(float64(v)) {
		clear(dst)
		return
	}
	first := dst[:min(64, len(dst))]
	for i := range first {
		first[i] = v
	}
	repeat(dst, first)
}

// repeat fills dst with copies of row. It copies what it has written already, which
// is faster than a loop over rows. Both may start at the same element.
func repeat[T float](dst, row []T) {
	for n := copy(dst, row); n < len(dst); {
		block := (1<<12/len(row) + 1) * len(row) // whole rows that stay in the first-level cache
		n += copy(dst[n:], dst[:min(n, block)])
	}
}
