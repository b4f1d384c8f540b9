package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/plot"
	"github.com/specmatch/specmatch/experiments/internal/published"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/method"
)

// The rows of the published table that selection is held against.
const (
	publishedBase = "GraphCL, published"
	publishedBest = "SpecMatch-CL, published"
)

// report writes results.json, the tables and the figures of a finished run.
func (x *experiment) report(stdout io.Writer, sets []*dataset.Dataset, runs []*settingRun, scores []score) error {
	var list []rundir.Row
	var tables []*table.Table
	for k, protocol := range x.protocol.Protocols {
		var courses, gains []plot.Panel
		for _, ds := range sets {
			for _, name := range x.settings.methods {
				of := slices.DeleteFunc(slices.Clone(runs), func(r *settingRun) bool { return r.Dataset != ds || r.table != name })
				grid := grid(of, scores[k:], len(x.protocol.Protocols))
				found, epochs := rows(grid), of[0].epochs
				for _, r := range append(slices.Clone(found), others(grid)...) {
					list = append(list, x.result(of[0], protocol, r))
				}
				tables = append(tables, x.worth(of[0], protocol, found), x.compared(ds.Name, protocol, grid))
				if len(epochs) > 1 {
					courses = append(courses, x.course(of[0], grid[0]))
				}
				if len(grid) > 1 {
					gains = append(gains, x.gains(of[0], found))
				}
			}
		}
		for name, panels := range map[string][]plot.Panel{"epochs-": courses, "gains-": gains} {
			if len(panels) > 0 {
				if err := plot.Save(x.dir.Join("plots", name+protocol), 2, panels...); err != nil {
					return err
				}
			}
		}
	}
	if err := x.dir.Report(stdout, list, tables...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "results, tables, figures and weights: %s\n", x.dir.Path)
	return err
}

// grid sorts the scores of the runs by setting and epoch. The runs are in order of
// setting and seed; the score of a run's epoch is every step-th from its first.
func grid(runs []*settingRun, scores []score, step int) [][]candidate {
	var grid [][]candidate
	for _, r := range runs {
		if len(grid) == 0 || grid[len(grid)-1][0].name != r.setting.name {
			epochs := make([]candidate, len(r.epochs))
			for e := range epochs {
				epochs[e].name = r.setting.name
			}
			grid = append(grid, epochs)
		}
		setting := grid[len(grid)-1]
		for e := range setting {
			sc, c := scores[r.scores+e*step], &setting[e]
			c.test = append(c.test, sc.Test)
			if sc.Inner != nil {
				c.inner = append(c.inner, sc.Inner)
			}
		}
	}
	return grid
}

// result is a row of results.json. A row of a method other than InfoNCE is headed by its
// name.
func (x *experiment) result(of *settingRun, protocol string, r row) rundir.Row {
	label := r.label
	if title := method.Title(of.table); of.table != method.InfoNCE && !strings.HasPrefix(label, title) {
		label = title + ", " + label
	}
	out := rundir.Row{
		Experiment: "selection", Dataset: of.Dataset.Name, Method: label, Protocol: protocol, Metric: "accuracy",
		PerSeed: r.perSeed(), Epochs: of.Epochs(), Backend: x.engine.Name(), Precision: x.engine.Precision.String(),
		P: math.NaN(), GraphsPerSecond: math.NaN(),
	}
	out.Mean, out.Std = stat.MeanStdDev(out.PerSeed, nil)
	return out
}

// others are the settings but the first after the last epoch, for results.json.
func others(grid [][]candidate) (list []row) {
	for _, epochs := range grid[1:] {
		c := epochs[len(epochs)-1]
		list = append(list, row{label: c.name + ", last epoch", candidate: c})
	}
	return list
}

// worth is the table of what selection is worth on a data set.
func (x *experiment) worth(of *settingRun, protocol string, found []row) *table.Table {
	set, plain := of.Dataset.Name, found[0].perSeed()
	t := table.New(set, table.Names("accuracy", "minus the first row", "n")...)
	t.Caption = fmt.Sprintf("What selection is worth on %s, protocol %s: accuracy in %%, mean ± standard error over seeds of the mean over %d test folds, and difference ± its standard error; n is the number of seeds. In rows marked oracle the test folds choose, so that their differences are above 0 where nothing is better.",
		set, protocol, x.protocol.Folds)
	for _, r := range found {
		values := r.perSeed()
		mean, std := stat.MeanStdDev(values, nil)
		label, difference := r.label, table.Text("")
		if r.oracle && r.name != "" && r.name != found[0].name {
			label += " (" + r.name + ")"
		}
		if t.Rows() > 0 {
			d := compare.Seeds(values, plain)
			difference = table.MeanStd(d.Mean, d.Err, 2)
		}
		t.Add(label, table.MeanStd(mean, stat.StdErr(std, float64(len(values))), 2), difference, table.Text(fmt.Sprint(len(values))))
	}
	quoted := publishedRow(of)
	best, ok := publishedValue(quoted, protocol, set)
	if ok {
		t.Add(quoted, table.Number(best, 2))
	}
	if base, also := publishedValue(publishedBase, "graphcl", set); ok && also && quoted == publishedBest {
		t.Add("published gain over GraphCL", table.Text(""), table.Number(best-base, 2))
	}
	return t
}

// publishedRow is the published row that a method is held against: InfoNCE, with or
// without L_G, against the paper's.
func publishedRow(of *settingRun) string {
	if of.table == method.InfoNCE {
		return publishedBest
	}
	return method.Title(of.table) + ", published"
}

// publishedValue returns the published mean of a row, if there is one.
func publishedValue(name, protocol, set string) (mean float64, ok bool) {
	for _, p := range published.Table1 {
		if v, known := p.Values[set]; p.Row == name && known && (slices.Contains(p.Protocols, protocol) || protocol == "graphcl-c10") {
			return v[0], true
		}
	}
	return 0, false
}

// compared is the table of the settings at the last epoch; nil with one of them or one
// seed.
func (x *experiment) compared(set, protocol string, grid [][]candidate) *table.Table {
	if len(grid) < 2 || x.recipe.Seeds < 2 {
		return nil
	}
	last := len(grid[0]) - 1
	plain := grid[0][last].perSeed()
	t := table.New(set, table.Names("accuracy", "minus the first row", "p")...)
	deviation := compare.Null(plain)
	t.Caption = fmt.Sprintf("Settings on %s after the last epoch, protocol %s: accuracy in %%, mean ± standard deviation, difference ± its standard error, over n = %d seeds; p by Student's t-test, corrected by Holm for the %d rows. Two runs of the first row differ by a standard deviation of %.2f points, and 0.3 points take %d seeds.",
		set, protocol, x.recipe.Seeds, len(grid)-1, deviation, compare.SeedsFor(0.3, deviation))
	var differences []compare.Difference
	var p []float64
	for _, epochs := range grid[1:] {
		d := compare.Seeds(epochs[last].perSeed(), plain)
		differences, p = append(differences, d), append(p, d.P)
	}
	corrected := compare.Holm(p)
	for i, epochs := range grid {
		mean, std := stat.MeanStdDev(epochs[last].perSeed(), nil)
		cells := []table.Cell{table.MeanStd(mean, std, 2)}
		if i > 0 {
			cells = append(cells, table.MeanStd(differences[i-1].Mean, differences[i-1].Err, 2), table.Number(corrected[i-1], 3))
		}
		t.Add(epochs[last].name, cells...)
	}
	return t
}

// gains is how far the rows of the table are above its first, beside the published gain.
func (x *experiment) gains(of *settingRun, found []row) plot.Panel {
	set := of.Dataset.Name
	series := []plot.Series{{Name: "chosen by validation", Bars: true}, {Name: "oracle: chosen on the test folds", Bars: true}}
	plain := found[0].perSeed()
	for i, r := range found[1:] {
		s := &series[0]
		if r.oracle {
			s = &series[1]
		}
		d := compare.Seeds(r.perSeed(), plain)
		s.X, s.Y = append(s.X, float64(i+2)), append(s.Y, d.Mean)
		if x.recipe.Seeds > 1 {
			s.Err = append(s.Err, d.Err)
		}
	}
	series = slices.DeleteFunc(series, func(s plot.Series) bool { return len(s.X) == 0 })
	best, ok := publishedValue(publishedBest, "graphcl", set)
	if base, also := publishedValue(publishedBase, "graphcl", set); ok && also {
		series = append(series, plot.Series{Name: "published gain over GraphCL", X: []float64{2, float64(len(found))}, Y: []float64{best - base, best - base}})
	}
	return plot.Lines{Axes: plot.Axes{Title: set, XLabel: "row of the table", YLabel: "minus its first row (points)"}, Series: series}
}

// course is the accuracy of the first setting by epoch, beside what choosing the epoch
// on the test folds gives, and what is published.
func (x *experiment) course(of *settingRun, epochs []candidate) plot.Panel {
	set := of.Dataset.Name
	curve := plot.Series{Name: epochs[0].name + ", ± standard deviation"}
	for i, c := range epochs {
		mean, std := stat.MeanStdDev(c.perSeed(), nil)
		curve.X, curve.Y = append(curve.X, float64(of.epochs[i])), append(curve.Y, mean)
		if x.recipe.Seeds > 1 {
			curve.Err = append(curve.Err, std)
		}
	}
	level := func(name string, y float64) plot.Series {
		ends := []float64{curve.X[0], curve.X[len(curve.X)-1]}
		return plot.Series{Name: name, X: ends, Y: []float64{y, y}}
	}
	lines := plot.Lines{Axes: plot.Axes{Title: set, XLabel: "epoch", YLabel: "accuracy (%)"}, Series: []plot.Series{
		curve,
		level("oracle: best epoch of each seed", oracle(epochs, bySeed).mean()),
		level("oracle: best epoch of each fold", oracle(epochs, byFold).mean()),
	}}
	for _, name := range slices.Compact([]string{publishedBase, publishedRow(of)}) {
		if y, ok := publishedValue(name, "graphcl", set); ok {
			lines.Series = append(lines.Series, level(name, y))
		}
	}
	return lines
}
