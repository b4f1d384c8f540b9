package autodiff

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Param is a trainable matrix with its gradient, outside any tape.
type Param struct {
	// Name is unique in its model, dotted as in "conv1.mlp.0.weight".
	Name string
	// Value and Grad live on the engine. Grad is undefined unless HasGrad.
	Value, Grad *tensor.Tensor
	// Frozen parameters get no gradient.
	Frozen bool
	// Layout is the shape of the parameter in files.
	Layout  Layout
	hasGrad bool
	be      backend.Backend
}

// Layout is the shape that a matrix [rows×cols] has in a file. Files follow
// PyTorch, whose biases are vectors and whose linear weights are transposed.
type Layout uint8

// The layouts.
const (
	Matrix     Layout = iota // [rows, cols], unchanged
	Vector                   // [cols], of a single row: biases, norms, statistics
	Transposed               // [cols, rows]: weights of linear layers
)

// NewParam returns a parameter [rows×cols] with the given row-major values. It
// panics unless there are rows·cols of them.
func NewParam(be backend.Backend, name string, rows, cols int, values []float64) *Param {
	p := &Param{
		Name:  name,
		Value: be.Alloc(rows, cols),
		Grad:  be.Alloc(rows, cols),
		be:    be,
	}
	be.Upload(p.Value, values)
	return p
}

// Backend returns the engine that holds the parameter.
func (p *Param) Backend() backend.Backend { return p.be }

// HasGrad reports whether a gradient arrived since the last ZeroGrad.
func (p *Param) HasGrad() bool { return p.hasGrad }

// ZeroGrad forgets the gradient.
func (p *Param) ZeroGrad() { p.hasGrad = false }

// take adds g to the gradient and frees it. The first gradient is not copied: g and
// p.Grad swap buffers.
func (p *Param) take(be backend.Backend, g *tensor.Tensor) {
	if p.hasGrad {
		p.accumulate(be, g)
	} else {
		p.Grad.Buf, g.Buf = g.Buf, p.Grad.Buf
		p.hasGrad = true
	}
	be.Free(g)
}

func (p *Param) accumulate(be backend.Backend, g *tensor.Tensor) {
	if !p.hasGrad {
		be.CopyBlock(p.Grad, 0, 0, g, 0, 0, g.Rows, g.Cols)
		p.hasGrad = true
		return
	}
	be.Axpby(p.Grad, 1, p.Grad, 1, g)
}
