package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
)

var names = []string{"NCI1", "PROTEINS", "DD", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI-5K"}

// open reads a real set that lies beside the project's root.
func open(b *testing.B, name string) *dataset.Dataset {
	ds, err := dataset.Open(b.Context(), filepath.FromSlash("../../../shared/data/tu"), name, dataset.Options{NodeAttributes: true})
	if errors.Is(err, fs.ErrNotExist) {
		b.Skipf("no real data here: %v", err)
	} else if err != nil {
		b.Fatal(err)
	}
	return ds.WithDegrees(dataset.DegreeCap(name))
}

// BenchmarkEpoch is an epoch of fine-tuning on a fold with a tenth of the labels, and
// what is evaluated after it, by protocol, on real sets that lie beside the project's
// root. A seed of a method is a thousand of these under each protocol, and a
// pre-training.
//
//	go test -run '^$' -bench Epoch/NCI1 -cpu 1 -cpuprofile epoch.prof ./experiments/semisupervised
func BenchmarkEpoch(b *testing.B) {
	for _, name := range names {
		for _, protocol := range []string{protocolVal, protocolTestMax} {
			b.Run(name+"/"+protocol, func(b *testing.B) {
				x := &experiment{
					Experiment: paper.Experiment{
						Recipe:   cli.Recipe{Epochs: 1, Batch: 128, LR: 0.001, Seeds: 1},
						Engine:   cli.Engine{Backend: "cpu"},
						Settings: training.Settings{OwnRecipes: true},
					},
					fine: fine{paper.Finetuning{Epochs: 1, LR: 0.001}, 0.1, "paper"},
				}
				ds := open(b, name)
				folds, err := dataset.FewLabels(ds, 10, x.fine.LabelRate, protocol == protocolVal, splitSeed)
				if err != nil {
					b.Fatal(err)
				}
				be, err := x.Engine.Open()
				if err != nil {
					b.Fatal(err)
				}
				defer be.Close()
				l, err := (&job{x: x, set: &labelledSet{data: ds}, method: paper.None}).learner(be, folds[0], 0)
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close()
				b.ResetTimer()
				if _, err := train.Run(b.Context(), l, train.Options{Epochs: b.N}, func(train.Progress) error { return nil }); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkColors is the search for the nodes of a batch that a ResGCN cannot tell apart.
// It reports how many rows they leave after each of its layers, in % of the nodes.
func BenchmarkColors(b *testing.B) {
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			ds, batch := open(b, name), new(graph.Batch)
			for i := range 128 {
				batch.Append(ds.Graphs[i*len(ds.Graphs)/128])
			}
			batch.EndView()
			var layers []*graph.ColorLayer
			for b.Loop() {
				layers, _ = batch.ColorLayers(graph.Layering{Rounds: 5, Share: 1})
			}
			for k, l := range layers {
				b.ReportMetric(100*float64(len(l.Node))/float64(batch.Nodes()), fmt.Sprintf("%%after-%d", k))
			}
		})
	}
}
