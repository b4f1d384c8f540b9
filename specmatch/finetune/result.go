package finetune

import (
	"cmp"
	"context"
	"errors"

	"github.com/specmatch/specmatch/specmatch/train"
)

// Result is the course of a fit.
type Result struct {
	Seconds float64
	Epochs  []train.Metrics // see the comment of the package
	// the epoch whose weights are kept, from 1; 0 is the last
	Best int `json:",omitempty"`
}

// Check returns an error if there is nothing to report.
func (r *Result) Check() error {
	if len(r.Epochs) == 0 {
		return errors.New("no epochs")
	}
	return nil
}

// Series returns a metric of every epoch; NaN where it is missing.
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

// Fit trains l by [train.Run], restores the weights that [Learner.Best] chooses, fits the linear
// model of [model.Beside], if there is one, and closes l. The metrics are those of the network
// alone. report is called with the progress; it may be nil.
func (l *Learner) Fit(
	ctx context.Context, o train.Options, report func(train.Progress) error,
) (r Result, err error) {
	defer l.Close()
	p, err := train.Run(ctx, l, o, func(p train.Progress) error {
		if p.Ended {
			r.Epochs = append(r.Epochs, p.Metrics)
		}
		if report == nil {
			return nil
		}
		return report(p)
	})
	r.Seconds = p.Seconds
	if err == nil {
		r.Best, err = l.Best()
		if err == nil && l.withoutNetwork {
			err = l.removeNetwork()
		}
		if err == nil {
			err = l.mix(ctx)
		}
		l.m.Card.Provenance.Epochs = cmp.Or(r.Best, len(r.Epochs))
	}
	return r, err
}
