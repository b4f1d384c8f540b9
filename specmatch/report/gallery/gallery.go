// Package gallery writes a page of drawings of molecules: a grid that sorts and colours by any
// column of a table, next to a map of them, if they have coordinates. The page is one file that
// loads nothing.
package gallery

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/depict"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

const (
	// MaxDrawings bounds the drawings of a page; the map has all molecules.
	MaxDrawings = 1000

	largestDrawing = 200 // atoms
	width, height  = 220, 150
)

// Page is a table of molecules.
type Page struct {
	Title    string
	Columns  []string
	Rows     [][]string
	SMILES   int                     // the column of SMILES
	Points   [][2]float64            // coordinates of the rows; nil for no map
	Colour   string                  // the column that colours the drawings at first; "" is none
	Standard feature.Standardisation // by which the SMILES are read
}

// Drawings returns the number of drawings on the page.
func (p *Page) Drawings() int { return min(len(p.Rows), MaxDrawings) }

//go:embed gallery.html
var text string

var page = template.Must(template.New("").Parse(text))

// data is what the script of a page reads.
type data struct {
	Columns []string
	Rows    [][]string // without the SMILES where nothing is drawn
	Points  [][2]float64
	SMILES  int
	Colour  int // -1 for none
}

// card is a drawing with its row.
type card struct {
	Row    int
	SVG    template.HTML
	SMILES string
}

// Write writes the page.
func (p *Page) Write(ctx context.Context, w io.Writer) error {
	content := struct {
		Title string
		Note  string
		Map   bool
		Data  data
	}{
		Title: p.Title,
		Map:   p.Points != nil,
		Data: data{
			Columns: p.Columns,
			Rows:    p.Rows,
			Points:  p.Points,
			SMILES:  p.SMILES,
			Colour:  slices.Index(p.Columns, p.Colour),
		},
	}
	if drawn := p.Drawings(); drawn < len(p.Rows) {
		content.Note = fmt.Sprintf("The first %d of %d molecules are drawn.", drawn, len(p.Rows))
		if p.Points == nil {
			content.Data.Rows = p.Rows[:drawn]
		}
	}
	if err := page.ExecuteTemplate(w, "begin", content); err != nil {
		return err
	}
	parser := molecule.Parser{Standard: p.Standard}
	for i, row := range p.Rows[:p.Drawings()] {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := card{Row: i, SMILES: row[p.SMILES]}
		if m, err := parser.Parse(c.SMILES); err == nil && len(m.Atoms) <= largestDrawing {
			c.SVG = template.HTML(depict.Layout(m).SVG(depict.Options{
				Title:  c.SMILES,
				Width:  width,
				Height: height,
			}))
		}
		if err := page.ExecuteTemplate(w, "card", c); err != nil {
			return err
		}
	}
	return page.ExecuteTemplate(w, "end", content)
}
