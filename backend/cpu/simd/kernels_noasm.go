//go:build !amd64 || noasm

package simd

func strips() *stripSet { panic(noAsm) }

var maskTable [16]uint32
