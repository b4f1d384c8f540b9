package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/grid"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
)

// readings say how a protocol chooses the epoch.
var readings = map[string]string{
	protocolLast: "the last epoch, as GraphCL's code reports it",
	protocolBest: "the epoch that is best on the validation set",
}

// gather sorts what fine-tuning has measured; pretrained is by method.
func (x *experiment) gather(pretrained map[string]training.Trained, tunings []*tuning) *grid.Grid {
	var sets []string
	for _, set := range x.domain.sets {
		sets = append(sets, set.name)
	}
	g := grid.New(
		grid.Common("transfer", "roc-auc", x.Engine, x.Settings.Options),
		sets,
		x.Methods.Names,
		protocols,
		paper.Title,
	)
	for _, t := range tunings {
		for _, protocol := range protocols {
			r := grid.Result{Value: t.choose(protocol), Seconds: t.result.Seconds}
			if paper.Pretrains(t.method) {
				r.Epochs = x.pretraining(t.method).Epochs()
			}
			if t.seed == x.Recipe.FirstSeed { // all seeds share the pre-training
				r.Seconds += pretrained[t.method].TrainSeconds
				r.GraphsPerSecond = float64(pretrained[t.method].GraphsPerSecond)
			}
			g.Add(t.set.name, t.method, protocol, r)
		}
	}
	return g
}

func (x *experiment) report(stdout io.Writer, trained []training.Trained, tunings []*tuning) error {
	pretrained := map[string]training.Trained{}
	for _, name := range x.Methods.Names {
		if x.fine.PretrainsHere(name) {
			pretrained[name] = trained[0]
			trained = trained[1:]
		}
	}
	g := x.gather(pretrained, tunings)
	corpus := ""
	if slices.ContainsFunc(x.Methods.Names, paper.Pretrains) {
		corpus = fmt.Sprintf(" Pre-trained on %d graphs for %d epochs.",
			len(x.domain.corpus), x.Recipe.Epochs)
		corpus += x.Settings.Note(method.Transfer, x.Methods.Names)
	}
	var tables []*table.Table
	for _, protocol := range protocols {
		caption := fmt.Sprintf("ROC-AUC in %%, %s.%s Protocol %s: %s.",
			run.OverSeeds(x.Recipe.Seeds), corpus, protocol, readings[protocol])
		tables = append(tables, g.Table(protocol, caption, published.Table3))
	}
	tables = append(tables, g.Differences(x.Methods.Names[0], x.Methods.Names[1:]...))
	if err := x.Dir.Report(stdout, g.Rows(), tables...); err != nil {
		return err
	}
	panels := paper.SharesPanels("", x.Methods.Names, func(name string) [][]train.Metrics {
		return [][]train.Metrics{pretrained[name].Epochs}
	})
	if err := plot.Save(x.Dir.Join("plots", "augmentations"), 2, panels...); err != nil {
		return err
	}
	for _, t := range tunings {
		if t.skipped() > 0 && t.seed == x.Recipe.FirstSeed && t.method == x.Methods.Names[0] {
			fmt.Fprintf(
				stdout,
				"%s: %d of %d tasks have one class only in the test set and do not count\n",
				t.set.name, t.skipped(), t.set.tasks,
			)
		}
	}
	fmt.Fprintf(stdout, "results, metrics and weights: %s\n", x.Dir.Path)
	return nil
}
