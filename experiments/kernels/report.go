package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/gnn/dataset"
)

// report writes results.json and the tables of a finished run.
func (x *experiment) report(stdout io.Writer, sets []*dataset.Dataset, runs []*trial, outcomes []outcome) error {
	var rows []rundir.Row
	for _, protocol := range x.protocol.Protocols {
		for _, ds := range sets {
			for _, name := range x.methods {
				if r, ok := x.row(ds, name, protocol, runs, outcomes); ok {
					rows = append(rows, r)
				}
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
	if err := x.dir.WriteTables(stdout, tables...); err != nil {
		return err
	}
	// Not in the files, which hold what a repetition gives again.
	if err := x.costTable(sets, runs, outcomes).WriteText(stdout); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nresults and tables: %s\n", x.dir.Path)
	return nil
}

// row gathers the seeds of one method on one data set; there is none where the
// protocol does not apply.
func (x *experiment) row(ds *dataset.Dataset, method, protocol string, runs []*trial, outcomes []outcome) (rundir.Row, bool) {
	r := rundir.Row{
		Experiment: "kernels", Dataset: ds.Name, Method: method, Protocol: protocol, Metric: "accuracy",
		Backend: engine, Precision: "float64", P: math.NaN(), GraphsPerSecond: math.NaN(),
	}
	for i, t := range runs {
		if t.set != ds || t.method.name != method {
			continue
		}
		accuracy, ok := outcomes[i].Accuracy[protocol]
		if !ok {
			return r, false
		}
		r.PerSeed = append(r.PerSeed, accuracy)
		r.Seconds += outcomes[i].BuildSeconds + outcomes[i].EvalSeconds
	}
	r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
	return r, true
}

var classifiers = map[string]string{
	nested:  "h and C by nested 5-fold search; kernels are normalized and given to a C-SVM, vectors to an RBF-SVM",
	linear:  "h and C by nested 5-fold search; linear SVM with the squared hinge loss, on features of norm 1 for kernels and on vectors as they are",
	heldOut: "folds without regard to class; h and C by accuracy on a tenth of the training part, which is not added back (TUDataset's evaluation of kernels)",
}

// accuracyTable is the part of the paper's Table 1 for one protocol, with published
// figures below ours.
func (x *experiment) accuracyTable(protocol string, sets []*dataset.Dataset, rows []rundir.Row) *table.Table {
	t := table.New("method", columns(sets)...)
	t.Caption = fmt.Sprintf("Accuracy in %%, %d-fold cross-validation, %s. Protocol %s: %s.",
		x.protocol.Folds, rundir.OverSeeds(x.recipe.Seeds), protocol, classifiers[protocol])
	for _, name := range x.methods {
		var cells []table.Cell
		any := false
		for _, ds := range sets {
			c := table.Text("")
			if r, ok := rundir.Find(rows, ds.Name, name, protocol); ok {
				any = true
				c = table.MeanStd(r.Mean, r.Std, 2)
			}
			cells = append(cells, c)
		}
		if any {
			t.Add(methodOf(name).row, cells...)
		}
	}
	for _, p := range published {
		var cells []table.Cell
		any := false
		for _, ds := range sets {
			c := table.Text("")
			if i := slices.Index(publishedSets[:], ds.Name); i >= 0 && p.values[i][0] != 0 {
				any = true
				c = table.Text(fmt.Sprintf("%.2f ± %.2f", p.values[i][0], p.values[i][1]))
			}
			cells = append(cells, c)
		}
		if any {
			t.Add(p.row, cells...)
			t.Footnotes = append(t.Footnotes, p.row+": "+p.note+".")
		}
	}
	return t
}

// costTable says how long the rows took.
func (x *experiment) costTable(sets []*dataset.Dataset, runs []*trial, outcomes []outcome) *table.Table {
	t := table.New("method", columns(sets)...)
	t.Caption = "Seconds for features and kernels, which are made once for all seeds unless a method draws at random, + seconds for the evaluation of a seed."
	for _, name := range x.methods {
		var cells []table.Cell
		for _, ds := range sets {
			var build, evaluate []float64
			for i, r := range runs {
				if r.set == ds && r.method.name == name {
					build = append(build, outcomes[i].BuildSeconds)
					evaluate = append(evaluate, outcomes[i].EvalSeconds)
				}
			}
			cells = append(cells, table.Text(fmt.Sprintf("%.1f + %.1f", slices.Max(build), stat.Mean(evaluate, nil))))
		}
		t.Add(methodOf(name).row, cells...)
	}
	return t
}

func columns(sets []*dataset.Dataset) []table.Column {
	var c []table.Column
	for _, ds := range sets {
		c = append(c, table.Column{Name: ds.Name})
	}
	return c
}
