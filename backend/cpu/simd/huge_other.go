//go:build !linux

package simd

// HugePages does nothing.
func HugePages([]float32) {}
