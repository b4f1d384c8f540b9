package model

import (
	"fmt"
	"math"
)

// Scale is the scale on which a model learns a target. The model standardises the targets on it,
// its loss is of differences on it, and its prediction intervals are symmetric on it. Predictions
// are in the unit of the targets again. The zero Scale is the unit itself.
type Scale struct {
	// Log is the natural logarithm, for positive targets.
	Log bool `json:"log,omitempty"`
	// Low and High, if they differ, are the least and the largest value of a target. The scale is
	// the log-odds of its place between them, and no prediction lies outside.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// margin is added on both sides of a range, as a part of its width, so that the ends of the range
// have finite log-odds.
const margin = 0.01

// bounded reports whether the scale has a range.
func (s Scale) bounded() bool { return s.Low != s.High }

// Check returns an error unless the fields are consistent.
func (s Scale) Check() error {
	finite := !math.IsNaN(s.High-s.Low) && !math.IsInf(s.High-s.Low, 0)
	if s.Log && s.bounded() || s.Low > s.High || !finite {
		return fmt.Errorf("specmatch: a scale with log %t and the range %g to %g; want one of both, and "+
			"a range from its lower to its higher end", s.Log, s.Low, s.High)
	}
	return nil
}

// Holds reports whether y has a place on the scale: a positive number with Log, or a number in the
// range. NaN, a missing target, has one.
func (s Scale) Holds(y float64) bool {
	switch {
	case math.IsNaN(y):
		return true
	case s.Log:
		return y > 0
	case s.bounded():
		return s.Low <= y && y <= s.High
	}
	return true
}

// String describes what [Scale.Holds] asks of a target.
func (s Scale) String() string {
	switch {
	case s.Log:
		return "positive"
	case s.bounded():
		return fmt.Sprintf("between %g and %g", s.Low, s.High)
	}
	return "a number"
}

// Of returns the place on the scale of a value in the unit of the targets.
func (s Scale) Of(y float64) float64 {
	switch {
	case s.Log:
		return math.Log(y)
	case s.bounded():
		place := s.place(y)
		return math.Log(place) - math.Log1p(-place)
	}
	return y
}

// place returns where y lies between the ends of the range with their margins: 0 to 1, exclusive.
func (s Scale) place(y float64) float64 {
	width := s.High - s.Low
	return (y - s.Low + margin*width) / (width * (1 + 2*margin))
}

// Value returns the value in the unit of the targets of a place on the scale.
func (s Scale) Value(place float64) float64 {
	switch {
	case s.Log:
		return math.Exp(place)
	case s.bounded():
		width := s.High - s.Low
		y := s.Low - margin*width + width*(1+2*margin)/(1+math.Exp(-place))
		return max(s.Low, min(s.High, y)) // max and min keep NaN
	}
	return place
}

// Slope returns by how much the value grows with its place, near a value.
func (s Scale) Slope(y float64) float64 {
	switch {
	case s.Log:
		return math.Abs(y)
	case s.bounded():
		place := s.place(y)
		return (s.High - s.Low) * (1 + 2*margin) * place * (1 - place)
	}
	return 1
}

// Scale returns the scale of a task.
func (h Head) Scale(task int) Scale {
	if len(h.Scales) == 0 {
		return Scale{}
	}
	return h.Scales[task]
}

// Standardise returns what the output of a regression for a task learns in place of the target y:
// its place on the scale, less Mean, in units of Std.
func (h Head) Standardise(task int, y float64) float64 {
	return (h.Scale(task).Of(y) - h.Mean[task]) / h.Std[task]
}

// InUnits converts the outputs of a regression to the unit of the targets, in place.
func (h Head) InUnits(y []float64) []float64 {
	if len(h.Mean) > 0 {
		for i := range y {
			task := i % h.Outputs
			y[i] = h.Scale(task).Value(h.Mean[task] + h.Std[task]*y[i])
		}
	}
	return y
}
