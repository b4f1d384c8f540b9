package train

import (
	"math"
	"time"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
)

// Losses are the losses of a step, each [1×1]. A step minimizes Main + β·Aux.
type Losses struct {
	Main *autodiff.Var // nil: there is nothing to learn from
	Aux  *autodiff.Var // the auxiliary loss; nil if there is none, or if it is not requested
}

// Minimizer trains the parameters of a module. Learners call Step or its recorded form ([Recorded]).
type Minimizer struct {
	Adam   *optim.Adam
	Tape   *autodiff.Tape
	Beta   Beta
	Warmup int // steps over which β grows linearly from 0
	Values MinimizerValues

	module nn.Module
}

// NewMinimizer returns a minimizer with a fresh Adam of the given learning rate.
func NewMinimizer(be backend.Backend, m nn.Module, rate float64, opts ...autodiff.Option) *Minimizer {
	return &Minimizer{
		Adam:   optim.NewAdam(be, m.Parameters(), rate, opts...),
		Tape:   autodiff.NewTape(be, opts...),
		module: m,
	}
}

// Step takes one step on the losses that f records on Tape, and resets Tape. f must return the
// auxiliary loss if aux is true. If there is nothing to learn from, Step does nothing and returns nil
// stats. With probe it also fills Stats.Probe, at the cost of two more backward passes; probing does
// not change the training, unless β is steered.
//
// Step returns an error if the device fails, or if a loss or gradient is not finite ([NonFiniteError]).
// The parameters are then unchanged; after a [NonFiniteError] so are the module's buffers, such as
// running statistics.
func (m *Minimizer) Step(probe bool, f func(aux bool) Losses) (s *Stats, err error) {
	defer m.Tape.Reset()
	defer backend.Recover(&err) // the panic of a device that failed becomes err
	buffers := Keep(m.module)
	defer buffers.Free()
	start := time.Now()
	lap := func() (d time.Duration) {
		d = time.Since(start)
		start = time.Now()
		return d
	}

	nn.ZeroGrad(m.module)
	steered := m.Beta.Ratio > 0
	probe = probe || steered && m.Values.Steps == 0
	l := f(probe || m.beta() > 0)
	if l.Main == nil {
		buffers.Restore()
		return nil, nil
	}
	s = &Stats{Main: l.Main.Float(), Aux: math.NaN()}
	if l.Aux != nil {
		s.Aux = l.Aux.Float()
	}
	if probe && l.Aux != nil {
		s.Probe = m.probe(l)
		if steered && s.Probe.Aux > 0 {
			m.Values.Beta = m.Beta.Ratio * s.Probe.Main / s.Probe.Aux
		}
	}
	loss := l.Main
	s.Beta = m.beta()
	if s.Beta > 0 {
		loss = loss.Add(l.Aux.Scale(s.Beta))
	}
	s.Loss = loss.Float()
	if s.Probe != nil && s.Probe.Main > 0 {
		s.Probe.Ratio = s.Beta * s.Probe.Aux / s.Probe.Main
	}
	stop := func(quantity string, v float64, op string) (*Stats, error) {
		nn.ZeroGrad(m.module)
		buffers.Restore()
		return s, &NonFiniteError{m.Values.Steps, quantity, v, op}
	}
	if !finite(s.Loss) {
		return stop("the loss", s.Loss, m.Tape.FirstNonFinite())
	}
	s.Forward = lap()
	m.Tape.Backward(loss)
	s.Backward = lap()
	if norm := m.gradNorm(); !finite(norm) {
		return stop("the gradient's norm", norm, "")
	}
	m.Adam.Step()
	m.Values.Steps++
	s.Update = lap()
	return s, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
