package plot

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// frame maps the data of a panel to lengths, and collects what is drawn.
type frame struct {
	strings.Builder
	inline                   bool // in a page, which must not be large
	square                   bool // both axes have one range and one length
	width, height            float64
	x0, x1, y0, y1           float64 // data
	left, right, top, bottom float64 // lengths
}

func (f *frame) x(v float64) float64 { return f.left + (v-f.x0)/(f.x1-f.x0)*(f.right-f.left) }
func (f *frame) y(v float64) float64 { return f.bottom - (v-f.y0)/(f.y1-f.y0)*(f.bottom-f.top) }

// point is a place on the axes: of logarithms where they are logarithmic.
type point struct{ x, y float64 }

// place returns where (x, y) stands on the axes, and false if it is not on them.
func (a Axes) place(x, y float64) (point, bool) {
	if a.LogX {
		x = math.Log10(x)
	}
	if a.LogY {
		y = math.Log10(y)
	}
	return point{x, y}, finite(x) && finite(y)
}

// see makes the axes those of the points. It is false if there are none.
func (f *frame) see(points ...point) bool {
	f.x0 = math.Inf(1)
	f.x1 = math.Inf(-1)
	f.y0 = math.Inf(1)
	f.y1 = math.Inf(-1)
	for _, p := range points {
		f.x0 = min(f.x0, p.x)
		f.x1 = max(f.x1, p.x)
		f.y0 = min(f.y0, p.y)
		f.y1 = max(f.y1, p.y)
	}
	return len(points) > 0
}

// spread returns a range with some room around lo … hi.
func spread(lo, hi, share float64) (float64, float64) {
	margin := (hi - lo) * share
	if size := max(math.Abs(lo), math.Abs(hi)); margin <= 1e-9*size || margin == 0 {
		margin = max(size/10, 1e-9)
	}
	return lo - margin, hi + margin
}

// open lays out a panel whose labels of the y axis need some room, and draws the title
// and the x axis.
func (f *frame) open(a Axes, room, top float64) {
	f.left = room + 8
	f.right = f.width - 10
	f.top = top
	f.bottom = f.height - 36
	if f.square {
		f.squeeze()
	} else {
		f.x0, f.x1 = spread(f.x0, f.x1, 0.02)
	}
	if a.XNames != nil {
		f.x0, f.x1 = spread(0, float64(len(a.XNames)-1), 0.1)
	}
	f.text("title", f.width/2, 14, shorten(a.Title, int(f.width/(1.15*glyph))))
	limit := min(mostLabels, max(3, int((f.right-f.left)/36)))
	ticks := numbers(a.LogX, f.x0, f.x1, limit)
	for limit > 2 && f.crowded(ticks) {
		limit--
		if !a.LogX {
			ticks = numbers(false, f.x0, f.x1, limit)
			continue
		}
		for i := 1; i < len(ticks); i++ { // every other one
			ticks = slices.Delete(ticks, i, i+1)
		}
	}
	if a.XNames != nil {
		ticks = nil
		for i, name := range a.XNames {
			ticks = append(ticks, tick{float64(i), name})
		}
	}
	for _, t := range ticks {
		fmt.Fprintf(f, `<path class="grid" d="M%s %sV%s"/>`, px(f.x(t.value)), px(f.top), px(f.bottom))
		f.text("x", f.inside(t), f.bottom+14, t.label)
	}
	half := float64(utf8.RuneCountInString(a.XLabel)) * glyph / 2
	middle := max(half, min(f.width-half, (f.left+f.right)/2)) // all of it is inside
	f.text("x", middle, f.bottom+29, a.XLabel)
}

// squeeze makes the plot a square in the middle of its panel, whose x axis has the range of the y axis.
func (f *frame) squeeze() {
	f.x0 = f.y0
	f.x1 = f.y1
	width := f.right - f.left
	side := min(width, f.bottom-f.top)
	f.left += (width - side) / 2
	f.right = f.left + side
	f.top = f.bottom - side
}

// inside returns where a tick of the x axis has its label, all of it in the panel.
func (f *frame) inside(t tick) float64 {
	half := float64(utf8.RuneCountInString(t.label))*glyph/2 + 3
	return max(half, min(f.width-half, f.x(t.value)))
}

func (f *frame) crowded(ticks []tick) bool {
	for i := 1; i < len(ticks); i++ {
		a, b := ticks[i-1], ticks[i]
		if f.inside(b)-f.inside(a) < float64(
			utf8.RuneCountInString(a.label)+utf8.RuneCountInString(b.label),
		)/2*glyph+4 {
			return true
		}
	}
	return false
}

func (f *frame) numbered(a Axes) {
	f.y0, f.y1 = spread(f.y0, f.y1, 0.04)
	ticks := numbers(a.LogY, f.y0, f.y1, mostLabels-1)
	longest := 0
	for _, t := range ticks {
		longest = max(longest, utf8.RuneCountInString(t.label))
	}
	f.open(a, float64(longest)*glyph, 34)
	f.text("above", 0, 26, a.YLabel)
	for _, t := range ticks {
		fmt.Fprintf(f, `<path class="grid" d="M%s %sH%s"/>`, px(f.left), px(f.y(t.value)), px(f.right))
		f.text("y", f.left-4, f.y(t.value)+3.5, t.label)
	}
}

// group begins the element of a series.
func (f *frame) group(name, title string, index func(name string) int) (look int) {
	look = index(name)
	fmt.Fprintf(f, `<g class="%s" data-s="%d"><title>%s</title>`,
		Class(look), look, html.EscapeString(title))
	return look
}

// text writes at a place, which the class says how to align.
func (f *frame) text(class string, x, y float64, text string) {
	fmt.Fprintf(f, `<text class="%s" x="%s" y="%s">%s</text>`,
		class, px(x), px(y), html.EscapeString(text))
}

// path draws a line, or an area, through points.
func (f *frame) path(class, more string, points []point) {
	fmt.Fprintf(f, `<path class="%s"%s d="`, class, more)
	for i, p := range points {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		f.WriteString(letter + px(f.x(p.x)) + " " + px(f.y(p.y)))
	}
	f.WriteString(`"/>`)
}

func (f *frame) markers(look int, points []point) {
	if len(points) == 0 {
		return
	}
	f.WriteString(`<path class="dot" d="`)
	for _, p := range points {
		f.WriteString("M" + px(f.x(p.x)) + " " + px(f.y(p.y)) + markers[look%len(markers)])
	}
	f.WriteString(`"/>`)
}

type box struct{ x0, y0, x1, y1 float64 }

func around(x, y, w, h float64) box { return box{x - w/2, y - h/2, x + w/2, y + h/2} }

type label struct {
	point
	text string
	look int
}

// labels draws every label next to its point, clear of points and other labels. The
// last of a series are placed first; one without room is left out.
func (f *frame) labels(all []label) {
	var taken []box
	for _, l := range all {
		taken = append(taken, around(f.x(l.x), f.y(l.y), 5, 5))
	}
	for _, l := range slices.Backward(all) {
		w := glyph * float64(utf8.RuneCountInString(l.text))
		h := 11.0
		dx, dy := 5+w/2, 5+h/2
		for _, to := range [][2]float64{
			{dx, -dy},
			{-dx, -dy},
			{dx, dy},
			{-dx, dy},
			{dx + 2, 0},
			{-dx - 2, 0},
			{0, -dy - 2},
			{0, dy + 2},
			{dx, -2 * dy}, {-dx, -2 * dy}, {dx, 2 * dy}, {-dx, 2 * dy},
		} {
			x, y := f.x(l.x)+to[0], f.y(l.y)+to[1]
			b := around(x, y, w, h)
			inside := b.x0 >= f.left && b.x1 <= f.right && b.y0 >= f.top && b.y1 <= f.bottom
			if inside && !slices.ContainsFunc(taken, func(o box) bool {
				return b.x0 < o.x1 && o.x0 < b.x1 && b.y0 < o.y1 && o.y0 < b.y1
			}) {
				fmt.Fprintf(f, `<g class="%s">`, Class(l.look))
				f.text("x", x, y+4, l.text)
				f.WriteString("</g>")
				taken = append(taken, b)
				break
			}
		}
	}
}
