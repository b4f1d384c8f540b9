package main

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
)

type tuning struct {
	set    *taskSet
	method string
	seed   int
	result finetune.Result
}

// The metrics of package finetune that this experiment reads: the ROC-AUC in per
// cent, averaged over the tasks that have both classes, which no task may have.
const (
	validAUC     = "valid_roc_auc"
	validLoss    = "valid_loss"
	testAUC      = "test_roc_auc"
	testOneClass = "test_one_class"
)

// tunings lists the second half of the experiment, and its units.
func (x *experiment) tunings() (tunings []*tuning, list []run.Unit[finetune.Result]) {
	for _, set := range x.domain.sets {
		for _, method := range x.Methods.Names {
			for s := range x.Recipe.Seeds {
				t := &tuning{set: set, method: method, seed: x.Recipe.FirstSeed + s}
				tunings = append(tunings, t)
				list = append(list, x.unit(t))
			}
		}
	}
	return tunings, list
}

func (x *experiment) unit(t *tuning) run.Unit[finetune.Result] {
	name := fmt.Sprintf("%s/%s/seed=%d", t.set.name, t.method, t.seed)
	return x.fine.Unit(name, t.method, "pretrain/"+t.method, x.Engine, x.Dir,
		func(be backend.Backend) (*finetune.Learner, error) {
			return x.learner(be, t)
		})
}

// learner returns what fine-tunes all layers on the training part of a set, from the
// pre-trained weights or from initial ones, and looks at the other parts after every
// epoch.
func (x *experiment) learner(be backend.Backend, t *tuning) (*finetune.Learner, error) {
	rng := random.Stream(uint64(t.seed), purposeHead, 0, 0)
	tuned := x.encoder()
	tuned.Dropout = x.model.Dropout
	tuned.Center = x.source.Domain == domainBio
	e, err := tuned.New(be, rng)
	if err != nil {
		return nil, err
	}
	if err := x.fine.Load(x.pretraining(t.method), x.Dir, e); err != nil {
		return nil, err
	}
	s := t.set
	p := model.NewPredictor(e, model.Head{Kind: model.Binary, Outputs: s.tasks}, rng)
	y := make([]float64, len(s.labels))
	for i, l := range s.labels {
		y[i] = float64(l+1) / 2
		if l == 0 {
			y[i] = math.NaN()
		}
	}
	return finetune.New(p, finetune.Data{
		Graphs: s.graphs,
		Y:      y,
		Train:  s.split.Train,
		Valid:  s.split.Valid,
		Test:   s.split.Test,
	},
		finetune.Options{Batch: x.fine.Batch, Rate: x.fine.LR, Seed: uint64(t.seed)})
}

// choose returns the ROC-AUC of the test set at the epoch that a protocol takes. Without a task of both classes in the
// validation set, best-val takes the epoch of the least validation loss.
func (t *tuning) choose(protocol string) float64 {
	test := t.result.Series(testAUC)
	if protocol != protocolBest {
		return test[len(test)-1]
	}
	valid := t.result.Series(validAUC)
	isKnown := func(auc float64) bool { return !math.IsNaN(auc) }
	if !slices.ContainsFunc(valid, isKnown) {
		return test[floats.MinIdx(t.result.Series(validLoss))]
	}
	return test[floats.MaxIdx(valid)]
}

// skipped returns how many tasks of the test set have one class only.
func (t *tuning) skipped() int {
	return int(t.result.Epochs[len(t.result.Epochs)-1].Get(testOneClass))
}
