package simd

import (
	"fmt"
	"os"
	"slices"
)

// ISA is an instruction set that kernels are written for.
type ISA uint8

// The instruction sets.
const (
	Generic ISA = iota // plain Go
	AVX2               // amd64: AVX2 and FMA
	AVX512             // amd64: AVX-512 F, VL, BW and DQ
	NEON               // arm64
)

var isaNames = [...]string{"generic", "avx2", "avx512", "neon"}

func (s ISA) String() string {
	return isaNames[s]
}

// EnvVar is the environment variable that chooses the instruction set at start:
// avx512, avx2, neon or generic.
const EnvVar = "SPECMATCH_CPU"

var (
	available = detect() // from Generic to the best
	level     ISA        // the one in use
	levelErr  error
)

func init() {
	level, levelErr = choose(os.Getenv(EnvVar), available)
}

// choose returns the instruction set that a value of EnvVar asks for. If it is
// not available, or there is none of that name, it returns the best one and an
// error that says so: a program must be able to start and report it.
func choose(want string, available []ISA) (ISA, error) {
	best := available[len(available)-1]
	if want == "" {
		return best, nil
	}
	for i, name := range isaNames {
		if name != want {
			continue
		}
		if !slices.Contains(available, ISA(i)) {
			return best, fmt.Errorf(
				"simd: %s=%s: this machine or build has only %v",
				EnvVar,
				want,
				available,
			)
		}
		return ISA(i), nil
	}
	return best, fmt.Errorf("simd: %s=%s: want one of %v",
		EnvVar, want, isaNames)
}

// Level returns the instruction set in use.
func Level() ISA { return level }

// LevelError returns why the instruction set asked for in the environment is
// not in use, or nil if it is or none was.
func LevelError() error {
	return levelErr
}

// Available returns the instruction sets that this machine and build can run,
// from Generic to the best.
func Available() []ISA {
	return slices.Clone(available)
}
