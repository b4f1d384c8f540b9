package depict

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strconv"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// A label is what stands at an atom: a symbol in the atom's place, and hydrogens on its free side. A label without
// a symbol is empty.
type label struct {
	symbol    string
	hydrogens int
	charge    string
	isotope   string
	side      point // of the hydrogens: 1 right, -1 left, 1i below, -1i above
}

// label returns the label of an atom. Carbon has none, but alone, with a charge, as an isotope, as a radical, or
// between two double bonds, which would look like one.
func (c *canvas) label(i int) label {
	if i >= len(c.sketch.mol.Atoms) {
		return label{symbol: "H", side: 1}
	}
	a := &c.sketch.mol.Atoms[i]
	radical := a.Z == 6 && a.Charge == 0 && a.Valence() < 4
	inAllene := a.Hybridisation == molecule.HybridSP && c.sketch.isLinear(i) && !c.hasTriple(i)
	plain := a.Charge == 0 && a.Isotope == 0 && len(c.sketch.links[i]) > 0
	if a.Z == 6 && plain && !radical && !inAllene {
		return label{}
	}
	l := label{
		symbol:    molecule.Symbol(a.Z),
		hydrogens: int(a.Hydrogens),
		charge:    chargeText(int(a.Charge)),
		side:      c.freeSide(i),
	}
	if slices.Contains(c.sketch.hydrogens, i) {
		l.hydrogens--
	}
	if a.Isotope != 0 {
		l.isotope = strconv.Itoa(int(a.Isotope))
	}
	return l
}

func (c *canvas) hasTriple(i int) bool {
	return slices.ContainsFunc(c.sketch.links[i], func(l link) bool {
		return c.sketch.orderOf(l.bond) == molecule.Triple
	})
}

// chargeText returns a charge such as +, − or 2+.
func chargeText(charge int) string {
	sign := "+"
	if charge < 0 {
		sign = "−"
		charge = -charge
	}
	switch charge {
	case 0:
		return ""
	case 1:
		return sign
	}
	return strconv.Itoa(charge) + sign
}

// freeSide returns the side of an atom that is farthest from its bonds and from atoms close by; of equal sides the
// first of right, left, above and below.
func (c *canvas) freeSide(i int) point {
	best := point(1)
	least := math.Inf(1)
	for k, side := range []point{1, -1, -1i, 1i} {
		nearest := -1.0
		for j, p := range c.sketch.place {
			axis := p - c.sketch.place[i]
			distance := cmplx.Abs(axis)
			cosine := dot(axis, side) / max(distance, 1e-9)
			if slices.ContainsFunc(c.sketch.links[i], func(l link) bool { return l.atom == j }) {
				nearest = max(nearest, cosine)
			} else if cosine > 0.8 && distance < 1.6*bondLength {
				nearest = max(nearest, cosine*(2-distance/bondLength))
			}
		}
		if k >= 2 {
			nearest = max(nearest, 0.1) // beside reads better
		}
		if nearest < least-1e-3 {
			least = nearest
			best = side
		}
	}
	return best
}

// widthOf returns the width of a text in the size of its font, about that of Arial.
func widthOf(text string) (width float64) {
	for _, r := range text {
		switch {
		case r == 'I' || r == 'l' || r == 'i':
			width += 0.28
		case r >= 'A' && r <= 'Z':
			width += 0.74
		default:
			width += 0.54
		}
	}
	return width
}

// small is the size of digits and charges.
const small = 0.68

// extent returns how far a label reaches from the atom to the left, right, up and down.
func (l *label) extent() (west, east, north, south float64) {
	const half = 0.42 * fontSize
	width := widthOf(l.symbol) * fontSize / 2
	west = width + widthOf(l.isotope)*small*fontSize
	east = width
	north = half
	south = half
	if l.hydrogens > 0 {
		hydrogens := widthOf("H") * fontSize
		if l.hydrogens > 1 {
			hydrogens += widthOf("2") * small * fontSize
		}
		switch l.side {
		case 1:
			east += hydrogens
		case -1:
			west += hydrogens
		case -1i:
			north += 0.9 * fontSize
		default:
			south += 0.9 * fontSize
		}
	}
	return west, east, north, south
}

// reach returns how far from an atom a bond in a direction begins.
func (l *label) reach(direction point) float64 {
	if l.symbol == "" {
		return 0
	}
	const gap = 2.2
	west, east, north, south := l.extent()
	width := east
	if real(direction) < 0 {
		width = west
	}
	height := south
	if imag(direction) < 0 {
		height = north
	}
	x := (width + gap) / max(math.Abs(real(direction)), 1e-9)
	y := (height + gap) / max(math.Abs(imag(direction)), 1e-9)
	return min(x, y)
}

// write draws a label at its atom.
func (c *canvas) write(l *label, p point) {
	if l.symbol == "" {
		return
	}
	west, east, north, south := l.extent()
	charge := widthOf(l.charge) * small * fontSize
	c.grow(p+complex((east+charge-west)/2, (south-north)/2), max(west+east+charge, north+south)/2)
	colour := colours[l.symbol]
	if colour == "" {
		colour = "currentColor"
	}
	half := widthOf(l.symbol) * fontSize / 2
	fmt.Fprintf(&c.text, `<g fill="%s">`, colour)
	c.letters(p, "", 1, l.symbol)
	edge := half // of what stands at the right
	if l.isotope != "" {
		c.letters(p+complex(-half, -0.4*fontSize), ` text-anchor="end"`, small, l.isotope)
	}
	if l.hydrogens > 0 {
		digits := ""
		if l.hydrogens > 1 {
			digits = strconv.Itoa(l.hydrogens)
		}
		width := widthOf("H") * fontSize
		digitWidth := widthOf(digits) * small * fontSize
		var start point // of the letter's middle
		switch l.side {
		case 1:
			start = p + complex(half+width/2, 0)
			edge += width + digitWidth
		case -1:
			start = p - complex(half+width/2+digitWidth+widthOf(l.isotope)*small*fontSize, 0)
		default:
			start = p + l.side*complex(0.95*fontSize, 0)
		}
		c.letters(start, "", 1, "H")
		if digits != "" {
			c.letters(start+complex(width/2+digitWidth/2, 0.3*fontSize), "", small, digits)
		}
	}
	if l.charge != "" {
		c.letters(p+complex(edge+charge/2+0.5, -0.4*fontSize), "", small, l.charge)
	}
	c.text.WriteString("</g>")
}

// letters draws text around a point, in a size relative to the font's.
func (c *canvas) letters(p point, style string, size float64, text string) {
	baseline := imag(p) + 0.36*size*fontSize
	if size != 1 {
		style += fmt.Sprintf(` font-size="%s"`, px(size*fontSize))
	}
	fmt.Fprintf(&c.text, `<text x="%s" y="%s"%s>%s</text>`, px(real(p)), px(baseline), style, text)
}
