// Package finetuning runs the fine-tuning of experiments: package finetune's
// learner with progress and checkpoints in the run directory.
package finetuning

import (
	"context"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Do fits l under the name of a unit. A run that was interrupted continues from its
// checkpoint.
func Do(ctx context.Context, dir *rundir.Dir, unit string, l *finetune.Learner, epochs int, status units.Status) (finetune.Result, error) {
	options, err := dir.Training(unit, epochs)
	if err != nil {
		return finetune.Result{}, err
	}
	return l.Fit(ctx, options, func(p train.Progress) error {
		status("fine-tuning, epoch %d of %d, loss %.3f", p.Epoch, p.Epochs, p.Metrics["loss"])
		return nil
	})
}
