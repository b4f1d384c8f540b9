//go:build amd64 && !noasm

package simd

import "golang.org/x/sys/cpu"

// haveAsm is a constant so that builds without assembly drop the calls.
const haveAsm = true

func detect() ISA {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA:
		return Generic
	case x.HasAVX512F && x.HasAVX512VL && x.HasAVX512BW && x.HasAVX512DQ:
		return AVX512
	}
	return AVX2
}
