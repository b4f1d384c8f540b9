package plot

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Lines is a line chart.
type Lines struct {
	Axes
	Series []Series
}

// Series is one line, with markers at about ten of its points (none in a page), or at
// all of them if they have labels or error bars.
type Series struct {
	Name   string
	X, Y   []float64
	Err    []float64 // half the height of the band Y ± Err; nil for none
	Bars   bool      // error bars instead of a band
	Labels []string  // of the points; nil for none
}

func (l Lines) names() (names []string) {
	for _, s := range l.Series {
		names = append(names, s.Name)
	}
	return names
}

func (l Lines) draw(f *frame, index func(name string) int) error {
	var ends []point
	for _, s := range l.Series {
		if err := s.check(); err != nil {
			return err
		}
		for _, r := range l.runs(s) {
			ends = append(append(ends, r.low...), r.high...)
		}
	}
	if !f.see(ends...) {
		return errors.New("no series has a point that can be drawn")
	}
	f.numbered(l.Axes)
	var labels []label
	for i, s := range l.Series {
		look := f.group(s.Name, s.Name, index)
		for _, r := range l.runs(s) {
			if s.Err != nil && !s.Bars && len(r.middle) > 1 {
				slices.Reverse(r.low)
				f.path("band", "", slices.Concat(r.high, r.low))
			}
			for k := range r.middle {
				if s.Err != nil && s.Bars {
					f.path("line", "", []point{r.low[k], r.high[k]})
				}
				if s.Labels != nil {
					labels = append(labels, label{r.middle[k], s.Labels[r.first+k], look})
				}
			}
			if len(r.middle) > 1 {
				f.path("line", Dashes(look), r.middle)
			}
			// Markers of different series stand at different points. A point
			// between two gaps has nothing but its marker.
			step := (len(s.X) + 9) / 10
			if s.Labels != nil || s.Bars || len(r.middle) == 1 {
				step = 1
			} else if f.inline {
				continue
			}
			var marked []point
			for k := i % step; k < len(r.middle); k += step {
				marked = append(marked, r.middle[k])
			}
			f.markers(look, marked)
		}
		f.WriteString("</g>")
	}
	f.labels(labels)
	return nil
}

// check returns an error unless the series has as many of everything as points.
func (s Series) check() error {
	if len(s.X) != len(s.Y) || s.Err != nil && len(s.Err) != len(s.Y) {
		return fmt.Errorf("series %q: %d x, %d y and %d errors",
			s.Name, len(s.X), len(s.Y), len(s.Err))
	}
	if s.Labels != nil && len(s.Labels) != len(s.Y) {
		return fmt.Errorf("series %q: %d points and %d labels", s.Name, len(s.Y), len(s.Labels))
	}
	return nil
}

// run is a part of a series without gaps: the points, the ends of their errors,
// and the first point's place in the series.
type run struct {
	middle, low, high []point
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
		open = ok
		if !ok {
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

// Scatter is a cloud of points, coloured and shaped by class.
type Scatter struct {
	Axes
	X, Y  []float64
	Class []int    // of each point: an index of Names
	Names []string // of the classes
	Guide Guide    // a line among the points
}

// Guide is a line that points are to be seen against.
type Guide int

// The guides.
const (
	None     Guide = iota
	Identity       // y = x
	Zero           // y = 0
)

func (s Scatter) names() []string { return s.Names }

func (s Scatter) draw(f *frame, index func(name string) int) error {
	if len(s.X) != len(s.Y) || len(s.X) != len(s.Class) {
		return fmt.Errorf("%d x, %d y and %d classes", len(s.X), len(s.Y), len(s.Class))
	}
	classes := make([][]point, len(s.Names))
	for i, c := range s.Class {
		if c < 0 || c >= len(s.Names) {
			return fmt.Errorf("point %d is of class %d, but there are %d names", i, c, len(s.Names))
		}
		if p, ok := s.place(s.X[i], s.Y[i]); ok {
			classes[c] = append(classes[c], p)
		}
	}
	if !f.see(slices.Concat(classes...)...) {
		return errors.New("no point can be drawn")
	}
	switch s.Guide {
	case Zero:
		f.y0 = min(f.y0, 0)
		f.y1 = max(f.y1, 0)
	case Identity: // equal values are as far along both axes
		f.square = true
		f.y0 = min(f.x0, f.y0)
		f.y1 = max(f.x1, f.y1)
		if f.inline {
			f.height = squareHeight
		}
	}
	f.numbered(s.Axes)
	switch s.Guide {
	case Identity:
		f.path("zero", "", []point{{f.y0, f.y0}, {f.y1, f.y1}})
	case Zero:
		f.path("zero", "", []point{{f.x0, 0}, {f.x1, 0}})
	}
	for c, points := range classes {
		look := f.group(s.Names[c], s.Names[c], index)
		for _, p := range points { // each by itself, so that crowded places look dense
			f.WriteString(`<path class="faint" d="M` + px(f.x(p.x)) + " " + px(f.y(p.y)) +
				markers[look%len(markers)] + `"/>`)
		}
		f.WriteString("</g>")
	}
	return nil
}

// Dots is a chart of rows: the values of each as dots, with their mean and an interval
// around it.
type Dots struct {
	Axes // YLabel and the logarithms are not used
	Rows []DotRow
	Zero bool     // 0 is on the axis, with a line
	Bars [][2]int // each joins the rows from one to another, beside them
}

// DotRow is a row of [Dots].
type DotRow struct {
	Name   string
	Points []float64
	Mean   float64
	Half   float64 // of the interval; NaN for none
}

func (d Dots) names() (names []string) {
	for _, r := range d.Rows {
		names = append(names, r.Name)
	}
	return names
}

// draw gives every row the look of its name; the height is that of the rows.
func (d Dots) draw(f *frame, index func(name string) int) error {
	var ends []point
	longest := 0
	for _, r := range d.Rows {
		longest = max(longest, utf8.RuneCountInString(r.Name))
		for _, v := range append([]float64{r.Mean, r.Mean - r.Half, r.Mean + r.Half}, r.Points...) {
			if finite(v) {
				ends = append(ends, point{v, 0})
			}
		}
	}
	if len(ends) == 0 {
		return errors.New("no row has a value that can be drawn")
	}
	if d.Zero {
		ends = append(ends, point{})
	}
	f.see(ends...)
	f.height = float64(20+len(d.Rows)*rowHeight) + 36
	const between = 9 // two bars
	width := f.width
	f.width -= between * float64(len(d.Bars))
	f.open(d.Axes, min(float64(longest)*glyph, 0.57*f.width-8), 20)
	f.width = width
	row := func(i int) float64 { return f.top + (float64(i)+0.5)*rowHeight }
	for i, b := range d.Bars {
		fmt.Fprintf(f, `<path class="line" stroke-width="3" d="M%s %sV%s"/>`,
			px(f.right+between*float64(i+1)), px(row(b[0])-5), px(row(b[1])+5))
	}
	if d.Zero {
		fmt.Fprintf(f, `<path class="zero" d="M%s %sV%s"/>`, px(f.x(0)), px(f.top), px(f.bottom))
	}
	for i, r := range d.Rows {
		y := row(i)
		f.text("y", f.left-4, y+3.5, shorten(r.Name, int((f.left-8)/glyph)))
		f.group(r.Name, fmt.Sprintf("%s: %.4g", r.Name, r.Mean), index)
		for _, v := range r.Points {
			if finite(v) {
				fmt.Fprintf(f, `<circle class="faint" cx="%s" cy="%s" r="3"/>`, px(f.x(v)), px(y))
			}
		}
		if finite(r.Half) {
			fmt.Fprintf(f, `<path class="line" d="M%s %sH%s"/>`,
				px(f.x(r.Mean-r.Half)), px(y), px(f.x(r.Mean+r.Half)))
		}
		if finite(r.Mean) {
			fmt.Fprintf(f, `<path class="line" stroke-width="2.5" d="M%s %sv10"/>`,
				px(f.x(r.Mean)), px(y-5))
		}
		f.WriteString("</g>")
	}
	return nil
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n && n > 1 {
		return string(r[:n-1]) + "…"
	}
	return s
}
