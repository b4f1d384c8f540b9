package cpu

import (
	"math"
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// UpperQuantile selects by radix: a histogram of the leading bits tells which
// values share them with the order statistic; only those are looked at again.
// NaN sorts before -Inf or after +Inf, by its sign.
func (e *engine[T]) UpperQuantile(theta, weights, s *tensor.Tensor, q float64) {
	backend.CheckQuantile(theta, weights, s, q)
	out, x, n := e.data(theta), e.data(s), s.Rows
	var w []T
	if weights != nil {
		w = e.data(weights)
		clear(w)
	}
	if n < 2 {
		out[0] = 0
		return
	}
	k, second := backend.QuantilePosition(n*(n-1)/2, q)
	v := e.selectUpper(x, n, k)
	// Rank the value among all: how many are below, and what comes next?
	below, equal := 0, 0
	next := T(math.Inf(1))
	for i := range n {
		for _, y := range x[i*n+i+1 : (i+1)*n] {
			switch {
			case y < v:
				below++
			case y == v:
				equal++
			case y < next:
				next = y
			}
		}
	}
	if k+1 < below+equal {
		next = v
	}
	out[0] = v
	if second != 0 {
		out[0] = T((1-second)*float64(v) + second*float64(next))
	}
	if w == nil {
		return
	}
	w[findUpper(x, n, v, k-below)] = T(1 - second)
	if second != 0 {
		r := 0
		if next == v {
			r = k + 1 - below
		}
		w[findUpper(x, n, next, r)] = T(second)
	}
}

// findUpper returns the place of the r-th value equal to v, counted from 0, in
// the strict upper triangle of x [n×n].
func findUpper[T float](x []T, n int, v T, r int) int {
	for i := range n {
		for j := i*n + i + 1; j < (i+1)*n; j++ {
			if x[j] == v {
				if r == 0 {
					return j
				}
				r--
			}
		}
	}
	return n - 1 // v is NaN
}

// radixBits is the width of a digit of the selection.
const radixBits = 11

// selectUpper returns the value that would be at place k if the strict upper
// triangle of x [n×n] were sorted.
func (e *engine[T]) selectUpper(x []T, n, k int) T {
	c := grow(e.candidates, n*(n-1)/2)
	e.candidates = c
	p := 0
	for i := range n {
		p += copy(c[p:], x[i*n+i+1:(i+1)*n])
	}
	for shift := 64 - radixBits; len(c) > 1; shift -= radixBits {
		var count [1 << radixBits]int32
		for _, v := range c {
			count[key(v)>>max(shift, 0)&(1<<radixBits-1)]++
		}
		digit := 0
		for k >= int(count[digit]) {
			k -= int(count[digit])
			digit++
		}
		m := 0
		for _, v := range c {
			c[m] = v
			if int(key(v)>>max(shift, 0)&(1<<radixBits-1)) == digit {
				m++
			}
		}
		c = c[:m]
		if shift <= 64-8*int(unsafe.Sizeof(x[0])) {
			break // what is left is equal in all bits
		}
	}
	return c[0]
}

// key maps v to an integer of the same order, left-aligned. The two zeros,
// which are equal, have the same key.
func key[T float](v T) uint64 {
	v += 0 // -0 + 0 = 0
	if unsafe.Sizeof(v) == 4 {
		b := math.Float32bits(float32(v))
		return uint64(b^(uint32(int32(b)>>31)|1<<31)) << 32
	}
	b := math.Float64bits(float64(v))
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}
