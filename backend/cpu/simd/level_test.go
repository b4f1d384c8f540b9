package simd

import (
	"os"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, x := range []struct {
		want string
		best ISA
		got  ISA
		ok   bool
	}{
		{"", AVX512, AVX512, true},
		{"avx512", AVX512, AVX512, true},
		{"avx2", AVX512, AVX2, true},
		{"generic", AVX512, Generic, true},
		{"avx512", AVX2, AVX2, false},
		{"avx2", Generic, Generic, false},
		{"AVX2", AVX512, AVX512, false},
		{"sse", AVX2, AVX2, false},
	} {
		got, err := choose(x.want, x.best)
		if got != x.got || (err == nil) != x.ok {
			t.Errorf("choose(%q, %v) = %v, %v", x.want, x.best, got, err)
		}
	}
}

// TestLevel: the environment decides which path the process runs.
func TestLevel(t *testing.T) {
	want := best
	for i, name := range isaNames {
		if name == os.Getenv(EnvVar) {
			want = min(ISA(i), best)
		}
	}
	if Level() != want {
		t.Errorf("level %v, want %v", Level(), want)
	}
}
