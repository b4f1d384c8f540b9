package report

import (
	"math"
	"slices"

	"github.com/specmatch/specmatch/specmatch/eval/compare"
)

// minus compares a with b over the seeds that both have. N is 0 if there are none.
func minus(a, b result) compare.Difference {
	var x, y []float64
	for i, seed := range a.seeds {
		k := slices.Index(b.seeds, seed)
		if k >= 0 && !math.IsNaN(a.PerSeed[i]) && !math.IsNaN(b.PerSeed[k]) {
			x, y = append(x, a.PerSeed[i]), append(y, b.PerSeed[k])
		}
	}
	return compare.Seeds(x, y)
}

// half is half of the 95 % interval of a difference; NaN for fewer than two seeds.
func half(d compare.Difference) float64 {
	if d.N < 2 {
		return math.NaN()
	}
	lo, hi := d.Interval(0.95)
	return (hi - lo) / 2
}

// holm returns the p values of differences as they are after Holm's correction for
// their number. Those that have none do not count.
func holm(all []compare.Difference) []float64 {
	var p []float64
	for _, d := range all {
		if !math.IsNaN(d.P) {
			p = append(p, d.P)
		}
	}
	p = compare.Holm(p)
	corrected := make([]float64, len(all))
	for i, d := range all {
		if corrected[i] = d.P; !math.IsNaN(d.P) {
			corrected[i], p = p[0], p[1:]
		}
	}
	return corrected
}
