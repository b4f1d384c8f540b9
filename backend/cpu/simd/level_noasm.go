//go:build !amd64 || noasm

package simd

const haveAsm = false

func detect() ISA { return Generic }
