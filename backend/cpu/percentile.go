package cpu

import (
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// UpperPercentile counts digits, see [search]. NaN sorts before -Inf or after +Inf,
// depending on its sign.
func (e *engine[T]) UpperPercentile(
	theta, weights, s *tensor.Tensor, p float64,
) {
	backend.CheckPercentile(theta, weights, s, p)
	w := e.optional(weights)
	clear(w)
	e.data(theta)[0] = upperPercentile(&e.k, e.data(s), s.Rows, p, w)
}

// upperPercentile returns the p-th percentile of the strict upper triangle of x [n×n]
// and adds its derivative to w, unless w is nil.
func upperPercentile[T float](
	kern *kernels[T], x []T, n int, p float64, w []T,
) T {
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

// interpolate returns (1-weight)·low + weight·high.
func interpolate[T float](low, high T, weight float64) T {
	if weight == 0 {
		return low
	}
	return T((1-weight)*float64(low) + weight*float64(high))
}

// key maps the bits of a number to an integer that sorts as the number does. The two
// zeros, which are equal, have the same key.
func key[K uint32 | uint64](bits K) K {
	signBit := 8*unsafe.Sizeof(bits) - 1
	top := K(1) << signBit
	sign := -(bits >> signBit) // all ones if negative
	return (bits&^top ^ sign) - sign + top
}

// searchUpper runs a search in the strict upper triangle of x [n×n]. c is zero before
// and after.
func searchUpper[K uint32 | uint64](
	c *digitCounts, x []K, n, k int, pair bool,
) search {
	s := newSearch(8*int(unsafe.Sizeof(x[0])), k, pair)
	for unknown := true; unknown; unknown = s.learn(c) {
		for i := range n {
			countDigits(c, x[i*n+i+1:(i+1)*n], &s)
		}
	}
	return s
}

// findUpper returns the index of an element of the strict upper triangle of x [n×n]:
// the one at the given place among those whose key is want.
func findUpper[K uint32 | uint64](x []K, n int, want K, place int) int {
	for i := range n {
		for j := i*n + i + 1; j < (i+1)*n; j++ {
			if key(x[j]) == want {
				if place == 0 {
					return j
				}
				place--
			}
		}
	}
	return 0 // not reached for the result of a search
}

// A search finds two order statistics of numbers, digit by digit of their keys. For
// each digit, countDigits counts all numbers, in any order, and learn derives the
// digit. So the numbers need not be kept if they can be computed again.
type search struct {
	shift  uint      // of the current digit in a key
	prefix [2]uint64 // the known digits of the two keys
	place  [2]int    // of the two among the numbers with the prefix
}

// newSearch returns a search for the number at place k, among numbers of width bits,
// and with pair for the one at place k+1; otherwise for the same one twice.
func newSearch(width, k int, pair bool) search {
	s := search{shift: uint(width - digit), place: [2]int{k, k}}
	if pair {
		s.place[1]++
	}
	return s
}

// digit is the width in bits of a digit of a search.
const digit = 16

// digitCounts counts how often each digit follows the prefixes of a search. If both
// prefixes are equal, only the first half is used.
type digitCounts [2][1 << digit]uint32

func (c *digitCounts) add(counts *digitCounts) {
	for p := range c {
		for d, n := range counts[p] {
			c[p][d] += n
		}
	}
}

// countDigits counts the current digit of numbers given by their bits.
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

// learn derives the digit that has been counted, clears the counts, and reports
// whether another digit is unknown.
func (s *search) learn(counts *digitCounts) (unknown bool) {
	equal := s.prefix[0] == s.prefix[1]
	var d, first int // a digit, and the place of the first number with it
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
	unknown = s.shift > 0
	s.shift -= min(s.shift, digit)
	return unknown
}

// ofKey is the inverse of [key].
func ofKey[K uint32 | uint64](k K) (bits K) {
	top := K(1) << (8*unsafe.Sizeof(k) - 1)
	if k >= top {
		return k - top
	}
	return top - k + top
}
