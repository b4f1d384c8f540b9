package theory_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/theory"
)

// nine compares numbers to nine digits; what is not defined is equal.
var nine = cmp.Options{cmpopts.EquateApprox(1e-9, 0), cmpopts.EquateNaNs()}

// TestMeasure: four pairs of draws, of which the last has equal graphs, against the
// definitions.
func TestMeasure(t *testing.T) {
	times := []float64{0.1, 2}
	rng := random.Stream(1, 0, 0, 0)
	const n, d = 12, 4
	var views []*theory.View
	for k := range 8 {
		z := make([]float64, n*d)
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		if k == 7 {
			views = append(views, views[6])
			break
		}
		v, err := theory.NewView(z, n, d, specmatch.LaplacianMatch{Adjacency: specmatch.Sigmoid, Kappa: 10, Percentile: 50})
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, v)
	}
	// The last left side is the largest, and must not count in ratios; the second
	// with z* = z¹ is above the bound.
	gaps := []theory.Gap{{Fixed: 1, View1: 2, Midpoint: 3}, {Fixed: 4, View1: 1e9, Midpoint: 6}, {Fixed: 3, View1: 1, Midpoint: 2}, {Fixed: 1e6, View1: 1e10, Midpoint: 1e6}}
	got, err := theory.Measure(views, gaps, 0.2, 2, times)
	if err != nil {
		t.Fatal(err)
	}
	want := theory.Quantities{
		"pairs": 4, "equal_pairs": 1, "draws": 8, "connected": 8,
		"gap_fixed": (1 + 4 + 3 + 1e6) / 4., "gap_view1": (2 + 1e9 + 1 + 1e10) / 4., "gap_midpoint": (3 + 6 + 2 + 1e6) / 4.,
	}
	for k, gap := range gaps[:3] {
		v1, v2 := views[2*k], views[2*k+1]
		lossG := theory.LossG(v1, v2)
		want["pair_loss_g"] += lossG / 4
		for _, td := range times {
			a := theory.Alignment(v1, v2, 0.2, td)
			want[theory.AtTime("c", td)] += a.C / 3
			want[theory.AtTime("right", td)] += a.Right / 3
			want[theory.AtTime("violated_view1", td)] = 1
			for name, v := range map[string]float64{
				"duhamel": a.Heat / (td * td * lossG), "ratio_fixed": gap.Fixed / a.Right,
				"ratio_view1": gap.View1 / a.Right, "ratio_midpoint": gap.Midpoint / a.Right,
			} {
				want[theory.AtTime(name, td)] = max(want[theory.AtTime(name, td)], v)
			}
			if (gap.View1 > a.Right) != (k == 1) {
				t.Fatalf("the right side %v of pair %d does not suit the test", a.Right, k)
			}
		}
	}
	u, err := theory.Uniformity(views, 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]float64{
		"expected_loss_g": u.LossG, "mu2": u.Mu2, "unif": u.Unif, "direct": u.Direct,
		"lambda_bar": u.LambdaBar, "lambda_bar_nonzero": u.LambdaBarNonZero,
		"right_4.3": u.Right, "right_4.3_nonzero": u.RightNonZero, "hoffman": u.Hoffman, "hoffman_nonzero": u.HoffmanNonZero,
	} {
		want[name] = v
	}
	if d := cmp.Diff(want, got, nine); d != "" {
		t.Error(d)
	}

	// Of a single connected draw Theorem 4.3 says nothing, and of equal pairs alone Theorem 4.2.
	got, err = theory.Measure(views[6:], gaps[3:], 0.2, 2, times)
	_, compared := got["ratio_fixed(t_d=2)"]
	if err != nil || got["equal_pairs"] != 1 || !math.IsNaN(got["c(t_d=2)"]) || compared || got["violated_view1(t_d=2)"] != 0 {
		t.Errorf("an equal pair: %v, %v", got, err)
	}
	apart, err := theory.NewView([]float64{1, 0, 1, 0, 0, 1, 0, 1}, 4, 2, specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Percentile: 70})
	if err != nil {
		t.Fatal(err)
	}
	got, err = theory.Measure([]*theory.View{apart, apart}, gaps[3:], 0.2, 2, times)
	if err != nil || got["connected"] != 0 || !math.IsNaN(got["unif"]) || !math.IsNaN(got["right_4.3"]) {
		t.Errorf("graphs in two parts: %v, %v", got, err)
	}
}
