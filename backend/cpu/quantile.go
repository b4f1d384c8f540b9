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
	at, next := e.selectUpper(x, n, k)
	out[0] = x[at]
	if w != nil {
		w[at] = T(1 - second)
	}
	if second == 0 {
		return
	}
	if next < 0 {
		next = above(x, n, x[at])
	}
	out[0] = T((1-second)*float64(x[at]) + second*float64(x[next]))
	if w != nil {
		w[next] = T(second)
	}
}

// selectUpper returns which element of x [n×n] would be at place k if its strict
// upper triangle were sorted. It also returns the next one, or -1 if that is a
// greater value.
func (e *engine[T]) selectUpper(x []T, n, k int) (at, next int) {
	m := n * (n - 1) / 2
	e.candidates, e.places = grow(e.candidates, m), grow(e.places, m)
	c, place := e.candidates, e.places
	p := 0
	for i := range n {
		p += copy(c[p:], x[i*n+i+1:(i+1)*n])
	}
	for pass, shift := range digits(x) {
		// Neighbours are often alike: two histograms in turn need not wait for
		// each other's counts.
		const size = 1 << digitBits
		var even, odd [size]int32
		i := 0
		for ; i+1 < len(c); i += 2 {
			even[key(c[i])>>(shift&63)%size]++
			odd[key(c[i+1])>>(shift&63)%size]++
		}
		if i < len(c) {
			even[key(c[i])>>(shift&63)%size]++
		}
		digit := 0
		for {
			count := int(even[digit] + odd[digit])
			if k < count {
				break
			}
			k -= count
			digit++
		}
		// Keep, in their order, the values with this digit and their places
		// in the triangle. There is no branch to predict.
		kept := 0
		place = place[:len(c)]
		for i, v := range c {
			c[kept] = v
			if pass == 0 {
				place[kept] = int32(i)
			} else {
				place[kept] = place[i]
			}
			other := key(v)>>(shift&63)%size ^ uint64(digit)
			kept += int((other - 1) >> 63)
		}
		if c = c[:kept]; kept == 1 {
			break
		}
	}
	// What is left is equal, so in row-major order.
	at, next = inUpper(int(place[k]), n), -1
	if k+1 < len(c) {
		next = inUpper(int(place[k+1]), n)
	}
	return at, next
}

// inUpper returns where element p of the strict upper triangle of an n×n matrix
// lies in the matrix.
func inUpper(p, n int) int {
	i := 0
	for p >= n-1-i {
		p -= n - 1 - i
		i++
	}
	return i*n + i + 1 + p
}

// above returns the place of the smallest value of the strict upper triangle of
// x [n×n] that is greater than v. There must be one.
func above[T float](x []T, n int, v T) (at int) {
	first := key(v) + 1
	least := ^uint64(0)
	for i := range n {
		for j, y := range x[i*n+i+1 : (i+1)*n] {
			if d := key(y) - first; d < least { // what is not greater wraps round
				least, at = d, i*n+i+1+j
			}
		}
	}
	return at
}

// digitBits is the width of a digit of the selection: its histograms fit the
// first-level cache.
const digitBits = 11

var (
	shifts32 = []uint{21, 10, 0}
	shifts64 = []uint{53, 42, 31, 20, 9, 0}
)

// digits returns the places of the digits of keys of T, the leading one first.
// The last two may overlap.
func digits[T float](x []T) []uint {
	if unsafe.Sizeof(x[0]) == 4 {
		return shifts32
	}
	return shifts64
}

// key maps v to an integer of the same order. The two zeros, which are equal,
// have the same key.
func key[T float](v T) uint64 {
	v += 0 // -0 + 0 = 0
	if unsafe.Sizeof(v) == 4 {
		b := math.Float32bits(float32(v))
		return uint64(b ^ (uint32(int32(b)>>31) | 1<<31))
	}
	b := math.Float64bits(float64(v))
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}
