// Package plot draws the figures of experiments and reports as SVG.
//
// The mental model: a figure is a [Panel], which is one pair of axes with what is
// drawn on them: [Lines], [Scatter] or [Dots]. [Save] writes panels in a grid, with
// one legend below them, to a file; [Inline] returns one for an HTML page, in the
// page's font and in colours that follow its theme:
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
// equal bytes. A figure in a file is 8 inches wide and no letter is smaller than
// 11 points, so that it can be read at the width of a README.
//
// References: M. Okabe, K. Ito, "Color Universal Design", 2008,
// jfly.uni-koeln.de/color.
package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/specmatch/specmatch/tensor/files"
)

// Sizes, in points in a file, and in CSS pixels in a page where a panel is as wide as
// inlineWidth.
const (
	fileWidth    = 576 // 8 inches
	margin       = 8
	gap          = 16 // between panels
	inlineWidth  = 360
	inlineHeight = 230
	squareHeight = 330 // of an inline panel with a square plot
	rowHeight    = 19  // of Dots
	glyph        = 6.2 // width of a letter, about
)

// Panel is one pair of axes with what is drawn on them.
type Panel interface {
	names() []string // for the legend
	axes() Axes
	// draw draws into f, whose size is set; index is that of a name's look.
	draw(f *frame, index func(name string) int) error
}

// Axes are a panel's title and axes. Labels name the unit, as in "time (s)".
type Axes struct {
	Title, XLabel, YLabel string
	LogX, LogY            bool
	XNames                []string // of x = 0, 1, …, instead of numbers; nil for numbers
}

func (a Axes) axes() Axes { return a }

// Save draws the panels in a grid of cols columns, and writes base.svg, whole or not at
// all, into a folder that it makes if need be. Without panels it writes nothing.
func Save(base string, cols int, panels ...Panel) error {
	if len(panels) == 0 {
		return nil
	}
	if cols < 1 {
		return fmt.Errorf("plot: %s: %d panels in %d columns", base, len(panels), cols)
	}
	cols = min(cols, len(panels))
	width := float64(fileWidth-2*margin-(cols-1)*gap) / float64(cols)
	height := max(200, 0.55*width) // wide panels are flat; narrow ones need their height for the labels
	var legend []entry             // looks are assigned in the order in which names appear
	index := func(name string) int {
		return slices.IndexFunc(legend, func(e entry) bool { return e.name == name })
	}
	for _, p := range panels {
		_, isLines := p.(Lines)
		for _, name := range p.names() {
			if index(name) < 0 {
				legend = append(legend, entry{name, isLines})
			}
		}
	}
	var body strings.Builder
	bottom := 0.0
	for i, p := range panels {
		f := &frame{width: width, height: height}
		err := p.draw(f, index)
		if err != nil {
			return fmt.Errorf("plot: %s: panel %d: %w", base, i+1, err)
		}
		fmt.Fprintf(
			&body,
			"<svg x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\">%s</svg>\n",
			px(margin+float64(i%cols)*(width+gap)), px(margin+float64(i/cols)*(height+gap)),
			px(width), px(f.height), f,
		)
		bottom = max(bottom, margin+float64(i/cols)*(height+gap)+f.height+gap)
	}
	if _, isDots := panels[0].(Dots); isDots { // whose rows have their names beside them
		legend = nil
	}
	keys, bottom := drawLegend(legend, bottom)
	if err := os.MkdirAll(filepath.Dir(base), 0o777); err != nil {
		return err
	}
	return files.Write(base+".svg", func(w io.Writer) error {
		_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" class="plot"
 width="%dpt" height="%spt" viewBox="0 0 %[1]d %[2]s">
<style>
.plot{color:#000;font-family:Liberation Sans,Arial,sans-serif}
%s%s</style>
<rect width="100%%" height="100%%" fill="#fff"/>
%s%s</svg>
`, fileWidth, px(bottom), style, colours(func(light, _ string) string {
			return "color:" + light
		}), &body, keys)
		return err
	})
}

// Inline returns a panel as an SVG element for an HTML page, which needs [InlineStyle].
// A series has the look of the index of its name, and the attribute data-s with that
// index.
func Inline(p Panel, index func(name string) int) (string, error) {
	f := &frame{inline: true, width: inlineWidth, height: inlineHeight}
	if err := p.draw(f, index); err != nil {
		return "", err
	}
	a := p.axes()
	return fmt.Sprintf(`<svg class="plot" viewBox="0 0 %s %s" role="img" aria-label="%s">%s</svg>`,
		px(f.width), px(f.height), html.EscapeString(a.Title+": "+a.YLabel+", "+a.XLabel), f), nil
}

// InlineStyle is the style sheet of [Inline] elements, and of the classes s0, s1, …,
// which give other elements the colour var(--c) of a series. Which of the two themes
// holds is the page's property color-scheme.
func InlineStyle() string {
	return ".plot{display:block;width:100%;height:auto}\n.plot g{color:var(--c)}\n" + style +
		colours(func(light, dark string) string {
			return "--c:light-dark(" + light + "," + dark + ")"
		})
}

// style is what files and pages have in common; currentColor is a series's.
const style = `.plot text{font-size:11px;fill:currentColor}
.plot .title{font-size:12px;font-weight:600;text-anchor:middle}
.plot .x{text-anchor:middle}.plot .y{text-anchor:end}
.plot .grid{stroke:currentColor;opacity:.15;fill:none}
.plot .zero{stroke:currentColor;opacity:.6}
.plot .line{fill:none;stroke:currentColor;stroke-width:1.6;stroke-linejoin:round}
.plot .band{fill:currentColor;opacity:.16}
.plot .dot{fill:currentColor}.plot .faint{fill:currentColor;opacity:.5}
`

// colours are the rules of the classes s0, s1, …, each with what rule makes of the
// colour on a light and on a dark page.
func colours(rule func(light, dark string) string) string {
	var b strings.Builder
	for i, c := range okabeIto {
		dark := c
		switch i { // what is dark on a dark page
		case 0:
			dark = "#4DA3E0"
		case 6:
			dark = "#F2F2F2"
		case 7: // what is pale on a light one
			c = "#A89800"
		}
		fmt.Fprintf(&b, ".s%d{%s}\n", i, rule(c, dark))
	}
	return b.String()
}

// The palette of Okabe and Ito. Black and yellow come last: black is the axes'
// colour, and yellow is pale on white.
var okabeIto = []string{
	"#0072B2", // blue
	"#E69F00", // orange
	"#009E73", // bluish green
	"#D55E00", // vermillion
	"#CC79A7", // reddish purple
	"#56B4E9", // sky blue
	"#000000", // black
	"#F0E442", // yellow
}

// dashes and markers of looks. The counts of these and of the colours have no common
// divisor, so 56 looks differ. A marker is the rest of a path that has moved to a point.
var (
	dashes  = []string{"", "6 3", "2 2", "8 3 2 3", "10 4", "4 2 1 2", "1 3"}
	markers = []string{
		"m-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0z",  // circle
		"m-2.3-2.3h4.6v4.6h-4.6z",                           // square
		"m0-3.1l2.9 5.2h-5.8z",                              // triangle
		"m0-3.4l3.4 3.4l-3.4 3.4l-3.4-3.4z",                 // diamond
		"m0 3.1l2.9-5.2h-5.8z",                              // triangle on its tip
		"m-1-3.1h2v2.1h2.1v2h-2.1v2.1h-2v-2.1h-2.1v-2h2.1z", // cross
		"m-3.4-1.8h6.8v3.6h-6.8z",                           // bar
	}
)

// Class is the class of the look of index i, and Dashes its attribute of dashes, ""
// for a whole line.
func Class(i int) string { return fmt.Sprintf("s%d", i%len(okabeIto)) }

// Dashes returns the attribute stroke-dasharray of the look of index i.
func Dashes(i int) string {
	d := dashes[i%len(dashes)]
	if d == "" {
		return ""
	}
	return ` stroke-dasharray="` + d + `"`
}

type entry struct {
	name string
	line bool // drawn as a line, not as points
}

func (e entry) sizes() (picture, name float64) {
	picture = 12
	if e.line {
		picture = 32
	}
	return picture, glyph * float64(utf8.RuneCountInString(e.name))
}

// drawLegend returns what stands below the panels from y on, rows of pictures and names,
// and where it ends. A figure with a single name needs no legend.
func drawLegend(entries []entry, y float64) (string, float64) {
	if len(entries) < 2 {
		return "", y
	}
	const height, space = 16, 18
	var b strings.Builder
	for i := 0; i < len(entries); y += height {
		end := i
		total := -float64(space)
		for ; end < len(entries); end++ {
			picture, name := entries[end].sizes()
			if end > i && total+space+picture+name > fileWidth-2*margin {
				break
			}
			total += space + picture + name
		}
		x := (fileWidth - total) / 2
		for ; i < end; i++ {
			picture, name := entries[i].sizes()
			fmt.Fprintf(&b, `<g class="%s">`, Class(i))
			if entries[i].line {
				fmt.Fprintf(&b, `<path class="line"%s d="M%s %sh28"/>`, Dashes(i), px(x), px(y))
			}
			fmt.Fprintf(&b, `<path class="dot" d="M%s %s%s"/></g>`,
				px(x+picture/2-2), px(y), markers[i%len(markers)])
			x += picture
			fmt.Fprintf(&b, "<text x=\"%s\" y=\"%s\">%s</text>\n",
				px(x), px(y+4), html.EscapeString(entries[i].name))
			x += name + space
		}
	}
	return b.String(), y
}

func px(v float64) string { return strconv.FormatFloat(math.Round(10*v)/10, 'f', -1, 64) }

// finite excludes NaN and ±Inf, and numbers so large that the length of an axis
// would be one of them.
func finite(x float64) bool { return math.Abs(x) < 1e300 }
