package cpu

import (
	"math"
	"unsafe"

	"github.com/chewxy/math32"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"gonum.org/v1/gonum/blas"
)

// kernels are the vector loops of one precision. Slices have equal lengths;
// dst may be the same as an input. A nil entry does not exist.
//
// The plain loops below are the portable default; kernels32 puts vector
// instructions in their place. An operation is chosen once per chunk, by a
// table, so that the loops have no branch on it.
type kernels[T float] struct {
	// gemm sets C = alpha·op(A)·op(B) + beta·C, as in BLAS, on the calling
	// goroutine. Element (i, j) depends on row i of op(A) and column j of op(B)
	// only.
	gemm func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)

	unary  [11]func(dst, a []T)     // by backend.UnaryOp
	binary [7]func(dst, a, b []T)   // by backend.BinaryOp
	scalar [7]func(dst, a []T, s T) // dst = op(a, s), by backend.BinaryOp
	reduce [3]func(a []T) T         // by backend.RowOp

	fill   func(dst []T, v T)
	affine func(dst []T, alpha T, a []T, c T)
	axpby  func(dst []T, alpha T, a []T, beta T, b []T)
	axpy   func(dst []T, alpha T, a []T) // dst += alpha·a
	dot    func(a, b []T) T
	adam   func(p, g, m, v []T, c *adamArgs[T])
}

func kernels32() kernels[float32] {
	k := plain[float32]()
	k.gemm = simd.BLAS{}.Sgemm
	return k
}

func kernels64() kernels[float64] {
	k := plain[float64]()
	k.gemm = simd.BLAS{}.Dgemm
	return k
}

// exp and log go through float64 at either precision: on amd64, math32.Exp is
// wrong by up to 5 units in the last place and math32.Log of a subnormal number
// is -88. The rest are the functions of T's own package, math32 for float32.
// The comparisons are known when T is.

func exp[T float](x T) T { return T(math.Exp(float64(x))) }
func log[T float](x T) T { return T(math.Log(float64(x))) }

func log1p[T float](x T) T {
	if unsafe.Sizeof(x) == 4 {
		return T(math32.Log1p(float32(x)))
	}
	return T(math.Log1p(float64(x)))
}

func tanh[T float](x T) T {
	if unsafe.Sizeof(x) == 4 {
		return T(math32.Tanh(float32(x)))
	}
	return T(math.Tanh(float64(x)))
}

// sqrt is one instruction at either precision: the detour over float64 does not
// change a correctly rounded float32 result, and the compiler drops it.
func sqrt[T float](x T) T { return T(math.Sqrt(float64(x))) }

func abs[T float](x T) T { return T(math.Abs(float64(x))) }

func negInf[T float]() T { return T(math.Inf(-1)) }

func fill[T float](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// plain returns the loops in Go.
func plain[T float]() kernels[T] {
	return kernels[T]{
		unary: [...]func(dst, a []T){
			backend.Exp: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					dst[i] = exp(x)
				}
			},
			backend.Log: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					dst[i] = log(x)
				}
			},
			backend.Sqrt: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					dst[i] = sqrt(x)
				}
			},
			backend.Sigmoid: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					dst[i] = 1 / (1 + exp(-x))
				}
			},
			backend.Softplus: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					dst[i] = max(x, 0) + log1p(exp(-abs(x)))
				}
			},
			backend.Tanh: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					dst[i] = tanh(x)
				}
			},
			backend.ReLU: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					dst[i] = max(x, 0)
				}
			},
			backend.Abs: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					dst[i] = abs(x)
				}
			},
			backend.Sign: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					switch {
					case x > 0:
						x = 1
					case x < 0:
						x = -1
					}
					dst[i] = x // 0 or NaN otherwise
				}
			},
			backend.Reciprocal: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					dst[i] = 1 / x
				}
			},
			backend.InvSqrt: func(dst, a []T) {
				for i, x := range a[:len(dst)] {
					if x > 0 {
						dst[i] = 1 / sqrt(x)
					} else {
						dst[i] = 0
					}
				}
			},
		},
		binary: [...]func(dst, a, b []T){
			backend.Add: func(dst, a, b []T) {
				b = b[:len(dst)]
				for i, x := range a[:len(dst)] {
					dst[i] = x + b[i]
				}
			},
			backend.Sub: func(dst, a, b []T) {
				b = b[:len(dst)]
				for i, x := range a[:len(dst)] {
					dst[i] = x - b[i]
				}
			},
			backend.Mul: func(dst, a, b []T) {
				b = b[:len(dst)]
				for i, x := range a[:len(dst)] {
					dst[i] = x * b[i]
				}
			},
			backend.Div: func(dst, a, b []T) {
				b = b[:len(dst)]
				for i, x := range a[:len(dst)] {
					dst[i] = x / b[i]
				}
			},
			backend.Max: func(dst, a, b []T) {
				b = b[:len(dst)]
				for i, x := range a[:len(dst)] {
					dst[i] = max(x, b[i])
				}
			},
			backend.Greater: func(dst, a, b []T) {
				b = b[:len(dst)]
				for i, x := range a[:len(dst)] {
					var y T
					if x > b[i] {
						y = 1
					}
					dst[i] = y
				}
			},
			backend.Gate: func(dst, a, b []T) {
				b = b[:len(dst)]
				for i, x := range a[:len(dst)] {
					if !(b[i] > 0) {
						x = 0
					}
					dst[i] = x
				}
			},
		},
		scalar: [...]func(dst, a []T, s T){
			backend.Add: func(dst, a []T, s T) {
				for i, x := range a[:len(dst)] {
					dst[i] = x + s
				}
			},
			backend.Sub: func(dst, a []T, s T) {
				for i, x := range a[:len(dst)] {
					dst[i] = x - s
				}
			},
			backend.Mul: func(dst, a []T, s T) {
				for i, x := range a[:len(dst)] {
					dst[i] = x * s
				}
			},
			backend.Div: func(dst, a []T, s T) {
				for i, x := range a[:len(dst)] {
					dst[i] = x / s
				}
			},
			backend.Max: func(dst, a []T, s T) {
				for i, x := range a[:len(dst)] {
					dst[i] = max(x, s)
				}
			},
			backend.Greater: func(dst, a []T, s T) {
				for i, x := range a[:len(dst)] {
					var y T
					if x > s {
						y = 1
					}
					dst[i] = y
				}
			},
			backend.Gate: func(dst, a []T, s T) {
				if s > 0 {
					copy(dst, a)
				} else {
					clear(dst)
				}
			},
		},
		reduce: [...]func(a []T) T{
			backend.RowSum: sum[T],
			backend.RowMax: maximum[T],
			backend.RowLogSumExp: func(a []T) T {
				m := maximum(a)
				if math.IsInf(float64(m), 0) {
					return m // Inf - Inf below would be NaN
				}
				var s T
				for _, x := range a {
					s += exp(x - m)
				}
				return m + log(s)
			},
		},
		fill: fill[T],
		affine: func(dst []T, alpha T, a []T, c T) {
			for i, x := range a[:len(dst)] {
				dst[i] = alpha*x + c
			}
		},
		axpby: func(dst []T, alpha T, a []T, beta T, b []T) {
			b = b[:len(dst)]
			for i, x := range a[:len(dst)] {
				dst[i] = alpha*x + beta*b[i]
			}
		},
		axpy: func(dst []T, alpha T, a []T) {
			for i, x := range a[:len(dst)] {
				dst[i] += alpha * x
			}
		},
		dot: func(a, b []T) T {
			var s0, s1, s2, s3 T
			for len(a) >= 4 && len(b) >= 4 {
				s0 += a[0] * b[0]
				s1 += a[1] * b[1]
				s2 += a[2] * b[2]
				s3 += a[3] * b[3]
				a, b = a[4:], b[4:]
			}
			b = b[:len(a)]
			for i, x := range a {
				s0 += x * b[i]
			}
			return (s0 + s1) + (s2 + s3)
		},
		adam: func(p, g, m, v []T, c *adamArgs[T]) {
			g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
			for i, x := range p {
				grad := g[i] + c.decay*x
				mi := c.beta1*m[i] + c.gain1*grad
				vi := c.beta2*v[i] + c.gain2*grad*grad
				m[i], v[i] = mi, vi
				p[i] = x - c.rate*mi/(sqrt(vi)*c.root2+c.eps)
			}
		},
	}
}

// sum adds in four interleaved parts: faster than one chain, and rounds less.
func sum[T float](a []T) T {
	var s0, s1, s2, s3 T
	for len(a) >= 4 {
		s0 += a[0]
		s1 += a[1]
		s2 += a[2]
		s3 += a[3]
		a = a[4:]
	}
	for _, x := range a {
		s0 += x
	}
	return (s0 + s1) + (s2 + s3)
}

func maximum[T float](a []T) T {
	m := negInf[T]()
	for _, x := range a {
		m = max(m, x)
	}
	return m
}
