package simd

import (
	"os"
	"testing"
)

func TestChoose(t *testing.T) {
	amd64 := []ISA{Generic, AVX2, AVX512}
	for _, x := range []struct {
		want string
		have []ISA
		got  ISA
		ok   bool
	}{
		{"", amd64, AVX512, true},
		{"avx512", amd64, AVX512, true},
		{"avx2", amd64, AVX2, true},
		{"generic", amd64, Generic, true},
		{"avx512", amd64[:2], AVX2, false},
		{"avx2", amd64[:1], Generic, false},
		{"AVX2", amd64, AVX512, false},
		{"neon", amd64, AVX512, false},
		{"neon", []ISA{Generic, NEON}, NEON, true},
		{"sse", amd64[:2], AVX2, false},
	} {
		got, err := choose(x.want, x.have)
		if got != x.got || (err == nil) != x.ok {
			t.Errorf("choose(%q, %v) = %v, %v", x.want, x.have, got, err)
		}
	}
}

// TestLevel: the environment decides which path the process runs.
func TestLevel(t *testing.T) {
	want := available[len(available)-1]
	for _, l := range available {
		if l.String() == os.Getenv(EnvVar) {
			want = l
		}
	}
	if Level() != want {
		t.Errorf("level %v, want %v", Level(), want)
	}
}
