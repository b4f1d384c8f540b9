package graph

import "math"

// Colors numbers the colors of nodes in rounds of the Weisfeiler-Lehman refinement. Two nodes
// have the same color if they had the same color in the last round and the multisets of their
// neighbours' colors agree, with the labels of the edges if there are any. A round may cover
// several graphs, with a call for each. Begin starts the next round.
type Colors struct {
	keys []multiset
	slot []int32 // a hash table of numbers + 1; 0 is empty

	terms []multiset // of the numbers 0, 1, …
}

// Begin forgets all colors and makes room for n of them.
func (c *Colors) Begin(n int) {
	size := 16
	for size < 2*n {
		size *= 2
	}
	c.keys = c.keys[:0]
	clear(resize(&c.slot, size))
}

// Len returns the number of colors.
func (c *Colors) Len() int { return len(c.keys) }

// Refine sets dst to the new colors of nodes, whose old colors are numbers below count. dst and
// colors must not overlap. The neighbours of node i are adj[ptr[i]:ptr[i+1]]; labels, unless
// empty, has the labels of these edges. New colors are numbered in the order of their first
// nodes, so that a round which splits no color keeps all numbers.
func (c *Colors) Refine(dst, colors []int32, count int, ptr, adj, labels []int32) {
	for k := len(c.terms); k < count; k++ {
		c.terms = append(c.terms, term(uint64(k)))
	}
	for i, o := range colors {
		m := term(uint64(o) | 1<<63)
		if len(labels) > 0 {
			for e := ptr[i]; e < ptr[i+1]; e++ {
				// the label -1 is the largest
				m.add(uint64(labels[e]&math.MaxInt32)<<32 | uint64(colors[adj[e]]))
			}
		} else {
			for _, j := range adj[ptr[i]:ptr[i+1]] {
				t := &c.terms[colors[j]]
				m[0] += t[0]
				m[1] += t[1]
			}
		}
		dst[i] = c.number(m)
	}
}

// Features sets dst to the colors of the nodes of a batch before the first round. Nodes of one
// view with equal features have the same color if their values are equal, too, or nil.
func (c *Colors) Features(dst []int32, b *Batch, values []float64) {
	view := 0
	end := func(v int) int32 { return b.GraphPtr[b.ViewPtr[v]] }
	for i := range dst {
		for view+1 < len(b.ViewPtr) && end(view+1) <= int32(i) {
			view++
		}
		m := term(uint64(view) | 1<<63)
		if values != nil {
			m.add(math.Float64bits(values[i]) ^ 1<<63)
		}
		if b.X.Dense == nil {
			m.add(uint64(uint32(b.X.Category[i])))
		} else {
			for j, v := range b.X.Dense[i*b.X.Width : (i+1)*b.X.Width] {
				if v != 0 {
					m.add(uint64(j)<<32 | uint64(math.Float32bits(v)))
				}
			}
		}
		dst[i] = c.number(m)
	}
}

// number returns the number of a key, the next one if it is new.
func (c *Colors) number(key multiset) int32 {
	if 2*len(c.keys) >= len(c.slot) {
		c.grow()
	}
	mask := uint64(len(c.slot) - 1)
	for slot := mix(key[0]^key[1]) & mask; ; slot = (slot + 1) & mask {
		switch k := c.slot[slot]; {
		case k == 0:
			c.keys = append(c.keys, key)
			c.slot[slot] = int32(len(c.keys))
			return int32(len(c.keys) - 1)
		case c.keys[k-1] == key:
			return k - 1
		}
	}
}

func (c *Colors) grow() {
	keys := append([]multiset(nil), c.keys...)
	c.Begin(2*len(keys) + 1)
	for _, k := range keys {
		c.number(k)
	}
}

// multiset stands for a multiset of numbers by two sums modulo 2⁶⁴ of pseudo-random numbers, one
// for each element. A sum does not depend on the order, so nothing is sorted. Among m different
// multisets, two agree with a probability of about m²/2¹²⁹.
type multiset [2]uint64

// term returns the multiset of one number.
func term(x uint64) multiset {
	return multiset{mix(x ^ 0xa4093822299f31d0), mix(x ^ 0x082efa98ec4e6c89)} // digits of π
}

func (m *multiset) add(x uint64) {
	t := term(x)
	m[0] += t[0]
	m[1] += t[1]
}

// mix is the finalizer of SplitMix64, a bijection.
func mix(z uint64) uint64 {
	z = (z + 0x9e3779b97f4a7c15)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
