package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/grid"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// readings say how a protocol chooses the epoch.
var readings = map[string]string{
	protocolVal:     "the epoch of least loss on a validation fold",
	protocolTestMax: "the epoch of best mean test accuracy, as the literature prints: optimistic",
}

func (x *experiment) gather(jobs []*job) *grid.Grid {
	var sets []string
	for _, set := range x.sets {
		sets = append(sets, set.data.Name)
	}
	g := grid.New(
		grid.Common("semisupervised", "accuracy", x.Engine, x.Settings.Options),
		sets,
		x.Methods.Names,
		x.Protocol.Protocols,
		paper.Title,
	)
	for _, j := range jobs {
		for _, protocol := range x.Protocol.Protocols {
			r := grid.Result{
				Value:           choose(protocol, j.tuned[protocol]),
				Seconds:         j.pretrained.TrainSeconds,
				GraphsPerSecond: float64(j.pretrained.GraphsPerSecond),
			}
			for _, t := range j.tuned[protocol] {
				r.Seconds += t.Seconds
			}
			if paper.Pretrains(j.method) {
				r.Epochs = j.pretraining().Epochs()
			}
			g.Add(j.set.data.Name, j.method, protocol, r)
		}
	}
	return g
}

// report writes results.json, splits.json, the tables and the curves of a finished run.
func (x *experiment) report(stdout io.Writer, jobs []*job) error {
	g := x.gather(jobs)
	var tables []*table.Table
	for _, protocol := range x.Protocol.Protocols {
		var literature published.Table
		if protocol == protocolTestMax { // which they were most likely measured with
			literature = published.Table2[x.fine.LabelRate]
		}
		caption := fmt.Sprintf(
			"Accuracy in %%, %v %% of the labels, mean over %d folds, %s. Protocol %s: %s.",
			100*x.fine.LabelRate,
			x.Protocol.Folds,
			run.OverSeeds(x.Recipe.Seeds),
			protocol,
			readings[protocol],
		)
		tables = append(tables, g.Table(
			protocol, caption+x.Settings.Note(method.SemiSupervised, x.Methods.Names), literature,
		))
	}
	tables = append(tables, g.Differences(method.InfoNCE, method.SpecMatch))
	if err := x.Dir.Report(stdout, g.Rows(), tables...); err != nil {
		return err
	}
	if err := errors.Join(x.writeSplits(), x.plots(jobs)); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "results, splits, metrics, curves and weights: %s\n", x.Dir.Path)
	return nil
}

// plots draws what pre-training learns of augmentations, and fine-tuning, epoch by
// epoch: means over folds and seeds, and over seeds of the means over folds their
// standard deviation.
func (x *experiment) plots(jobs []*job) error {
	protocol := x.Protocol.Protocols[0]
	for _, set := range x.sets {
		shares := paper.SharesPanels(set.data.Name, x.Methods.Names,
			func(name string) (histories [][]train.Metrics) {
				for _, j := range jobs {
					if j.set == set && j.method == name {
						histories = append(histories, j.pretrained.Epochs)
					}
				}
				return histories
			})
		var curves []plot.Panel
		for _, q := range []struct{ label, metric string }{
			{"loss on the labelled graphs", "loss"}, {"test accuracy (%)", testAccuracy},
		} {
			panel := plot.Lines{Axes: plot.Axes{
				Title:  set.data.Name + ", " + protocol,
				XLabel: "epoch of fine-tuning",
				YLabel: q.label,
			}}
			for _, name := range x.Methods.Names {
				var seeds [][]train.Metrics
				for _, j := range jobs {
					if j.set == set && j.method == name {
						seeds = append(seeds, overFolds(j.tuned[protocol], q.metric))
					}
				}
				panel.Series = append(panel.Series, paper.Curve(paper.Title(name), seeds, q.metric))
			}
			curves = append(curves, panel)
		}
		if err := errors.Join(
			plot.Save(x.Dir.Join("plots", "augmentations-"+set.data.Name), 2, shares...),
			plot.Save(x.Dir.Join("plots", "finetuning-"+set.data.Name), 2, curves...)); err != nil {
			return err
		}
	}
	return nil
}

// overFolds is the mean of a metric over folds, epoch by epoch.
func overFolds(folds []finetune.Result, metric string) []train.Metrics {
	mean := make([]train.Metrics, len(folds[0].Epochs))
	for e := range mean {
		sum := 0.0
		for _, f := range folds {
			sum += f.Epochs[e].Get(metric)
		}
		mean[e] = train.Metrics{metric: sum / float64(len(folds))}
	}
	return mean
}

// writeSplits writes splits.json: by data set and protocol, the parts of every
// fold; nothing if the sets have not been read.
func (x *experiment) writeSplits() error {
	if x.sets[0].splits == nil {
		return nil
	}
	return files.Write(x.Dir.Join("splits.json"), func(w io.Writer) error {
		splits := map[string]map[string][]dataset.Split{}
		for _, s := range x.sets {
			splits[s.data.Name] = s.splits
		}
		return json.NewEncoder(w).Encode(splits)
	})
}
