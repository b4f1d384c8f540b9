//go:build amd64 && !noasm

package simd

import "golang.org/x/sys/cpu"

// haveAsm says whether the vector kernels have assembly. It is a constant, so
// that builds without drop the calls.
const haveAsm = true

func detect() []ISA {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA:
		return []ISA{Generic}
	case x.HasAVX512F && x.HasAVX512VL && x.HasAVX512BW && x.HasAVX512DQ:
		return []ISA{Generic, AVX2, AVX512}
	}
	return []ISA{Generic, AVX2}
}
