package plot

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines is a line chart.
type Lines struct {
	Axes
	Series []Series
}

// Series is one line, with markers at ten of its points or so, or at all if they
// have labels.
type Series struct {
	Name   string
	X, Y   []float64
	Err    []float64 // half the height of the band Y ± Err; nil for none
	Bars   bool      // error bars instead of a band
	Labels []string  // of the points; nil for none
}

func (l Lines) aspect() float64 { return 0 }

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
				for k, at := range run.middle {
					labels = append(labels, label{at, s.Labels[run.first+k], look.color})
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

func (s Scatter) aspect() float64 { return 0 }

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
		style.Color = look.faint(0xB0) // crowds stay visible as such
		p.Add(&plotter.Scatter{XYs: xys, GlyphStyle: style})
	}
	widen(p)
	return p, nil
}

// Heatmap shows a matrix as coloured cells, the first row on top. Values that
// are not finite are grey.
type Heatmap struct {
	Title, XLabel, YLabel string
	ZLabel                string      // of the colours
	Z                     [][]float64 // rows of equal length
	Min, Max              float64     // the ends of the colours; both 0 means those of Z
}

func (h Heatmap) names() []string { return nil }

func (h Heatmap) aspect() float64 {
	if len(h.Z) == 0 {
		return 1
	}
	return max(0.25, min(4, float64(len(h.Z[0]))/float64(len(h.Z))))
}

func (h Heatmap) plot(func(string) look) (*plot.Plot, error) {
	if len(h.Z) == 0 || len(h.Z[0]) == 0 {
		return nil, errors.New("an empty matrix")
	}
	rows, cols := len(h.Z), len(h.Z[0])
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, row := range h.Z {
		if len(row) != cols {
			return nil, fmt.Errorf("row %d has %d columns, not %d", i, len(row), cols)
		}
		for _, z := range row {
			if finite(z) {
				lo, hi = min(lo, z), max(hi, z)
			}
		}
	}
	switch {
	case h.Min < h.Max:
		lo, hi = h.Min, h.Max
	case lo > hi: // there is no value
		lo, hi = 0, 1
	case lo == hi:
		lo, hi = lo-0.5, hi+0.5
	}
	colors := viridis()
	colors.SetMin(lo)
	colors.SetMax(hi)

	// Cells are blocks of pixels: an image as small as the matrix would be
	// smoothed when it is enlarged.
	block := 1 + 1023/max(rows, cols)
	img := image.NewRGBA(image.Rect(0, 0, cols*block, rows*block))
	for i, row := range h.Z {
		for j, z := range row {
			var c color.Color = color.Gray{0xC0}
			if finite(z) {
				c, _ = colors.At(max(lo, min(hi, z)))
			}
			cell := image.Rect(j*block, i*block, (j+1)*block, (i+1)*block)
			imagedraw.Draw(img, cell, image.NewUniform(c), image.Point{}, imagedraw.Src)
		}
	}
	p := newPlot(Axes{Title: h.Title, XLabel: h.XLabel, YLabel: h.YLabel})
	p.Add(plotter.NewImage(img, -0.5, -0.5, float64(cols)-0.5, float64(rows)-0.5), &colorBar{colors, h.ZLabel})
	p.X.Tick.Marker = indexTicks(cols, false)
	p.Y.Tick.Marker = indexTicks(rows, true)
	p.X.Padding, p.Y.Padding = 0, 0
	return p, nil
}

// viridis is the colour map of matplotlib (N. Smith, S. van der Walt, 2015) by
// five of its colours: its lightness grows evenly, also for the colour-blind
// and in print.
func viridis() palette.ColorMap {
	m, err := moreland.NewLuminance([]color.Color{
		color.NRGBA{0x44, 0x01, 0x54, 0xFF},
		color.NRGBA{0x3B, 0x52, 0x8B, 0xFF},
		color.NRGBA{0x21, 0x91, 0x8C, 0xFF},
		color.NRGBA{0x5E, 0xC9, 0x62, 0xFF},
		color.NRGBA{0xFD, 0xE7, 0x25, 0xFF},
	})
	if err != nil {
		panic(err) // only if the colours above did not grow lighter
	}
	return m
}

// colorBar draws the scale of colours to the right of the data.
type colorBar struct {
	colors palette.ColorMap
	label  string
}

const (
	barGap   = 10 // points
	barWidth = 12
)

// ticks returns at most so many ticks, all with a label.
func (b *colorBar) ticks(most int) []plot.Tick {
	return slices.DeleteFunc(linearTicks(b.colors.Min(), b.colors.Max(), most), plot.Tick.IsMinor)
}

// textWidth is the width of the widest tick's label.
func (b *colorBar) textWidth() (w vg.Length) {
	for _, t := range b.ticks(most) {
		w = max(w, textStyle(tickSize).Width(t.Label))
	}
	return w
}

// Plot implements [plot.Plotter].
func (b *colorBar) Plot(c draw.Canvas, _ *plot.Plot) {
	left, right := c.Max.X+barGap, c.Max.X+barGap+barWidth
	y := func(z float64) vg.Length {
		return c.Min.Y + vg.Length((z-b.colors.Min())/(b.colors.Max()-b.colors.Min()))*(c.Max.Y-c.Min.Y)
	}
	const steps = 256
	scale := image.NewNRGBA(image.Rect(0, 0, 1, steps))
	for i := range steps {
		z := b.colors.Max() - (b.colors.Max()-b.colors.Min())*float64(i)/(steps-1)
		col, _ := b.colors.At(max(b.colors.Min(), z))
		scale.Set(0, i, col)
	}
	c.DrawImage(vg.Rectangle{Min: vg.Point{X: left, Y: c.Min.Y}, Max: vg.Point{X: right, Y: c.Max.Y}}, scale)
	style := textStyle(tickSize)
	style.YAlign = draw.YCenter
	room := int((c.Max.Y - c.Min.Y) / (1.5 * tickSize))
	for _, t := range b.ticks(max(2, min(most, room))) {
		c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: 0.5}, right, y(t.Value), right+3, y(t.Value))
		c.FillText(style, vg.Point{X: right + 5, Y: y(t.Value)}, t.Label)
	}
	if b.label != "" {
		style := textStyle(labelSize)
		style.Rotation = math.Pi / 2
		style.XAlign, style.YAlign = draw.XCenter, draw.YTop
		c.FillText(style, vg.Point{X: right + 9 + b.textWidth(), Y: c.Center().Y}, b.label)
	}
}

// GlyphBoxes implements [plot.GlyphBoxer]: it keeps the room right of the data.
func (b *colorBar) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	w := barGap + barWidth + 5 + b.textWidth()
	if b.label != "" {
		w += 4 + textStyle(labelSize).Height(b.label)
	}
	return []plot.GlyphBox{{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: w}}}}
}
