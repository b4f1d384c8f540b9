// Package optim updates parameters from their gradients.
package optim

import (
	"maps"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Adam is the optimizer of Kingma and Ba (2015), exactly as torch.optim.Adam. With
// gradient g, learning rate η and step t = 1, 2, …, every parameter p changes by
//
//	m ← β₁m + (1-β₁)g,  v ← β₂v + (1-β₂)g²,
//	p ← p - η/(1-β₁ᵗ) · m / (√v/√(1-β₂ᵗ) + ε).
//
// Each parameter has its own step count t, which skips steps without a gradient. The learning
// rate and the count of all steps live on the engine, so that a training step can be recorded
// and replayed. The counts of missed steps live on the host: a parameter must have a gradient
// in all recorded steps or in none.
type Adam struct {
	Config backend.AdamConfig
	// Name is the prefix of the names of the state. The default "adam" must be changed if
	// a checkpoint holds the state of several optimizers.
	Name   string
	fused  backend.AdamFuser // updates all parameters in one call; nil: one by one
	be     backend.Backend
	params []*autodiff.Param
	m, v   []*tensor.Tensor
	rate   *tensor.Tensor
	step   *tensor.Tensor // of the optimizer
	// missed counts the steps in which a parameter had no gradient, and state is what
	// checkpoints have of it [1×len(params)].
	missed []float64
	state  *tensor.Tensor
}

// NewAdam returns an optimizer with PyTorch's defaults: β₁ = 0.9, β₂ = 0.999,
// ε = 1e-8, no weight decay. Its steps have the form that the options ask of a tape.
func NewAdam(
	be backend.Backend,
	params []*autodiff.Param,
	rate float64,
	opts ...autodiff.Option,
) *Adam {
	a := &Adam{
		Config: backend.AdamConfig{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8},
		Name:   "adam",
		fused:  autodiff.NewTape(be, opts...).Fused().Adam,
		be:     be,
		params: params,
		rate:   be.Alloc(1, 1),
		step:   be.Alloc(1, 1),
		missed: make([]float64, len(params)),
		state:  be.Alloc(1, len(params)),
	}
	be.Fill(a.step, 0)
	be.Fill(a.state, 0)
	a.SetRate(rate)
	for _, p := range params {
		m := be.Alloc(p.Value.Rows, p.Value.Cols)
		v := be.Alloc(p.Value.Rows, p.Value.Cols)
		be.Fill(m, 0)
		be.Fill(v, 0)
		a.m = append(a.m, m)
		a.v = append(a.v, v)
	}
	return a
}

// SetRate changes the learning rate.
func (a *Adam) SetRate(rate float64) {
	a.be.Fill(a.rate, rate)
}

// Step updates every parameter that has a gradient and forgets the gradients.
func (a *Adam) Step() {
	a.be.Affine(a.step, 1, a.step, 1)
	with := map[float64][]int{} // the parameters with a gradient, by the steps that they have missed
	for i, p := range a.params {
		if p.HasGrad() {
			with[a.missed[i]] = append(with[a.missed[i]], i)
		} else {
			a.missed[i]++
		}
	}
	for _, missed := range slices.Sorted(maps.Keys(with)) {
		step := a.step
		if missed > 0 {
			step = a.be.Alloc(1, 1)
			a.be.Affine(step, 1, a.step, -missed)
		}
		a.update(with[missed], step)
		if missed > 0 {
			a.be.Free(step)
		}
	}
	for _, p := range a.params {
		p.ZeroGrad()
	}
}

// update changes some of the parameters, all of which have the same step count.
func (a *Adam) update(group []int, step *tensor.Tensor) {
	var ps, gs, ms, vs []*tensor.Tensor
	for _, i := range group {
		p := a.params[i]
		ps, gs, ms, vs = append(ps, p.Value), append(gs, p.Grad),
			append(ms, a.m[i]), append(vs, a.v[i])
	}
	if a.fused != nil {
		a.fused.AdamAll(ps, gs, ms, vs, a.rate, step, a.Config)
		return
	}
	for i := range ps {
		a.be.Adam(ps[i], gs[i], ms[i], vs[i], a.rate, step, a.Config)
	}
}

// Guard stops the optimizer if x [1×1] is not finite: it adds 0·x to the step count,
// and with a step count of NaN, Step changes no parameter. The test happens on the
// device, so the host need not wait for x.
func (a *Adam) Guard(x *tensor.Tensor) {
	a.be.Axpby(a.step, 1, a.step, 0, x)
}

// Close frees the optimizer's memory.
func (a *Adam) Close() {
	for i := range a.m {
		a.be.Free(a.m[i])
		a.be.Free(a.v[i])
	}
	a.be.Free(a.rate)
	a.be.Free(a.step)
	a.be.Free(a.state)
	a.m = nil
	a.v = nil
	a.params = nil
}
