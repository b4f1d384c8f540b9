package optim

import "github.com/specmatch/specmatch/autodiff/nn"

// Checkpoint is a module with the memory of its optimizer. Saved and loaded as a
// module itself (nn.SaveFile, nn.LoadFile), it lets training go on with the bits it
// would have had.
type Checkpoint struct {
	nn.Module
	Optimizer *Adam
}

// Buffers returns the module's and the optimizer's.
func (c Checkpoint) Buffers() []*nn.Buffer { return append(c.Module.Buffers(), c.Optimizer.State()...) }

// State returns the moments and the step count as buffers.
func (a *Adam) State() []*nn.Buffer {
	state := []*nn.Buffer{nn.BufferOf(a.be, "adam.step", a.step)}
	for i, p := range a.params {
		state = append(state, nn.BufferOf(a.be, "adam.m."+p.Name, a.m[i]), nn.BufferOf(a.be, "adam.v."+p.Name, a.v[i]))
	}
	return state
}
