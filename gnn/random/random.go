// Package random gives every purpose of a program a random stream of its own. A stream
// depends on four numbers and not on what was drawn before: the same seed gives the same bits.
package random

import "math/rand/v2"

// Purpose is what a random stream is for. Streams of different purposes are
// independent. View v of a batch (package augment) is Purpose(v), and the order of
// a loader's samples is 1<<32-1; other packages take values of 1<<32 and above.
type Purpose uint64

// Stream returns the random stream of four numbers, the same one at every call: the seed
// of a run, a purpose, and two numbers that tell the purpose's draws apart, such as the
// epoch and the index of a graph in its data set.
func Stream(seed uint64, p Purpose, epoch, index int) *rand.Rand {
	return rand.New(rand.NewPCG(State(seed, p, epoch, index)))
}

// State mixes the numbers into the 128 bits of a PCG state, that of [Stream]. Two chains
// apply SplitMix64's finalizer, a bijection, so that keys which differ in one number always
// differ in the result. The chains absorb the numbers differently, by xor and by addition,
// so that other collisions are a matter of 128 bits rather than 64.
func State(seed uint64, p Purpose, epoch, index int) (hi, lo uint64) {
	// the first digits of π
	hi = 0x243f6a8885a308d3
	lo = 0x13198a2e03707344
	for _, v := range [...]uint64{seed, uint64(p), uint64(epoch), uint64(index)} {
		hi = splitMix(hi ^ v)
		lo = splitMix(lo + v)
	}
	return hi, lo
}

// splitMix is a step of SplitMix64 (Steele, Lea and Flood, Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014).
func splitMix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
