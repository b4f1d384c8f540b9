package plot

import (
	"errors"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot"
)

// Inline is a panel that can stand in an HTML page as an SVG element: a fraction of
// the size of a file of [Save], in the page's font and in colours that follow its
// theme. The page needs [InlineStyle].
type Inline interface {
	// Inline returns the element. A series has the look of the index of its name,
	// and the attribute data-s with that index.
	Inline(index func(name string) int) (string, error)
}

// InlineStyle is the style sheet of [Inline] elements, and of the classes s0, s1, …,
// which give other elements the colour var(--c) of a series. Which of the two themes
// holds is the page's property color-scheme.
func InlineStyle() string {
	var b strings.Builder
	b.WriteString(`.plot{display:block;width:100%;height:auto}
.plot text{font-size:11px;fill:currentColor}
.plot .title{font-size:12px;font-weight:600;text-anchor:middle}
.plot .x{text-anchor:middle}.plot .y{text-anchor:end}
.plot .grid{stroke:currentColor;opacity:.15;fill:none}
.plot .zero{stroke:currentColor;opacity:.6}
.plot .line{fill:none;stroke:var(--c);stroke-width:1.6;stroke-linejoin:round}
.plot .band{fill:var(--c);opacity:.16}
.plot .dot{fill:var(--c)}.plot .faint{fill:var(--c);opacity:.45}
`)
	for i, c := range okabeIto {
		dark := c
		switch i { // what is dark on a dark page
		case 0:
			dark.R, dark.G, dark.B = 0x4D, 0xA3, 0xE0
		case 6:
			dark.R, dark.G, dark.B = 0xF2, 0xF2, 0xF2
		case 7: // what is pale on a light one
			c.R, c.G, c.B = 0xA8, 0x98, 0x00
		}
		fmt.Fprintf(&b, ".s%d{--c:light-dark(#%02X%02X%02X,#%02X%02X%02X)}\n", i, c.R, c.G, c.B, dark.R, dark.G, dark.B)
	}
	return b.String()
}

// InlineClass is the class of the look of index i, and InlineDashes its attribute of
// dashes, "" for a whole line.
func InlineClass(i int) string { return fmt.Sprintf("s%d", i%len(okabeIto)) }

// InlineDashes returns the attribute stroke-dasharray of the look of index i.
func InlineDashes(i int) string {
	d := dashes[i%len(dashes)]
	if d == nil {
		return ""
	}
	return ` stroke-dasharray="` + strings.Trim(fmt.Sprint(d), "[]") + `"`
}

// Sizes of an inline panel, in CSS pixels where it is as wide as this.
const (
	inlineWidth  = 360
	inlineHeight = 230
	inlineRow    = 19  // of Dots
	inlineGlyph  = 6.2 // width of a letter, about
	inlineSide   = 10  // free at the right
)

// frame maps data to pixels, and collects what is drawn.
type frame struct {
	strings.Builder
	x0, x1, y0, y1           float64 // data
	left, right, top, bottom float64 // pixels
}

func (f *frame) x(v float64) float64 { return f.left + (v-f.x0)/(f.x1-f.x0)*(f.right-f.left) }
func (f *frame) y(v float64) float64 { return f.bottom - (v-f.y0)/(f.y1-f.y0)*(f.bottom-f.top) }

// see widens the range so that v is in it.
func (f *frame) see(x, y float64) {
	f.x0, f.x1 = min(f.x0, x), max(f.x1, x)
	f.y0, f.y1 = min(f.y0, y), max(f.y1, y)
}

// spread returns a range with some room around lo … hi.
func spread(lo, hi, share float64) (float64, float64) {
	by := (hi - lo) * share
	if size := max(math.Abs(lo), math.Abs(hi)); by <= 1e-9*size || by == 0 {
		by = max(size/10, 1e-9)
	}
	return lo - by, hi + by
}

// open begins the element, with the title.
func (f *frame) open(a Axes, height float64) {
	fmt.Fprintf(f, `<svg class="plot" viewBox="0 0 %d %.0f" role="img" aria-label="%s">`, inlineWidth, height, html.EscapeString(a.Title+": "+a.YLabel+", "+a.XLabel))
	fmt.Fprintf(f, `<text class="title" x="%.0f" y="14">%s</text>`, (f.left+f.right)/2, html.EscapeString(a.Title))
}

// xAxis draws labels, grid lines and the axis's name.
func (f *frame) xAxis(ticks []plot.Tick, label string) {
	for _, t := range ticks {
		if t.Label != "" && t.Value >= f.x0 && t.Value <= f.x1 {
			fmt.Fprintf(f, `<path class="grid" d="M%[1]s %[2]sV%[3]s"/><text class="x" x="%[1]s" y="%[4]s">%[5]s</text>`, px(f.x(t.Value)), px(f.top), px(f.bottom), px(f.bottom+14), html.EscapeString(t.Label))
		}
	}
	half := float64(utf8.RuneCountInString(label)) * inlineGlyph / 2
	middle := max(half, min(inlineWidth-half, (f.left+f.right)/2)) // all of it is inside
	fmt.Fprintf(f, `<text class="x" x="%.0f" y="%.0f">%s</text>`, middle, f.bottom+29, html.EscapeString(label))
}

// px formats a length in pixels.
func px(v float64) string { return strconv.FormatFloat(math.Round(10*v)/10, 'f', -1, 64) }

// xTicks returns the ticks of the x axis.
func (a Axes) xTicks(lo, hi float64) []plot.Tick {
	switch {
	case a.XNames != nil:
		return a.nameTicks()
	case a.LogX:
		return logTicks(lo, hi)
	}
	return linearTicks(lo, hi, mostLabels)
}

// Inline implements [Inline].
func (l Lines) Inline(index func(name string) int) (string, error) {
	f := &frame{x0: math.Inf(1), x1: math.Inf(-1), y0: math.Inf(1), y1: math.Inf(-1)}
	for _, s := range l.Series {
		for _, r := range l.runs(s) {
			for i := range r.middle {
				f.see(r.low[i].X, r.low[i].Y)
				f.see(r.high[i].X, r.high[i].Y)
			}
		}
	}
	if f.x0 > f.x1 {
		return "", errors.New("no series has a point that can be drawn")
	}
	switch {
	case l.XNames != nil:
		f.x0, f.x1 = spread(0, float64(len(l.XNames)-1), 0.1)
	case f.x0 == f.x1:
		f.x0, f.x1 = spread(f.x0, f.x1, 0)
	}
	f.y0, f.y1 = spread(f.y0, f.y1, 0.04)
	yTicks := linearTicks(f.y0, f.y1, mostLabels-1)
	if l.LogY {
		yTicks = logTicks(f.y0, f.y1)
	}
	longest := 0
	for _, t := range yTicks {
		longest = max(longest, utf8.RuneCountInString(t.Label))
	}
	f.left, f.right, f.top, f.bottom = float64(longest)*inlineGlyph+8, inlineWidth-inlineSide, 34, inlineHeight-36
	f.open(l.Axes, inlineHeight)
	fmt.Fprintf(f, `<text x="0" y="28">%s</text>`, html.EscapeString(l.YLabel))
	for _, t := range yTicks {
		if t.Label != "" && t.Value >= f.y0 && t.Value <= f.y1 {
			y := f.y(t.Value)
			fmt.Fprintf(f, `<path class="grid" d="M%.1f %.1fH%.0f"/><text class="y" x="%.1f" y="%.1f">%s</text>`, f.left, y, f.right, f.left-4, y+3.5, t.Label)
		}
	}
	f.xAxis(l.xTicks(f.x0, f.x1), l.XLabel)
	for _, s := range l.Series {
		f.series(l, s, index(s.Name))
	}
	f.WriteString("</svg>")
	return f.String(), nil
}

// series draws one line with its errors, and markers at points with error bars and at
// those that no line joins to others.
func (f *frame) series(l Lines, s Series, look int) {
	fmt.Fprintf(f, `<g class="%s" data-s="%d"><title>%s</title>`, InlineClass(look), look, html.EscapeString(s.Name))
	for _, r := range l.runs(s) {
		if s.Err != nil && !s.Bars && len(r.middle) > 1 {
			f.WriteString(`<path class="band" d="`)
			for i, p := range r.high {
				f.to(i, p.X, p.Y)
			}
			for i := range r.low {
				p := r.low[len(r.low)-1-i]
				f.to(1, p.X, p.Y)
			}
			f.WriteString(`Z"/>`)
		}
		for i := range r.middle {
			if s.Err != nil && s.Bars {
				fmt.Fprintf(f, `<path class="line" d="M%.1f %.1fV%.1f"/>`, f.x(r.low[i].X), f.y(r.low[i].Y), f.y(r.high[i].Y))
			}
		}
		if len(r.middle) > 1 {
			f.WriteString(`<path class="line"` + InlineDashes(look) + ` d="`)
			for i, p := range r.middle {
				f.to(i, p.X, p.Y)
			}
			f.WriteString(`"/>`)
		}
		if s.Bars || len(r.middle) == 1 {
			for _, p := range r.middle {
				fmt.Fprintf(f, `<circle class="dot" cx="%.1f" cy="%.1f" r="2.6"/>`, f.x(p.X), f.y(p.Y))
			}
		}
	}
	f.WriteString("</g>")
}

// to continues a path.
func (f *frame) to(i int, x, y float64) {
	letter := "L"
	if i == 0 {
		letter = "M"
	}
	f.WriteString(letter + px(f.x(x)) + " " + px(f.y(y)))
}

// Dots is a chart of rows: the values of each as dots, with their mean and an interval
// around it.
type Dots struct {
	Axes // YLabel and LogY are not used
	Rows []DotRow
	Zero bool // 0 is on the axis, with a line
}

// DotRow is a row of [Dots].
type DotRow struct {
	Name   string
	Points []float64
	Mean   float64
	Half   float64 // of the interval; NaN for none
}

// Inline implements [Inline]: every row has the look of its name.
func (d Dots) Inline(index func(name string) int) (string, error) {
	f := &frame{x0: math.Inf(1), x1: math.Inf(-1)}
	longest := 0
	for _, r := range d.Rows {
		longest = max(longest, utf8.RuneCountInString(r.Name))
		half := r.Half
		if !finite(half) {
			half = 0
		}
		for _, v := range append([]float64{r.Mean - half, r.Mean + half}, r.Points...) {
			if finite(v) {
				f.see(v, 0)
			}
		}
	}
	if f.x0 > f.x1 {
		return "", errors.New("no row has a value that can be drawn")
	}
	if d.Zero {
		f.see(0, 0)
	}
	f.x0, f.x1 = spread(f.x0, f.x1, 0.04)
	height := float64(20+len(d.Rows)*inlineRow) + 36
	f.left, f.right, f.top, f.bottom = min(float64(longest)*inlineGlyph+8, 0.57*inlineWidth), inlineWidth-inlineSide, 20, height-36
	f.open(d.Axes, height)
	f.xAxis(linearTicks(f.x0, f.x1, max(3, int((f.right-f.left)/36))), d.XLabel)
	if d.Zero {
		fmt.Fprintf(f, `<path class="zero" d="M%.1f %.0fV%.0f"/>`, f.x(0), f.top, f.bottom)
	}
	for i, r := range d.Rows {
		y := f.top + (float64(i)+0.5)*inlineRow
		look := index(r.Name)
		fmt.Fprintf(f, `<text class="y" x="%.1f" y="%.1f">%s</text><g class="%s" data-s="%d"><title>%s</title>`,
			f.left-4, y+3.5, html.EscapeString(shorten(r.Name, int((f.left-8)/inlineGlyph))), InlineClass(look), look, html.EscapeString(fmt.Sprintf("%s: %.4g", r.Name, r.Mean)))
		for _, v := range r.Points {
			if finite(v) {
				fmt.Fprintf(f, `<circle class="faint" cx="%.1f" cy="%.1f" r="3"/>`, f.x(v), y)
			}
		}
		if finite(r.Half) {
			fmt.Fprintf(f, `<path class="line" d="M%.1f %.1fH%.1f"/>`, f.x(r.Mean-r.Half), y, f.x(r.Mean+r.Half))
		}
		if finite(r.Mean) {
			fmt.Fprintf(f, `<path class="line" stroke-width="2.5" d="M%.1f %.1fv10"/>`, f.x(r.Mean), y-5)
		}
		f.WriteString("</g>")
	}
	f.WriteString("</svg>")
	return f.String(), nil
}

// shorten cuts a text to n letters.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n && n > 1 {
		return string(r[:n-1]) + "…"
	}
	return s
}
