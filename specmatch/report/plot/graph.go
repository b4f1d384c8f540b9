package plot

import (
	"fmt"
	"html"
	"math"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/mds"
)

// Graph is a drawing of a graph. Package depict draws molecules.
type Graph struct {
	Title  string // for readers who cannot see it
	Edges  [][2]int
	Values []float64 // of each node: a disc shows the size, and its colour the sign
}

// Inline returns the drawing as an SVG element for an HTML page, which needs [InlineStyle].
// Distances in it are near those along the edges.
func (g Graph) Inline() string {
	n := len(g.Values)
	x, y := g.layout()
	x0 := math.Inf(1)
	x1 := math.Inf(-1)
	y0 := math.Inf(1)
	y1 := math.Inf(-1)
	for i := range n {
		x0 = min(x0, x[i])
		x1 = max(x1, x[i])
		y0 = min(y0, y[i])
		y1 = max(y1, y[i])
	}
	const room = 16
	scale := min(26, (inlineWidth-2*room)/max(x1-x0, 1e-9), (inlineHeight-2*room)/max(y1-y0, 1e-9))
	for i := range n {
		x[i] = inlineWidth/2 + scale*(x[i]-(x0+x1)/2)
		y[i] = inlineHeight/2 + scale*(y[i]-(y0+y1)/2)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot graph" viewBox="0 0 %d %d" role="img" aria-label="%s">`,
		inlineWidth, inlineHeight, html.EscapeString(g.Title))
	largest := 0.0
	for _, v := range g.Values {
		largest = max(largest, math.Abs(v))
	}
	for i, v := range g.Values {
		if share := math.Abs(v) / max(largest, 1e-12); share > 0.05 {
			look := 0 // blue lowers, vermillion raises
			if v > 0 {
				look = 3
			}
			fmt.Fprintf(
				&b,
				`<g class="%s"><circle cx="%s" cy="%s" r="%s" fill="currentColor" opacity=".45"/></g>`,
				Class(look), px(x[i]), px(y[i]), px(12*math.Sqrt(share)),
			)
		}
	}
	for _, e := range g.Edges {
		fmt.Fprintf(
			&b,
			`<path class="line" d="M%s %sL%s %s"/>`,
			px(x[e[0]]),
			px(y[e[0]]),
			px(x[e[1]]),
			px(y[e[1]]),
		)
	}
	for i := range n {
		fmt.Fprintf(&b, `<circle cx="%s" cy="%s" r="3" fill="currentColor"/>`, px(x[i]), px(y[i]))
	}
	b.WriteString("</svg>")
	return b.String()
}

// layout places the nodes so that their distances are near those along the edges: parts that
// hang together by multidimensional scaling and then by stress majorization (Gansner, Koren and North 2004),
// beside one another.
func (g Graph) layout() (x, y []float64) {
	n := len(g.Values)
	x, y = make([]float64, n), make([]float64, n)
	d := make([][]float64, n) // along the edges
	for i := range d {
		d[i] = make([]float64, n)
		for j := range d[i] {
			if i != j {
				d[i][j] = math.Inf(1)
			}
		}
	}
	for _, e := range g.Edges {
		if e[0] != e[1] {
			d[e[0]][e[1]], d[e[1]][e[0]] = 1, 1
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				d[i][j] = min(d[i][j], d[i][k]+d[k][j])
			}
		}
	}
	edge := 0.0
	placed := make([]bool, n)
	for first := range n {
		if placed[first] {
			continue
		}
		var part []int
		for j := range n {
			if !math.IsInf(d[first][j], 1) {
				part = append(part, j)
				placed[j] = true
			}
		}
		g.place(part, d, x, y)
		left := math.Inf(1)
		for _, i := range part {
			left = min(left, x[i])
		}
		next := edge
		for _, i := range part {
			x[i] += edge - left
			next = max(next, x[i]+1.5)
		}
		edge = next
	}
	return x, y
}

// place lays out a part whose nodes reach one another.
func (g Graph) place(part []int, d [][]float64, x, y []float64) {
	if len(part) == 1 {
		return
	}
	along := mat.NewSymDense(len(part), nil)
	for k, i := range part {
		for l, j := range part[:k] {
			along.SetSym(k, l, d[i][j])
		}
	}
	var at mat.Dense
	mds.TorgersonScaling(&at, nil, along)
	_, dims := at.Dims()     // 0 if it has not found any
	for k, i := range part { // a little apart, so that no two are in one place
		x[i], y[i] = 0.01*math.Sin(float64(7*k)), 0.01*math.Cos(float64(11*k))
		if dims > 0 {
			x[i] += at.At(k, 0)
		}
		if dims > 1 {
			y[i] += at.At(k, 1)
		}
	}
	for range 200 {
		for _, i := range part {
			var sx, sy, sum float64
			for _, j := range part {
				if i == j {
					continue
				}
				w := 1 / (d[i][j] * d[i][j])
				distance := max(math.Hypot(x[i]-x[j], y[i]-y[j]), 1e-9)
				sx += w * (x[j] + d[i][j]*(x[i]-x[j])/distance)
				sy += w * (y[j] + d[i][j]*(y[i]-y[j])/distance)
				sum += w
			}
			x[i], y[i] = sx/sum, sy/sum
		}
	}
}
