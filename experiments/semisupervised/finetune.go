package main

import (
	"fmt"

	"gonum.org/v1/gonum/floats"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
)

// The protocols. Both fine-tune on a few labels and test on a fold that has no
// part in fine-tuning, but they choose the epoch differently.
const (
	// protocolVal takes, in every fold, the epoch with the least loss on another
	// fold: the honest number.
	protocolVal = "val"
	// protocolTestMax takes the one epoch with the best test accuracy, averaged
	// over the folds: what GraphCL's script prints by default, and the literature
	// with it. It is an upper bound, not an estimate.
	protocolTestMax = "test-max"
)

// splitSeed is the seed of all folds and of the choice of labels, as in GraphCL's
// code: all runs share them.
const splitSeed = 12345

const purposeClassifier random.Purpose = 1<<33 + iota

// fineSeed is the seed of the batches of fine-tuning: another than that of
// pre-training, so that the two do not draw the same views.
func fineSeed(seed int) uint64 { return uint64(seed) | 1<<63 }

// learner returns what fine-tunes all layers on the labelled graphs of a split, from
// the pre-trained weights or from initial ones, and looks at its other parts after
// every epoch.
func (j *job) learner(be backend.Backend, s dataset.Split, fold int) (*finetune.Learner, error) {
	x := j.x
	ds := j.set.data
	r := j.pretraining()
	encoder, err := r.NewEncoder(be)
	if err != nil {
		return nil, err
	}
	if err := x.fine.Load(r, x.Dir, encoder); err != nil {
		return nil, err
	}
	head := model.Head{Kind: model.Classes, Outputs: ds.Classes}
	p := model.NewPredictor(encoder, head, random.Stream(uint64(j.seed), purposeClassifier, 0, fold))
	options := finetune.Options{Batch: x.Recipe.Batch, Rate: x.fine.LR, Seed: fineSeed(j.seed)}
	if j.method == paper.Augmentation {
		options.View, err = r.Setup(be).View()
		if err != nil {
			return nil, err
		}
	}
	classes := make([]float64, len(ds.Graphs))
	for i, g := range ds.Graphs {
		classes[i] = float64(g.Class)
	}
	return finetune.New(p, finetune.Data{
		Graphs: ds.Graphs,
		Y:      classes,
		Train:  s.Train,
		Valid:  s.Valid,
		Test:   s.Test,
	}, options)
}

// unit is the second half of the job, on one fold.
func (j *job) unit(protocol string, fold int) run.Unit[finetune.Result] {
	name := fmt.Sprintf("%s/%s/fold=%d", j.name(), protocol, fold)
	return j.x.fine.Unit(name, j.method, j.name(), j.x.Engine, j.x.Dir,
		func(be backend.Backend) (*finetune.Learner, error) {
			return j.learner(be, j.set.splits[protocol][fold], fold)
		})
}

// choose returns the test accuracy under a protocol, as a mean over the folds.
func choose(protocol string, folds []finetune.Result) (accuracy float64) {
	if protocol == protocolTestMax {
		for _, m := range overFolds(folds, testAccuracy) {
			accuracy = max(accuracy, m[testAccuracy])
		}
		return accuracy
	}
	for _, f := range folds {
		chosen := floats.MinIdx(f.Series(validLoss))
		accuracy += f.Epochs[chosen].Get(testAccuracy) / float64(len(folds))
	}
	return accuracy
}

// The metrics of package finetune that this experiment reads.
const (
	testAccuracy = "test_accuracy"
	validLoss    = "valid_loss"
)
