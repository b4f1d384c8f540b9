package main

import (
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/report/grid"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

func (x *experiment) report(
	stdout io.Writer, sets []*dataset.Dataset, runs []*trial, outcomes []outcome,
) error {
	var names []string
	for _, ds := range sets {
		names = append(names, ds.Name)
	}
	g := grid.New(run.Row{
		Experiment: "kernels",
		Metric:     "accuracy",
		Backend:    engine,
		Precision:  "float64",
	},
		names, x.methods.Names, x.protocol.Protocols, func(name string) string {
			return methodOf(name).Title
		})
	for i, t := range runs {
		// some protocols do not apply to some methods
		for protocol, accuracy := range outcomes[i].Accuracy {
			g.Add(t.set.Name, t.method.Name, protocol, grid.Result{
				Value:   accuracy,
				Seconds: outcomes[i].BuildSeconds + outcomes[i].EvalSeconds,
			})
		}
	}
	var tables []*table.Table
	for _, protocol := range x.protocol.Protocols {
		caption := fmt.Sprintf("Accuracy in %%, %d-fold cross-validation, %s. Protocol %s: %s.",
			x.protocol.Folds, run.OverSeeds(x.recipe.Seeds), protocol, classifiers[protocol])
		literature := append(
			slices.Clone(published.Classical),
			*published.Table1.Find("GraphCL, published"),
			*published.Table1.Find("SpecMatch-CL, published"),
		)
		tables = append(tables, g.Table(protocol, caption, literature))
	}
	if err := x.dir.Report(stdout, g.Rows(), tables...); err != nil {
		return err
	}
	// Not in the files, which hold what a repetition gives again.
	if err := x.costTable(names, runs, outcomes).WriteText(stdout); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nresults and tables: %s\n", x.dir.Path)
	return nil
}

var classifiers = map[string]string{
	string(eval.GraphCL): "h and C by nested 5-fold search; kernels are normalized and given to a " +
		"C-SVM, vectors to an RBF-SVM",
	string(eval.Linear): "h and C by nested 5-fold search; linear SVM with the squared hinge loss, " +
		"on features of norm 1 for kernels and on vectors as they are",
	string(
		eval.HoldOutKernels,
	): "folds without regard to class; h and C by accuracy on a tenth of the " +
		"training part, which is not added back (TUDataset's evaluation of kernels)",
}

func (x *experiment) costTable(sets []string, runs []*trial, outcomes []outcome) *table.Table {
	t := table.New("method", table.Names(sets...)...)
	t.Caption = "Seconds for features and kernels, which are made once for all seeds unless a method " +
		"draws at random, + seconds for the evaluation of a seed."
	for _, name := range x.methods.Names {
		var cells []table.Cell
		for _, set := range sets {
			var build, evaluate []float64
			for i, r := range runs {
				if r.set.Name == set && r.method.Name == name {
					build = append(build, outcomes[i].BuildSeconds)
					evaluate = append(evaluate, outcomes[i].EvalSeconds)
				}
			}
			cells = append(cells, table.Text(fmt.Sprintf("%.1f + %.1f",
				slices.Max(build), stat.Mean(evaluate, nil))))
		}
		t.Add(methodOf(name).Title, cells...)
	}
	return t
}
