package specmatch

import (
	"errors"
	"fmt"
	"math"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Recorded runs the steps of a [Trainer] without involving the host: a step is
// recorded once for each size of batch ([backend.Backend.Capture]) and replayed
// from then on. On a GPU a step is then one call in place of a hundred, and the
// host prepares the next batch while the device works; on an engine that does
// not record, it simply runs.
//
// Batches are padded to sizes about a fifth apart, so that a few recordings are
// enough. Results come one step late.
type Recorded struct {
	tr    *Trainer
	steps map[stepShape]*recordedStep

	beta  *tensor.Tensor // β in force [1×1]
	set   float64        // its value
	stats *tensor.Tensor // L_C, L_G, ‖gradient‖² [1×3]
	late  *lateStats
	last  *recordedStep
	err   error
}

// stepShape is what batches must have in common to share a recording.
type stepShape struct {
	graphs, nodes, entries, width int
	oneHot, asymmetric, match     bool
}

type recordedStep struct {
	in   *gnn.Inputs
	step backend.Step
}

// lateStats are the results of a step, on their way from the device.
type lateStats struct {
	step    int
	beta    float64
	match   bool
	pending backend.Pending
}

// Stepper takes the steps of a trainer.
type Stepper interface {
	// Step trains on a batch and returns the stats of a step that has ended, this
	// one or the one before; ok is false if none has.
	Step(b *graph.Batch) (s Stats, ok bool, err error)
	// Last waits for the last step and returns its stats; ok is false if they are
	// known already.
	Last() (s Stats, ok bool, err error)
	// Close frees memory. The trainer can still be used.
	Close() error
}

// NewStepper returns a [Recorded] if the engine records and the objective allows it,
// and otherwise a Stepper that calls [Trainer.Step] without a probe.
func NewStepper(tr *Trainer) Stepper {
	if rec := backend.CapabilitiesOf(tr.be).Recorder; rec != nil && rec.Records() {
		if r, err := NewRecorded(tr); err == nil {
			return r
		}
	}
	return eager{tr}
}

// eager is [Trainer.Step] as a Stepper.
type eager struct{ tr *Trainer }

func (e eager) Step(b *graph.Batch) (Stats, bool, error) {
	s, err := e.tr.Step(b, false)
	return s, err == nil, err
}

func (e eager) Last() (Stats, bool, error) { return Stats{}, false, nil }

func (e eager) Close() error { return nil }

// NewRecorded returns a Recorded for a trainer. A steered β is an error: the host
// computes it within the step.
func NewRecorded(tr *Trainer) (*Recorded, error) {
	if tr.Objective.Beta.Ratio > 0 {
		return nil, errors.New("specmatch: a step with a steered β (-beta auto) cannot be recorded: the host computes β within the step")
	}
	r := &Recorded{tr: tr, steps: map[stepShape]*recordedStep{}, beta: tr.be.Alloc(1, 1), stats: tr.be.Alloc(1, 3)}
	tr.be.Fill(r.beta, 0)
	tr.be.Fill(r.stats, 0)
	return r, nil
}

// Step trains on a batch, as [Trainer.Step] does, and returns the stats of the
// step before; ok is false if there was none. The stats have no times and no
// probe.
//
// After a failure of the device every further call returns the same error. A loss or
// gradient that is not finite is reported one step late, by every call from then on.
// The device has taken another step by then, but the parameters and the optimizer's
// moments are as they were before the bad step. The running statistics may have
// changed.
func (r *Recorded) Step(b *graph.Batch) (s Stats, ok bool, err error) {
	if r.err != nil {
		return s, false, r.err
	}
	if err := checkViews(b); err != nil {
		return s, false, err
	}
	defer func() {
		if err != nil {
			r.err = err
		}
	}()
	defer backend.Recover(&err)
	tr := r.tr
	beta := tr.currentBeta()
	if beta != r.set {
		tr.be.Fill(r.beta, beta)
		r.set = beta
	}
	shape := stepShape{
		graphs: b.Graphs(), nodes: bucket(b.Nodes()), entries: bucket(len(b.Adj)), width: b.X.Width,
		oneHot: b.X.OneHot(), asymmetric: b.Asymmetric, match: beta > 0,
	}
	if known := r.steps[shape]; known != nil {
		known.in.Load(b)
		err = known.step.Replay()
		r.last = known
	} else {
		in := gnn.NewInputs(tr.be, b, shape.nodes, shape.entries, tr.Model.Encoder.Reads())
		var step backend.Step
		if step, err = tr.be.Capture(func() { r.run(in, shape.match) }); err == nil {
			r.last = &recordedStep{in, step}
			r.steps[shape] = r.last
		} else {
			tr.tape.Reset()
			in.Close()
		}
	}
	if err != nil {
		return s, false, err
	}
	before := r.late
	r.late = &lateStats{tr.state.Steps, beta, shape.match, tr.be.Fetch(r.stats)}
	tr.state.Steps++
	return r.arrived(before)
}

// Last waits for the last step and returns its stats; ok is false if there was
// none since.
func (r *Recorded) Last() (s Stats, ok bool, err error) {
	defer backend.Recover(&err)
	last := r.late
	r.late = nil
	return r.arrived(last)
}

// run is the step that is recorded. It runs on the device only.
func (r *Recorded) run(in *gnn.Inputs, match bool) {
	tr := r.tr
	be := tr.be
	tr.tape.Reset()
	nn.ZeroGrad(tr.Model)
	lossC, lossG, _, _ := tr.losses(in.Batch(tr.tape), match, false)
	loss := lossC
	be.CopyBlock(r.stats, 0, 0, lossC.Value(), 0, 0, 1, 1)
	if match {
		be.CopyBlock(r.stats, 0, 1, lossG.Value(), 0, 0, 1, 1)
		loss = lossC.Add(lossG.Mul(tr.tape.Const(r.beta)))
	}
	tr.tape.Backward(loss)
	norm := be.Alloc(1, 1)
	tr.squaredNorm(norm)
	be.CopyBlock(r.stats, 0, 2, norm, 0, 0, 1, 1)
	tr.Optimizer.Guard(norm)
	tr.Optimizer.Guard(loss.Value())
	be.Free(norm)
	tr.Optimizer.Step()
}

// arrived waits for the stats of a step.
func (r *Recorded) arrived(l *lateStats) (s Stats, ok bool, err error) {
	if l == nil {
		return s, false, nil
	}
	var v [3]float64
	l.pending.Values(v[:])
	s = Stats{LossC: v[0], LossG: math.NaN(), Beta: l.beta, Loss: v[0]}
	if l.match {
		s.LossG = v[1]
		s.Loss += l.beta * v[1]
	}
	switch norm := math.Sqrt(v[2]); {
	case !finite(s.Loss):
		r.err = &NonFiniteError{Step: l.step, What: "the loss", Value: s.Loss}
	case !finite(norm):
		r.err = &NonFiniteError{Step: l.step, What: "the gradient's norm", Value: norm}
	}
	return s, true, r.err
}

// Again runs the last step n more times on the same batch, and waits for them: for
// timing the device alone.
func (r *Recorded) Again(n int) (err error) {
	defer backend.Recover(&err)
	for range n {
		if err := r.last.step.Replay(); err != nil {
			return err
		}
	}
	var v [3]float64
	r.tr.be.Download(v[:], r.stats)
	return nil
}

// Close frees the memory of the recordings. The trainer can still be used.
func (r *Recorded) Close() error {
	var errs []error
	r.tr.tape.Reset()
	for _, s := range r.steps {
		errs = append(errs, s.step.Close())
		s.in.Close()
	}
	r.tr.be.Free(r.beta)
	r.tr.be.Free(r.stats)
	r.steps = nil
	return errors.Join(errs...)
}

// bucket returns the size to which n nodes or entries are padded: a multiple of
// 64, each about a fifth above the one before.
func bucket(n int) int {
	const unit = 64
	size := unit
	for size < n {
		size += max(unit, size/5/unit*unit)
	}
	return size
}

// checkViews returns an error unless b has two equal views.
func checkViews(b *graph.Batch) error {
	if b.Views() != 2 || b.ViewPtr[2] != 2*b.ViewPtr[1] || b.ViewPtr[1] == 0 {
		return fmt.Errorf("specmatch: Step: want a batch of two equal views of at least one graph, have view pointers %v", b.ViewPtr)
	}
	return nil
}
