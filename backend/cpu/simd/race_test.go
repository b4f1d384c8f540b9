//go:build race

package simd

// The race detector makes pools forget at random, so that counts of allocations
// mean nothing.
func init() { raceDetector = true }
