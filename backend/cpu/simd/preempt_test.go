package simd

import (
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
)

// TestPreemptible: no assembly call, at its largest, keeps the scheduler waiting
// for 100 µs. The quickest of many runs counts: the machine may be busy.
func TestPreemptible(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("takes times, which mean nothing under an emulator or the race detector")
	}
	const limit = 100 * time.Microsecond
	r := rand.New(rand.NewPCG(21, 22))
	const cols = 32
	x, y, z, m := make([]float32, chunk), make([]float32, chunk), make([]float32, chunk), make([]float32, chunk)
	for _, s := range [][]float32{x, y, z, m} {
		fillRand(r, s)
		Abs(s, s)
	}
	row, col := x[:cols], x[:chunk/cols]
	// As many terms as SpMM gives to one call, from rows all over x.
	ptr := []int32{0, 4 * chunk / cols}
	adj := make([]int32, ptr[1])
	for i := range adj {
		adj[i] = int32(r.IntN(chunk / cols))
	}
	calls := []struct {
		name string
		f    func()
	}{
		{"AddRowReLU", func() { AddRowReLU(z, x, row) }},
		{"DivCol", func() { DivCol(z, x, col) }},
		{"AffineRow", func() { AffineRow(z, x, row, row) }},
		{"CombineRow", func() { CombineRow(z, x, row, y, row, row) }},
		{"Adam", func() { Adam(z, x, y, m, AdamStep{Beta1: 0.9, Beta2: 0.999, Eps: 1, Step: 1}) }},
		{"Sum", func() { row[0] = Sum(x) }},
		{"Dot", func() { row[0] = Dot(x, y) }},
		{"Max", func() { row[0] = Max(x) }},
		{"ExpSum", func() { row[0] = ExpSum(z, 1, x, 0) }},
		{"ColSums", func() { ColSums(row, x) }},
		{"ColDots", func() { ColDots(row, x, y) }},
		{"ColSquares", func() { ColSquares(row, x, col[:cols]) }},
		{"SpMM", func() { SpMM(z[:cols], cols, 0, 1, ptr, adj, nil, x, 1) }},
		{"SpMM weighted", func() { SpMM(z[:cols], cols, 0, 1, ptr, adj, y[:len(adj)], x, 1) }},
	}
	for _, e := range elementwises[float32]() {
		calls = append(calls, struct {
			name string
			f    func()
		}{e.name, func() { e.f(z, [][]float32{x, y}[:e.in]) }})
	}
	eachLevel(t, func(t *testing.T) {
		if level == Generic {
			t.Skip("plain Go can be interrupted anywhere")
		}
		best := func(name string, f func()) {
			quickest := time.Hour
			for range 50 {
				start := time.Now()
				f()
				quickest = min(quickest, time.Since(start))
			}
			t.Logf("%-14s %v", name, quickest)
			if quickest > limit {
				t.Errorf("%s on %v: one call takes %v, want at most %v", name, level, quickest, limit)
			}
		}
		for _, c := range calls {
			best(c.name, c.f)
		}
		// One call of the product: as many tiles as callFlops allows.
		ts := tiles32()
		n, k := ts.lanes*ts.nv, kcMax
		rows := callFlops / (2 * n * k)
		g := newGemmCase[float32](r, blas.NoTrans, blas.NoTrans, rows/ts.mr*ts.mr, n, k, 0, 0)
		g.alpha = 1
		best("Sgemm", func() { g.run(g.c.s) })
	})
}
