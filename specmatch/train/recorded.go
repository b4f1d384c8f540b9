package train

import (
	"cmp"
	"errors"
	"math"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Recorded runs the steps of a [Minimizer] without involving the host: a step is
// recorded once for each size of batch ([backend.Backend.Capture]) and replayed
// from then on. On a GPU a step is then one call in place of a hundred, and the
// host prepares the next batch while the device works; on an engine that does
// not record, it simply runs.
//
// Batches are padded to sizes about a fifth apart, so that a few recordings are
// enough. Results come one step late.
type Recorded struct {
	m      *Minimizer
	reads  gnn.Reads
	losses func(b *gnn.Batch, aux bool) Losses
	steps  map[stepShape]*recordedStep

	beta  *tensor.Tensor // β in force [1×1]
	set   float64        // its value
	stats *tensor.Tensor // both losses and ‖gradient‖² [1×3]
	late  *lateStats
	last  *recordedStep
	err   error
}

// stepShape is what batches must have in common to share a recording.
type stepShape struct {
	graphs, nodes, entries, width int
	oneHot, asymmetric, aux       bool
}

type recordedStep struct {
	in   *gnn.Inputs
	step backend.Step
}

// lateStats are the results of a step, on their way from the device.
type lateStats struct {
	step    int
	beta    float64
	aux     bool
	pending backend.Pending
}

// Records reports whether the engine records steps, and the host has no part in them.
func (m *Minimizer) Records() bool {
	rec := backend.CapabilitiesOf(m.Tape.Backend()).Recorder
	return rec != nil && rec.Records() && m.Beta.Ratio == 0
}

// NewRecorded returns a Recorded of losses that depend on a batch alone, of which the
// encoder reads what reads says; computing them must not involve the host. It is an error
// if it does, by what the encoder reads or because it steers β within the step.
func NewRecorded(m *Minimizer, reads gnn.Reads, losses func(b *gnn.Batch, aux bool) Losses) (*Recorded, error) {
	if reads.Host {
		return nil, errors.New("train: a step of an encoder in which the host has a part cannot be recorded")
	}
	if m.Beta.Ratio > 0 {
		return nil, errors.New("train: a step with a steered β (-beta auto) cannot be recorded: the " +
			"host computes β within the step")
	}
	be := m.Tape.Backend()
	r := &Recorded{
		m:      m,
		reads:  reads,
		losses: losses,
		steps:  map[stepShape]*recordedStep{},
		beta:   be.Alloc(1, 1),
		stats:  be.Alloc(1, 3),
	}
	be.Fill(r.beta, 0)
	be.Fill(r.stats, 0)
	return r, nil
}

// Step trains on a batch, as [Minimizer.Step] does, and returns the stats of the
// step before; nil if there was none. The stats have no times and no probe.
//
// After a failure of the device every further call returns the same error. A loss or
// gradient that is not finite is reported one step late, by every call from then on.
// The device has taken another step by then, but the parameters and the optimizer's
// moments are as they were before the bad step. The running statistics may have
// changed.
func (r *Recorded) Step(b *graph.Batch) (s *Stats, err error) {
	if r.err != nil {
		return nil, r.err
	}
	defer func() { r.err = err }()
	defer backend.Recover(&err)
	be := r.m.Tape.Backend()
	beta := r.m.beta()
	if beta != r.set {
		be.Fill(r.beta, beta)
		r.set = beta
	}
	shape := stepShape{
		graphs:     b.Graphs(),
		nodes:      bucket(b.Nodes()),
		entries:    bucket(len(b.Adj)),
		width:      b.X.Width,
		oneHot:     b.X.OneHot(),
		asymmetric: b.Asymmetric,
		aux:        beta > 0,
	}
	if recorded := r.steps[shape]; recorded != nil {
		recorded.in.Load(b)
		err = recorded.step.Replay()
		r.last = recorded
	} else {
		inputs := gnn.NewInputs(be, b, shape.nodes, shape.entries, r.reads)
		var step backend.Step
		step, err = be.Capture(func() { r.run(inputs, shape.aux) })
		if err == nil {
			r.last = &recordedStep{inputs, step}
			r.steps[shape] = r.last
		} else {
			r.m.Tape.Reset()
			inputs.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	before := r.late
	r.late = &lateStats{r.m.Values.Steps, beta, shape.aux, be.Fetch(r.stats)}
	r.m.Values.Steps++
	return before.arrived()
}

// Last waits for the last step and returns its stats; nil if they are known already.
func (r *Recorded) Last() (s *Stats, err error) {
	defer func() { r.err = cmp.Or(r.err, err) }()
	defer backend.Recover(&err)
	pending := r.late
	r.late = nil
	return pending.arrived()
}

// run is the step that is recorded. It runs on the device only.
func (r *Recorded) run(inputs *gnn.Inputs, aux bool) {
	m := r.m
	be := m.Tape.Backend()
	m.Tape.Reset()
	nn.ZeroGrad(m.module)
	l := r.losses(inputs.Batch(m.Tape), aux)
	loss := l.Main
	be.CopyBlock(r.stats, 0, 0, l.Main.Value(), 0, 0, 1, 1)
	if aux {
		be.CopyBlock(r.stats, 0, 1, l.Aux.Value(), 0, 0, 1, 1)
		loss = loss.Add(l.Aux.Mul(m.Tape.Const(r.beta)))
	}
	m.Tape.Backward(loss)
	norm := be.Alloc(1, 1)
	m.squaredNorm(norm)
	be.CopyBlock(r.stats, 0, 2, norm, 0, 0, 1, 1)
	m.Adam.Guard(norm)
	m.Adam.Guard(loss.Value())
	be.Free(norm)
	m.Adam.Step()
}

// arrived waits for the stats of a step.
func (l *lateStats) arrived() (*Stats, error) {
	if l == nil {
		return nil, nil
	}
	var v [3]float64
	l.pending.Values(v[:])
	s := &Stats{
		Loss: v[0],
		Main: v[0],
		Aux:  math.NaN(),
		Beta: l.beta,
	}
	if l.aux {
		s.Aux = v[1]
		s.Loss += l.beta * v[1]
	}
	switch norm := math.Sqrt(v[2]); {
	case !finite(s.Loss):
		return s, &NonFiniteError{Step: l.step, What: "the loss", Value: s.Loss}
	case !finite(norm):
		return s, &NonFiniteError{Step: l.step, What: "the gradient's norm", Value: norm}
	}
	return s, nil
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
	r.m.Tape.Backend().Download(v[:], r.stats)
	return nil
}

// Close frees the memory of the recordings. The minimizer can still be used.
func (r *Recorded) Close() error {
	var errs []error
	r.m.Tape.Reset()
	for _, s := range r.steps {
		errs = append(errs, s.step.Close())
		s.in.Close()
	}
	be := r.m.Tape.Backend()
	be.Free(r.beta)
	be.Free(r.stats)
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
