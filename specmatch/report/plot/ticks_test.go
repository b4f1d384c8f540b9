package plot

import (
	"math"
	"strings"
	"testing"
)

// Look describes the look of the i-th name.
func Look(i int) string { return Class(i) + Dashes(i) + markers[i%len(markers)] }

func labels(ticks []tick) string {
	var s []string
	for _, t := range ticks {
		s = append(s, t.label)
	}
	return strings.Join(s, " ")
}

func TestLinearTicks(t *testing.T) {
	for _, tt := range []struct {
		lo, hi float64
		want   string
	}{
		{0, 1, "0 0.2 0.4 0.6 0.8 1.0"},
		{-0.25, 0.25, "−0.2 −0.1 0 0.1 0.2"},
		{0, 100, "0 20 40 60 80 100"},
		{0, 19, "0 5 10 15"},
		{0.123, 7.9, "1 2 3 4 5 6 7"},
		{84.1, 89.1, "85 86 87 88 89"},
		{0.0301, 0.0305, "0.0301 0.0302 0.0303 0.0304 0.0305"},
		{0, 2.5e-6, "0 5e−7 1.0e−6 1.5e−6 2.0e−6 2.5e−6"},
		{0, 3e7, "0 5e6 1.0e7 1.5e7 2.0e7 2.5e7 3.0e7"},
		{1, 2, "1.0 1.2 1.4 1.6 1.8 2.0"},
	} {
		ticks := linearTicks(tt.lo, tt.hi, mostLabels)
		if got := labels(ticks); got != tt.want {
			t.Errorf("%v … %v: %s, want %s", tt.lo, tt.hi, got, tt.want)
		}
		for _, tick := range ticks {
			if tick.value < tt.lo || tick.value > tt.hi {
				t.Errorf("%v … %v: a tick at %v", tt.lo, tt.hi, tick.value)
			}
		}
	}
	if got := labels(linearTicks(-1, 5, 3)); got != "0 2 4" {
		t.Errorf("at most 3: %s", got)
	}
}

func TestLogTicks(t *testing.T) {
	for _, tt := range []struct {
		lo, hi float64
		want   string
	}{
		{0.01, 1.5, "0.01 0.1 1"},
		{1e-5, 1e5, "1e−5 0.001 0.1 10 1000 1e5"},
		{2e-14, 1, "1e−12 1e−10 1e−8 1e−6 1e−4 0.01 1"},
		{0.3, 0.9, "0.3 0.4 0.5 0.6 0.7 0.8 0.9"},
		{0.15, 0.6, "0.2 0.5"},
		{2.1, 2.6, "2.1 2.2 2.3 2.4 2.5 2.6"},
		{0.001, 10000, "0.001 0.01 0.1 1 10 100 1000 10000"},
	} {
		ticks := logTicks(math.Log10(tt.lo), math.Log10(tt.hi))
		if got := labels(ticks); got != tt.want {
			t.Errorf("%v … %v: %s, want %s", tt.lo, tt.hi, got, tt.want)
		}
	}
}
