package plot

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// label is a text beside a point.
type label struct {
	at    plotter.XY
	text  string
	color color.Color
}

// pointLabels draws every label next to its point, clear of points and other
// labels. The last of a series are placed first; one without room is left out.
type pointLabels []label

// labelGap is the distance between a point and its label, in typographic points.
const labelGap = 5

// Plot implements [plot.Plotter].
func (l pointLabels) Plot(c draw.Canvas, p *plot.Plot) {
	style := textStyle(tickSize)
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	toX, toY := p.Transforms(&c)
	var taken []vg.Rectangle
	for _, e := range l {
		taken = append(taken, around(toX(e.at.X), toY(e.at.Y), 5, 5))
	}
	for _, e := range slices.Backward(l) {
		w, h := style.Width(e.text), style.Height(e.text)
		x, y := toX(e.at.X), toY(e.at.Y)
		dx, dy := labelGap+w/2, labelGap+h/2
		for _, to := range []vg.Point{
			{X: dx, Y: dy}, {X: -dx, Y: dy}, {X: dx, Y: -dy}, {X: -dx, Y: -dy},
			{X: dx + 2}, {X: -dx - 2}, {Y: dy + 2}, {Y: -dy - 2},
			{X: dx, Y: 2 * dy}, {X: -dx, Y: 2 * dy}, {X: dx, Y: -2 * dy}, {X: -dx, Y: -2 * dy},
		} {
			box := around(x+to.X, y+to.Y, w, h)
			inside := box.Min.X >= c.Min.X && box.Max.X <= c.Max.X && box.Min.Y >= c.Min.Y && box.Max.Y <= c.Max.Y
			if inside && !slices.ContainsFunc(taken, func(r vg.Rectangle) bool { return overlap(r, box) }) {
				style.Color = e.color
				c.FillText(style, vg.Point{X: x + to.X, Y: y + to.Y}, e.text)
				taken = append(taken, box)
				break
			}
		}
	}
}

func around(x, y, w, h vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: x - w/2, Y: y - h/2}, Max: vg.Point{X: x + w/2, Y: y + h/2}}
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}
