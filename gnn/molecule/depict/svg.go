package depict

import (
	"fmt"
	"html"
	"math"
	"math/cmplx"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// Options say how a drawing is written as SVG.
type Options struct {
	Title string // for readers who cannot see the drawing
	Class string // of the SVG element; "molecule" if empty
	// Width and Height are the least size of the viewBox, in which a bond is 30 long. The drawing is in the
	// middle.
	Width  float64
	Height float64
	// Weights are values of the atoms, such as contributions to a prediction. The area of a disc shows the
	// size, relative to the largest, and its colour the sign: vermillion raises, blue lowers. nil for none.
	Weights []float64
}

// Sizes in the SVG.
const (
	bondLength = 30
	fontSize   = 14
	lineWidth  = 1.5
	lineGap    = 5.0 // between the lines of a double bond
	wedgeWidth = 6.5
	margin     = 8
	largestDot = 13 // radius
)

// Colours of weights (Okabe and Ito).
const (
	raises = "#d55e00"
	lowers = "#0072b2"
)

// colours are those of elements other than the page's, legible on white and on black.
var colours = map[string]string{
	"N":  "#4070e0",
	"O":  "#e03a2c",
	"F":  "#2f9440",
	"P":  "#cc6f10",
	"S":  "#a58200",
	"Cl": "#2f9440",
	"Br": "#aa5a30",
	"I":  "#9048b4",
	"B":  "#c06a50",
}

// Colour returns the colour of an element by its atomic number, or "" if it is drawn in the page's colour.
func Colour(z int8) string { return colours[molecule.Symbol(z)] }

// SVG returns the drawing as an SVG element, which may stand in an HTML page or in a file of its own. Lines have the
// colour of the text around (currentColor).
func (d *Drawing) SVG(o Options) string {
	c := &canvas{
		drawing: d,
		sketch:  newSketch(d.mol),
	}
	for i, p := range d.Atoms {
		c.sketch.place[i] = complex(bondLength*p.X, -bondLength*p.Y)
		c.grow(c.sketch.place[i], fontSize/2)
	}
	for i := range d.Atoms {
		c.labels = append(c.labels, c.label(i))
	}
	c.weights(o.Weights)
	for k := range c.sketch.bonds {
		c.bond(k)
	}
	for i := range c.labels {
		c.write(&c.labels[i], c.sketch.place[i])
	}
	size := c.high - c.low + complex(2*margin, 2*margin)
	if len(d.Atoms) == 0 {
		size = 0
	}
	width := max(real(size), o.Width)
	height := max(imag(size), o.Height)
	centre := (c.low + c.high) / 2
	class := o.Class
	if class == "" {
		class = "molecule"
	}
	corner := centre - complex(width, height)/2
	return fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" class="%s" viewBox="%s %s %s" role="img" aria-label="%s"`+
			` font-family="Liberation Sans,Arial,sans-serif" font-size="%d" text-anchor="middle"`+
			` stroke-linecap="round">%s</svg>`,
		html.EscapeString(class),
		xy(corner),
		px(width),
		px(height),
		html.EscapeString(o.Title),
		fontSize,
		&c.text,
	)
}

// A canvas collects the elements of an SVG. Y points down.
type canvas struct {
	drawing *Drawing
	sketch  *sketch
	labels  []label
	text    strings.Builder
	low     point // corners of what is drawn
	high    point
	begun   bool
}

// px returns a coordinate with one decimal.
func px(v float64) string {
	v = math.Round(10*v) / 10
	if v == 0 {
		v = 0 // no minus
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// xy returns a point as it stands in a path.
func xy(p point) string { return px(real(p)) + " " + px(imag(p)) }

// grow makes room for a square around a point.
func (c *canvas) grow(p point, half float64) {
	corner := complex(half, half)
	if !c.begun {
		c.low = p - corner
		c.high = p + corner
		c.begun = true
	}
	c.low = lower(c.low, p-corner)
	c.high = upper(c.high, p+corner)
}

// weights draws the discs of weights.
func (c *canvas) weights(weights []float64) {
	largest := 0.0
	for _, w := range weights {
		largest = max(largest, math.Abs(w))
	}
	for i, w := range weights {
		share := math.Abs(w) / max(largest, 1e-12)
		if !(share > 0.05) || i >= len(c.drawing.mol.Atoms) {
			continue
		}
		colour := lowers
		if w > 0 {
			colour = raises
		}
		p := c.sketch.place[i]
		c.grow(p, largestDot)
		fmt.Fprintf(
			&c.text,
			`<circle cx="%s" cy="%s" r="%s" fill="%s" opacity=".45"/>`,
			px(real(p)),
			px(imag(p)),
			px(largestDot*math.Sqrt(share)),
			colour,
		)
	}
}

// bond draws a bond.
func (c *canvas) bond(k int) {
	b := &c.sketch.bonds[k]
	for _, w := range c.drawing.Wedges {
		if w.Begin == b.begin && w.End == b.end || w.Begin == b.end && w.End == b.begin {
			c.wedge(w)
			return
		}
	}
	kind := molecule.Single
	if k < len(c.sketch.mol.Bonds) {
		kind = c.sketch.mol.Bonds[k].Kekule()
	}
	switch kind {
	case molecule.Double:
		c.double(k)
	case molecule.Triple, molecule.Quadruple:
		gaps := []float64{-lineGap * 0.8, 0, lineGap * 0.8}
		if kind == molecule.Quadruple {
			gaps = []float64{-lineGap * 1.2, -lineGap * 0.4, lineGap * 0.4, lineGap * 1.2}
		}
		for _, gap := range gaps {
			c.line(b, gap, 0, "")
		}
	case molecule.Dative, molecule.AnyOrder:
		c.line(b, 0, 0, ` stroke-dasharray="4 3"`)
	default:
		c.line(b, 0, 0, "")
	}
}

// line draws a line beside a bond, to the right as one looks from its begin on the page. It is shorter at both
// ends, and ends before labels.
func (c *canvas) line(b *bond, shift, shorter float64, style string) {
	begin, end := c.ends(b.begin, b.end)
	axis := c.sketch.place[b.end] - c.sketch.place[b.begin]
	axis /= complex(cmplx.Abs(axis), 0)
	if begin == c.sketch.place[b.begin] {
		begin += axis * complex(shorter, 0)
	}
	if end == c.sketch.place[b.end] {
		end -= axis * complex(shorter, 0)
	}
	offset := axis * complex(0, shift)
	c.stroke(begin+offset, end+offset, style)
}

func (c *canvas) stroke(begin, end point, style string) {
	fmt.Fprintf(
		&c.text,
		`<path d="M%sL%s" stroke="currentColor" stroke-width="%v"%s/>`,
		xy(begin),
		xy(end),
		lineWidth,
		style,
	)
}

// ends returns where a bond between two atoms begins and ends on the page.
func (c *canvas) ends(i, j int) (begin, end point) {
	begin = c.sketch.place[i]
	end = c.sketch.place[j]
	axis := end - begin
	length := cmplx.Abs(axis)
	axis /= complex(length, 0)
	first := c.labels[i].reach(axis)
	second := c.labels[j].reach(-axis)
	if remainder := length - first - second; remainder < 4 { // long labels, or a short bond
		share := max(length-4, 0) / (first + second)
		first *= share
		second *= share
	}
	return begin + axis*complex(first, 0), end - axis*complex(second, 0)
}

// double draws a double bond: in a ring with its second line inside, at an end of a chain with two equal lines,
// and elsewhere with its second line on the side with more neighbours.
func (c *canvas) double(k int) {
	s := c.sketch
	b := &s.bonds[k]
	side := c.ringSide(k)
	if side == 0 {
		axis := s.place[b.end] - s.place[b.begin]
		sum := 0.0
		for _, i := range [2]int{b.begin, b.end} {
			for _, l := range s.links[i] {
				if l.bond != k {
					sum += math.Copysign(1, cross(axis, s.place[l.atom]-s.place[i]))
				}
			}
		}
		isEnd := len(s.links[b.begin]) == 1 || len(s.links[b.end]) == 1
		if isEnd || s.isLinear(b.begin) || s.isLinear(b.end) {
			c.line(b, lineGap/2, 0, "")
			c.line(b, -lineGap/2, 0, "")
			return
		}
		side = 1
		if sum < 0 {
			side = -1
		}
	}
	c.line(b, 0, 0, "")
	c.line(b, side*lineGap, lineGap*0.8, "")
}

// ringSide returns on which side of a bond its ring is, 1 for the right on the page, and 0 outside of rings. Of
// several rings, it is the one with most double bonds, then the smallest.
func (c *canvas) ringSide(k int) float64 {
	s := c.sketch
	b := &s.bonds[k]
	if b.block == nil {
		return 0
	}
	var centre point
	best := math.Inf(-1)
	for r := range s.mol.Rings() {
		atoms, bonds := s.mol.Ring(r)
		if !slices.Contains(bonds, int32(k)) {
			continue
		}
		doubles := 0
		for _, sibling := range bonds {
			if s.orderOf(int(sibling)) == molecule.Double {
				doubles++
			}
		}
		score := float64(doubles) - float64(len(atoms))
		if len(atoms) >= macrocycle {
			score -= 100
		}
		if score <= best {
			continue
		}
		best = score
		var sum point
		for _, i := range atoms {
			sum += s.place[i]
		}
		centre = sum / complex(float64(len(atoms)), 0)
	}
	if best < -50 { // in a macrocycle as in a chain
		return 0
	}
	return math.Copysign(1, cross(s.place[b.end]-s.place[b.begin], centre-s.place[b.begin]))
}

// wedge draws a wedge or a hash.
func (c *canvas) wedge(w Wedge) {
	begin, end := c.ends(w.Begin, w.End)
	axis := end - begin
	broad := axis / complex(cmplx.Abs(axis), 0) * complex(0, wedgeWidth/2)
	if w.Up {
		fmt.Fprintf(
			&c.text,
			`<path d="M%sL%sL%sZ" fill="currentColor"/>`,
			xy(begin),
			xy(end+broad),
			xy(end-broad),
		)
		return
	}
	count := max(int(cmplx.Abs(axis)/3.6), 3)
	for k := 1; k <= count; k++ {
		share := complex(float64(k)/float64(count), 0)
		middle := begin + axis*share
		c.stroke(middle-broad*share, middle+broad*share, "")
	}
}
