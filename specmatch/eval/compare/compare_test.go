package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func nearly(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s: %.10g, want %.10g", what, got, want)
	}
}

// TestHolm: worked by hand. Of 0.01, 0.04, 0.03, 0.005 the order is 0.005·4 = 0.02,
// 0.01·3 = 0.03, 0.03·2 = 0.06, and 0.04·1 = 0.04, which cannot fall below 0.06.
func TestHolm(t *testing.T) {
	for _, c := range []struct{ p, want []float64 }{
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{[]float64{0.5, 0.6}, []float64{1, 1}},
		{[]float64{0.02}, []float64{0.02}},
		{[]float64{0.01, 0.01, 0.01}, []float64{0.03, 0.03, 0.03}},
		{nil, []float64{}},
		{[]float64{0.01, math.NaN(), 0.02}, []float64{0.02, math.NaN(), 0.02}},
	} {
		got := Holm(c.p)
		if len(got) != len(c.want) {
			t.Fatalf("Holm(%v) = %v", c.p, got)
		}
		for i := range got {
			if math.IsNaN(c.want[i]) != math.IsNaN(got[i]) {
				t.Errorf("Holm(%v) = %v", c.p, got)
			} else if !math.IsNaN(got[i]) {
				nearly(t, "corrected", got[i], c.want[i], 1e-15)
			}
		}
	}
}

// TestSeeds: the differences are 0.3, -0.1, 0.7 and 0.6, of mean 0.375 with
// 3 degrees of freedom, for which Student's distribution has the closed
// form 1/2 + (x/(1+x²) + atan x)/π with x = t/√3.
func TestSeeds(t *testing.T) {
	d := Seeds([]float64{5.1, 4.9, 6.2, 5.8}, []float64{4.8, 5.0, 5.5, 5.2})
	nearly(t, "mean", d.Mean, 0.375, 1e-12)
	nearly(t, "standard error", d.Err, math.Sqrt((.075*.075+.475*.475+.325*.325+.225*.225)/3/4), 1e-12)
	x := d.Mean / d.Err / math.Sqrt(3)
	nearly(t, "p", d.P, 1-2*(x/(1+x*x)+math.Atan(x))/math.Pi, 1e-9)
	lo, hi := d.Interval(1 - d.P)
	nearly(t, "the interval of level 1-p ends at 0", lo, 0, 1e-9)
	nearly(t, "the interval is symmetric", hi, 2*d.Mean, 1e-9)
	if d.N != 4 {
		t.Errorf("n = %d", d.N)
	}
	if same := Seeds([]float64{1, 2}, []float64{1, 2}); same.Mean != 0 || same.P != 1 {
		t.Errorf("equal runs: %+v", same)
	}
	if same := Seeds([]float64{1.1, 2.3}, []float64{1, 2.2}); !math.IsNaN(same.P) {
		t.Errorf("two differences that are the same: %+v", same)
	}
	if one := Seeds([]float64{1}, []float64{3}); one.Mean != -2 || !math.IsNaN(one.Err) || !math.IsNaN(one.P) {
		t.Errorf("one seed: %+v", one)
	}
}

// TestMean: errors of independent differences add as squares, and of two with the same
// variance and degrees of freedom the mean has twice these.
func TestMean(t *testing.T) {
	d := Mean([]Difference{{N: 5, Mean: 1, Err: 3, DF: 4}, {N: 10, Mean: 2, Err: 4, DF: 9}})
	nearly(t, "mean", d.Mean, 1.5, 1e-12)
	nearly(t, "standard error", d.Err, 2.5, 1e-12)
	nearly(t, "degrees of freedom", d.DF, 25*25/(81./4+256./9), 1e-12)
	nearly(t, "p", d.P, newDifference(5, 0.6, 1, d.DF).P, 1e-12)
	twin := Difference{N: 5, Mean: 1, Err: 3, DF: 4}
	nearly(t, "degrees of freedom of twins", Mean([]Difference{twin, twin}).DF, 8, 1e-12)
	if d.N != 5 {
		t.Errorf("n = %d", d.N)
	}
}

// TestNull: of two draws of one distribution the p-values are uniform, Holm calls one
// of eight real as often as it says, and Null is the deviation of the difference.
func TestNull(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const trials, rows, seeds = 2000, 8, 10
	draw := func() []float64 {
		v := make([]float64, seeds)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return v
	}
	below, wrong, null := 0, 0, 0.0
	for range trials {
		base, p := draw(), []float64{}
		for range rows {
			p = append(p, Seeds(draw(), base).P)
		}
		if p[0] < 0.05 {
			below++
		}
		if slices.Min(Holm(p)) < 0.05 {
			wrong++
		}
		n := Null(base)
		null += n * n / trials
	}
	nearly(t, "share of p below 0.05", float64(below)/trials, 0.05, 0.015)
	nearly(t, "variance of a difference", null, 2, 0.1)
	if share := float64(wrong) / trials; share > 0.06 {
		t.Errorf("Holm finds something in %v of the tables in which there is nothing", share)
	}
	if !math.IsNaN(Null([]float64{1})) {
		t.Error("a deviation of one seed")
	}
}

// TestSeedsFor: the figures of the noise floor: differences of single seeds deviate by
// 0.76 points on NCI1 and 2.36 on MUTAG.
func TestSeedsFor(t *testing.T) {
	for _, c := range []struct {
		deviation, difference float64
		want                  int
	}{{0.76, 0.3, 26}, {2.36, 0.3, 248}, {0.01, 0.3, 2}, {math.NaN(), 0.3, 0}, {1, 0, 0}} {
		if got := SeedsFor(c.difference, c.deviation); got != c.want {
			t.Errorf("%v at a deviation of %v: %d seeds, want %d", c.difference, c.deviation, got, c.want)
		}
	}
}

// R: p.adjust(c(0.01, 0.04, NA, 0.03, 0.005), "holm").
func TestCorrected(t *testing.T) {
	got := Corrected([]Difference{{P: 0.01}, {P: 0.04}, {P: math.NaN()}, {P: 0.03}, {P: 0.005}})
	for i, want := range []float64{0.03, 0.06, math.NaN(), 0.06, 0.02} {
		if math.Abs(got[i]-want) > 1e-15 || math.IsNaN(got[i]) != math.IsNaN(want) {
			t.Errorf("test %d: %v, want %v", i, got[i], want)
		}
	}
}

// TestMeanRanks: on the second set the first two are equal.
func TestMeanRanks(t *testing.T) {
	ranks := MeanRanks([][][]float64{{{90, 70}, {60, 80}}, {{80, 90}, {60, 90}}, {{70, 80}, {50, 70}}})
	for i, want := range [][]float64{{1.25, 2.5}, {1.75, 1}, {3, 2.5}} {
		if !slices.Equal(ranks[i], want) {
			t.Errorf("method %d: %v, want %v", i, ranks[i], want)
		}
	}
}

// TestCriticalDifference: Demšar's Table 5, and his example of four methods on 14 sets.
func TestCriticalDifference(t *testing.T) {
	for k, q := range map[int]float64{2: 1.960, 3: 2.343, 5: 2.728, 10: 3.164} {
		nearly(t, "q at 0.05", CriticalDifference(k, k*(k+1), 0.05)*math.Sqrt(6), q, 1e-3)
	}
	nearly(t, "q at 0.10", CriticalDifference(10, 110, 0.1)*math.Sqrt(6), 2.920, 6e-4)
	nearly(t, "four methods", CriticalDifference(4, 14, 0.05), 1.25, 5e-3)
}
