package finetune

import (
	"cmp"
	"context"
	"errors"

	"github.com/specmatch/specmatch/specmatch/train"
)

// Result is how a fit has gone.
type Result struct {
	Seconds float64
	Epochs  []train.Metrics // see the comment of the package
	Best    int             `json:",omitempty"` // epoch whose weights are kept, from 1; 0 is the last
}

// Check returns an error unless there is something to report.
func (r *Result) Check() error {
	if len(r.Epochs) == 0 {
		return errors.New("no epochs")
	}
	return nil
}

// Series returns a metric of every epoch; NaN where one lacks it.
func (r Result) Series(metric string) []float64 {
	values := make([]float64, len(r.Epochs))
	for e, m := range r.Epochs {
		values[e] = m.Get(metric)
	}
	return values
}

// Kept returns the metrics of the epoch whose weights are kept.
func (r Result) Kept() train.Metrics {
	if r.Best > 0 {
		return r.Epochs[r.Best-1]
	}
	return r.Epochs[len(r.Epochs)-1]
}

// Fit trains l by [train.Run], gives the model the weights that [Learner.Best] chooses and the
// linear model that [specmatch.Beside] may have, and closes l. The metrics are the network's alone.
// each, if it is not nil, sees the progress.
func (l *Learner) Fit(
	ctx context.Context, o train.Options, each func(train.Progress) error,
) (r Result, err error) {
	defer l.Close()
	p, err := train.Run(ctx, l, o, func(p train.Progress) error {
		if p.Ended {
			r.Epochs = append(r.Epochs, p.Metrics)
		}
		if each == nil {
			return nil
		}
		return each(p)
	})
	r.Seconds = p.Seconds
	if err == nil {
		r.Best, err = l.Best()
		if err == nil {
			err = l.mix(ctx)
		}
		l.m.Card.Provenance.Epochs = cmp.Or(r.Best, len(r.Epochs))
	}
	return r, err
}
