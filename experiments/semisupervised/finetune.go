package main

import (
	"context"
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/finetuning"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/finetune"
)

// The purposes of random streams, besides those of package method.
const purposeClassifier random.Purpose = 1<<33 + iota

// fineSeed is the seed of the batches of fine-tuning: another than that of
// pre-training, so that the two do not draw the same views.
func fineSeed(seed int) uint64 { return uint64(seed) | 1<<63 }

// learner returns what fine-tunes all layers on the labelled graphs of a split, from
// the pre-trained weights or from initial ones, and looks at its other parts after
// every epoch.
func (j *job) learner(be backend.Backend, s split, fold int) (*finetune.Learner, error) {
	x, ds, r := j.x, j.set.data, j.pretraining()
	encoder, err := r.NewEncoder(be)
	if err != nil {
		return nil, err
	}
	if j.pretrains() {
		if err := r.Load(j.pretrainedDir(), encoder); err != nil {
			return nil, err
		}
	}
	head := finetune.Head{Kind: finetune.Classes, Outputs: ds.Classes}
	p := finetune.NewPredictor(be, encoder, head, random.Stream(uint64(j.seed), purposeClassifier, 0, fold))
	options := finetune.Options{Batch: x.recipe.Batch, Rate: x.fine.LR, Seed: fineSeed(j.seed)}
	if j.method == methodAugmentation {
		if options.View, err = augment.ParsePolicy(r.Policy(), augment.ImplIntended, r.Settings.Ratio); err != nil {
			return nil, err
		}
	}
	classes := make([]float64, len(ds.Graphs))
	for i, g := range ds.Graphs {
		classes[i] = float64(g.Class)
	}
	return finetune.New(p, finetune.Data{Graphs: ds.Graphs, Y: classes, Train: s.Labelled, Valid: s.Validation, Test: s.Test}, options)
}

// unit names the fine-tuning on a fold.
func (j *job) unit(protocol string, fold int) string {
	return fmt.Sprintf("%s/%s/fold=%d", j.name(), protocol, fold)
}

// tune is the second half of this experiment, on one fold.
func (j *job) tune(ctx context.Context, protocol string, fold int, status units.Status) (out finetuning.Tuned, err error) {
	be, err := j.x.engine.Open()
	if err != nil {
		return out, err
	}
	defer be.Close()
	l, err := j.learner(be, j.set.splits[protocol][fold], fold)
	if err != nil {
		return out, err
	}
	return finetuning.Do(ctx, j.x.dir, j.unit(protocol, fold), l, j.x.fine.Epochs, status)
}

// choose returns the test accuracy of the folds under a protocol, as a mean over the
// folds, and the epochs taken, counted from 1.
func choose(protocol string, folds []finetuning.Tuned) (accuracy float64, epochs []int) {
	n := float64(len(folds))
	if protocol == protocolTestMax {
		best, chosen := -1.0, 0
		for e := range folds[0].Epochs {
			sum := 0.0
			for _, f := range folds {
				sum += f.Epochs[e].Get(testAccuracy)
			}
			if mean := sum / n; mean > best {
				best, chosen = mean, e
			}
		}
		for range folds {
			epochs = append(epochs, chosen+1)
		}
		return best, epochs
	}
	for _, f := range folds {
		chosen, losses := 0, f.Series(validLoss)
		for e, loss := range losses {
			if loss < losses[chosen] {
				chosen = e
			}
		}
		accuracy += f.Epochs[chosen].Get(testAccuracy) / n
		epochs = append(epochs, chosen+1)
	}
	return accuracy, epochs
}

// The metrics of package finetune that this experiment reads.
const (
	testAccuracy = "test_accuracy"
	validLoss    = "valid_loss"
)
