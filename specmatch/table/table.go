// Package table writes the tables of results: aligned for a terminal, as GitHub's
// Markdown, as HTML that a script can sort, or as LaTeX.
//
// The mental model: a table has a column of names and columns of figures; rows
// are methods, columns are data sets. Each column says whether its largest or
// smallest figure is the best, and the table finds and marks it when written:
//
//	t := table.New("method", table.Column{Name: "MUTAG", Best: table.Max}, table.Column{Name: "L_G", Best: table.Min})
//	t.Caption = "Accuracy (%), mean ± std over 5 seeds."
//	t.Add("infonce", table.MeanStd(87.1, 0.7, 2), table.Number(0.31, 3))
//	t.Add("specmatch", table.MeanStd(88.0, 0.5, 2), table.Number(0.04, 3))
//	err := t.WriteText(os.Stdout)
//
// Figures that look equal, as rounded, are equally good.
package table

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/specmatch/specmatch/tensor/files"
)

// Best says which figure of a column is marked.
type Best int

// The choices: none, the largest, the smallest.
const (
	None Best = iota
	Max
	Min
)

// Column is a column of figures.
type Column struct {
	Name string
	Best Best
}

// Names returns columns of these names, with nothing marked.
func Names(names ...string) (columns []Column) {
	for _, name := range names {
		columns = append(columns, Column{Name: name})
	}
	return columns
}

// Cell is one figure or text, made by [Text], [Number], [P] or [MeanStd].
type Cell struct {
	Mark string // printed after it, as in "†"; a footnote explains it

	text  string
	value float64 // as rounded; NaN where there is nothing to compare
}

// Text returns a cell that is never the best.
func Text(s string) Cell { return Cell{text: s, value: math.NaN()} }

// Number returns a cell with x to that many decimals, as in "−0.13".
func Number(x float64, decimals int) Cell {
	s, value := round(x, decimals)
	return Cell{text: s, value: value}
}

// P returns a cell with a p value to four decimals, "<0.0001" if it is less.
func P(p float64) Cell {
	if p < 0.0001 {
		return Cell{text: "<0.0001", value: p}
	}
	return Number(p, 4)
}

// MeanStd returns a cell such as "88.00 ± 0.50", or "88.00" if std is NaN, as it is
// for a single run.
func MeanStd(mean, std float64, decimals int) Cell {
	if math.IsNaN(std) {
		return Number(mean, decimals)
	}
	m, value := round(mean, decimals)
	s, _ := round(std, decimals)
	return Cell{text: m + " ± " + s, value: value}
}

// Scaled is [MeanStd] of figures of any size: with an exponent where it would show as 0, or
// from a million on.
func Scaled(mean, std float64, decimals int) Cell {
	if a := math.Abs(mean); mean == 0 || math.IsNaN(mean) || a >= 0.5*math.Pow10(-decimals) && a < 1e6 {
		return MeanStd(mean, std, decimals)
	}
	format := func(x float64) string {
		return strings.ReplaceAll(strconv.FormatFloat(x, 'e', decimals, 64), "-", "−")
	}
	s := format(mean)
	if !math.IsNaN(std) {
		s += " ± " + format(std)
	}
	return Cell{text: s, value: mean}
}

// round formats x with a true minus sign, and returns the number it shows.
// NaN shows as "n/a".
func round(x float64, decimals int) (string, float64) {
	if math.IsNaN(x) {
		return "n/a", x
	}
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	value, _ := strconv.ParseFloat(s, 64)
	if value == 0 {
		s = strings.TrimPrefix(s, "-") // −0.00 is 0.00
	}
	return strings.Replace(s, "-", "−", 1), value
}

// Table is a table under construction.
type Table struct {
	Caption   string
	Footnotes []string

	corner  string
	columns []Column
	rows    []row
}

type row struct {
	name  string
	cells []Cell
}

// New returns an empty table; corner heads the column of names.
func New(corner string, columns ...Column) *Table {
	return &Table{corner: corner, columns: columns}
}

// Add adds a row. It panics if there are more cells than columns; missing ones
// stay empty.
func (t *Table) Add(name string, cells ...Cell) {
	if len(cells) > len(t.columns) {
		panic(fmt.Sprintf("table: Add %q: %d cells for %d columns", name, len(cells), len(t.columns)))
	}
	full := make([]Cell, len(t.columns))
	for i := range full {
		full[i] = Text("")
	}
	copy(full, cells)
	t.rows = append(t.rows, row{name, full})
}

// AddSome adds a row of the cells that cell returns, unless it reports false for all of them. It
// reports whether it added the row.
func (t *Table) AddSome(name string, cell func(column int) (Cell, bool)) bool {
	cells := make([]Cell, len(t.columns))
	filled := false
	for i := range cells {
		c, ok := cell(i)
		cells[i] = c
		filled = filled || ok
	}
	if filled {
		t.Add(name, cells...)
	}
	return filled
}

// Rows returns the number of rows.
func (t *Table) Rows() int { return len(t.rows) }

// WriteText writes the table with aligned columns. The best figures are bold if
// w is a terminal, and carry a * otherwise.
func (t *Table) WriteText(w io.Writer) error {
	f, ok := w.(interface{ Fd() uintptr }) // a file, or what stands for one
	bold := ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	_, err := w.Write(t.text(bold))
	return err
}

func (t *Table) text(bold bool) []byte {
	lines := t.lines()
	widths := make([]int, len(t.columns)+1)
	for _, line := range lines {
		for j, c := range line {
			widths[j] = max(widths[j], utf8.RuneCountInString(c.Text))
		}
	}
	var b bytes.Buffer
	if t.Caption != "" {
		b.WriteString(line(t.Caption) + "\n\n")
	}
	rule := widths[0]
	for _, width := range widths[1:] {
		rule += width + len("  *")
	}
	for i, line := range lines {
		var text strings.Builder
		for j, c := range line {
			pad := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(c.Text))
			switch { // names on the left; figures on the right, with room for a *
			case j == 0:
				text.WriteString(c.Text + pad)
			case c.Best && bold:
				text.WriteString("  " + pad + "\x1b[1m" + c.Text + "\x1b[0m ")
			case c.Best:
				text.WriteString("  " + pad + c.Text + "*")
			default:
				text.WriteString("  " + pad + c.Text + " ")
			}
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
		if i == 0 {
			b.WriteString(strings.Repeat("─", rule) + "\n")
		}
	}
	notes := t.Footnotes
	if !bold && slices.ContainsFunc(t.columns, func(c Column) bool { return c.Best != None }) {
		notes = slices.Concat([]string{"* best of its column"}, notes)
	}
	if len(notes) > 0 {
		b.WriteString("\n")
		for _, note := range notes {
			b.WriteString(line(note) + "\n")
		}
	}
	return b.Bytes()
}

// shown is a cell, or a head, as it is written.
type shown struct {
	Text string
	Sort string // the number to sort it by; "" for texts
	Best bool
}

// lines returns the heads, and then the rows, with their names first.
func (t *Table) lines() [][]shown {
	heads := []shown{{Text: line(t.corner)}}
	for _, c := range t.columns {
		heads = append(heads, shown{Text: line(c.Name)})
	}
	lines := [][]shown{heads}
	for _, r := range t.rows {
		texts := []shown{{Text: line(r.name)}}
		for j, c := range r.cells {
			s := shown{Text: line(c.text + c.Mark), Best: t.best(j, c)}
			if !math.IsNaN(c.value) {
				s.Sort = fmt.Sprint(c.value)
			}
			texts = append(texts, s)
		}
		lines = append(lines, texts)
	}
	return lines
}

// line is a text, which may be of a user's file, in one line that a terminal shows as it is.
func line(text string) string {
	return files.Printable(strings.ReplaceAll(text, "\n", " "))
}

// best reports whether no figure of column j is better than c.
func (t *Table) best(j int, c Cell) bool {
	if t.columns[j].Best == None || math.IsNaN(c.value) {
		return false
	}
	for _, r := range t.rows {
		if x := r.cells[j].value; t.columns[j].Best == Max && x > c.value ||
			t.columns[j].Best == Min && x < c.value {
			return false
		}
	}
	return true
}
