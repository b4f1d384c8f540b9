// Package finetuning runs the fine-tuning of experiments: package finetune's
// learner with progress and checkpoints in the run directory.
package finetuning

import (
	"context"
	"errors"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Tuned is the result of fine-tuning in the journal.
type Tuned struct {
	Seconds float64
	Epochs  []train.Metrics // see package finetune
	Best    int             `json:",omitempty"` // epoch whose weights are kept, from 1; 0 is the last
}

// Check returns an error unless there is something to report.
func (t *Tuned) Check() error {
	if len(t.Epochs) == 0 {
		return errors.New("no epochs")
	}
	return nil
}

// Series returns a metric of every epoch; NaN where one lacks it.
func (t Tuned) Series(metric string) []float64 {
	values := make([]float64, len(t.Epochs))
	for e, m := range t.Epochs {
		values[e] = m.Get(metric)
	}
	return values
}

// Do trains l under the name of a unit and closes it. Its predictor keeps the weights
// that [finetune.Learner.Best] chooses. A run that was interrupted continues from its
// checkpoint.
func Do(ctx context.Context, dir *rundir.Dir, unit string, l *finetune.Learner, epochs int, status units.Status) (out Tuned, err error) {
	defer l.Close()
	options, err := dir.Training(unit, epochs)
	if err != nil {
		return out, err
	}
	p, err := train.Run(ctx, l, options, func(p train.Progress) error {
		if p.Ended {
			out.Epochs = append(out.Epochs, p.Metrics)
		}
		status("fine-tuning, epoch %d of %d, loss %.3f", p.Epoch, p.Epochs, p.Metrics["loss"])
		return nil
	})
	out.Seconds = p.Seconds
	if err == nil {
		out.Best, err = l.Best()
	}
	return out, err
}
