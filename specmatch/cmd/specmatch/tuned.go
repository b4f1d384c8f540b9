package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// writeRejected lists the records that could not be used, if there are any, in
// rejected.csv.
func (x *tuning) writeRejected() error {
	if len(x.examples.Rejected) == 0 {
		return nil
	}
	return files.Write(x.dir.Join("rejected.csv"), func(to io.Writer) error {
		w := csv.NewWriter(to)
		w.Write([]string{"line", "value", "reason"}) // Error has the errors of all
		for _, r := range x.examples.Rejected {
			w.Write([]string{strconv.Itoa(r.Line), r.Value, r.Reason})
		}
		w.Flush()
		return w.Error()
	})
}

// The methods of the rows beside those of the models.
const (
	baseline  = "baseline"
	ensembled = "together" // the mean of the models' predictions
)

// together returns the metrics of the mean of all models' predictions, if they are tested on the same
// records; nil otherwise.
func (x *tuning) together() ([]train.Metrics, error) {
	var s dataset.Split
	var tables []io.Reader
	for i, d := range x.divisions() {
		each, err := x.split(d)
		if err != nil {
			return nil, err
		}
		if i > 0 && !slices.Equal(each.Test, s.Test) {
			return nil, nil
		}
		s = each
		text, err := os.ReadFile(x.dir.Join(d.test()))
		if errors.Is(err, fs.ErrNotExist) { // of a run that is collected from others
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		tables = append(tables, bytes.NewReader(text))
	}
	if len(tables) < 2 {
		return nil, nil
	}
	p, err := x.examples.ReadMean(s.Test, tables...)
	if err != nil {
		return nil, err
	}
	of, _, _ := p.Score(s.Train)
	return of, nil
}

// report writes the metrics of the test parts, with the weights that are kept: of each task,
// and before them of several yes-or-no tasks the mean over those where both answers occur.
func (x *tuning) report(stdout io.Writer, results []outcome) error {
	e := x.examples
	divisions := x.divisions()
	metrics := finetune.Metrics(e.Kind)
	tasks := len(results[0].Test)
	columns := []string{"epochs", "best"}
	if tasks > 1 {
		columns = append([]string{"target"}, columns...)
	}
	for _, m := range metrics {
		columns = append(columns, m.Title)
	}
	corner := "seed"
	if x.Folds > 0 {
		corner = "seed, fold"
	}
	t := table.New(corner, table.Names(columns...)...)
	t.Caption = fmt.Sprintf("%s: predictions of %s on the test part (%s), by the weights of the epoch that "+
		"is best on the validation part; the baseline predicts the %s of the training part.",
		e.Set.Name,
		strings.Join(e.Targets, ", "),
		x.how(),
		map[bool]string{true: "mean", false: "frequencies"}[e.Kind == model.Regression],
	)
	if metrics[0].Percent {
		t.Footnotes = []string{"ROC-AUC, AP, accuracy and F1 in %"}
	}
	t.Footnotes = append(t.Footnotes, x.notes...)
	together, err := x.together()
	if err != nil {
		return err
	}
	seconds := 0.0
	undefined := false
	for _, r := range results {
		seconds += r.Seconds
	}
	var rows []run.Row
	var folds []int // of a row's values, in place of seeds
	for k := range results {
		if x.Folds > 0 {
			folds = append(folds, k)
		}
	}
	block := func(target, suffix string, value func(tasks []train.Metrics, metric string) float64) {
		start := make([]table.Cell, len(columns)-len(metrics))
		if tasks > 1 {
			start[0] = table.Text(target)
		}
		lines := make([][]table.Cell, len(results))
		means := slices.Clone(start)
		bases := slices.Clone(start)
		ensemble := slices.Clone(start)
		for s, r := range results {
			lines[s] = append(
				start[:len(start)-2:len(start)-2],
				table.Number(float64(len(r.Epochs)), 0),
				table.Number(float64(r.Best), 0),
			)
		}
		for _, metric := range metrics {
			var own, base []float64
			for s, r := range results {
				own = append(own, value(r.Test, metric.Name))
				base = append(base, value(r.Baseline, metric.Name))
				lines[s] = append(lines[s], table.Scaled(own[s], math.NaN(), 3))
				undefined = undefined || math.IsNaN(own[s])
			}
			add := func(method string, to []table.Cell, values ...float64) []table.Cell {
				var defined []float64
				for _, v := range values {
					if !math.IsNaN(v) {
						defined = append(defined, v)
					}
				}
				mean, std := stat.MeanStdDev(defined, nil)
				if method != baseline || len(defined) > 0 {
					rows = append(rows, run.Row{
						Experiment:      x.flags.Name(),
						Dataset:         e.Set.Name,
						Method:          method,
						Protocol:        e.Split,
						Metric:          metric.Name + suffix,
						Mean:            mean,
						Std:             std,
						PerSeed:         values,
						Seeds:           folds,
						Epochs:          x.recipe.Epochs,
						Backend:         x.engine.Name(),
						Precision:       x.engine.Precision.String(),
						Seconds:         seconds,
						GraphsPerSecond: math.NaN(),
					})
				}
				return append(to, table.Scaled(mean, std, 3))
			}
			means = add(string(e.Kind), means, own...)
			bases = add(baseline, bases, base...)
			if together != nil {
				ensemble = add(ensembled, ensemble, value(together, metric.Name))
			}
		}
		for s, line := range lines {
			t.Add(divisions[s].name("%d", ", %d"), line...)
		}
		if len(results) > 1 {
			t.Add("mean", means...)
		}
		if together != nil {
			t.Add(ensembled, ensemble...)
		}
		t.Add(baseline, bases...)
	}
	if tasks > 1 && e.Kind == model.Binary {
		block("mean of tasks", "", func(tasks []train.Metrics, metric string) float64 {
			var values []float64
			for _, m := range tasks {
				if v := m.Get(metric); !math.IsNaN(v) && !math.IsNaN(m.Get(metrics[0].Name)) {
					values = append(values, v)
				}
			}
			return stat.Mean(values, nil)
		})
	}
	for task := range tasks {
		suffix := finetune.TaskMetric(e.Head, "", task)
		block(strings.TrimSpace(suffix), suffix, func(tasks []train.Metrics, metric string) float64 {
			return tasks[task].Get(metric)
		})
	}
	if undefined {
		t.Footnotes = append(
			t.Footnotes,
			"n/a: undefined, since the targets of that test part are all equal or missing; means are over "+
				"the other "+
				map[bool]string{true: "folds", false: "seeds"}[x.Folds > 0],
		)
	}
	all := []*table.Table{t}
	for _, more := range []*table.Table{x.confusion(results), x.coverage(results)} {
		if more.Rows() > 0 {
			all = append(all, more)
		}
	}
	write := func(form func(*table.Table, io.Writer) error) func(io.Writer) error {
		return func(w io.Writer) (err error) {
			for i, t := range all {
				if i > 0 {
					_, err = fmt.Fprintln(w)
				}
				err = errors.Join(err, form(t, w))
			}
			return err
		}
	}
	if err := errors.Join(
		x.dir.WriteResults(rows),
		files.Write(x.dir.Join("results.md"), write((*table.Table).WriteMarkdown)),
		x.writeRejected(),
		write((*table.Table).WriteText)(stdout),
	); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "models, predictions of the test part and metrics: %s%c\n",
		x.dir.Path, os.PathSeparator)
	return err
}

func (x *tuning) how() string {
	switch {
	case x.Folds > 0:
		return fmt.Sprintf("-folds %d -split %s", x.Folds, x.examples.Split)
	case x.Test != "":
		return "-test " + x.Test
	}
	return "-split " + x.examples.Split
}

// level is that of the intervals and sets whose coverage is reported.
const level = 0.9

// coverage is a table of how often intervals and sets have the answer, over the test parts.
func (x *tuning) coverage(results []outcome) *table.Table {
	size := "width"
	if x.examples.Kind != model.Regression {
		size = "answers"
	}
	t := table.New("target", table.Names("coverage", size)...)
	t.Caption = fmt.Sprintf(
		"How often the interval, or the set of answers, of %g %% has the observed one (in %%), and its "+
			"size; both come of errors on the validation part (predict -level)",
		100*level,
	)
	for task := range results[0].Test {
		var percent, sizes []float64
		for _, r := range results {
			if r.Coverage != nil {
				percent = append(percent, r.Coverage[task].Percent)
				sizes = append(sizes, r.Coverage[task].Size)
			}
		}
		if percent != nil {
			p, ps := stat.MeanStdDev(percent, nil)
			s, ss := stat.MeanStdDev(sizes, nil)
			name := strings.TrimSpace(finetune.TaskMetric(x.examples.Head, "", task))
			t.Add(
				cmp.Or(name, strings.Join(x.examples.Targets, ", ")),
				table.Scaled(p, ps, 3),
				table.Scaled(s, ss, 3),
			)
		}
	}
	return t
}

// confusion adds up how often each class is predicted for each, over all test parts.
func (x *tuning) confusion(results []outcome) *table.Table {
	names := []string{"no", "yes"}
	if x.examples.Kind == model.Classes {
		names = x.examples.Head.ClassValues
	}
	t := table.New("observed")
	if x.examples.Kind == model.Regression {
		return t
	}
	var columns []string
	for _, name := range names {
		columns = append(columns, name+" predicted")
	}
	t = table.New("observed", table.Names(columns...)...)
	t.Caption = "Records of the test parts by their class and the one that is predicted, the likeliest"
	for task := range results[0].Confusion {
		for i, name := range names {
			cells := make([]table.Cell, len(names))
			for j := range names {
				n := 0.0
				for _, r := range results {
					if c := r.Confusion[task]; c != nil {
						n += c[i][j]
					}
				}
				cells[j] = table.Number(n, 0)
			}
			t.Add(strings.TrimSpace(finetune.TaskMetric(x.examples.Head, "", task)+" "+name), cells...)
		}
	}
	return t
}

// worst returns the ten predictions that are most wrong, with what a report draws of them.
func (x *tuning) worst(
	ctx context.Context, m *model.Trained, p finetune.Predictions,
) (all []report.Case, err error) {
	errs := p.Errors()
	var order []int
	for k, e := range errs {
		if !math.IsNaN(e) {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(errs[b], errs[a]) })
	parser := molecule.Parser{Standard: x.examples.Set.Standard}
	for _, k := range order[:min(10, len(order))] {
		i, values, output := p.Row(k)
		r := x.examples.Records[i]
		columns := x.examples.Head.Columns()
		c := report.Case{
			ID:        r.ID,
			SMILES:    r.SMILES,
			Error:     errs[k],
			Of:        columns[output],
			Predicted: values[output],
			Observed:  r.Fields[0],
		}
		if x.examples.Kind != model.Classes {
			c.Observed = r.Fields[output]
		}
		g := x.examples.Set.Graphs[i]
		if g.Nodes() <= report.LargestDrawing {
			contributions, err := m.Explain(ctx, g)
			if err != nil {
				return nil, err
			}
			for v := range g.Nodes() {
				c.Values = append(c.Values, float64(float32(contributions[v*len(values)+output])))
				for _, j := range g.Neighbors(v) {
					if int(j) < v || g.Directed && !g.HasEdge(v, int(j)) {
						c.Edges = append(c.Edges, [3]int{int(j), v, 1})
					}
				}
			}
			if mol, err := parser.Parse(r.SMILES); err == nil && len(mol.Atoms) == g.Nodes() {
				c.Edges = nil
				for _, a := range mol.Atoms {
					c.Nodes = append(c.Nodes, molecule.Symbol(a.Z))
				}
				for _, b := range mol.Bonds {
					order := map[molecule.BondType]int{
						molecule.Double:   2,
						molecule.Triple:   3,
						molecule.Aromatic: 4,
					}[b.Type]
					c.Edges = append(c.Edges, [3]int{int(b.Begin), int(b.End), max(order, 1)})
				}
			}
		}
		all = append(all, c)
	}
	return all, nil
}
