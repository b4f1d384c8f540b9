package report

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
)

// R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
func TestHolm(t *testing.T) {
	tests := []*difference{{p: 0.01}, {p: 0.04}, {p: math.NaN()}, {p: 0.03}, {p: 0.005}}
	holm(tests)
	for i, want := range []float64{0.03, 0.06, 0, 0.06, 0.02} {
		if got := tests[i].adjusted; math.Abs(got-want) > 1e-15 {
			t.Errorf("test %d: %v, want %v", i, got, want)
		}
	}
}

// R: t.test(c(2, 4, 6, 8, 10), c(1, 2, 3, 4, 5), paired = TRUE).
func TestMinus(t *testing.T) {
	a := result{Row: rundir.Row{PerSeed: []float64{2, 4, 6, 8, 10, 99, math.NaN()}}, seeds: []int{0, 1, 2, 3, 4, 5, 6}}
	b := result{Row: rundir.Row{PerSeed: []float64{7, 5, 4, 3, 2, 1}}, seeds: []int{6, 4, 3, 2, 1, 0}}
	d := minus(a, b)
	for _, x := range []struct {
		name      string
		got, want float64
	}{
		{"n", float64(d.n), 5}, {"mean", d.mean, 3}, {"standard error", d.stderr, 0.7071067811865476},
		{"p", d.p, 0.01323559904}, {"half of the interval", d.half(), 1.963243161},
	} {
		if math.Abs(x.got-x.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", x.name, x.got, x.want)
		}
	}
	if d := minus(a, result{}); d.n != 0 || !math.IsNaN(d.p) {
		t.Errorf("no seed in common: %+v", d)
	}
	if d := minus(a, a); d.mean != 0 || d.p != 1 {
		t.Errorf("equal rows: %+v", d)
	}
}
