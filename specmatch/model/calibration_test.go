package model_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/model"
)

// TestQuantile: the quantile is the ⌈(n+1)·level⌉-th score, or of many the next that is kept, and
// the sets of new records that are alike have the answer as often as promised.
func TestQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, 9, 10, 99, 1000, 1001, 5003} {
		scores := make([]float64, n)
		for i := range scores {
			scores[i] = rng.ExpFloat64()
		}
		c := model.NewCalibration([][]float64{scores}, []float64{0}, nil, 1)
		slices.Sort(scores)
		for _, level := range []float64{0.01, 0.5, 0.9, 0.95, 0.99} {
			k := int(math.Ceil(float64(n+1)*level - 1e-9))
			got, err := c.Quantile(0, level)
			if k > n {
				if err == nil || !strings.Contains(err.Error(), "and there are") {
					t.Errorf("level %g of %d: %v, %v", level, n, got, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if want, most := scores[k-1], scores[min(n, k+(n-1)/1000)-1]; got < want || got > most*(1+1e-6) {
				t.Errorf("level %g of %d: %v, want %v to %v", level, n, got, want, most)
			}
		}
	}
	covered, draws := 0.0, 4000.0
	for range int(draws) {
		scores := make([]float64, 39)
		for i := range scores {
			scores[i] = math.Abs(rng.NormFloat64())
		}
		c := model.NewCalibration([][]float64{scores}, []float64{0}, nil, 1)
		q, err := c.Quantile(0, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(rng.NormFloat64()) <= q {
			covered += 100 / draws
		}
	}
	if covered < 88.5 || covered > 91.5 { // within three standard errors of 90
		t.Errorf("%.1f %% are covered", covered)
	}
}

// TestSets: intervals and sets are those of their definition.
func TestSets(t *testing.T) {
	scores := []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
	for _, c := range []struct {
		h       model.Head
		scores  [][]float64
		p       []float64
		columns string
		want    []float64
	}{
		{model.Head{Kind: model.Regression, Outputs: 1, Tasks: []string{"y"}}, [][]float64{scores}, []float64{1, -2}, "y_low y_high", []float64{0.5, 1.5, -2.5, -1.5}},
		{model.Head{Kind: model.Binary, Outputs: 1}, [][]float64{scores}, []float64{0.4, 0.5, 0.9}, "task_0_no_in task_0_yes_in", []float64{1, 0, 1, 1, 0, 1}},
		{model.Head{Kind: model.Classes, Outputs: 3}, [][]float64{scores}, []float64{0.5, 0.5, 0, 0.4, 0.3, 0.3}, "class_0_in class_1_in class_2_in", []float64{1, 1, 0, 0, 0, 0}},
	} {
		columns, rows, err := c.h.Sets(0.5, c.p, model.NewCalibration(c.scores, []float64{0}, nil, 1))
		if err != nil || strings.Join(columns, " ") != c.columns || len(rows) != len(c.want) {
			t.Fatal(columns, rows, err)
		}
		for i, v := range rows {
			if math.Abs(v-c.want[i]) > 1e-6 {
				t.Errorf("%s: %v, want %v", c.h.Kind, rows, c.want)
			}
		}
	}
}

// TestDistances: they are those to the nearest, in units of the median, but for the rounding
// of what is kept; one that was trained on is near.
func TestDistances(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	draw := func(n int) (all []float64) {
		for range n * 5 {
			all = append(all, rng.NormFloat64())
		}
		return all
	}
	trained, others := draw(300), draw(100)
	c := model.NewCalibration(nil, trained, others, 5)
	d := c.Distances(others)
	slices.Sort(d)
	if d[50] != 1 {
		t.Errorf("the median is %v", d[50])
	}
	for i := range 10 {
		want := math.Inf(1)
		for j := range 300 {
			sum := 0.0
			for k := range 5 {
				sum += math.Pow(others[i*5+k]-trained[j*5+k], 2)
			}
			want = min(want, math.Sqrt(sum))
		}
		if got := c.Distances(others[i*5 : i*5+5])[0] * c.Unit; math.Abs(got-want) > 0.05 {
			t.Errorf("%v from the nearest, want %v", got, want)
		}
	}
	if self := c.Distances(trained)[7]; self > 0.05 {
		t.Errorf("one that was trained on is %v away", self)
	}
}

// TestMeanFactor: intervals of the mean of models that err independently are narrower by √n, and those of models
// that err alike are not; where no record is in common, nothing changes.
func TestMeanFactor(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	h := model.Head{Kind: model.Regression, Outputs: 1}
	scores := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1}
	width := func(shared float64, step int) float64 {
		var calibrations []*model.Calibration
		common := make([]float64, 2000)
		for i := range common {
			common[i] = rng.NormFloat64()
		}
		for k := range 3 {
			keys := make([]uint32, 2000)
			errors := make([]float64, 2000)
			for i := range keys {
				keys[i] = uint32(i + k*step)
				errors[i] = math.Sqrt(shared)*common[i] + math.Sqrt(1-shared)*rng.NormFloat64()
			}
			errors[7] = math.NaN()
			c := model.NewCalibration([][]float64{scores}, []float64{0}, nil, 1)
			c.Residuals = model.NewResiduals(keys, errors)
			calibrations = append(calibrations, c)
		}
		_, rows, err := h.Sets(0.5, []float64{0}, calibrations...)
		if err != nil {
			t.Fatal(err)
		}
		return (rows[1] - rows[0]) / 2
	}
	for _, c := range []struct {
		shared float64
		step   int
		want   float64
	}{
		{0, 0, math.Sqrt(1. / 3)},
		{0.5, 0, math.Sqrt(2. / 3)},
		{1, 0, 1},
		{0, 5000, 1},
	} {
		if got := width(c.shared, c.step); math.Abs(got-c.want) > 0.02 {
			t.Errorf("%v in common: %.3f, want %.3f", c.shared, got, c.want)
		}
	}
}
