// Package compare evaluates the difference between two methods that were run with several seeds:
// its standard error, a p-value, the correction for several comparisons, and the number of seeds
// that would show a difference of interest.
//
// The mental model: a run is a draw. Two methods with the same seed may share initial
// weights, batches, augmentations and folds, and it is tempting to expect that this
// makes their difference more precise. It hardly does where training is chaotic: weights
// that are off by a hundred-thousandth make the run another draw (method jitter of
// package method), so that the variance of a difference is nearly the sum of two. Shared folds are
// still worth having, since neither method gets the easier ones.
//
//	d := compare.Seeds(a, b)                 // +0.45 ± 0.13, n = 20, p = 0.003
//	p := compare.Holm([]float64{d.P, e.P})   // both are looked at
//	n := compare.SeedsFor(0.3, compare.Null(b))
package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Difference is the mean of a_i − b_i over n seeds.
type Difference struct {
	N    int
	Mean float64
	// Err is the standard error s/√n, with s the sample standard deviation of the n
	// differences.
	Err float64
	// DF are the degrees of freedom of Err: n−1, or of a [Mean] those of Welch and
	// Satterthwaite.
	DF float64
	// P is the two-sided p-value of Student's t-test against a mean of 0; 1 if all
	// differences are 0, and NaN if all are the same and not 0, as two of them may be by
	// chance where accuracies are counts.
	P float64
}

// Seeds compares the results of two methods with the same seeds, in their order. With fewer than
// two seeds, Err and P are NaN. It panics if the lengths differ.
func Seeds(a, b []float64) Difference {
	if len(a) != len(b) {
		panic(fmt.Sprintf("compare: %d seeds and %d", len(a), len(b)))
	}
	diff := make([]float64, len(a))
	for i := range diff {
		diff[i] = a[i] - b[i]
	}
	mean, std := stat.MeanStdDev(diff, nil)
	return newDifference(len(a), mean, stat.StdErr(std, float64(len(a))), float64(len(a)-1))
}

// Mean returns the mean of differences that were measured independently, on several data sets for
// example. Its N is their smallest. Given variances v_i with ν_i degrees of freedom, the variance
// of the mean has about (Σ v_i)²/Σ(v_i²/ν_i) (Welch 1947, Satterthwaite 1946).
func Mean(differences []Difference) Difference {
	n := math.MaxInt
	mean := 0.0
	variance := 0.0
	fourth := 0.0
	k := float64(len(differences))
	for _, d := range differences {
		v := d.Err * d.Err
		n = min(n, d.N)
		mean += d.Mean / k
		variance += v
		fourth += v * v / d.DF
	}
	return newDifference(n, mean, math.Sqrt(variance)/k, variance*variance/fourth)
}

// rounding bounds the rounding error of a standard error that is 0, for values of the order of 100, such as
// percentages.
const rounding = 1e-9

// newDifference returns the difference with its p-value.
func newDifference(n int, mean, err, df float64) Difference {
	d := Difference{
		N:    n,
		Mean: mean,
		Err:  err,
		DF:   df,
		P:    math.NaN(),
	}
	switch {
	case n < 2:
		d.Err = math.NaN()
	case err > rounding:
		d.P = 2 * d.student().CDF(-math.Abs(mean/err))
	case math.Abs(mean) <= rounding:
		d.P = 1
	}
	return d
}

func (d Difference) student() distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: d.DF}
}

// Interval returns the confidence interval of a level such as 0.95, by Student's t.
func (d Difference) Interval(level float64) (lo, hi float64) {
	w := d.Err * d.student().Quantile((1+level)/2)
	return d.Mean - w, d.Mean + w
}

// Holm returns the p-values corrected for their number, in the same order: with p_(1) ≤ … ≤ p_(m),
// p_(k) becomes max_{j≤k} min(1, (m−j+1)·p_(j)). NaN stays NaN and does not count. If all
// differences with a value below α are called real, the probability that any of them is not is at
// most α (S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
// Statistics 6, 1979).
func Holm(p []float64) []float64 {
	corrected := slices.Clone(p)
	worst := 0.0
	var order []int
	for i := range p {
		if !math.IsNaN(p[i]) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	for k, i := range order {
		worst = max(worst, min(1, float64(len(order)-k)*p[i]))
		corrected[i] = worst
	}
	return corrected
}

// Corrected returns the p-values of differences, corrected for their number by [Holm].
func Corrected(differences []Difference) []float64 {
	p := make([]float64, len(differences))
	for i, d := range differences {
		p[i] = d.P
	}
	return Holm(p)
}

// MeanRanks returns the mean rank of each method over the sets, by method and seed. results are by
// method, set and seed, with the same number of seeds everywhere. Rank 1 is the largest result;
// results that are equal, up to rounding, share the mean of their ranks.
func MeanRanks(results [][][]float64) [][]float64 {
	ranks := make([][]float64, len(results))
	for m, mine := range results {
		ranks[m] = make([]float64, len(mine[0]))
		for s, seeds := range mine {
			for seed, x := range seeds {
				rank := 0.5
				for _, theirs := range results {
					switch d := theirs[s][seed] - x; {
					case d > rounding:
						rank++
					case d >= -rounding:
						rank += 0.5 // with itself that makes the best 1
					}
				}
				ranks[m][seed] += rank
			}
		}
		for seed := range ranks[m] {
			ranks[m][seed] /= float64(len(mine))
		}
	}
	return ranks
}

// CriticalDifference returns by how much the mean ranks of two of k methods over n sets must
// differ for a p-value below alpha by Nemenyi's test: q·√(k(k+1)/12n), with q the upper
// quantile of the range of k standard normal variables (J. Demšar, Statistical comparisons of
// classifiers over multiple data sets, JMLR 7, 2006). The sample are the sets: a difference is
// expected on other sets of their kind, too.
func CriticalDifference(k, n int, alpha float64) float64 {
	below := func(q float64) (p float64) { // that the range is: k ∫ φ(z) (Φ(z) - Φ(z-q))^(k-1) dz
		const step = 1. / 64
		for z := -8.; z < 8+q; z += step {
			between := distuv.UnitNormal.CDF(z) - distuv.UnitNormal.CDF(z-q)
			p += float64(k) * distuv.UnitNormal.Prob(z) * math.Pow(between, float64(k-1)) * step
		}
		return p
	}
	q := 0.
	high := 20.
	for range 40 {
		if middle := (q + high) / 2; below(middle) < 1-alpha {
			q = middle
		} else {
			high = middle
		}
	}
	return q * math.Sqrt(float64(k*(k+1))/float64(12*n))
}

// Null returns the standard deviation of the difference of two runs that differ by chance alone: √2
// times the standard deviation of a method's values over seeds. It is NaN for fewer than two.
func Null(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	return math.Sqrt2 * stat.StdDev(values, nil)
}

// SeedsFor returns the number of seeds with which a difference is two standard errors, if the
// differences of single seeds have this standard deviation. It is at least 2, and 0 if the
// deviation is NaN or the difference is not above 0.
func SeedsFor(difference, deviation float64) int {
	if math.IsNaN(deviation) || !(difference > 0) {
		return 0
	}
	return max(2, int(math.Ceil(math.Pow(2*deviation/difference, 2))))
}
