package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/train"
)

// BenchmarkEpoch is an epoch of fine-tuning on a fold with a tenth of the labels, and
// what is evaluated after it, by protocol, on real sets that lie beside the project's
// root. A seed of a method is a thousand of these under each protocol, and a
// pre-training.
//
//	go test -run '^$' -bench Epoch/NCI1 -cpu 1 -cpuprofile epoch.prof ./experiments/semisupervised
func BenchmarkEpoch(b *testing.B) {
	for _, name := range []string{"NCI1", "PROTEINS", "DD", "COLLAB", "REDDIT-BINARY"} {
		for _, protocol := range []string{protocolVal, protocolTestMax} {
			b.Run(name+"/"+protocol, func(b *testing.B) {
				x := &experiment{
					recipe:   cli.Recipe{Epochs: 1, Batch: 128, LR: 0.001, Seeds: 1},
					fine:     fine{LabelRate: 0.1, Epochs: 1, LR: 0.001, Encoder: "paper"},
					engine:   cli.Engine{Backend: "cpu"},
					settings: pretrain.DefaultSettings(),
				}
				ds, err := dataset.Open(b.Context(), filepath.FromSlash("../../../shared/data/tu"), name, dataset.Options{NodeAttributes: true})
				if errors.Is(err, fs.ErrNotExist) {
					b.Skipf("no real data here: %v", err)
				} else if err != nil {
					b.Fatal(err)
				}
				ds = ds.WithDegrees(dataset.DegreeCap(name))
				folds, err := splits(ds, 10, x.fine.LabelRate, protocol)
				if err != nil {
					b.Fatal(err)
				}
				be, err := x.engine.Open()
				if err != nil {
					b.Fatal(err)
				}
				defer be.Close()
				l, err := (&job{x: x, set: &labelledSet{data: ds}, method: methodNone}).learner(be, folds[0], 0)
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
