package report

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/tensor/files"
)

// Save writes the page to a file that ends in .html, or its tables to one that ends in .md or .tex.
func (p *Page) Save(path string) error {
	write := map[string]func(io.Writer) error{
		".html": p.WriteHTML,
		".md":   p.WriteMarkdown,
		".tex":  p.WriteLaTeX,
	}[filepath.Ext(path)]
	if write == nil {
		return fmt.Errorf("%s: want a name that ends in .html, .md or .tex", path)
	}
	return files.Write(path, write)
}

// WriteMarkdown writes the tables as GitHub's Markdown.
func (p *Page) WriteMarkdown(w io.Writer) error {
	return p.tables(w, "## %s\n\n%s\n\n", (*table.Table).WriteMarkdown)
}

// WriteLaTeX writes the tables as LaTeX.
func (p *Page) WriteLaTeX(w io.Writer) error {
	return p.tables(w, "%% %s\n%.0s", (*table.Table).WriteLaTeX)
}

// WriteText writes the tables for a terminal.
func (p *Page) WriteText(w io.Writer) error {
	return p.tables(w, "%s. %s\n\n", (*table.Table).WriteText)
}

func (p *Page) tables(w io.Writer, heading string, write func(*table.Table, io.Writer) error) error {
	for _, s := range p.sections {
		first := true
		for _, b := range s.blocks {
			if b.table == nil {
				continue
			}
			if first {
				if _, err := fmt.Fprintf(w, heading, s.title, s.note); err != nil {
					return err
				}
				first = false
			}
			err := write(b.table, w)
			if err == nil {
				_, err = fmt.Fprintln(w)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// maxPage is the size of a page, in bytes, from which curves are simplified or dropped.
const maxPage = 2_000_000

// WriteHTML writes the page as one self-contained HTML file.
func (p *Page) WriteHTML(w io.Writer) error {
	const all = math.MaxInt
	var text []byte
	for _, d := range []struct{ points, metrics int }{
		{60, all},
		{30, all},
		{15, all},
		{8, all},
		{15, 1},
		{8, 1},
		{8, 0},
	} {
		var err error
		text, err = p.html(d.points, d.metrics)
		if err != nil {
			return err
		}
		if len(text) <= maxPage {
			break
		}
	}
	_, err := w.Write(text)
	return err
}

// pageData is the input of the page's template.
type pageData struct {
	Title    string
	Style    template.CSS
	Sections []pageSection
}

// pageSection is a section of a page, with the legend of its charts.
type pageSection struct {
	ID, Title, Note string
	Legend          []legendEntry
	Parts           []pagePart
}

type legendEntry struct{ Class, Index, Swatch, Name any }

// pagePart is a block of a section, rendered.
type pagePart struct {
	Title   string
	Folded  bool
	Table   template.HTML
	Charts  []template.HTML
	Figures []figure
	Text    string
}

// html returns the page with curves of at most that many metrics and points.
func (p *Page) html(points, metrics int) ([]byte, error) {
	p.series = nil
	data := pageData{Title: p.Title, Style: template.CSS(plot.InlineStyle())}
	for _, s := range p.sections {
		blocks := s.blocks
		note := s.note
		if s.curves != nil {
			blocks = s.curves(points)
			if len(blocks) > metrics {
				note += fmt.Sprintf(" %d of %d metrics are shown to limit the page's size; report fewer runs for all.",
					metrics, len(blocks))
				blocks = blocks[:metrics]
			}
		}
		out := pageSection{ID: strings.ToLower(s.title), Title: s.title, Note: note}
		if err := p.render(&out, blocks); err != nil {
			return nil, err
		}
		if out.Parts != nil || len(note) > len(s.note) {
			data.Sections = append(data.Sections, out)
		}
	}
	if data.Sections == nil {
		return nil, errors.New("the runs hold neither results nor metrics")
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, data)
	return b.Bytes(), err
}

// render adds the non-empty blocks and the legend to a section.
func (p *Page) render(section *pageSection, blocks []block) error {
	var used []int // the series that lines of the section draw
	for _, b := range blocks {
		part := pagePart{
			Title:   b.title,
			Folded:  b.folded,
			Figures: b.figures,
			Text:    b.text,
		}
		if b.table != nil {
			var text bytes.Buffer
			if err := b.table.WriteHTML(&text); err != nil {
				return err
			}
			part.Table = template.HTML(text.String())
		}
		for _, c := range b.charts {
			svg, err := plot.Inline(c, func(name string) int {
				i := p.look(name)
				if _, dots := c.(plot.Dots); !dots && !slices.Contains(used, i) {
					used = append(used, i)
				}
				return i
			})
			if err != nil { // nothing in it can be drawn
				continue
			}
			part.Charts = append(part.Charts, template.HTML(svg))
		}
		if part.Table != "" || part.Charts != nil || part.Figures != nil || part.Text != "" {
			section.Parts = append(section.Parts, part)
		}
	}
	for _, i := range used {
		swatch := `<svg width="28" height="8"><path d="M0 4H28" stroke="var(--c)" stroke-width="2.5"` +
			plot.Dashes(i) + `/></svg>`
		section.Legend = append(section.Legend, legendEntry{
			plot.Class(i), i, template.HTML(swatch), p.series[i],
		})
	}
	return nil
}

// look returns the number of a series, which is the same in all charts of the page.
func (p *Page) look(name string) int {
	i := slices.Index(p.series, name)
	if i < 0 {
		i = len(p.series)
		p.series = append(p.series, name)
	}
	return i
}
