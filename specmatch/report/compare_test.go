package report

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/specmatch/run"
)

// R: t.test(c(2, 4, 6, 8, 10), c(1, 2, 3, 4, 5), paired = TRUE).
func TestMinus(t *testing.T) {
	a := result{Row: run.Row{PerSeed: []float64{2, 4, 6, 8, 10, 99, math.NaN()}, Seeds: []int{0, 1, 2, 3, 4, 5, 6}}}
	b := result{Row: run.Row{PerSeed: []float64{7, 5, 4, 3, 2, 1}, Seeds: []int{6, 4, 3, 2, 1, 0}}}
	d := minus(a, b)
	for _, x := range []struct {
		name      string
		got, want float64
	}{
		{"n", float64(d.N), 5}, {"mean", d.Mean, 3}, {"standard error", d.Err, 0.7071067811865476},
		{"p", d.P, 0.01323559904}, {"half of the interval", half(d), 1.963243161},
	} {
		if math.Abs(x.got-x.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", x.name, x.got, x.want)
		}
	}
	if d := minus(a, result{}); d.N != 0 || !math.IsNaN(half(d)) {
		t.Errorf("no seed in common: %+v", d)
	}
}
