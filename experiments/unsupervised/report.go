package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/grid"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
)

var classifiers = map[string]string{
	"graphcl":     "RBF-SVM, C by nested 5-fold search (GraphCL's script)",
	"linear":      "linear SVM, C by nested 5-fold search (the paper's wording)",
	"graphcl-c10": "RBF-SVM, C = 10",
}

func (x *experiment) gather(
	sets []string, runs []*training.Run, trained []training.Trained, scores []eval.Score,
) *grid.Grid {
	g := grid.New(
		grid.Common("unsupervised", "accuracy", x.Engine, x.Settings.Options),
		sets,
		x.Methods.Names,
		x.Protocol.Protocols,
		method.Title,
	)
	n := len(x.Protocol.Protocols)
	for i, r := range runs {
		t := trained[i]
		seconds := t.TrainSeconds
		for _, s := range scores[i*n : (i+1)*n] {
			seconds += s.Seconds
		}
		for k, protocol := range x.Protocol.Protocols {
			g.Add(r.Dataset.Name, r.Method, protocol, grid.Result{
				Value:           scores[i*n+k].Accuracy,
				Seconds:         seconds,
				GraphsPerSecond: float64(t.GraphsPerSecond),
				Epochs:          len(t.Epochs),
				Twins:           scores[i*n+k].Twins,
			})
		}
	}
	return g
}

// report writes results.json, the tables and the curves of a finished run.
func (x *experiment) report(
	stdout io.Writer, runs []*training.Run, trained []training.Trained, scores []eval.Score,
) error {
	sets, histories := courses(runs, trained)
	g := x.gather(sets, runs, trained, scores)
	var tables []*table.Table
	for _, protocol := range x.Protocol.Protocols {
		caption := fmt.Sprintf("Accuracy in %%, %d-fold cross-validation, %s. Protocol %s: %s; "+
			"embeddings after epoch %d, or where the method stops.",
			x.Protocol.Folds,
			run.OverSeeds(x.Recipe.Seeds),
			protocol,
			classifiers[protocol],
			x.Recipe.Epochs,
		)
		tables = append(tables, g.Table(
			protocol, caption+x.Settings.Note(method.Unsupervised, x.Methods.Names), published.Table1,
		))
		tables = append(tables, g.Twins(protocol))
	}
	alike := slices.DeleteFunc(slices.Clone(x.Methods.Names), func(name string) bool {
		return !sharesViews(name)
	})
	tables = append(
		tables,
		g.Differences(method.InfoNCE, alike...),
		g.Differences(method.EMA, method.EMABatch, method.EMAMemory),
	)
	if err := x.Dir.Report(stdout, g.Rows(), tables...); err != nil {
		return err
	}
	if err := x.curves(sets, histories); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "results, metrics, curves and weights: %s\n", x.Dir.Path)
	return nil
}

// sharesViews reports whether a method learns from the views of InfoNCE with all else
// alike, so that a difference between the two is one of losses.
func sharesViews(name string) bool {
	switch name {
	case method.SpecMatch, method.Jitter, method.EMA, method.EMABatch, method.EMAMemory:
		return true
	}
	return false
}

type group struct{ set, method string }

// courses returns the names of the data sets and the metrics of the runs, epoch by
// epoch.
func courses(
	runs []*training.Run, trained []training.Trained,
) (sets []string, histories map[group][][]train.Metrics) {
	histories = map[group][][]train.Metrics{}
	for i, r := range runs {
		if !slices.Contains(sets, r.Dataset.Name) {
			sets = append(sets, r.Dataset.Name)
		}
		g := group{r.Dataset.Name, r.Method}
		histories[g] = append(histories[g], trained[i].Epochs)
	}
	return sets, histories
}

func (x *experiment) curves(sets []string, histories map[group][][]train.Metrics) error {
	quantities := []struct{ label, metric string }{
		{"L_C", "loss_c"}, {"L_G, soft threshold", "loss_g"}, {"L_G, hard threshold", "loss_g_hard"},
		{"std of the similarities", "similarity_std"},
	}
	for _, set := range sets {
		panels := paper.SharesPanels(set, x.Methods.Names, func(name string) [][]train.Metrics {
			return histories[group{set, name}]
		})
		for _, q := range quantities {
			panel := plot.Lines{Axes: plot.Axes{Title: set, XLabel: "epoch", YLabel: q.label}}
			for _, name := range x.Methods.Names {
				if s := paper.Curve(
					method.Title(name), histories[group{set, name}], q.metric,
				); len(s.X) > 0 {
					panel.Series = append(panel.Series, s)
				}
			}
			if len(panel.Series) > 0 {
				panels = append(panels, panel)
			}
		}
		if err := plot.Save(x.Dir.Join("plots", "curves-"+set), 2, panels...); err != nil {
			return err
		}
	}
	return nil
}
