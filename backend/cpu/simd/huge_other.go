//go:build !linux

package simd

func HugePages([]float32) {}
