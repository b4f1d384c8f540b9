package selection

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// made returns settings by epochs, of so many seeds and folds, whose accuracies on test
// folds and inside the training part come from two functions.
func made(settings, epochs, seeds, folds int, test, inner func(i, e, s, f int) float64) [][]Candidate {
	grid := make([][]Candidate, settings)
	for i := range grid {
		for e := range epochs {
			c := Candidate{Name: string(rune('a' + i))}
			for s := range seeds {
				var a, b []float64
				for f := range folds {
					a, b = append(a, test(i, e, s, f)), append(b, inner(i, e, s, f))
				}
				c.Test, c.Inner = append(c.Test, a), append(c.Inner, b)
			}
			grid[i] = append(grid[i], c)
		}
	}
	return grid
}

// TestNoLeak: where nothing is better than anything else, and the folds differ by
// chance alone, only rows marked oracle rise above the truth, and all of those do.
func TestNoLeak(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const seeds, folds, truth, sd = 400, 10, 80.0, 5.0
	noise := func(_, _, _, _ int) float64 { return truth + sd*rng.NormFloat64() }
	grid := made(4, 5, seeds, folds, noise, noise)
	list, oracles := Rows(grid), 0
	for _, r := range list {
		bound := 4 * sd / math.Sqrt(seeds*folds)
		if above := r.Mean() - truth; r.Oracle {
			oracles++
			if strings.Contains(r.Label, "each") && above < bound {
				t.Errorf("%s is %.3f above the truth; choosing on the test should show", r.Label, above)
			}
		} else if math.Abs(above) > bound {
			t.Errorf("%s is %.3f above the truth, which is more than chance", r.Label, above)
		}
		if r.Oracle != strings.HasPrefix(r.Label, "oracle: ") {
			t.Errorf("%s: oracle %v", r.Label, r.Oracle)
		}
	}
	if len(list) != 1+3+3+1+1+4 || oracles != 9 {
		t.Errorf("%d rows, %d of them oracles", len(list), oracles)
	}
}

// TestNoLeakExact: what the test folds say of other settings and epochs moves no row
// that is not marked oracle.
func TestNoLeakExact(t *testing.T) {
	// Inside the training parts, setting a after epoch 1 is the best everywhere, and in
	// epoch 3 setting b.
	inner := func(i, e, s, f int) float64 {
		switch {
		case i == 0 && e == 0:
			return 99
		case i == 1 && e == 2:
			return 95
		}
		return 90
	}
	honest := func(test func(i, e, s, f int) float64) map[string][][]float64 {
		all := map[string][][]float64{}
		for _, r := range Rows(made(3, 3, 4, 5, test, inner)) {
			if !r.Oracle {
				all[r.Label] = r.Test
			}
		}
		return all
	}
	test := func(i, e, s, f int) float64 { return float64(70 + i + 2*e + 3*s + f) }
	reported := func(i, e int) bool { return i == 0 && e == 2 || i == 0 && e == 0 || i == 1 && e == 2 }
	want := honest(test)
	got := honest(func(i, e, s, f int) float64 {
		if reported(i, e) {
			return test(i, e, s, f)
		}
		return 100
	})
	if d := cmp.Diff(want, got); d != "" || len(want) != 4 {
		t.Errorf("test folds of what is not reported move honest rows:\n%s", d)
	}
	if c := want["epoch by validation"]; c[1][2] != test(0, 0, 1, 2) {
		t.Errorf("epoch by validation: %v, want epoch 1 everywhere", c)
	}
	if c := want["setting by validation"]; c[1][2] != test(1, 2, 1, 2) {
		t.Errorf("setting by validation: %v, want b everywhere", c)
	}
}

// TestOracle: two epochs, two seeds, two folds, by hand.
func TestOracle(t *testing.T) {
	epochs := []Candidate{
		{Name: "1", Test: [][]float64{{80, 90}, {70, 70}}}, // means 85 and 70, of both 77.5
		{Name: "2", Test: [][]float64{{84, 80}, {60, 76}}}, // means 82 and 68, of both 75
	}
	for l, want := range map[Level][][]float64{
		ByMean: {{80, 90}, {70, 70}},
		BySeed: {{80, 90}, {70, 70}},
		ByFold: {{84, 90}, {70, 76}},
	} {
		if got := Oracle(epochs, l); !cmp.Equal(got.Test, want) {
			t.Errorf("level %v: %v, want %v", l, got.Test, want)
		}
	}
	equal := []Candidate{{Name: "first", Test: [][]float64{{50, 60}}}, {Name: "second", Test: [][]float64{{60, 50}}}}
	if got := Oracle(equal, ByMean); got.Name != "first" {
		t.Errorf("of equals: %s", got.Name)
	}
	// Each level chooses from more than the one before.
	rng := rand.New(rand.NewPCG(2, 2))
	noise := func(_, _, _, _ int) float64 { return 80 + rng.NormFloat64() }
	grid := made(1, 6, 5, 4, noise, noise)[0]
	if a, b, c := Oracle(grid, ByMean).Mean(), Oracle(grid, BySeed).Mean(), Oracle(grid, ByFold).Mean(); !(a < b && b < c) {
		t.Errorf("by mean %v, by seed %v, by fold %v", a, b, c)
	}
}

// TestWithoutSearch: a protocol that searches for nothing has no row by validation.
func TestWithoutSearch(t *testing.T) {
	constant := func(_, _, _, _ int) float64 { return 80 }
	grid := made(2, 2, 2, 2, constant, constant)
	for i := range grid {
		for e := range grid[i] {
			grid[i][e].Inner = nil
		}
	}
	for _, r := range Rows(grid) {
		if strings.Contains(r.Label, "validation") {
			t.Errorf("there is a row %q", r.Label)
		}
	}
}
