// Package plot draws the experiments' figures: a thin layer on gonum/plot that
// fixes what all our figures have in common.
//
// The mental model: a figure is a grid of panels ([Lines], [Scatter]) with one
// legend below them, and [Save] writes it twice, as SVG and as PNG:
//
//	err := plot.Save("runs/x/loss", 2, plot.Lines{
//		Axes:   plot.Axes{Title: "MUTAG", XLabel: "epoch", YLabel: "loss (nats)"},
//		Series: []plot.Series{{Name: "specmatch", X: epochs, Y: mean, Err: std}},
//	}, …)
//
// Invariants. A name has one colour, dash and marker in all panels of a figure.
// Colours are those of Okabe and Ito, which people with any common colour
// blindness tell apart, and no figure relies on colour alone. Values that are
// not finite, or not positive on a logarithmic axis, are gaps. Equal data give
// equal bytes. A figure is 8 inches wide, the PNG 1600 pixels, and no letter
// is smaller than 11 points, so that it can be read at the width of a README.
//
// References: M. Okabe, K. Ito, "Color Universal Design", 2008,
// jfly.uni-koeln.de/color.
package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/specmatch/specmatch/internal/files"
)

// Sizes of a figure.
const (
	width  = 8 * vg.Inch
	dpi    = 200 // 8 inches are 1600 pixels
	margin = 8   // points
	gap    = 16  // points between panels

	titleGap  = 6  // points, between a title and the data
	titleSize = 13 // points
	labelSize = 12
	tickSize  = 11
)

// Panel is one pair of axes with what is drawn on them: [Lines] or [Scatter].
type Panel interface {
	names() []string // for the legend
	plot(look func(name string) look) (*plot.Plot, error)
}

// Axes are a panel's title and axes. Labels name the unit, as in "time (s)".
// They may use the glyphs of Liberation Sans: Latin and Greek, also − ± · ≤ ‖ Σ √,
// but neither ∇ nor ⟨.
type Axes struct {
	Title, XLabel, YLabel string
	LogX, LogY            bool
	XNames                []string // of x = 0, 1, …, instead of numbers; nil for numbers
}

// nameTicks are the ticks of an axis of names.
func (a Axes) nameTicks() (ticks []plot.Tick) {
	for i, name := range a.XNames {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
	}
	return ticks
}

// Save draws the panels in a grid of cols columns, and writes base.svg and
// base.png, each whole or not at all, into a folder that it makes if need be.
func Save(base string, cols int, panels ...Panel) error {
	if len(panels) == 0 || cols < 1 {
		return fmt.Errorf("plot: %s: %d panels in %d columns", base, len(panels), cols)
	}
	f, err := newFigure(min(cols, len(panels)), panels)
	if err != nil {
		return fmt.Errorf("plot: %s: %w", base, err)
	}
	if err := os.MkdirAll(filepath.Dir(base), 0o777); err != nil {
		return err
	}
	svg := vgsvg.New(width, f.height)
	png := vgimg.NewWith(vgimg.UseWH(width, f.height), vgimg.UseDPI(dpi))
	f.draw(draw.New(svg))
	f.draw(draw.New(png))
	return errors.Join(
		files.Write(base+".svg", func(w io.Writer) error {
			var b bytes.Buffer
			if _, err := svg.WriteTo(&b); err != nil {
				return err
			}
			_, err := repairs.WriteString(w, b.String())
			return err
		}),
		files.Write(base+".png", func(w io.Writer) error {
			_, err := vgimg.PngCanvas{Canvas: png}.WriteTo(w)
			return err
		}),
	)
}

// repairs are what gonum's SVG needs to look the same everywhere.
var repairs = strings.NewReplacer(
	// Where Liberation Sans is not installed, Arial has the same widths, so
	// that nothing moves.
	"font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,sans-serif;",
)

// figure is a laid-out grid of panels.
type figure struct {
	height vg.Length
	plots  [][]*plot.Plot
	legend *legend
}

func newFigure(cols int, panels []Panel) (*figure, error) {
	// Looks are assigned in the order in which names appear.
	f := &figure{legend: &legend{}}
	looks := map[string]look{}
	for _, p := range panels {
		_, isLines := p.(Lines)
		for _, name := range p.names() {
			if _, ok := looks[name]; !ok {
				looks[name] = newLook(len(looks))
				f.legend.entries = append(f.legend.entries, entry{name, looks[name], isLines})
			}
		}
	}
	rows := (len(panels) + cols - 1) / cols
	f.plots = make([][]*plot.Plot, rows)
	for i := range rows {
		f.plots[i] = make([]*plot.Plot, cols)
	}
	for i, p := range panels {
		q, err := p.plot(func(name string) look { return looks[name] })
		if err != nil {
			return nil, fmt.Errorf("panel %d: %w", i+1, err)
		}
		f.plots[i/cols][i%cols] = q
	}
	// Wide panels are flat; narrow ones need their height for the labels.
	panel := max(2.6*vg.Inch, 0.55*width/vg.Length(cols))
	f.height = vg.Length(rows)*panel + f.legend.height() + 2*margin
	return f, nil
}

// draw draws the figure on a canvas of its size.
func (f *figure) draw(c draw.Canvas) {
	c.SetColor(color.White) // also between panels: a page may be dark
	c.Fill(c.Rectangle.Path())
	f.legend.draw(c)
	c = draw.Crop(c, margin, -margin, margin+f.legend.height(), -margin)
	tiles := draw.Tiles{Rows: len(f.plots), Cols: len(f.plots[0]), PadX: gap, PadY: gap}
	canvases := plot.Align(f.plots, tiles, c)
	for i, row := range f.plots {
		for j, p := range row {
			if p != nil {
				p.Draw(canvases[i][j])
			}
		}
	}
}

// legend is the strip below the panels: thumbnails and names, in rows.
type legend struct{ entries []entry }

type entry struct {
	name string
	look look
	line bool
}

const (
	thumbWidth  = 28 // points
	pointWidth  = 8
	entryGap    = 18
	entryHeight = 16
)

// rows breaks the entries into rows that fit. A figure with a single name needs
// no legend.
func (l *legend) rows() [][]entry {
	if len(l.entries) < 2 {
		return nil
	}
	var rows [][]entry
	var used vg.Length
	for _, e := range l.entries {
		w := e.width()
		if len(rows) == 0 || used+w > width-2*margin {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		used += w
	}
	return rows
}

// thumb is the width of the entry's picture: a line, or a point.
func (e entry) thumb() vg.Length {
	if e.line {
		return thumbWidth
	}
	return pointWidth
}

func (e entry) width() vg.Length {
	return e.thumb() + 4 + textStyle(labelSize).Width(e.name) + entryGap
}

func (l *legend) height() vg.Length {
	n := len(l.rows())
	if n == 0 {
		return 0
	}
	return vg.Length(n)*entryHeight + margin
}

func (l *legend) draw(c draw.Canvas) {
	style := textStyle(labelSize)
	style.YAlign = draw.YCenter
	for r, row := range l.rows() {
		var total vg.Length
		for _, e := range row {
			total += e.width()
		}
		x := c.Center().X - (total-entryGap)/2
		y := c.Min.Y + l.height() - (vg.Length(r)+0.5)*entryHeight
		for _, e := range row {
			if e.line {
				c.StrokeLine2(e.look.line(), x, y, x+thumbWidth, y)
			}
			c.DrawGlyphNoClip(e.look.glyph(), vg.Point{X: x + e.thumb()/2, Y: y})
			c.FillText(style, vg.Point{X: x + e.thumb() + 4, Y: y}, e.name)
			x += e.width()
		}
	}
}

// look is how a name is drawn.
type look struct {
	color  color.NRGBA
	dashes []vg.Length
	shape  draw.GlyphDrawer
}

// The palette of Okabe and Ito. Black and yellow come last: black is the axes'
// colour, and yellow is pale on white.
var okabeIto = []color.NRGBA{
	{0x00, 0x72, 0xB2, 0xFF}, // blue
	{0xE6, 0x9F, 0x00, 0xFF}, // orange
	{0x00, 0x9E, 0x73, 0xFF}, // bluish green
	{0xD5, 0x5E, 0x00, 0xFF}, // vermillion
	{0xCC, 0x79, 0xA7, 0xFF}, // reddish purple
	{0x56, 0xB4, 0xE9, 0xFF}, // sky blue
	{0x00, 0x00, 0x00, 0xFF}, // black
	{0xF0, 0xE4, 0x42, 0xFF}, // yellow
}

var (
	dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}, {10, 4}, {4, 2, 1, 2}, {1, 3}}
	shapes = []draw.GlyphDrawer{
		draw.CircleGlyph{},
		shape{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
		shape{{-1.1, -0.8}, {1.1, -0.8}, {0, 1.2}},
		shape{{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
		shape{{-1.1, 0.8}, {1.1, 0.8}, {0, -1.2}},
		shape{{-1.2, -0.4}, {-0.4, -0.4}, {-0.4, -1.2}, {0.4, -1.2}, {0.4, -0.4}, {1.2, -0.4}, {1.2, 0.4}, {0.4, 0.4}, {0.4, 1.2}, {-0.4, 1.2}, {-0.4, 0.4}, {-1.2, 0.4}},
		shape{{-1.3, -0.7}, {1.3, -0.7}, {1.3, 0.7}, {-1.3, 0.7}},
	}
)

// shape is a filled polygon around (0, 0), for a radius of 1. The glyphs of
// gonum that are not filled are too thin to tell apart.
type shape [][2]vg.Length

// DrawGlyph implements [draw.GlyphDrawer].
func (s shape) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	var path vg.Path
	for i, p := range s {
		to := at.Add(vg.Point{X: style.Radius * p[0], Y: style.Radius * p[1]})
		if i == 0 {
			path.Move(to)
		} else {
			path.Line(to)
		}
	}
	path.Close()
	c.SetColor(style.Color)
	c.Fill(path)
}

// newLook returns the look of the i-th name. The counts of colours and of the
// rest have no common divisor, so 56 looks differ.
func newLook(i int) look {
	return look{okabeIto[i%len(okabeIto)], dashes[i%len(dashes)], shapes[i%len(shapes)]}
}

func (l look) line() draw.LineStyle {
	return draw.LineStyle{Color: l.color, Width: 1.6, Dashes: l.dashes}
}

func (l look) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.color, Radius: 2.6, Shape: l.shape}
}

// faint is the colour at an opacity, for bands and crowds of points.
func (l look) faint(alpha uint8) color.NRGBA {
	c := l.color
	c.A = alpha
	return c
}

func textStyle(size vg.Length) text.Style {
	return text.Style{
		Color:   color.Black,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		Handler: plot.DefaultTextHandler,
	}
}

// newPlot returns an empty plot in our style.
func newPlot(a Axes) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = a.XLabel, a.YLabel
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = textStyle(labelSize).Font
		axis.Label.Padding = 4
		axis.Tick.Label.Font = textStyle(tickSize).Font
		axis.Tick.Length = 4
		axis.Tick.Marker = plot.TickerFunc(func(lo, hi float64) []plot.Tick { return linearTicks(lo, hi, mostLabels) })
	}
	if a.LogX {
		p.X.Tick.Marker = plot.TickerFunc(logTicks)
	}
	if a.LogY {
		p.Y.Tick.Marker = plot.TickerFunc(logTicks)
	}
	if a.XNames != nil {
		p.X.Tick.Marker = plot.ConstantTicks(a.nameTicks())
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color = color.Gray{0xE0}
	grid.Horizontal.Color = color.Gray{0xE0}
	p.Add(grid)
	if a.Title != "" {
		p.Add(title(a.Title))
	}
	return p
}

// place returns where (x, y) stands on the axes, and false if it is not on them.
// Our logarithmic axis is a linear one of logarithms, because gonum reserves room
// for the labels of its own LogScale in the wrong place.
func (a Axes) place(x, y float64) (plotter.XY, bool) {
	if a.LogX {
		x = math.Log10(x)
	}
	if a.LogY {
		y = math.Log10(y)
	}
	return plotter.XY{X: x, Y: y}, finite(x) && finite(y)
}

// finite excludes NaN and ±Inf, and numbers so large that the length of an axis
// would be one of them.
func finite(x float64) bool { return math.Abs(x) < 1e300 }

// title is a panel's title, centred above the data. (That of gonum is centred
// above data and labels together, so that it moves when panels are aligned.)
type title string

// Plot implements [plot.Plotter].
func (t title) Plot(c draw.Canvas, _ *plot.Plot) {
	style := textStyle(titleSize)
	style.XAlign = draw.XCenter
	c.FillText(style, vg.Point{X: c.Center().X, Y: c.Max.Y + titleGap}, string(t))
}

// GlyphBoxes implements [plot.GlyphBoxer]: it keeps the room above the data.
func (t title) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	h := titleGap + textStyle(titleSize).Height(string(t))
	return []plot.GlyphBox{{X: 0.5, Y: 1, Rectangle: vg.Rectangle{Max: vg.Point{Y: h}}}}
}

// widen gives axes that have seen only one value a range around it.
func widen(p *plot.Plot) {
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		if size := max(math.Abs(axis.Min), math.Abs(axis.Max)); axis.Max-axis.Min <= 1e-9*size {
			by := max(size/10, 1e-9)
			axis.Min, axis.Max = axis.Min-by, axis.Max+by
		}
	}
}
