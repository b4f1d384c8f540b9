package train

import (
	"fmt"
	"math"
	"time"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// MinimizerValues holds the values besides tensors that steps change.
type MinimizerValues struct {
	Steps int     // taken so far
	Beta  float64 // the steered β
}

// beta returns the weight of the auxiliary loss in the next step.
func (m *Minimizer) beta() float64 {
	beta := m.Beta.Weight
	if m.Beta.Ratio > 0 {
		beta = m.Values.Beta
	}
	if m.Values.Steps < m.Warmup {
		beta = beta * float64(m.Values.Steps) / float64(m.Warmup)
	}
	return beta
}

// Stats are the figures of one step.
type Stats struct {
	Loss, Main, Aux float64 // Aux is NaN if it was not computed
	Beta            float64
	Probe           *Probe // nil unless requested
	// Forward (with the losses), Backward and Update are the wall times of the step's phases. On an
	// asynchronous engine, such as a GPU, they are the times to submit the work or to wait for it.
	Forward, Backward, Update time.Duration
}

// Probe compares the gradients of the two losses over all parameters.
type Probe struct {
	Main, Aux float64 // their norms
	Ratio     float64 // β·Aux/Main with the β in force
	Cosine    float64 // 0 if either gradient is zero
}

// NonFiniteError reports a loss or gradient that is not finite, which ends training. The parameters are
// as before the step.
type NonFiniteError struct {
	Step  int    // counted from 0
	What  string // "the loss" or "the gradient's norm"
	Value float64
	Op    string // the first operator with a non-finite value, if any
}

func (e *NonFiniteError) Error() string {
	msg := fmt.Sprintf("train: step %d: %s is %v", e.Step, e.What, e.Value)
	if e.Op != "" {
		msg += "; the first operator with such a value is " + e.Op
	}
	return msg
}

// State returns the state for a [Learner]: the tensors of the module and of Adam, and Values.
func (m *Minimizer) State() (nn.Module, any) {
	return optim.Checkpoint{Module: m.module, Optimizer: m.Adam}, &m.Values
}

// Minimize calls [Minimizer.Step] with a single loss. It returns the metric "loss", or nil if f returns
// nil because there is nothing to learn from.
func (m *Minimizer) Minimize(f func() *autodiff.Var) (Metrics, error) {
	s, err := m.Step(false, func(bool) Losses { return Losses{Main: f()} })
	if err != nil || s == nil {
		return nil, err
	}
	return Metrics{"loss": s.Loss}, nil
}

// probe runs one backward pass per loss and compares the gradients.
func (m *Minimizer) probe(l Losses) *Probe {
	g := m.gradient(l.Main)
	h := m.gradient(l.Aux)
	var gg, hh, gh float64
	for i := range g {
		gg += g[i] * g[i]
		hh += h[i] * h[i]
		gh += g[i] * h[i]
	}
	p := &Probe{Main: math.Sqrt(gg), Aux: math.Sqrt(hh)}
	if gg > 0 && hh > 0 {
		p.Cosine = gh / (p.Main * p.Aux)
	}
	return p
}

// gradient returns the gradient of loss with respect to all parameters, one after
// another, and leaves the parameters without gradient.
func (m *Minimizer) gradient(loss *autodiff.Var) (values []float64) {
	if loss.NeedsGrad() {
		m.Tape.Backward(loss)
	}
	for _, p := range m.module.Parameters() {
		g := make([]float64, p.Value.Len())
		if p.HasGrad() {
			p.Backend().Download(g, p.Grad)
		}
		values = append(values, g...)
		p.ZeroGrad()
	}
	return values
}

func (m *Minimizer) gradNorm() float64 {
	be := m.Tape.Backend()
	sum := be.Alloc(1, 1)
	defer be.Free(sum)
	m.squaredNorm(sum)
	var v [1]float64
	be.Download(v[:], sum)
	return math.Sqrt(v[0])
}

// squaredNorm sets sum [1×1] to Σ‖p.Grad‖² over the parameters with a gradient.
func (m *Minimizer) squaredNorm(sum *tensor.Tensor) {
	var grads []*tensor.Tensor
	for _, p := range m.module.Parameters() {
		if p.HasGrad() {
			grads = append(grads, p.Grad)
		}
	}
	if f := m.Tape.Fused().Adam; f != nil {
		f.SquaredNorm(sum, grads)
		return
	}
	be := m.Tape.Backend()
	one := be.Alloc(1, 1)
	defer be.Free(one)
	be.Fill(sum, 0)
	for _, g := range grads {
		be.Dot(one, g, g)
		be.Axpby(sum, 1, sum, 1, one)
	}
}

// Kept is a copy of the buffers of a module, such as running statistics, for passes that must not change
// them.
type Kept struct {
	be     backend.Backend
	values []*tensor.Tensor
	copies []*tensor.Tensor
}

// Keep copies the buffers of a module that has parameters.
func Keep(m nn.Module) *Kept {
	k := &Kept{be: m.Parameters()[0].Backend()}
	for _, b := range m.Buffers() {
		k.values, k.copies = append(k.values, b.Value),
			append(k.copies, k.be.Alloc(b.Value.Rows, b.Value.Cols))
	}
	k.copy(k.copies, k.values)
	return k
}

// Restore restores the values.
func (k *Kept) Restore() { k.copy(k.values, k.copies) }

func (k *Kept) copy(targets, sources []*tensor.Tensor) {
	blocks := make([]backend.Block, len(sources))
	for i, x := range sources {
		blocks[i] = backend.Block{Dst: targets[i], Src: x, Rows: x.Rows, Cols: x.Cols}
	}
	backend.CopyBlocks(k.be, blocks)
}

// Free frees the copy.
func (k *Kept) Free() {
	for _, x := range k.copies {
		k.be.Free(x)
	}
}
