package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/eval/selection"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/grid"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
)

// The rows of the published table that selection is held against.
const (
	publishedBase = "GraphCL, published"
	publishedBest = "SpecMatch-CL, published"
)

// report writes results.json, the tables and the figures of a finished run.
func (x *experiment) report(
	stdout io.Writer, sets []*dataset.Dataset, runs []*settingRun, scores []eval.Score,
) error {
	var list []run.Row
	var tables []*table.Table
	for k, protocol := range x.Protocol.Protocols {
		var courses, gains []plot.Panel
		for _, ds := range sets {
			for _, name := range x.settings.methods {
				group := slices.DeleteFunc(slices.Clone(runs), func(r *settingRun) bool {
					return r.Dataset != ds || r.table != name
				})
				first := group[0]
				bySeed := candidates(group, scores[k:], len(x.Protocol.Protocols))
				found := selection.Rows(bySeed)
				for _, r := range append(slices.Clone(found), others(bySeed)...) {
					list = append(list, x.result(first, protocol, r))
				}
				tables = append(
					tables, x.worth(first, protocol, found), x.compared(ds.Name, protocol, bySeed),
				)
				if len(first.epochs) > 1 {
					courses = append(courses, x.course(first, bySeed[0]))
				}
				if len(bySeed) > 1 {
					gains = append(gains, x.gains(first, found))
				}
			}
		}
		if err := errors.Join(
			plot.Save(x.Dir.Join("plots", "epochs-"+protocol), 2, courses...),
			plot.Save(x.Dir.Join("plots", "gains-"+protocol), 2, gains...)); err != nil {
			return err
		}
	}
	if err := x.Dir.Report(stdout, list, tables...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "results, tables, figures and weights: %s\n", x.Dir.Path)
	return err
}

// candidates sorts the scores of the runs by setting and epoch. The runs are in order of
// setting and seed; the score of a run's epoch is every step-th from its first.
func candidates(runs []*settingRun, scores []eval.Score, step int) (bySeed [][]selection.Candidate) {
	for _, r := range runs {
		if len(bySeed) == 0 || bySeed[len(bySeed)-1][0].Name != r.setting.name {
			bySeed = append(bySeed, slices.Repeat(
				[]selection.Candidate{{Name: r.setting.name}}, len(r.epochs),
			))
		}
		epochs := bySeed[len(bySeed)-1]
		for e := range epochs {
			s := scores[r.scores+e*step]
			c := &epochs[e]
			c.Test = append(c.Test, s.Folds)
			if s.Inner != nil {
				c.Inner = append(c.Inner, s.Inner)
			}
		}
	}
	return bySeed
}

// result is a line of results.json. That of a method other than InfoNCE is headed by its
// name.
func (x *experiment) result(run *settingRun, protocol string, r selection.Row) run.Row {
	label := r.Label
	if title := method.Title(run.table); run.table != method.InfoNCE &&
		!strings.HasPrefix(label, title) {
		label = title + ", " + label
	}
	out := grid.Common("selection", "accuracy", x.Engine, nil)
	out.Beta = train.Beta{}
	out.Percentile = math.NaN()
	out.Dataset = run.Dataset.Name
	out.Method = label
	out.Protocol = protocol
	out.PerSeed = r.PerSeed()
	out.Epochs = run.Epochs()
	out.GraphsPerSecond = math.NaN()
	out.Mean, out.Std = stat.MeanStdDev(out.PerSeed, nil)
	return out
}

// others are the settings but the first after the last epoch, for results.json.
func others(candidates [][]selection.Candidate) (list []selection.Row) {
	for _, epochs := range candidates[1:] {
		c := epochs[len(epochs)-1]
		list = append(list, selection.Row{Label: c.Name + ", last epoch", Candidate: c})
	}
	return list
}

func (x *experiment) worth(run *settingRun, protocol string, found []selection.Row) *table.Table {
	set := run.Dataset.Name
	plain := found[0].PerSeed()
	t := table.New(set, table.Names("accuracy", "minus the first row", "n")...)
	t.Caption = fmt.Sprintf("What selection is worth on %s, protocol %s: accuracy in %%, mean ± standard error over "+
		"seeds of the mean over %d test folds, and difference ± its standard error; n is the number of seeds. In "+
		"rows marked oracle the test folds choose, so that their differences are above 0 where nothing is better.",
		set, protocol, x.Protocol.Folds)
	for _, r := range found {
		values := r.PerSeed()
		mean, std := stat.MeanStdDev(values, nil)
		label := r.Label
		difference := table.Text("")
		if r.Oracle && r.Name != "" && r.Name != found[0].Name {
			label += " (" + r.Name + ")"
		}
		if t.Rows() > 0 {
			d := compare.Seeds(values, plain)
			difference = table.MeanStd(d.Mean, d.Err, 2)
		}
		t.Add(
			label,
			table.MeanStd(mean, stat.StdErr(std, float64(len(values))), 2),
			difference,
			table.Text(fmt.Sprint(len(values))),
		)
	}
	quoted := publishedRow(run)
	best, ok := publishedValue(quoted, protocol, set)
	if ok {
		t.Add(quoted, table.Number(best, 2))
	}
	if base, also := publishedValue(publishedBase, "graphcl", set); ok && also &&
		quoted == publishedBest {
		t.Add("published gain over GraphCL", table.Text(""), table.Number(best-base, 2))
	}
	return t
}

// publishedRow is the published row that a method is held against: InfoNCE, with or
// without L_G, against the paper's.
func publishedRow(r *settingRun) string {
	if r.table == method.InfoNCE {
		return publishedBest
	}
	return method.Title(r.table) + ", published"
}

func publishedValue(name, protocol, set string) (mean float64, ok bool) {
	if p := published.Table1.Find(name); p != nil &&
		(slices.Contains(p.Protocols, protocol) || protocol == "graphcl-c10") {
		v, ok := p.Values[set]
		return v[0], ok
	}
	return 0, false
}

// compared is the table of the settings at the last epoch; nil with one of them or one
// seed.
func (x *experiment) compared(set, protocol string, groups [][]selection.Candidate) *table.Table {
	if len(groups) < 2 || x.Recipe.Seeds < 2 {
		return nil
	}
	var accuracies [][]float64
	for _, epochs := range groups {
		accuracies = append(accuracies, epochs[len(epochs)-1].PerSeed())
	}
	t := table.New(set, table.Names("accuracy", "minus the first row", "p")...)
	deviation := compare.Null(accuracies[0])
	t.Caption = fmt.Sprintf("Settings on %s after the last epoch, protocol %s: accuracy in %%, mean ± "+
		"standard deviation, difference ± its standard error, over n = %d seeds; p by Student's "+
		"t-test, corrected by Holm for the %d rows. Two runs of the first row differ by a standard "+
		"deviation of %.2f points, and 0.3 points take %d seeds.",
		set, protocol, x.Recipe.Seeds, len(groups)-1, deviation, compare.SeedsFor(0.3, deviation))
	differences := grid.Minus(accuracies[0], accuracies[1:]...)
	p := compare.Corrected(differences)
	for i, values := range accuracies {
		mean, std := stat.MeanStdDev(values, nil)
		cells := []table.Cell{table.MeanStd(mean, std, 2)}
		if i > 0 {
			d := differences[i-1]
			cells = append(cells, table.MeanStd(d.Mean, d.Err, 2), table.Number(p[i-1], 3))
		}
		t.Add(groups[i][0].Name, cells...)
	}
	return t
}

// gains is how far the rows of the table are above its first, beside the published gain.
func (x *experiment) gains(run *settingRun, found []selection.Row) plot.Panel {
	set := run.Dataset.Name
	series := []plot.Series{
		{Name: "chosen by validation", Bars: true},
		{Name: "oracle: chosen on the test folds", Bars: true},
	}
	plain := found[0].PerSeed()
	for i, r := range found[1:] {
		s := &series[0]
		if r.Oracle {
			s = &series[1]
		}
		d := compare.Seeds(r.PerSeed(), plain)
		s.X = append(s.X, float64(i+2))
		s.Y = append(s.Y, d.Mean)
		if x.Recipe.Seeds > 1 {
			s.Err = append(s.Err, d.Err)
		}
	}
	series = slices.DeleteFunc(series, func(s plot.Series) bool { return len(s.X) == 0 })
	best, ok := publishedValue(publishedBest, "graphcl", set)
	if base, also := publishedValue(publishedBase, "graphcl", set); ok && also {
		series = append(series, plot.Series{
			Name: "published gain over GraphCL",
			X:    []float64{2, float64(len(found))},
			Y:    []float64{best - base, best - base},
		})
	}
	return plot.Lines{
		Axes: plot.Axes{
			Title:  set,
			XLabel: "row of the table",
			YLabel: "minus its first row (points)",
		},
		Series: series,
	}
}

// course is the accuracy of the first setting by epoch, beside what choosing the epoch
// on the test folds gives, and what is published.
func (x *experiment) course(run *settingRun, epochs []selection.Candidate) plot.Panel {
	set := run.Dataset.Name
	curve := plot.Series{Name: epochs[0].Name + ", ± standard deviation"}
	for i, c := range epochs {
		mean, std := stat.MeanStdDev(c.PerSeed(), nil)
		curve.X = append(curve.X, float64(run.epochs[i]))
		curve.Y = append(curve.Y, mean)
		if x.Recipe.Seeds > 1 {
			curve.Err = append(curve.Err, std)
		}
	}
	level := func(name string, y float64) plot.Series {
		ends := []float64{curve.X[0], curve.X[len(curve.X)-1]}
		return plot.Series{Name: name, X: ends, Y: []float64{y, y}}
	}
	lines := plot.Lines{
		Axes: plot.Axes{Title: set, XLabel: "epoch", YLabel: "accuracy (%)"},
		Series: []plot.Series{
			curve,
			level("oracle: best epoch of each seed", selection.Oracle(epochs, selection.BySeed).Mean()),
			level("oracle: best epoch of each fold", selection.Oracle(epochs, selection.ByFold).Mean()),
		}}
	for _, name := range slices.Compact([]string{publishedBase, publishedRow(run)}) {
		if y, ok := publishedValue(name, "graphcl", set); ok {
			lines.Series = append(lines.Series, level(name, y))
		}
	}
	return lines
}
