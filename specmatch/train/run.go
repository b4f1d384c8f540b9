package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Options are the settings of [Run].
type Options struct {
	Epochs int
	// Checkpoint is a file that training resumes from, if it exists, and that it writes regularly and
	// at its end. "" is no checkpoint.
	Checkpoint string
	// Every is the time between two checkpoints; a killed process loses about this much. 0 is 20 seconds.
	Every time.Duration
}

// Progress is the progress of a training.
type Progress struct {
	Epoch, Epochs  int  // the present epoch, counted from 1, and the number of epochs
	Batch, Batches int  // the present batch of the epoch, and the number of batches
	Ended          bool // the epoch has ended; its metrics are final
	Metrics        Metrics
	Graphs         int     // trained on so far
	Seconds        float64 // of training so far, including earlier starts
}

// standing is the progress between two steps, as stored in checkpoints.
type standing struct {
	Epochs  []Metrics // of the finished epochs
	Stopped bool      // the learner has ended training
	Begun   bool      // the present epoch has begun; earlier versions did not record it before the first batch
	Batches int       // trained on in the present epoch
	Sums    means     // over the steps of the present epoch
	Graphs  int
	Seconds float64
}

// reportEvery is the time between two reports of progress within an epoch.
const reportEvery = 100 * time.Millisecond

// Run trains l for o.Epochs epochs, from its checkpoint if there is one. It calls report ten times a
// second and at the end of every epoch; a resumed run also reports the epochs before the checkpoint.
// report may be nil; if it returns an error, Run returns the error. When ctx is cancelled, Run ends
// after the present step and writes a checkpoint. It returns an error if no batch of an epoch had
// anything to learn from.
func Run(ctx context.Context, l Learner, o Options, report func(Progress) error) (Progress, error) {
	r := &runner{
		l:     l,
		o:     o,
		each:  report,
		saved: time.Now(),
	}
	if err := r.resume(); err != nil {
		return r.progress(0, nil), err
	}
	for epoch, m := range r.done.Epochs {
		if err := r.report(epoch, m, true); err != nil {
			return r.progress(epoch, m), err
		}
	}
	for epoch := len(r.done.Epochs); epoch < o.Epochs && !r.done.Stopped; epoch++ {
		m, err := r.epoch(ctx, epoch)
		if err != nil && !errors.Is(err, ctx.Err()) {
			return r.progress(epoch, nil), fmt.Errorf("epoch %d: %w", epoch+1, err)
		}
		if ctx.Err() != nil {
			return r.progress(epoch, nil), errors.Join(ctx.Err(), r.save())
		}
		if err := r.report(epoch, m, true); err != nil {
			return r.progress(epoch, m), err
		}
		if epoch+1 == o.Epochs || r.done.Stopped || r.due() {
			if err := r.save(); err != nil {
				return r.progress(epoch, m), err
			}
		}
	}
	return r.progress(max(len(r.done.Epochs), 1)-1, nil), nil
}

type runner struct {
	l    Learner
	o    Options
	each func(Progress) error

	done     standing
	saved    time.Time // when the last checkpoint was written
	reported time.Time // when each was last called
}

// epoch trains for the rest of an epoch, which is a part of it if the run was resumed within, and returns
// its metrics.
func (r *runner) epoch(ctx context.Context, epoch int) (Metrics, error) {
	start := time.Now()
	before := r.done.Seconds
	clock := func() { r.done.Seconds = before + time.Since(start).Seconds() }
	if !r.done.Begun && r.done.Batches == 0 {
		if err := r.l.Begin(ctx, epoch); err != nil {
			return nil, err
		}
		r.done.Begun = true
	}
	index := 0
	for samples, graphs := range r.l.Epoch(ctx, epoch) {
		index++
		if index <= r.done.Batches {
			continue // trained on before the interruption
		}
		m, err := r.l.Step(Batch{
			Epoch:   epoch,
			Index:   index - 1,
			Samples: samples,
			Graphs:  graphs,
		})
		if err != nil {
			return nil, fmt.Errorf("batch %d: %w", index, err)
		}
		r.done.Sums.add(m)
		r.done.Batches = index
		r.done.Graphs += len(samples)
		clock()
		if r.due() {
			if err := r.save(); err != nil {
				return nil, err
			}
		}
		if time.Since(r.reported) > reportEvery {
			if err := r.report(epoch, nil, false); err != nil {
				return nil, err
			}
		}
	}
	if err := r.last(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(r.done.Sums) == 0 {
		return nil, errors.New("no batch had anything to learn from")
	}
	end, err := r.l.End(ctx, epoch)
	if err != nil && err != ErrStop {
		return nil, err
	}
	clock()
	return r.finish(end, err == ErrStop), nil
}

// finish moves on to the next epoch. It returns the metrics of the finished one: the averages over its
// steps, and those of its end.
func (r *runner) finish(end Metrics, stopped bool) Metrics {
	sums := means{}
	sums.add(end)
	m := r.done.Sums.metrics()
	maps.Copy(m, sums.metrics())
	r.done = standing{
		Epochs:  append(r.done.Epochs, m),
		Stopped: stopped,
		Sums:    means{},
		Graphs:  r.done.Graphs,
		Seconds: r.done.Seconds,
	}
	return m
}

// last adds the metrics of the last step, unless they have been added.
func (r *runner) last() error {
	m, err := r.l.Last()
	r.done.Sums.add(m)
	return err
}

// due reports whether it is time for a checkpoint.
func (r *runner) due() bool {
	every := r.o.Every
	if every == 0 {
		every = 20 * time.Second
	}
	return r.o.Checkpoint != "" && time.Since(r.saved) > every
}

// report calls the report function with the progress. The metrics are m, or the averages so far if m is
// nil.
func (r *runner) report(epoch int, m Metrics, ended bool) error {
	r.reported = time.Now()
	p := r.progress(epoch, m)
	p.Ended = ended
	if r.each == nil {
		return nil
	}
	return r.each(p)
}

func (r *runner) progress(epoch int, m Metrics) Progress {
	if m == nil {
		m = r.done.Sums.metrics()
	}
	return Progress{
		Epoch:   epoch + 1,
		Epochs:  r.o.Epochs,
		Batch:   r.done.Batches,
		Batches: r.l.Batches(),
		Metrics: m,
		Graphs:  r.done.Graphs,
		Seconds: r.done.Seconds,
	}
}

// resume reads the learner's state and the standing from the checkpoint, if there is one.
func (r *runner) resume() error {
	r.done.Sums = means{}
	if r.o.Checkpoint == "" {
		return nil
	}
	tensors, values := r.l.State()
	if err := load(r.o.Checkpoint, tensors, &r.done, values); err != nil {
		return err
	}
	if n := len(r.done.Epochs); n > r.o.Epochs {
		return fmt.Errorf("%s: the checkpoint has %d epochs, but the run has only %d",
			r.o.Checkpoint, n, r.o.Epochs)
	}
	return nil
}

// save writes the checkpoint.
func (r *runner) save() error {
	r.saved = time.Now()
	if r.o.Checkpoint == "" {
		return nil
	}
	if err := r.last(); err != nil { // State must follow the last step
		return err
	}
	tensors, values := r.l.State()
	return save(r.o.Checkpoint, tensors, &r.done, values)
}
