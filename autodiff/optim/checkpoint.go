package optim

import "github.com/specmatch/specmatch/autodiff/nn"

// Checkpoint is a module together with the state of its optimizer. It is a module
// itself: saved and loaded with [nn.SaveFile] and [nn.LoadFile], it lets training
// go on to the same bits as without the interruption.
type Checkpoint struct {
	nn.Module
	Optimizer *Adam
}

// Buffers returns the module's buffers and the optimizer's state.
func (c Checkpoint) Buffers() []*nn.Buffer {
	return append(c.Module.Buffers(), c.Optimizer.State()...)
}

// State returns the moments, the step count and what parameters have missed as buffers,
// with the values of this moment.
func (a *Adam) State() []*nn.Buffer {
	a.be.Upload(a.state, a.missed)
	missed := nn.BufferOf(a.be, a.Name+".missed", a.state)
	missed.Loaded = func(values []float64) {
		copy(a.missed, values)
	}
	state := []*nn.Buffer{
		nn.BufferOf(a.be, a.Name+".step", a.step), missed,
	}
	for i, p := range a.params {
		state = append(
			state,
			nn.BufferOf(a.be, a.Name+".m."+p.Name, a.m[i]),
			nn.BufferOf(a.be, a.Name+".v."+p.Name, a.v[i]),
		)
	}
	return state
}
