package simd

import (
	"fmt"
	"os"
)

// ISA is an instruction set that kernels are written for.
type ISA uint8

// The instruction sets, from the plain one up. Each machine has a prefix of
// what its architecture lists here.
const (
	Generic ISA = iota // plain Go
	AVX2               // amd64: AVX2 and FMA
	AVX512             // amd64: AVX-512 F, VL, BW and DQ
)

var isaNames = [...]string{"generic", "avx2", "avx512"}

func (s ISA) String() string { return isaNames[s] }

// EnvVar is the environment variable that chooses the instruction set at start:
// avx512, avx2 or generic.
const EnvVar = "SPECMATCH_CPU"

var (
	level    ISA // the one in use
	best     = detect()
	levelErr error
)

func init() { level, levelErr = choose(os.Getenv(EnvVar), best) }

// choose returns the instruction set that a value of EnvVar asks for. If the
// machine lacks it, or there is none of that name, it returns the best one and
// an error that says so.
func choose(want string, best ISA) (ISA, error) {
	if want == "" {
		return best, nil
	}
	for i, name := range isaNames {
		if name != want {
			continue
		}
		if ISA(i) > best {
			return best, fmt.Errorf("simd: %s=%s: this machine or build has only %v; using that", EnvVar, want, best)
		}
		return ISA(i), nil
	}
	return best, fmt.Errorf("simd: %s=%s: want avx512, avx2 or generic; using %v", EnvVar, want, best)
}

// Level returns the instruction set in use.
func Level() ISA { return level }

// LevelError returns why the instruction set asked for in the environment is
// not in use, or nil if it is or none was.
func LevelError() error { return levelErr }

// Available returns the instruction sets that this machine and build can run,
// from Generic to the best.
func Available() []ISA {
	var s []ISA
	for i := Generic; i <= best; i++ {
		s = append(s, i)
	}
	return s
}
