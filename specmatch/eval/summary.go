package eval

import (
	"fmt"
	"math"
)

// Summary describes one figure over several runs, usually the means of [Result]
// over seeds.
type Summary struct {
	// N is the number of runs.
	N int
	// Mean is the arithmetic mean.
	Mean float64
	// Std is the sample standard deviation, with N−1 in the denominator (ddof 1).
	// One run has none: it is NaN then. Published tables seldom state theirs;
	// NumPy's default, ddof 0, is smaller by 11 % for five runs.
	Std float64
	// SE is the standard error of the mean, Std/√N.
	SE float64
}

// Summarize returns mean, standard deviation and standard error of values.
func Summarize(values []float64) (Summary, error) {
	if len(values) == 0 {
		return Summary{}, fmt.Errorf("eval: summary of no values")
	}
	s := Summary{N: len(values), Std: math.NaN(), SE: math.NaN()}
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Summary{}, fmt.Errorf("eval: summary: value %d is %v", i, v)
		}
		s.Mean += v
	}
	s.Mean /= float64(s.N)
	if s.N == 1 {
		return s, nil
	}
	var ss float64
	for _, v := range values {
		ss += (v - s.Mean) * (v - s.Mean)
	}
	s.Std = math.Sqrt(ss / float64(s.N-1))
	s.SE = s.Std / math.Sqrt(float64(s.N))
	return s, nil
}

// String formats a summary as tables do: "74.29 ± 0.61", or "74.29" for one run.
func (s Summary) String() string {
	if s.N < 2 {
		return fmt.Sprintf("%.2f", s.Mean)
	}
	return fmt.Sprintf("%.2f ± %.2f", s.Mean, s.Std)
}

// PairedDifference summarizes a_i − b_i, the gain of one method over another on
// the same seeds and folds. What the two have in common, easy and hard splits,
// cancels, so SE is that of the comparison: a mean within about two of it from
// zero says nothing.
func PairedDifference(a, b []float64) (Summary, error) {
	if len(a) != len(b) {
		return Summary{}, fmt.Errorf("eval: paired difference of %d and %d values", len(a), len(b))
	}
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return Summarize(d)
}
