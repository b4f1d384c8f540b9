package report

import (
	"math"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/specmatch/eval/compare"
)

// minus compares a with b over the seeds that both have. N is 0 if there are none, or if
// one does not say which they are.
func minus(a, b result) compare.Difference { return compare.Seeds(rundir.Paired(a.Row, b.Row)) }

// half is half of the 95 % interval of a difference; NaN for fewer than two seeds.
func half(d compare.Difference) float64 {
	if d.N < 2 {
		return math.NaN()
	}
	lo, hi := d.Interval(0.95)
	return (hi - lo) / 2
}

// holm returns the p values of differences as they are after Holm's correction for
// their number.
func holm(all []compare.Difference) []float64 {
	p := make([]float64, len(all))
	for i, d := range all {
		p[i] = d.P
	}
	return compare.Holm(p)
}
