package simd

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// selectBits is the number of leading bits of a key that the first pass counts:
// the sign, the exponent and two bits of the fraction of a float32. Its counters
// fit in the first-level cache.
const selectBits = 11

// selector is the memory of one selection.
type selector struct {
	count [4][1 << selectBits]int32
	keys  []uint32
	wide  []float64
}

var selectPool = sync.Pool{New: func() any { return new(selector) }}

// Select returns the elements at places k and k+1 of a when sorted in rising
// order, counting from 0; next is kth itself if k is the last place. -0 comes
// before +0, and NaN after +Inf or, with its sign bit set, before -Inf. a is not
// changed.
//
// For float32 it is a radix selection: one pass counts the leading bits of an
// order-preserving integer key, one collects the keys that share those of place
// k, and what is left is small. It panics unless 0 ≤ k < len(a).
func Select[T Float](a []T, k int) (kth, next T) {
	if k < 0 || k >= len(a) {
		panic(fmt.Sprintf("simd: Select: place %d of %d", k, len(a)))
	}
	s := selectPool.Get().(*selector)
	defer selectPool.Put(s)
	if unsafe.Sizeof(T(0)) == 4 {
		x, y := s.narrow(unsafe.Slice((*uint32)(unsafe.Pointer(&a[0])), len(a)), k)
		return T(math.Float32frombits(unsortable(x))), T(math.Float32frombits(unsortable(y)))
	}
	s.wide = s.wide[:0]
	for _, v := range a {
		s.wide = append(s.wide, float64(v))
	}
	slices.SortFunc(s.wide, func(x, y float64) int {
		a, b := sortable64(math.Float64bits(x)), sortable64(math.Float64bits(y))
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	return T(s.wide[k]), T(s.wide[min(k+1, len(a)-1)])
}

// sortable maps the bits of a float32 to an integer that orders alike: all bits
// flipped if negative, else the sign bit.
func sortable(b uint32) uint32 { return b ^ (uint32(int32(b)>>31) | 1<<31) }

func unsortable(k uint32) uint32 { return k ^ (uint32(int32(^k)>>31) | 1<<31) }

func sortable64(b uint64) uint64 { return b ^ (uint64(int64(b)>>63) | 1<<63) }

// narrow returns the keys at places k and k+1 of the float32 with these bits.
func (s *selector) narrow(a []uint32, k int) (kth, next uint32) {
	const shift = 32 - selectBits
	clear(s.count[0][:])
	clear(s.count[1][:])
	clear(s.count[2][:])
	clear(s.count[3][:])
	c0, c1, c2, c3 := &s.count[0], &s.count[1], &s.count[2], &s.count[3]
	// Four sets of counters: equal neighbours would wait for each other.
	rest := a
	for len(rest) >= 4 {
		c0[sortable(rest[0])>>shift]++
		c1[sortable(rest[1])>>shift]++
		c2[sortable(rest[2])>>shift]++
		c3[sortable(rest[3])>>shift]++
		rest = rest[4:]
	}
	for _, b := range rest {
		c0[sortable(b)>>shift]++
	}
	left, bucket, in := k, uint32(0), 0
	for i := range c0 {
		in = int(c0[i] + c1[i] + c2[i] + c3[i])
		if left < in {
			bucket = uint32(i)
			break
		}
		left -= in
	}

	// Collect the bucket, and leave room for one key that is written but not
	// counted. Without a branch: about one in ten is taken, at random.
	if cap(s.keys) < 2*len(a)+1 {
		s.keys = make([]uint32, 2*len(a)+1)
	}
	keys := s.keys[:cap(s.keys)]
	n := 0
	for _, b := range a {
		key := sortable(b)
		keys[n] = key
		n += int(((key>>shift ^ bucket) - 1) >> 31)
	}
	keys = keys[:n]
	kth = selectKey(keys, s.keys[n:cap(s.keys)][:n], left, shift)

	// The next place: an equal key, else the least above, in the bucket if it has
	// one more.
	upTo, above := 0, ^uint32(0)
	for _, key := range keys {
		if key <= kth {
			upTo++
		} else {
			above = min(above, key)
		}
	}
	switch {
	case left+1 < upTo:
		return kth, kth
	case left+1 < n:
		return kth, above
	case k+1 == len(a):
		return kth, kth
	}
	for _, b := range a {
		if key := sortable(b); key > kth {
			above = min(above, key)
		}
	}
	return kth, above
}

// selectKey returns the key at place k of keys, which agree in all bits from
// shift up. It does not change keys; work is as long.
func selectKey(keys, work []uint32, k, shift int) uint32 {
	var count [256]int32
	for shift > 0 && len(keys) > 32 {
		width := min(8, shift)
		shift -= width
		mask := uint32(1)<<width - 1
		clear(count[:])
		for _, key := range keys {
			count[key>>shift&mask]++
		}
		bucket := uint32(0)
		for i, c := range count {
			if k < int(c) {
				bucket = uint32(i)
				break
			}
			k -= int(c)
		}
		n := 0
		for _, key := range keys {
			if key>>shift&mask == bucket {
				work[n] = key
				n++
			}
		}
		keys = work[:n]
	}
	work = append(work[:0], keys...)
	slices.Sort(work)
	return work[k]
}
