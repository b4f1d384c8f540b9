package random

import (
	"math/bits"
	"testing"
)

// TestStreams: every key has a stream of its own, and neither neighbouring keys
// nor the views of one graph are related.
func TestStreams(t *testing.T) {
	type key struct {
		seed  uint64
		p     Purpose
		epoch int
		index int
	}
	var keys []key
	for _, seed := range []uint64{0, 1, 2, 1 << 63, ^uint64(0)} {
		for _, p := range []Purpose{0, 1, 2, 1<<32 - 1, 1 << 32} {
			for epoch := range 6 {
				for index := range 40 {
					keys = append(keys, key{seed, p, epoch, index})
				}
			}
		}
	}
	first := make(map[uint64]key)
	his, los := make(map[uint64]bool), make(map[uint64]bool)
	for _, k := range keys {
		rng := Stream(k.seed, k.p, k.epoch, k.index)
		x := rng.Uint64()
		if other, taken := first[x]; taken {
			t.Fatalf("streams %v and %v start alike", k, other)
		}
		first[x] = k
		hi, lo := State(k.seed, k.p, k.epoch, k.index)
		if his[hi] || los[lo] {
			t.Fatalf("%v shares half of its state with another stream", k)
		}
		his[hi], los[lo] = true, true
	}
	// Runs are repeated by their seeds, by later versions too.
	if x := Stream(1, 2, 3, 4).Uint64(); x != 0x9477b37867997925 {
		t.Errorf("the stream of 1, 2, 3, 4 starts with %#x", x)
	}
	// Changing one number flips each bit of the state half of the time.
	flips := 0
	for _, k := range keys {
		hi, lo := State(k.seed, k.p, k.epoch, k.index)
		for _, other := range []key{
			{k.seed ^ 1, k.p, k.epoch, k.index}, {k.seed, k.p ^ 1, k.epoch, k.index},
			{k.seed, k.p, k.epoch ^ 1, k.index}, {k.seed, k.p, k.epoch, k.index ^ 1},
		} {
			h, l := State(other.seed, other.p, other.epoch, other.index)
			flips += bits.OnesCount64(hi^h) + bits.OnesCount64(lo^l)
		}
	}
	if share := float64(flips) / float64(len(keys)*4*128); share < 0.498 || share > 0.502 {
		t.Errorf("neighbouring streams differ in %.4f of the bits of their state, want 0.5", share)
	}
}
