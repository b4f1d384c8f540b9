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
func (c Checkpoint) Buffers() []*nn.Buffer { return append(c.Module.Buffers(), c.Optimizer.State()...) }

// State returns the moments and the step count as buffers.
func (a *Adam) State() []*nn.Buffer {
	state := []*nn.Buffer{nn.BufferOf(a.be, a.Name+".step", a.step)}
	for i, p := range a.params {
		state = append(state, nn.BufferOf(a.be, a.Name+".m."+p.Name, a.m[i]), nn.BufferOf(a.be, a.Name+".v."+p.Name, a.v[i]))
	}
	return state
}
