package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule/depict"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/report/plot"
)

// mostExplained is the number of predictions on a page of explanations.
const mostExplained = 1000

// explainedPage has a begin, a figure for each prediction, and an end.
var explainedPage = template.Must(template.New("").Parse(`
{{define "begin"}}<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Explained predictions</title>
<style>
:root{color-scheme:light dark}
body{margin:16px;background:light-dark(#fff,#16181d);color:light-dark(#1b1d22,#e4e6eb);font:15px/1.5 system-ui,sans-serif}
main{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(340px,100%),1fr));gap:16px}
figure{margin:0;border:1px solid;border-color:light-dark(#d5d9e0,#3a3f4a);border-radius:6px;padding:8px}
figure svg{display:block;width:100%;height:auto}
figcaption{font-size:.9rem;overflow-wrap:anywhere}
{{.}}</style>
<p>A disc shows what an atom, its share of a fragment, or a node contributes: vermillion raises the prediction, blue
lowers it. Discs of one drawing are comparable.</p>
<main>
{{end}}
{{define "figure"}}<figure>{{.SVG}}<figcaption><b>{{.ID}}</b> {{.Column}}: {{.Value}}{{with .SMILES}}<br><code>{{.}}</code>{{end}}</figcaption></figure>
{{end}}
{{define "end"}}</main>
{{with .}}<p>{{.}}</p>{{end}}
</html>
{{end}}`))

// explained is the data of a figure.
type explained struct {
	SVG    template.HTML
	ID     string
	Column string
	Value  string
	SMILES string
}

// errFull stops the explanations for a page that is full.
var errFull = errors.New("the page is full")

// intervals returns what a page says of the interval of a predicted number, in the unit of the target. Without a
// level, and for other kinds of target, it says nothing.
func intervals(level float64, models []*model.Trained) func(column string, value float64) (string, error) {
	head := models[0].Card.Head
	var calibrations []*model.Calibration
	for _, m := range models {
		calibrations = append(calibrations, m.Card.Calibration)
	}
	return func(column string, value float64) (string, error) {
		task := slices.Index(head.Tasks, column)
		if level == 0 || head.Kind != model.Regression || task < 0 {
			return "", nil
		}
		predicted := make([]float64, head.Outputs)
		for t := range predicted {
			predicted[t] = value // what the others are does not matter
		}
		_, ends, err := head.Sets(level, predicted, calibrations...)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf(", %g %%: %.4g to %.4g", 100*level, ends[2*task], ends[2*task+1]), nil
	}
}

// writeExplained writes a page with a drawing for each prediction of a job.
func writeExplained(
	ctx context.Context,
	w io.Writer,
	job *apply.Job,
	head *model.Head,
	explainers []*apply.Explainer,
	interval func(column string, value float64) (string, error),
) error {
	columns := head.Columns()
	if err := explainedPage.ExecuteTemplate(w, "begin", template.CSS(plot.InlineStyle())); err != nil {
		return err
	}
	count := 0
	note := ""
	err := job.EachExplanation(ctx, func(r *records.Record, x *apply.Explanation) error {
		for output, column := range columns {
			if count == mostExplained {
				note = fmt.Sprintf("These are the first %d predictions. A file that ends in .jsonl has all.", count)
				return errFull
			}
			count++
			value := head.Predicted(output, x.Prediction[column])
			figure := explained{
				SVG:    template.HTML(drawExplained(r, x, column)),
				ID:     x.ID,
				Column: column,
				Value:  fmt.Sprintf("%.4g", value),
				SMILES: x.SMILES,
			}
			text, err := interval(column, value)
			if err != nil {
				return err
			}
			figure.Value += text
			if mean, ok := x.Mean[column]; ok {
				figure.Value += fmt.Sprintf(" (mean of the training records %.4g)", head.Predicted(output, mean))
			}
			if err := explainedPage.ExecuteTemplate(w, "figure", figure); err != nil {
				return err
			}
		}
		return nil
	}, explainers...)
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	return explainedPage.ExecuteTemplate(w, "end", note)
}

// drawExplained returns the molecule or graph of a record as SVG, with the contributions to one column. Large ones
// are not drawn.
func drawExplained(r *records.Record, x *apply.Explanation, column string) string {
	title := cmp.Or(x.SMILES, x.ID)
	values := x.Drawn(r, column)
	if len(values) > report.LargestDrawing {
		return ""
	}
	if r.Molecule != nil && len(r.Molecule.Atoms) == len(values) {
		return depict.Layout(r.Molecule).SVG(depict.Options{
			Title:   title,
			Width:   360,
			Height:  230,
			Weights: values,
		})
	}
	g := plot.Graph{
		Title:  title,
		Edges:  edgesOf(r.Graph),
		Values: values,
	}
	return g.Inline()
}
