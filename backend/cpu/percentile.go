package cpu

import (
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// UpperPercentile counts digits, see [search]. NaN sorts before -Inf or after +Inf, by
// its sign.
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
	s := kern.searchUpper(x, n, k, second != 0)
	if w != nil {
		w[kern.findUpper(x, n, s.prefix[0], s.place[0])] += T(1 - second)
		w[kern.findUpper(x, n, s.prefix[1], s.place[1])] += T(second)
	}
	return interpolate(kern.ofKey(s.prefix[0]), kern.ofKey(s.prefix[1]), second)
}

// interpolate returns the number between low and high in which high has a weight.
func interpolate[T float](low, high T, weight float64) T {
	if weight == 0 {
		return low
	}
	return T((1-weight)*float64(low) + weight*float64(high))
}

// key maps the bits of a number to an integer of the same order. The two zeros,
// which are equal, have the same key.
func key[K uint32 | uint64](bits K) K {
	last := 8*unsafe.Sizeof(bits) - 1
	top := K(1) << last
	sign := -(bits >> last) // all ones if negative
	return (bits&^top ^ sign) - sign + top
}

// searchUpper runs a search in the strict upper triangle of x [n×n]. c is zero before and
// after.
func searchUpper[K uint32 | uint64](c *digitCounts, x []K, n, k int, both bool) search {
	s := newSearch(8*int(unsafe.Sizeof(x[0])), k, both)
	for more := true; more; more = s.learn(c) {
		for i := range n {
			countDigits(c, x[i*n+i+1:(i+1)*n], &s)
		}
	}
	return s
}

// findUpper returns the index of the element of the strict upper triangle of x [n×n]
// that is at a place among those with a key.
func findUpper[K uint32 | uint64](x []K, n int, want uint64, place int) int {
	for i := range n {
		for j := i*n + i + 1; j < (i+1)*n; j++ {
			if key(x[j]) == K(want) {
				if place == 0 {
					return j
				}
				place--
			}
		}
	}
	return 0 // not reached for the result of a search
}

// A search finds two order statistics of numbers, digit by digit of their keys: for each,
// countDigits counts all numbers, in any order, and learn knows a digit more. So the
// numbers need not be kept, if they can be computed again.
type search struct {
	shift  uint      // of the digit in a key
	prefix [2]uint64 // the digits that are known, of the keys of both
	place  [2]int    // of both among the numbers with the prefix
}

// newSearch returns a search for the number at place k of all numbers of so many bits and,
// with both, for the next one; else for the same twice.
func newSearch(width, k int, both bool) search {
	s := search{shift: uint(width - digit), place: [2]int{k, k}}
	if both {
		s.place[1]++
	}
	return s
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
	first := K(s.prefix[0])
	second := K(s.prefix[1])
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

// learn finds the digit that has been counted, clears the counts, and reports whether
// there is another one.
func (s *search) learn(counts *digitCounts) (more bool) {
	equal := s.prefix[0] == s.prefix[1]
	// a digit, and the place of the first number with it
	var d, first int
	for p := range s.prefix {
		c := &counts[p]
		if equal {
			c = &counts[0]
		}
		if p == 0 || !equal {
			d = 0
			first = 0
		}
		for d < len(c)-1 && s.place[p] >= first+int(c[d]) {
			first += int(c[d])
			d++
		}
		s.place[p] -= first
		s.prefix[p] = s.prefix[p]<<digit | uint64(d)
	}
	clear(counts[0][:])
	if !equal {
		clear(counts[1][:])
	}
	more = s.shift > 0
	s.shift -= min(s.shift, digit)
	return more
}

// ofKey is the inverse of [key].
func ofKey[K uint32 | uint64](k K) (bits K) {
	top := K(1) << (8*unsafe.Sizeof(k) - 1)
	if k >= top {
		return k - top
	}
	return top - k + top
}
