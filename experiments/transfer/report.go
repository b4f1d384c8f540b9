package main

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/specmatch/method"
)

// title names a row.
func title(name string) string {
	if name == methodNone {
		return "no pre-training"
	}
	return method.Title(name)
}

// readings say how a protocol chooses the epoch.
var readings = map[string]string{
	protocolLast: "the last epoch, as GraphCL's code reports it",
	protocolBest: "the epoch that is best on the validation set",
}

// report writes results.json and the tables of a finished run.
func (x *experiment) report(stdout io.Writer, trained map[string]pretrain.Trained, runs []*tuning) error {
	var rows []rundir.Row
	var tables []*table.Table
	for _, protocol := range protocols {
		t := table.New("method", x.columns()...)
		corpus := ""
		if x.pretrains() {
			corpus = fmt.Sprintf(" Pre-trained on %d graphs for %d epochs.", len(x.domain.corpus), x.recipe.Epochs)
			corpus += x.settings.Note(method.Transfer, x.loss.Methods)
		}
		t.Caption = fmt.Sprintf("ROC-AUC in %%, %s.%s Protocol %s: %s.", rundir.OverSeeds(x.recipe.Seeds), corpus, protocol, readings[protocol])
		for _, name := range x.loss.Methods {
			var cells []table.Cell
			for _, set := range x.domain.sets {
				r := x.row(set, name, protocol, trained, runs)
				rows = append(rows, r)
				cells = append(cells, table.MeanStd(r.Mean, r.Std, 2))
			}
			t.Add(title(name), cells...)
		}
		for _, p := range published {
			var cells []table.Cell
			known := false
			for _, set := range x.domain.sets {
				v, ok := p.values[set.name]
				known = known || ok
				if !ok {
					v = [2]float64{math.NaN(), math.NaN()}
				}
				cells = append(cells, table.MeanStd(v[0], v[1], 2))
			}
			if known {
				t.Add(p.row, cells...)
			}
		}
		tables = append(tables, t)
	}
	if x.recipe.Seeds > 1 && len(x.loss.Methods) > 1 {
		for _, protocol := range protocols {
			tables = append(tables, x.pairedTable(protocol, rows))
		}
	}
	if err := x.dir.WriteResults(rows); err != nil {
		return err
	}
	if err := x.dir.WriteTables(stdout, tables...); err != nil {
		return err
	}
	for _, t := range runs {
		if t.skipped() > 0 && t.seed == x.recipe.FirstSeed && t.method == x.loss.Methods[0] {
			fmt.Fprintf(stdout, "%s: %d of %d tasks have one class only in the test set and do not count\n", t.set.name, t.skipped(), t.set.tasks)
		}
	}
	fmt.Fprintf(stdout, "results, metrics and weights: %s\n", x.dir.Path)
	return nil
}

// row gathers the seeds of one method on one set.
func (x *experiment) row(set *taskSet, name, protocol string, trained map[string]pretrain.Trained, runs []*tuning) rundir.Row {
	r := rundir.Row{
		Experiment: "transfer", Dataset: set.name, Method: name, Protocol: protocol, Metric: "roc-auc",
		Backend: x.engine.Name(), Precision: x.engine.Precision.String(), P: math.NaN(), GraphsPerSecond: math.NaN(),
	}
	if name == method.SpecMatch {
		r.Beta, r.P = x.loss.Beta, x.loss.P
	}
	if name != methodNone {
		r.Epochs = x.pretraining(name).Epochs()
	}
	if p, ok := trained[name]; ok {
		r.Seconds, r.GraphsPerSecond = p.TrainSeconds, float64(p.GraphsPerSecond)
	}
	for _, t := range runs {
		if t.set == set && t.method == name {
			auc, _ := t.choose(protocol)
			r.PerSeed = append(r.PerSeed, auc)
			r.Seconds += t.result.Seconds
		}
	}
	r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
	return r
}

// columns has one column for each set.
func (x *experiment) columns() []table.Column {
	var columns []table.Column
	for _, set := range x.domain.sets {
		columns = append(columns, table.Column{Name: set.name})
	}
	return columns
}

// pairedTable compares every method with the first one, seed by seed: the runs of a
// seed share the output layer's initial weights and the batches.
func (x *experiment) pairedTable(protocol string, rows []rundir.Row) *table.Table {
	base := x.loss.Methods[0]
	t := table.New("method", x.columns()...)
	t.Caption = fmt.Sprintf("Difference to %s, paired by seed: mean in points of ROC-AUC ± its standard error over %d seeds. Protocol %s.", title(base), x.recipe.Seeds, protocol)
	for _, name := range x.loss.Methods[1:] {
		var cells []table.Cell
		for _, set := range x.domain.sets {
			a, _ := rundir.Find(rows, set.name, name, protocol)
			b, _ := rundir.Find(rows, set.name, base, protocol)
			mean, se := rundir.Paired(a.PerSeed, b.PerSeed)
			cells = append(cells, table.MeanStd(mean, se, 2))
		}
		t.Add(title(name), cells...)
	}
	return t
}
