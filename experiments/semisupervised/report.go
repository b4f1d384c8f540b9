package main

import (
	"fmt"
	"io"
	"math"
	"os"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/plot"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/specmatch/method"
)

// title names a row.
func title(name string) string {
	switch name {
	case methodNone:
		return "no pre-training"
	case methodAugmentation:
		return "augmentation only"
	}
	return method.Title(name)
}

// readings say how a protocol chooses the epoch.
var readings = map[string]string{
	protocolVal:     "the epoch of least loss on a validation fold",
	protocolTestMax: "the epoch of best mean test accuracy, as the literature prints: optimistic",
}

// report writes results.json, the tables and the curves of a finished run.
func (x *experiment) report(stdout io.Writer, jobs []*job) error {
	var rows []rundir.Row
	var tables []*table.Table
	for _, protocol := range x.protocol.Protocols {
		var these []rundir.Row
		for _, set := range x.sets {
			for _, name := range x.loss.Methods {
				these = append(these, x.row(set, name, protocol, jobs))
			}
		}
		tables = append(tables, x.accuracyTable(protocol, these))
		rows = append(rows, these...)
	}
	if paired := x.pairedTable(rows); paired != nil {
		tables = append(tables, paired)
	}
	if err := x.dir.WriteResults(rows); err != nil {
		return err
	}
	if err := x.dir.WriteTables(stdout, tables...); err != nil {
		return err
	}
	if err := x.plots(jobs); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "results, splits, metrics, curves and weights: %s\n", x.dir.Path)
	return nil
}

// row gathers the seeds of one method on one data set.
func (x *experiment) row(set *labelledSet, name, protocol string, jobs []*job) rundir.Row {
	r := rundir.Row{
		Experiment: "semisupervised", Dataset: set.data.Name, Method: name, Protocol: protocol, Metric: "accuracy",
		Backend: x.engine.Name(), Precision: x.engine.Precision.String(), P: math.NaN(),
	}
	if name == method.SpecMatch {
		r.Beta, r.P = x.loss.Beta, x.loss.P
	}
	var speeds []float64
	for _, j := range jobs {
		if j.set != set || j.method != name {
			continue
		}
		accuracy, _ := choose(protocol, j.tuned[protocol])
		r.PerSeed = append(r.PerSeed, accuracy)
		r.Seconds += j.pretrained.TrainSeconds
		for _, t := range j.tuned[protocol] {
			r.Seconds += t.Seconds
		}
		if j.pretrains() {
			r.Epochs = j.pretraining().Epochs()
			if x.fine.Pretrained == "" {
				speeds = append(speeds, float64(j.pretrained.GraphsPerSecond))
			}
		}
	}
	r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
	r.GraphsPerSecond = stat.Mean(speeds, nil)
	return r
}

// columns has one column for each data set.
func (x *experiment) columns() []table.Column {
	var columns []table.Column
	for _, set := range x.sets {
		columns = append(columns, table.Column{Name: set.data.Name})
	}
	return columns
}

// accuracyTable is the paper's Table 2 for one protocol. The published figures
// stand below the protocol that they were most likely measured with.
func (x *experiment) accuracyTable(protocol string, rows []rundir.Row) *table.Table {
	t := table.New("method", x.columns()...)
	t.Caption = fmt.Sprintf("Accuracy in %%, %v %% of the labels, mean over %d folds, %s. Protocol %s: %s.",
		100*x.fine.LabelRate, x.protocol.Folds, rundir.OverSeeds(x.recipe.Seeds), protocol, readings[protocol])
	t.Caption += x.settings.Note(method.SemiSupervised, x.loss.Methods)
	for _, name := range x.loss.Methods {
		var cells []table.Cell
		for _, set := range x.sets {
			r, _ := rundir.Find(rows, set.data.Name, name, protocol)
			cells = append(cells, table.MeanStd(r.Mean, r.Std, 2))
		}
		t.Add(title(name), cells...)
	}
	if protocol != protocolTestMax {
		return t
	}
	for _, p := range published {
		if p.labelRate != x.fine.LabelRate {
			continue
		}
		cells, any := make([]table.Cell, len(x.sets)), false
		for i, set := range x.sets {
			cells[i] = table.Text("")
			if v, ok := p.values[set.data.Name]; ok {
				any = true
				cells[i] = table.Text(fmt.Sprintf("%.2f ± %.2f", v[0], v[1]))
			}
		}
		if any {
			t.Add(p.row, cells...)
		}
	}
	return t
}

// pairedTable compares SpecMatch-CL with InfoNCE seed by seed. It is nil unless
// both ran with at least two seeds.
func (x *experiment) pairedTable(rows []rundir.Row) *table.Table {
	if x.recipe.Seeds < 2 {
		return nil
	}
	t := table.New("protocol", x.columns()...)
	t.Caption = fmt.Sprintf("SpecMatch-CL minus InfoNCE, paired by seed (same initial weights, batches, augmentations, folds and labels): mean difference in points ± its standard error over %d seeds.", x.recipe.Seeds)
	for _, protocol := range x.protocol.Protocols {
		var cells []table.Cell
		for _, set := range x.sets {
			a, okA := rundir.Find(rows, set.data.Name, method.SpecMatch, protocol)
			b, okB := rundir.Find(rows, set.data.Name, method.InfoNCE, protocol)
			if !okA || !okB {
				return nil
			}
			mean, se := rundir.Paired(a.PerSeed, b.PerSeed)
			cells = append(cells, table.MeanStd(mean, se, 2))
		}
		t.Add(protocol, cells...)
	}
	return t
}

// plots draws fine-tuning, epoch by epoch: means over folds and seeds, and over
// seeds of the means over folds their standard deviation.
func (x *experiment) plots(jobs []*job) error {
	if err := os.MkdirAll(x.dir.Join("plots"), 0o777); err != nil {
		return err
	}
	protocol := x.protocol.Protocols[0]
	for _, set := range x.sets {
		var panels []plot.Panel
		for _, q := range []struct{ label, metric string }{
			{"loss on the labelled graphs", "loss"}, {"test accuracy (%)", testAccuracy},
		} {
			panel := plot.Lines{Axes: plot.Axes{Title: set.data.Name + ", " + protocol, XLabel: "epoch of fine-tuning", YLabel: q.label}}
			for _, name := range x.loss.Methods {
				s := plot.Series{Name: title(name)}
				for e := range x.fine.Epochs {
					var seeds []float64
					for _, j := range jobs {
						if j.set == set && j.method == name {
							sum := 0.0
							for _, t := range j.tuned[protocol] {
								sum += t.Epochs[e].Get(q.metric)
							}
							seeds = append(seeds, sum/float64(x.protocol.Folds))
						}
					}
					mean, std := stat.MeanStdDev(seeds, nil)
					s.X, s.Y = append(s.X, float64(e+1)), append(s.Y, mean)
					if len(seeds) > 1 {
						s.Err = append(s.Err, std)
					}
				}
				panel.Series = append(panel.Series, s)
			}
			panels = append(panels, panel)
		}
		if err := plot.Save(x.dir.Join("plots", "finetuning-"+set.data.Name), 2, panels...); err != nil {
			return err
		}
	}
	return nil
}
