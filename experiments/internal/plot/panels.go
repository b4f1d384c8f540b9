package plot

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Lines is a line chart.
type Lines struct {
	Axes
	Series []Series
}

// Series is one line, with markers at about ten of its points, or at all of them
// if they have labels.
type Series struct {
	Name   string
	X, Y   []float64
	Err    []float64 // half the height of the band Y ± Err; nil for none
	Bars   bool      // error bars instead of a band
	Labels []string  // of the points; nil for none
}

func (l Lines) names() []string {
	var names []string
	for _, s := range l.Series {
		names = append(names, s.Name)
	}
	return names
}

func (l Lines) plot(lookOf func(string) look) (*plot.Plot, error) {
	var bands, lines []plot.Plotter // every line is above every band
	var labels pointLabels
	for i, s := range l.Series {
		if len(s.X) != len(s.Y) || s.Err != nil && len(s.Err) != len(s.Y) {
			return nil, fmt.Errorf("series %q: %d x, %d y and %d errors", s.Name, len(s.X), len(s.Y), len(s.Err))
		}
		if s.Labels != nil && len(s.Labels) != len(s.Y) {
			return nil, fmt.Errorf("series %q: %d points and %d labels", s.Name, len(s.Y), len(s.Labels))
		}
		look := lookOf(s.Name)
		for _, run := range l.runs(s) {
			// Markers of different series stand at different points. A point
			// between two gaps has nothing but its marker.
			marked := run.middle[:1]
			if len(run.middle) > 1 {
				marked = nil
				step := (len(s.X) + 9) / 10
				if s.Labels != nil {
					step = 1
				}
				for k := i % step; k < len(run.middle); k += step {
					marked = append(marked, run.middle[k])
				}
			}
			lines = append(lines, &plotter.Line{XYs: run.middle, LineStyle: look.line()}, &plotter.Scatter{XYs: marked, GlyphStyle: look.glyph()})
			if s.Labels != nil {
				for k, point := range run.middle {
					labels = append(labels, label{point, s.Labels[run.first+k], look.color})
				}
			}
			switch {
			case s.Err == nil:
			case s.Bars:
				bands = append(bands, run.bars(look))
			default:
				bands = append(bands, run.band(look))
			}
		}
	}
	if len(lines) == 0 {
		return nil, errors.New("no series has a point that can be drawn")
	}
	p := newPlot(l.Axes)
	p.Add(append(bands, lines...)...)
	widen(p)
	if len(labels) > 0 {
		p.Add(labels)
		for _, axis := range []*plot.Axis{&p.X, &p.Y} { // room for labels
			by := (axis.Max - axis.Min) / 15
			axis.Min, axis.Max = axis.Min-by, axis.Max+by
		}
	}
	return p, nil
}

// run is a part of a series without gaps: the points, the ends of their errors,
// and the first point's place in the series.
type run struct {
	middle, low, high plotter.XYs
	first             int
}

// runs splits a series at the points that cannot be drawn. An error that is not
// finite counts as 0. On a logarithmic axis the lower end of an error stays
// above a tenth of Y, since 0 is infinitely far.
func (l Lines) runs(s Series) []run {
	var runs []run
	open := false
	for i := range s.X {
		middle, ok := l.place(s.X[i], s.Y[i])
		if ok && !open {
			runs = append(runs, run{first: i})
		}
		if open = ok; !ok {
			continue
		}
		var e float64
		if s.Err != nil && finite(s.Err[i]) {
			e = s.Err[i]
		}
		bottom := s.Y[i] - e
		if l.LogY {
			bottom = max(bottom, s.Y[i]/10)
		}
		low, _ := l.place(s.X[i], bottom)
		high, _ := l.place(s.X[i], s.Y[i]+e)
		r := &runs[len(runs)-1]
		r.middle, r.low, r.high = append(r.middle, middle), append(r.low, low), append(r.high, high)
	}
	return runs
}

// band returns the errors as an area.
func (r run) band(look look) plot.Plotter {
	outline := slices.Clone(r.high)
	for _, p := range slices.Backward(r.low) {
		outline = append(outline, p)
	}
	return &plotter.Polygon{XYs: []plotter.XYs{outline}, Color: look.faint(0x33)}
}

// bars returns the errors as bars.
func (r run) bars(look look) plot.Plotter {
	b := &plotter.YErrorBars{XYs: r.middle, LineStyle: draw.LineStyle{Color: look.color, Width: 1.2}, CapWidth: 6}
	for i, p := range r.middle {
		b.YErrors = append(b.YErrors, struct{ Low, High float64 }{p.Y - r.low[i].Y, r.high[i].Y - p.Y})
	}
	return b
}

// Scatter is a cloud of points, coloured and shaped by class.
type Scatter struct {
	Axes
	X, Y  []float64
	Class []int    // of each point: an index of Names
	Names []string // of the classes
}

func (s Scatter) names() []string { return s.Names }

func (s Scatter) plot(lookOf func(string) look) (*plot.Plot, error) {
	if len(s.X) != len(s.Y) || len(s.X) != len(s.Class) {
		return nil, fmt.Errorf("%d x, %d y and %d classes", len(s.X), len(s.Y), len(s.Class))
	}
	classes := make([]plotter.XYs, len(s.Names))
	found := false
	for i, c := range s.Class {
		if c < 0 || c >= len(s.Names) {
			return nil, fmt.Errorf("point %d is of class %d, but there are %d names", i, c, len(s.Names))
		}
		if xy, ok := s.place(s.X[i], s.Y[i]); ok {
			classes[c] = append(classes[c], xy)
			found = true
		}
	}
	if !found {
		return nil, errors.New("no point can be drawn")
	}
	p := newPlot(s.Axes)
	for c, xys := range classes {
		look := lookOf(s.Names[c])
		style := look.glyph()
		style.Color = look.faint(0xB0) // so that crowded places look dense
		p.Add(&plotter.Scatter{XYs: xys, GlyphStyle: style})
	}
	widen(p)
	return p, nil
}
