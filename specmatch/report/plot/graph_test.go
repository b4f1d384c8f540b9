package plot

import (
	"math"
	"strings"
	"testing"
)

// TestGraph: nodes of a drawing are apart as they are along the edges, those of one part from
// those of another too, and titles are escaped.
func TestGraph(t *testing.T) {
	ring := Graph{Values: make([]float64, 6)}
	star := Graph{Values: make([]float64, 9)} // two parts: a star whose leaves are alike, and a chain of three
	for i := range 6 {
		ring.Edges = append(ring.Edges, [2]int{i, (i + 1) % 6})
	}
	for i := range 5 {
		star.Edges = append(star.Edges, [2]int{0, i + 1})
	}
	star.Edges = append(star.Edges, [2]int{6, 7}, [2]int{7, 8})
	for _, g := range []Graph{ring, star} {
		x, y := g.layout()
		for _, e := range g.Edges {
			if d := math.Hypot(x[e[0]]-x[e[1]], y[e[0]]-y[e[1]]); d < 0.6 || d > 1.5 {
				t.Errorf("an edge is %.2f long", d)
			}
		}
		for i := range x {
			for j := range i {
				if d := math.Hypot(x[i]-x[j], y[i]-y[j]); !(d > 0.5) {
					t.Errorf("nodes %d and %d are %.2f apart", i, j, d)
				}
			}
		}
	}
	for _, g := range []Graph{{}, {Title: "<", Values: []float64{0}}, {Values: []float64{1, -1}}} {
		if svg := g.Inline(); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || strings.Contains(svg, `"<"`) {
			t.Error(svg)
		}
	}
	if a, b := star.Inline(), star.Inline(); a != b {
		t.Error("equal graphs are drawn differently")
	}
}
