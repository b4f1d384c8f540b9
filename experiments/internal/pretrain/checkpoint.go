package pretrain

import (
	"fmt"
	"time"

	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/experiments/internal/checkpoint"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/specmatch"
)

// checkpointEvery is the least time between two checkpoints: what an interruption
// may cost, beside the epoch that it falls into.
var checkpointEvery = 20 * time.Second

// Keep makes the run keep checkpoints in dir, under the name of its unit.
func (r *Run) Keep(dir *rundir.Dir, unit string) (err error) {
	r.Checkpoint, err = dir.Checkpoint(unit)
	return err
}

// standing is where a run stands after an epoch.
type standing struct {
	Trainer specmatch.TrainerState
	Seconds float64 // of training, in all starts
	Epochs  []Epoch
}

// save writes the checkpoint.
func (r *Run) save(tr *specmatch.Trainer, at standing) error {
	at.Trainer = tr.State()
	return checkpoint.Save(r.Checkpoint, optim.Checkpoint{Module: tr.Model, Optimizer: tr.Optimizer}, at)
}

// resume takes up the run where its checkpoint stands, if there is one.
func (r *Run) resume(tr *specmatch.Trainer) (at standing, err error) {
	if r.Checkpoint == "" {
		return at, nil
	}
	at.Trainer = tr.State()
	if err := checkpoint.Load(r.Checkpoint, optim.Checkpoint{Module: tr.Model, Optimizer: tr.Optimizer}, &at); err != nil {
		return at, err
	}
	if len(at.Epochs) > r.Recipe.Epochs {
		return at, fmt.Errorf("%s: is after %d epochs, of a run of %d", r.Checkpoint, len(at.Epochs), r.Recipe.Epochs)
	}
	tr.SetState(at.Trainer)
	return at, nil
}
