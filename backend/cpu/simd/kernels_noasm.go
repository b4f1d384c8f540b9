//go:build !amd64 || noasm

package simd

// noAsm is the panic of what is never called in builds without its assembly.
const noAsm = "simd: no assembly in this build"

var maskTable [16]uint32 // for AVX2 only

func smoLanes() int { return 0 }

var tilesBF16 *tileSet
