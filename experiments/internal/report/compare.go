package report

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
)

// difference is what a result is above another, over the seeds that both have.
type difference struct {
	n        int
	mean     float64
	stderr   float64 // NaN for fewer than two seeds
	p        float64 // of Student's paired test, two-sided; NaN for fewer than two seeds
	adjusted float64 // p after Holm, over all rows compared
}

// half is half of the 95 % interval of the mean.
func (d difference) half() float64 {
	if d.n < 2 {
		return math.NaN()
	}
	return d.stderr * distuv.StudentsT{Sigma: 1, Nu: float64(d.n - 1)}.Quantile(0.975)
}

// minus compares a with b by seed.
func minus(a, b result) difference {
	var x, y []float64
	for i, seed := range a.seeds {
		k := slices.Index(b.seeds, seed)
		if k >= 0 && !math.IsNaN(a.PerSeed[i]) && !math.IsNaN(b.PerSeed[k]) {
			x, y = append(x, a.PerSeed[i]), append(y, b.PerSeed[k])
		}
	}
	d := difference{n: len(x), mean: math.NaN(), stderr: math.NaN(), p: math.NaN(), adjusted: math.NaN()}
	if d.n == 0 {
		return d
	}
	d.mean, d.stderr = rundir.Paired(x, y)
	switch {
	case d.n < 2:
		d.stderr = math.NaN()
	case d.stderr == 0 && d.mean == 0:
		d.p = 1
	default:
		d.p = 2 * distuv.StudentsT{Sigma: 1, Nu: float64(d.n - 1)}.CDF(-math.Abs(d.mean/d.stderr))
	}
	return d
}

// holm adjusts the p values of a family of tests for their number, so that the chance
// of any false finding stays below the level to which the results are held. Tests
// without a p value do not count.
//
// Reference: S. Holm, "A simple sequentially rejective multiple test procedure",
// Scandinavian Journal of Statistics 6, 1979.
func holm(tests []*difference) {
	tests = slices.DeleteFunc(slices.Clone(tests), func(d *difference) bool { return math.IsNaN(d.p) })
	slices.SortStableFunc(tests, func(a, b *difference) int { return cmp.Compare(a.p, b.p) })
	worst := 0.0
	for i, d := range tests {
		worst = max(worst, min(1, d.p*float64(len(tests)-i)))
		d.adjusted = worst
	}
}
