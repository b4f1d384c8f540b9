package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
)

// curveFile is the picture of the learning curve, without its ending.
const curveFile = "curve"

// leastTrained is the size of the smallest training set of a learning curve.
const leastTrained = 5

// point is a fit to a share of a training set, for the learning curve of -curve. Its fields are the keys of the
// run's journal.
type point struct {
	finetune.Result
	Records int             // of the share
	Test    []train.Metrics // of each task
}

// Check implements [run.Result].
func (p *point) Check() error {
	if p.Test == nil {
		return errors.New("no metrics of the test set")
	}
	return p.Result.Check()
}

// pointUnit returns the name of the unit that fits a model to a training set that is halved some times.
func (d division) pointUnit(halvings int) string {
	return fmt.Sprintf("%s/share=%d", d.unit(), 1<<halvings)
}

// points returns the fits of the learning curve: of each division, to halves, quarters and so on of its training
// set.
func (x *tuning) points() (units []run.Unit[point]) {
	for _, d := range x.divisions() {
		for halvings := range x.Curve {
			if halvings == 0 {
				continue // a fit of x.units
			}
			unit := d.pointUnit(halvings)
			units = append(units, run.Unit[point]{
				Name:   unit,
				Engine: &x.engine,
				Run: func(ctx context.Context, be backend.Backend, status run.Status) (point, error) {
					return x.point(ctx, be, d, halvings, unit, status)
				},
			})
		}
	}
	return units
}

// point fits a model to a training set that is halved some times, and scores it on the test set.
func (x *tuning) point(
	ctx context.Context, be backend.Backend, d division, halvings int, unit string, status run.Status,
) (p point, err error) {
	split, err := x.split(d)
	if err != nil {
		return p, err
	}
	for range halvings {
		split.Train = x.examples.Halve(split.Train, uint64(d.seed))
	}
	p.Records = len(split.Train)
	m, learner, err := x.newLearner(be, d.seed, split)
	if err != nil {
		return p, err
	}
	p.Result, err = x.train(ctx, learner, unit, status)
	if err != nil {
		return p, x.examples.Locate(err)
	}
	predictions, err := x.examples.Predict(ctx, m, split.Test)
	if err != nil {
		return p, err
	}
	p.Test, _, _ = predictions.Score(split.Train)
	return p, nil
}

// checkCurve returns an error if the smallest training set of the learning curve is too small.
func (x *tuning) checkCurve() error {
	if x.Curve == 0 {
		return nil
	}
	for _, d := range x.divisions() {
		split, err := x.split(d)
		if err != nil {
			return err
		}
		if n := len(split.Train) >> (x.Curve - 1); n < leastTrained {
			return cli.Usagef("-curve %d: its smallest training set has %d of %d records; want at least %d",
				x.Curve, n, len(split.Train), leastTrained)
		}
	}
	return nil
}

// learningCurve returns a table of the test metrics by the size of the training set, and draws the first metric.
func (x *tuning) learningCurve(results []outcome, points []point) (*table.Table, error) {
	metrics := finetune.Metrics(x.examples.Head)
	columns := []string{"records"}
	if len(x.examples.Targets) > 1 {
		columns = []string{"target", "records"}
	}
	for _, m := range metrics {
		columns = append(columns, m.Title)
	}
	t := table.New("share", table.Names(columns...)...)
	t.Caption = "Learning curve: metrics on the test set by the share of the training set, mean ± standard deviation " +
		"over the fits"
	lines := plot.Lines{
		Axes: plot.Axes{
			Title:  x.examples.Set.Name,
			XLabel: "training records",
			YLabel: metrics[0].Title,
			LogX:   true,
		},
	}
	for task := range results[0].Test {
		series := plot.Series{Name: x.examples.Targets[task], Bars: len(results) > 1}
		for halvings := x.Curve - 1; halvings >= 0; halvings-- {
			sizes, scores := x.column(results, points, halvings)
			records := stat.Mean(sizes, nil)
			cells := []table.Cell{table.Number(records, 0)}
			if len(x.examples.Targets) > 1 {
				cells = append([]table.Cell{table.Text(x.examples.Targets[task])}, cells...)
			}
			for k, metric := range metrics {
				mean, std := summary(scores, task, metric.Name)
				cells = append(cells, table.Scaled(mean, std, 3))
				if k == 0 {
					series.X = append(series.X, records)
					series.Y = append(series.Y, mean)
					series.Err = append(series.Err, std)
				}
			}
			t.Add(fmt.Sprintf("1/%d", 1<<halvings), cells...)
		}
		if !series.Bars {
			series.Err = nil
		}
		lines.Series = append(lines.Series, series)
	}
	hasPoint := func(s plot.Series) bool {
		return slices.ContainsFunc(s.Y, func(v float64) bool { return !math.IsNaN(v) })
	}
	if !slices.ContainsFunc(lines.Series, hasPoint) {
		return t, nil
	}
	return t, plot.Save(x.dir.Join(curveFile), 1, lines)
}

// summary returns the mean and the standard deviation of a task's metric, where it is defined.
func summary(scores [][]train.Metrics, task int, metric string) (mean, std float64) {
	var values []float64
	for _, tasks := range scores {
		values = append(values, tasks[task].Get(metric))
	}
	return meanStdDev(values)
}

// column returns the sizes and the metrics of the fits to training sets that are halved some times.
func (x *tuning) column(
	results []outcome, points []point, halvings int,
) (sizes []float64, scores [][]train.Metrics) {
	for k, r := range results {
		if halvings == 0 {
			sizes = append(sizes, float64(r.Parts[0]))
			scores = append(scores, r.Test)
			continue
		}
		p := points[k*(x.Curve-1)+halvings-1]
		sizes = append(sizes, float64(p.Records))
		scores = append(scores, p.Test)
	}
	return sizes, scores
}
