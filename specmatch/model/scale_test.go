package model_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/specmatch/specmatch/specmatch/model"
)

var (
	logarithm = model.Scale{Log: true}
	percent   = model.Scale{High: 100}
)

// TestScale: a value comes back from its place, places grow with values, and the slope is the
// difference quotient.
func TestScale(t *testing.T) {
	for _, c := range []struct {
		scale  model.Scale
		values []float64
	}{
		{model.Scale{}, []float64{-3, 0, 7}},
		{logarithm, []float64{1e-9, 0.5, 1, 12, 1e9}},
		{percent, []float64{0, 1e-6, 3, 50, 99.9, 100}},
		{model.Scale{Low: -2, High: 2}, []float64{-2, -1, 0, 2}},
	} {
		place := math.Inf(-1)
		for _, y := range c.values {
			next := c.scale.Of(y)
			if !(next > place) || math.IsInf(next, 0) {
				t.Errorf("%v: %g is at %g, behind %g", c.scale, y, next, place)
			}
			place = next
			if back := c.scale.Value(place); math.Abs(back-y) > 1e-12*max(100, math.Abs(y)) {
				t.Errorf("%v: %g becomes %g", c.scale, y, back)
			}
			step := 1e-6
			quotient := (unclamped(c.scale, place+step) - unclamped(c.scale, place-step)) / (2 * step)
			if slope := c.scale.Slope(y); math.Abs(slope-quotient) > 1e-4*(1e-3+quotient) {
				t.Errorf("%v: slope %g at %g, by differences %g", c.scale, slope, y, quotient)
			}
			if !c.scale.Holds(y) {
				t.Errorf("%v does not hold %g", c.scale, y)
			}
		}
	}
	if got := logarithm.Of(10); got != math.Log(10) {
		t.Errorf("the logarithm of 10 is %g", got)
	}
	if got, want := percent.Of(100), math.Log(101); math.Abs(got-want) > 1e-12 {
		t.Errorf("100 %% is at %g, want the log-odds %g of 101 to 1", got, want)
	}
	for _, place := range []float64{-1e9, -50, 50, 1e9} {
		if y := percent.Value(place); y < 0 || y > 100 {
			t.Errorf("%g is %g %%", place, y)
		}
	}
	if !math.IsNaN(percent.Value(math.NaN())) {
		t.Error("NaN becomes a number")
	}
}

// unclamped is Value of a range that the ends do not cut.
func unclamped(s model.Scale, place float64) float64 {
	if s.Low == s.High {
		return s.Value(place)
	}
	width := s.High - s.Low
	return s.Low - 0.01*width + 1.02*width/(1+math.Exp(-place))
}

func TestScaleHolds(t *testing.T) {
	for _, c := range []struct {
		scale model.Scale
		y     float64
		want  bool
	}{
		{logarithm, 0, false},
		{logarithm, -1, false},
		{logarithm, math.NaN(), true},
		{percent, 100.1, false},
		{percent, -0.1, false},
		{model.Scale{}, -1, true},
	} {
		if got := c.scale.Holds(c.y); got != c.want {
			t.Errorf("%v holds %g: %t", c.scale, c.y, got)
		}
	}
	for _, s := range []model.Scale{{Log: true, High: 1}, {Low: 1}, {High: math.Inf(1)}, {High: math.NaN()}} {
		h := model.Head{Kind: model.Regression, Outputs: 1, Scales: []model.Scale{s}}
		if h.Check() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	for _, h := range []model.Head{
		{Kind: model.Regression, Outputs: 2, Scales: []model.Scale{percent}},
		{Kind: model.Binary, Outputs: 1, Scales: []model.Scale{percent}},
	} {
		if h.Check() == nil {
			t.Errorf("%+v is accepted", h)
		}
	}
}

// TestScaledHead: outputs, targets and intervals of a head with two scales, and its form as JSON.
func TestScaledHead(t *testing.T) {
	h := model.Head{
		Kind:    model.Regression,
		Outputs: 2,
		Mean:    []float64{math.Log(2), 0},
		Std:     []float64{math.Log(3), 2},
		Scales:  []model.Scale{logarithm, percent},
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var same model.Head
	if err := json.Unmarshal(text, &same); err != nil || same.Scales[0] != logarithm || same.Scales[1] != percent {
		t.Fatalf("%s is read as %+v, %v", text, same, err)
	}
	y := h.InUnits([]float64{1, 0, -1, 0})
	for k, want := range []float64{6, 50, 2. / 3, 50} {
		if math.Abs(y[k]-want) > 1e-12 {
			t.Errorf("output %d is %g, want %g", k, y[k], want)
		}
		if got := h.Standardise(k%2, y[k]); math.Abs(got-[]float64{1, 0, -1, 0}[k]) > 1e-12 {
			t.Errorf("target %d is standardised to %g", k, got)
		}
	}
	c := &model.Calibration{Scores: [][]float32{{float32(math.Log(4))}, {1}}, Count: []int{1, 1}}
	_, ends, err := h.Sets(0.5, []float64{8, 50}, c)
	if err != nil {
		t.Fatal(err)
	}
	wide := percent.Value(1)
	for k, want := range []float64{2, 32, 100 - wide, wide} {
		if math.Abs(ends[k]-want) > 1e-5*want {
			t.Errorf("end %d is %g, want %g", k, ends[k], want)
		}
	}
}
