package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/grid"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/table"
)

type outcome struct {
	training.Trained
	scores map[string]eval.Score // by protocol
}

// outcomes puts the two halves of the runs together.
func (x *experiment) outcomes(trained []training.Trained, scores []eval.Score) []outcome {
	outcomes := make([]outcome, len(trained))
	for i := range outcomes {
		outcomes[i] = outcome{trained[i], map[string]eval.Score{}}
		for _, protocol := range x.Protocol.Protocols {
			outcomes[i].scores[protocol] = scores[0]
			scores = scores[1:]
		}
	}
	return outcomes
}

// result is a row of the table on one data set: what its seeds left.
type result struct {
	row
	outcomes []outcome
}

func (r result) accuracies(protocol string) []float64 {
	var accuracies []float64
	for _, o := range r.outcomes {
		accuracies = append(accuracies, o.scores[protocol].Accuracy)
	}
	return accuracies
}

// last returns the mean over seeds of a metric of the last epoch, NaN without
// training.
func (r result) last(metric string) float64 {
	var values []float64
	for _, o := range r.outcomes {
		if n := len(o.Epochs); n > 0 {
			values = append(values, o.Epochs[n-1].Get(metric))
		}
	}
	return stat.Mean(values, nil)
}

// results sorts the outcomes by row.
func (x *experiment) results(ds *dataset.Dataset, runs []*training.Run, outcomes []outcome) []result {
	byKey := map[string][]outcome{}
	for i, r := range runs {
		if r.Dataset == ds {
			byKey[r.Setting] = append(byKey[r.Setting], outcomes[i])
		}
	}
	var results []result
	for _, row := range x.rows() {
		results = append(results, result{row, byKey[row.key()]})
	}
	return results
}

func (x *experiment) report(
	stdout io.Writer, sets []*dataset.Dataset, runs []*training.Run, outcomes []outcome,
) error {
	bySet := map[*dataset.Dataset][]result{}
	for _, ds := range sets {
		bySet[ds] = x.results(ds, runs, outcomes)
	}
	var rows []run.Row
	var tables []*table.Table
	for _, protocol := range x.Protocol.Protocols {
		for _, ds := range sets {
			tables = append(tables, x.table(ds, protocol, bySet[ds]))
			for _, r := range bySet[ds] {
				rows = append(rows, x.resultsRow(ds, protocol, r))
			}
		}
	}
	if err := x.Dir.Report(stdout, rows, tables...); err != nil {
		return err
	}
	if err := x.figure(sets, bySet); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "results, metrics, figure and weights: %s\n", x.Dir.Path)
	return nil
}

func (x *experiment) resultsRow(ds *dataset.Dataset, protocol string, r result) run.Row {
	out := grid.Common("ablation", "accuracy", x.Engine, r.options)
	out.Dataset = ds.Name
	out.Method = r.label
	out.Protocol = protocol
	out.PerSeed = r.accuracies(protocol)
	out.Epochs = x.Recipe.Epochs
	out.Mean, out.Std = stat.MeanStdDev(out.PerSeed, nil)
	var speeds []float64
	for _, o := range r.outcomes {
		out.Seconds += o.TrainSeconds
		for _, score := range o.scores {
			out.Seconds += score.Seconds
		}
		speeds = append(speeds, float64(o.GraphsPerSecond))
	}
	out.GraphsPerSecond = stat.Mean(speeds, nil)
	return out
}

// table is one data set under one protocol.
func (x *experiment) table(ds *dataset.Dataset, protocol string, results []result) *table.Table {
	columns := []string{
		"accuracy (%)", "minus β = 0", "L_G trained", "L_G hard", "std of S", "gradient ratio",
	}
	if _, ok := published.Table4[0].Values[ds.Name]; ok {
		columns = append(columns, "published (%)")
	}
	t := table.New("row", table.Names(columns...)...)
	var accuracies [][]float64
	for _, r := range results {
		accuracies = append(accuracies, r.accuracies(protocol))
	}
	differences, _ := grid.Differences(grid.Minus(accuracies[0], accuracies[1:]...), 2)
	t.Caption = fmt.Sprintf("%s, %d-fold cross-validation, protocol %s. Accuracy: %s. Minus β = 0: "+
		"mean difference in points ± its standard error over the seeds. %s What the last epoch's "+
		"first batch shows: L_G as trained; with the hard threshold at the row's p, and the "+
		"standard deviation of the similarities, both of z also where L_G sees h; ‖β∇L_G‖/‖∇L_C‖.",
		ds.Name,
		x.Protocol.Folds,
		protocol,
		run.OverSeeds(x.Recipe.Seeds),
		grid.Corrected(len(differences)),
	)
	for i, r := range results {
		mean, std := stat.MeanStdDev(accuracies[i], nil)
		cells := []table.Cell{table.MeanStd(mean, std, 2), table.Text("")}
		if i > 0 && x.Recipe.Seeds > 1 {
			cells[1] = differences[i-1]
		}
		for _, metric := range []string{"loss_g", "loss_g_hard", "similarity_std", "gradient_ratio"} {
			cells = append(cells, table.Number(r.last(metric), 3))
		}
		if p := published.Table4.Find(fmt.Sprint(r.x)); p != nil && r.factor == factorP {
			if v, ok := p.Values[ds.Name]; ok {
				cells = append(cells, table.Text(fmt.Sprintf("%.2f ± %.2f", v[0], v[1])))
			}
		}
		t.Add(r.label, cells...)
	}
	return t
}

// figure draws accuracy against the factors that are numbers, one line per data
// set with the standard deviation over seeds as error bars, and the two L_G
// against β.
func (x *experiment) figure(sets []*dataset.Dataset, bySet map[*dataset.Dataset][]result) error {
	protocol := x.Protocol.Protocols[0]
	axes := map[string]string{factorBeta: "β", factorP: "percentile p (%)", factorKappa: "sharpness κ"}
	var panels []plot.Panel
	for _, factor := range []string{factorBeta, factorP, factorKappa} {
		accuracy := plot.Lines{Axes: plot.Axes{
			XLabel: axes[factor],
			YLabel: "accuracy (%)",
			LogX:   factor == factorKappa,
		}}
		match := plot.Lines{Axes: plot.Axes{XLabel: axes[factor], YLabel: "L_G after training"}}
		for _, ds := range sets {
			acc := plot.Series{Name: ds.Name, Bars: true}
			soft := plot.Series{Name: ds.Name + ", as trained"}
			hard := plot.Series{Name: ds.Name + ", hard threshold"}
			for _, r := range sorted(bySet[ds], factor) {
				mean, std := stat.MeanStdDev(r.accuracies(protocol), nil)
				acc.X = append(acc.X, r.x)
				acc.Y = append(acc.Y, mean)
				acc.Err = append(acc.Err, std)
				soft.X = append(soft.X, r.x)
				soft.Y = append(soft.Y, r.last("loss_g"))
				hard.X = append(hard.X, r.x)
				hard.Y = append(hard.Y, r.last("loss_g_hard"))
			}
			accuracy.Series = append(accuracy.Series, acc)
			if n := len(acc.X); factor != factorBeta && n > 0 {
				zero := stat.Mean(bySet[ds][0].accuracies(protocol), nil)
				accuracy.Series = append(accuracy.Series, plot.Series{
					Name: ds.Name + ", β = 0",
					X:    []float64{acc.X[0], acc.X[n-1]},
					Y:    []float64{zero, zero},
				})
			}
			match.Series = append(match.Series, soft, hard)
		}
		if len(accuracy.Series[0].X) < 2 {
			continue
		}
		panels = append(panels, accuracy)
		if factor == factorBeta {
			panels = append(panels, match)
		}
	}
	return plot.Save(x.Dir.Join("ablation"), 2, panels...)
}

// sorted returns the rows of a factor by its value. A β that is steered has none
// and is left out.
func sorted(results []result, factor string) []result {
	rows := slices.DeleteFunc(slices.Clone(results), func(r result) bool {
		return r.factor != factor || method.Beta.Of(r.options).Ratio != 0
	})
	slices.SortFunc(rows, func(a, b result) int { return cmp.Compare(a.x, b.x) })
	return rows
}
