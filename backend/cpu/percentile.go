package cpu

import (
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// UpperPercentile is a radix selection: a histogram of the leading bits tells which
// values share those bits with the order statistic, and only these are kept.
// NaN sorts before -Inf or after +Inf, by its sign.
func (e *engine[T]) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	backend.CheckPercentile(theta, weights, s, p)
	var w []T
	if weights != nil {
		w = e.data(weights)
		clear(w)
	}
	e.data(theta)[0] = upperPercentile(&e.k, e.data(s), s.Rows, p, w)
}

// upperPercentile returns the p-th percentile of x [n×n] and adds its derivative to w,
// unless that is nil.
func upperPercentile[T float](kern *kernels[T], x []T, n int, p float64, w []T) T {
	if n < 2 {
		return 0
	}
	k, second := backend.PercentilePosition(n*(n-1)/2, p)
	at, next := kern.selectUpper(x, n, k, second != 0)
	if w != nil {
		w[at] += T(1 - second)
		w[next] += T(second)
	}
	return interpolate(x[at], x[next], second)
}

// interpolate returns the number between low and high in which high has a weight.
func interpolate[T float](low, high T, weight float64) T {
	if weight == 0 {
		return low
	}
	return T((1-weight)*float64(low) + weight*float64(high))
}

// A selector finds order statistics of numbers given by their bits.
type selector[K uint32 | uint64] struct {
	keys   []K     // the candidates, in row-major order
	places []int32 // their places in the triangle
	counts [4][1 << digitBits]int32
}

// digitBits is the width of a digit of the selection, chosen so that the counts of
// all its values fit the first-level cache. The leading digit has the sign, the
// exponent and two bits of the fraction of a float32.
const digitBits = 11

// key maps the bits of a number to an integer of the same order. The two zeros,
// which are equal, have the same key.
func key[K uint32 | uint64](bits K) K {
	last := 8*unsafe.Sizeof(bits) - 1
	top := K(1) << last
	sign := -(bits >> last) // all ones if negative
	return (bits&^top ^ sign) - sign + top
}

// selectUpper returns the index in x [n×n] of the element that would be at place k
// if the strict upper triangle were sorted and, if both are wanted, of the element
// at place k+1.
func (s *selector[K]) selectUpper(x []K, n, k int, both bool) (at, next int) {
	m := n * (n - 1) / 2
	s.keys, s.places = grow(s.keys, m), grow(s.places, m)
	width := 8 * int(unsafe.Sizeof(x[0]))
	shift := uint(width - digitBits)
	p := 0
	for i := range n {
		p += copy(s.keys[p:], x[i*n+i+1:(i+1)*n])
	}
	for i, bits := range s.keys {
		s.keys[i] = key(bits)
	}
	s.count(s.keys, shift)
	keys, places := s.keys, s.places
	digit, k := s.digit(k)
	kept := 0
	for i, v := range keys {
		keys[kept], places[kept] = v, int32(i)
		kept += is(v>>shift, digit)
	}
	for left := width - digitBits; left > 0 && kept > 1; left -= digitBits {
		keys, places = keys[:kept], places[:kept]
		shift := uint(max(left-digitBits, 0))
		s.count(keys, shift)
		digit, k = s.digit(k)
		kept = 0
		for i, v := range keys {
			keys[kept], places[kept] = v, places[i]
			kept += is(v>>shift%(1<<digitBits), digit)
		}
	}
	// What is left is equal, and in row-major order.
	at = inUpper(int(places[k]), n)
	switch {
	case !both:
		return at, at
	case k+1 < kept:
		return at, inUpper(int(places[k+1]), n)
	}
	return at, above(x, n, at)
}

// count counts the digits at shift. Neighbours are often alike: four counters in
// turn need not wait for each other.
func (s *selector[K]) count(keys []K, shift uint) {
	const size = 1 << digitBits
	clear(s.counts[:])
	c0, c1, c2, c3 := &s.counts[0], &s.counts[1], &s.counts[2], &s.counts[3]
	for len(keys) >= 4 {
		c0[keys[0]>>shift%size]++
		c1[keys[1]>>shift%size]++
		c2[keys[2]>>shift%size]++
		c3[keys[3]>>shift%size]++
		keys = keys[4:]
	}
	for _, v := range keys {
		c0[v>>shift%size]++
	}
}

// digit returns the digit of the key at place k, and its place among those with
// the same digit.
func (s *selector[K]) digit(k int) (digit K, place int) {
	for d := range s.counts[0] {
		n := int(s.counts[0][d] + s.counts[1][d] + s.counts[2][d] + s.counts[3][d])
		if k < n {
			return K(d), k
		}
		k -= n
	}
	return 0, 0 // not reached: k is the place of a key
}

// is returns 1 if the digits a and b are equal, else 0, without a branch, which
// would be unpredictable.
func is[K uint32 | uint64](a, b K) int { return int((uint64(a^b) - 1) >> 63) }

// inUpper returns the index in an n×n matrix of element p of its strict upper
// triangle.
func inUpper(p, n int) int {
	i := 0
	for p >= n-1-i {
		p -= n - 1 - i
		i++
	}
	return i*n + i + 1 + p
}

// above returns the index of the smallest element of the strict upper triangle of x
// [n×n] that is greater than element at. There must be one.
func above[K uint32 | uint64](x []K, n, at int) int {
	first := key(x[at]) + 1
	least := -first // what is not greater wraps round to at least this
	for i := range n {
		for j, bits := range x[i*n+i+1 : (i+1)*n] {
			if d := key(bits) - first; d < least {
				least, at = d, i*n+i+1+j
			}
		}
	}
	return at
}

// A search finds two order statistics of numbers that are too many to keep, and are
// computed again for every digit: the keys of all numbers, in any order, are counted
// by countDigits, and learn knows a digit more.
type search struct {
	shift  uint      // of the digit in a key
	prefix [2]uint64 // the digits that are known, of the keys of both
	place  [2]int    // of both among the numbers with the prefix
}

// digit is the width in bits of a digit of a search.
const digit = 16

// digitCounts are how often each digit follows the prefixes of a search; all stand with the
// first if both are equal.
type digitCounts [2][1 << digit]uint32

func (c *digitCounts) add(other *digitCounts) {
	for p := range c {
		for d, n := range other[p] {
			c[p][d] += n
		}
	}
}

// countDigits counts numbers given by their bits.
func countDigits[K uint32 | uint64](c *digitCounts, x []K, s *search) {
	first, second := K(s.prefix[0]), K(s.prefix[1])
	for _, bits := range x {
		v := key(bits) >> s.shift
		switch v >> digit {
		case first:
			c[0][v%(1<<digit)]++
		case second:
			c[1][v%(1<<digit)]++
		}
	}
}

// learn finds the digit that has been counted.
func (s *search) learn(counts *digitCounts) {
	equal := s.prefix[0] == s.prefix[1]
	for p := range s.prefix {
		c := &counts[p]
		if equal {
			c = &counts[0]
		}
		d := 0
		for ; d < len(c)-1 && s.place[p] >= int(c[d]); d++ {
			s.place[p] -= int(c[d])
		}
		s.prefix[p] = s.prefix[p]<<digit | uint64(d)
	}
}

// ofKey is the inverse of [key].
func ofKey[K uint32 | uint64](k K) (bits K) {
	top := K(1) << (8*unsafe.Sizeof(k) - 1)
	if k >= top {
		return k - top
	}
	return top - k + top
}
