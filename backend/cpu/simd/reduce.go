package simd

import "math"

// lanes is the number of partial sums of a reduction: element i of a chunk goes
// to lane i mod lanes, and the lanes are folded in halves. The assembly does the
// same.
const lanes = 64

// foldAdd adds the lanes: 64 to 32, … to 1.
func foldAdd[T Float](s *[lanes]T) T {
	for w := lanes / 2; w > 0; w /= 2 {
		for i := range w {
			s[i] += s[i+w]
		}
	}
	return s[0]
}

// chunks adds f over chunks of n elements in order, in float64.
func chunks[T Float](n int, f func(i, n int) T) T {
	if n <= chunk {
		if n == 0 {
			return 0
		}
		return f(0, n)
	}
	var sum float64
	for i := 0; i < n; i += chunk {
		sum += float64(f(i, min(chunk, n-i)))
	}
	return T(sum)
}

// Sum returns Σ a_i, 0 if there is none.
//
// The order of all reductions to a number is fixed and depends on the length
// alone, not on where the slice lies: 64 lanes within chunks of 32768, then the
// chunks in order, in float64.
func Sum[T Float](a []T) T {
	return chunks(len(a), func(i, n int) T {
		if fast[T]() {
			return T(sum(at(a, i), n))
		}
		var s [lanes]T
		for k, x := range a[i : i+n] {
			s[k%lanes] += x
		}
		return foldAdd(&s)
	})
}

// SumSquares returns Σ a_i², in the order of [Sum].
func SumSquares[T Float](a []T) T {
	return chunks(len(a), func(i, n int) T {
		if fast[T]() {
			return T(sumSquares(at(a, i), n))
		}
		var s [lanes]T
		for k, x := range a[i : i+n] {
			s[k%lanes] += x * x
		}
		return foldAdd(&s)
	})
}

// Dot returns Σ a_i·b_i, in the order of [Sum]. It panics if the lengths
// differ.
func Dot[T Float](a, b []T) T {
	if len(a) != len(b) {
		badLength("Dot", "a and b equal", len(a), len(b))
	}
	return chunks(len(a), func(i, n int) T {
		if fast[T]() {
			return T(dot(at(a, i), at(b, i), n))
		}
		var s [lanes]T
		y := b[i : i+n]
		for k, x := range a[i : i+n] {
			s[k%lanes] += x * y[k]
		}
		return foldAdd(&s)
	})
}

// Max returns max a_i: NaN if any is, -Inf if there is none.
func Max[T Float](a []T) T {
	m := T(math.Inf(-1))
	if fast[T]() {
		for i := 0; i < len(a); i += chunk {
			m = max(m, T(maxOf(at(a, i), min(chunk, len(a)-i))))
		}
		return m
	}
	for _, x := range a {
		m = max(m, x)
	}
	return m
}

// ExpSum computes dst_i = e^(alpha·a_i + c) and returns Σ dst_i; with a nil dst
// it returns the sum only. With c = -alpha·max a it is the heart of log-sum-exp
// and of softmax. The exponential is that of [Exp]; the order is that of [Sum]
// with 16 lanes. It panics if dst is neither nil nor of a's length.
func ExpSum[T Float](dst []T, alpha T, a []T, c T) T {
	if dst != nil && len(dst) != len(a) {
		badLength("ExpSum", "dst and a equal", len(dst), len(a))
	}
	return chunks(len(a), func(i, n int) T {
		if fast[T]() {
			if dst == nil {
				return T(expSumOnly(float32(alpha), float32(c), at(a, i), n))
			}
			return T(expSum(
				float32(alpha), float32(c), at(dst, i), at(a, i), n,
			))
		}
		var s [lanes]T
		for k, x := range a[i : i+n] {
			e := T(math.Exp(float64(alpha*x + c)))
			if dst != nil {
				dst[i+k] = e
			}
			s[k%16] += e
		}
		return foldAdd(&s)
	})
}
