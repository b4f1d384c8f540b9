package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/plot"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/train"
)

// report writes results.json, the tables and the curves of a finished run.
func (x *experiment) report(stdout io.Writer, sets []*dataset.Dataset, runs []*pretrain.Run, outcomes []pretrain.Outcome) error {
	var rows []rundir.Row
	for _, protocol := range x.protocol.Protocols {
		for _, ds := range sets {
			for _, name := range x.loss.Methods {
				rows = append(rows, x.row(ds, name, protocol, runs, outcomes))
			}
		}
	}
	if err := x.dir.WriteResults(rows); err != nil {
		return err
	}
	var tables []*table.Table
	for _, protocol := range x.protocol.Protocols {
		tables = append(tables, x.accuracyTable(protocol, sets, rows))
	}
	if paired := x.pairedTable(sets, rows); paired != nil {
		tables = append(tables, paired)
	}
	if err := x.dir.WriteTables(stdout, tables...); err != nil {
		return err
	}
	if err := x.curves(sets, runs, outcomes); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "results, metrics, curves and weights: %s\n", x.dir.Path)
	return nil
}

// row gathers the seeds of one method on one data set.
func (x *experiment) row(ds *dataset.Dataset, name, protocol string, runs []*pretrain.Run, outcomes []pretrain.Outcome) rundir.Row {
	r := rundir.Row{
		Experiment: "unsupervised", Dataset: ds.Name, Method: name, Protocol: protocol, Metric: "accuracy",
		Backend: x.engine.Name(), Precision: x.engine.Precision.String(), P: math.NaN(),
	}
	if name == method.SpecMatch {
		r.Beta, r.P = x.loss.Beta, x.loss.P
	}
	var speeds []float64
	for i, run := range runs {
		if run.Dataset == ds && run.Method == name {
			out := outcomes[i]
			r.Epochs = run.Epochs()
			r.PerSeed = append(r.PerSeed, out.Accuracy[protocol])
			r.Seconds += out.TrainSeconds + out.EvalSeconds
			speeds = append(speeds, float64(out.GraphsPerSecond))
		}
	}
	r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
	r.GraphsPerSecond = stat.Mean(speeds, nil)
	return r
}

var classifiers = map[string]string{
	"graphcl": "RBF-SVM, C by nested 5-fold search (GraphCL's script)",
	"linear":  "linear SVM, C by nested 5-fold search (the paper's wording)",
}

// accuracyTable is the paper's Table 1 for one protocol, with published figures
// below ours.
func (x *experiment) accuracyTable(protocol string, sets []*dataset.Dataset, rows []rundir.Row) *table.Table {
	var columns []table.Column
	for _, ds := range sets {
		columns = append(columns, table.Column{Name: ds.Name})
	}
	t := table.New("method", columns...)
	t.Caption = fmt.Sprintf("Accuracy in %%, %d-fold cross-validation, %s. Protocol %s: %s; embeddings after epoch %d.",
		x.protocol.Folds, rundir.OverSeeds(x.recipe.Seeds), protocol, classifiers[protocol], x.recipe.Epochs)
	t.Caption += x.settings.Note(method.Unsupervised, x.loss.Methods)
	for _, name := range x.loss.Methods {
		var cells []table.Cell
		for _, ds := range sets {
			r, _ := rundir.Find(rows, ds.Name, name, protocol)
			cells = append(cells, table.MeanStd(r.Mean, r.Std, 2))
		}
		t.Add(method.Title(name), cells...)
	}
	for _, p := range published {
		if !slices.Contains(p.protocols, protocol) {
			continue
		}
		var cells []table.Cell
		found := false
		for _, ds := range sets {
			c := table.Text("")
			if v, ok := p.values[ds.Name]; ok {
				found = true
				c = table.Text(fmt.Sprintf("%.2f ± %.2f", v[0], v[1]))
			}
			cells = append(cells, c)
		}
		if found {
			t.Add(p.row, cells...)
		}
	}
	return t
}

// pairedTable compares SpecMatch-CL with InfoNCE seed by seed. It is nil unless
// both ran with at least two seeds.
func (x *experiment) pairedTable(sets []*dataset.Dataset, rows []rundir.Row) *table.Table {
	if x.recipe.Seeds < 2 {
		return nil
	}
	var columns []table.Column
	for _, ds := range sets {
		columns = append(columns, table.Column{Name: ds.Name})
	}
	columns = append(columns, table.Column{Name: "mean of sets"})
	t := table.New("protocol", columns...)
	t.Caption = fmt.Sprintf("SpecMatch-CL minus InfoNCE, paired by seed (same initial weights, batches, augmentations and folds): mean difference in points ± its standard error over %d seeds.", x.recipe.Seeds)
	for _, protocol := range x.protocol.Protocols {
		var cells []table.Cell
		sum, variance := 0.0, 0.0
		for _, ds := range sets {
			a, okA := rundir.Find(rows, ds.Name, method.SpecMatch, protocol)
			b, okB := rundir.Find(rows, ds.Name, method.InfoNCE, protocol)
			if !okA || !okB {
				return nil
			}
			mean, se := rundir.Paired(a.PerSeed, b.PerSeed)
			cells = append(cells, table.MeanStd(mean, se, 2))
			sum += mean
			variance += se * se
		}
		k := float64(len(sets))
		cells = append(cells, table.MeanStd(sum/k, math.Sqrt(variance)/k, 2))
		t.Add(protocol, cells...)
	}
	return t
}

// curves draws what metrics.csv holds, as means over the seeds.
func (x *experiment) curves(sets []*dataset.Dataset, runs []*pretrain.Run, outcomes []pretrain.Outcome) error {
	quantities := []struct{ label, metric string }{
		{"L_C", "loss_c"}, {"L_G, soft threshold", "loss_g"}, {"L_G, hard threshold", "loss_g_hard"},
		{"std of the similarities", "similarity_std"},
	}
	if err := os.MkdirAll(x.dir.Join("plots"), 0o777); err != nil {
		return err
	}
	for _, ds := range sets {
		var panels []plot.Panel
		for _, name := range x.loss.Methods {
			if bands := pretrain.Shares(histories(runs, outcomes, ds, name), "p_"); len(bands) > 0 {
				panels = append(panels, plot.Lines{Axes: plot.Axes{Title: ds.Name, XLabel: "epoch", YLabel: "shares in " + method.Title(name)}, Series: bands})
			}
		}
		for _, q := range quantities {
			panel := plot.Lines{Axes: plot.Axes{Title: ds.Name, XLabel: "epoch", YLabel: q.label}}
			for _, name := range x.loss.Methods {
				if s := pretrain.Curve(method.Title(name), histories(runs, outcomes, ds, name), q.metric); len(s.X) > 0 {
					panel.Series = append(panel.Series, s)
				}
			}
			if len(panel.Series) > 0 {
				panels = append(panels, panel)
			}
		}
		if len(panels) == 0 {
			continue
		}
		if err := plot.Save(x.dir.Join("plots", "curves-"+ds.Name), 2, panels...); err != nil {
			return err
		}
	}
	return nil
}

// histories are the metrics of a method's runs on a data set, epoch by epoch.
func histories(runs []*pretrain.Run, outcomes []pretrain.Outcome, ds *dataset.Dataset, name string) (all [][]train.Metrics) {
	for i, r := range runs {
		if r.Dataset == ds && r.Method == name {
			all = append(all, outcomes[i].Epochs)
		}
	}
	return all
}
