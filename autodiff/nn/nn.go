// Package nn provides the layers of graph encoders: plain structs that
// hold parameters of package autodiff, with a Forward method that records operators
// on a tape.
//
//	lin := nn.NewLinear(be, "head", 96, 2, nn.XavierUniform, rng)
//	y := lin.Forward(tape.Matrix(n, 96, x)) // [n×2]
//
// Parameters and buffers (state that is saved but not trained, such as running
// statistics) have names that are unique in a model, dotted as PyTorch's
// state_dict, so that weights can be exchanged.
package nn

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Module is a layer or a model.
type Module interface {
	// Parameters returns the trainable matrices, always in the same order.
	Parameters() []*autodiff.Param
	// Buffers returns the state that is saved but not trained.
	Buffers() []*Buffer
}

// Buffer is a named matrix that belongs to a model and is not trained.
type Buffer struct {
	Name  string
	Value *tensor.Tensor
	// Layout is the shape of the buffer in files.
	Layout autodiff.Layout
	// Loaded, if set, is called with the values, row by row, after a file was read.
	Loaded func(values []float64)
	be     backend.Backend
}

// NewBuffer returns a buffer [rows×cols] whose entries are all v.
func NewBuffer(be backend.Backend, name string, rows, cols int, v float64) *Buffer {
	b := &Buffer{Name: name, Value: be.Alloc(rows, cols), be: be}
	be.Fill(b.Value, v)
	return b
}

// BufferOf returns a buffer whose value is an existing matrix.
func BufferOf(be backend.Backend, name string, value *tensor.Tensor) *Buffer {
	return &Buffer{Name: name, Value: value, be: be}
}

// Mode is training or evaluation. Only two layers care: in training, batch norm uses the
// batch's statistics and updates the running ones, and dropout is active.
type Mode bool

// The modes.
const (
	Train Mode = true
	Eval  Mode = false
)

// Init draws the weights [in×out] of a linear layer, row by row. They are drawn
// in float64, so that both precisions start from the same numbers.
type Init func(rng *rand.Rand, in, out int) []float64

// XavierUniform draws from U(-a, a) with a = √(6/(in+out)) (Glorot and Bengio
// 2010); torch.nn.init.xavier_uniform_.
func XavierUniform(rng *rand.Rand, in, out int) []float64 {
	return uniform(rng, in*out, math.Sqrt(6/float64(in+out)))
}

// KaimingUniform draws from U(-a, a) with a = 1/√in, the default of PyTorch's
// Linear (He et al. 2015 with slope √5).
func KaimingUniform(rng *rand.Rand, in, out int) []float64 {
	return uniform(rng, in*out, 1/math.Sqrt(float64(in)))
}

func uniform(rng *rand.Rand, n int, a float64) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = a * (2*rng.Float64() - 1)
	}
	return w
}

// Linear is y = x·W + b with W [in×out] and b [1×out]. Files have PyTorch's layout:
// the transpose of W, and b as a vector.
type Linear struct {
	W, B *autodiff.Param // B is nil without bias
}

// NewLinear returns a layer with weights drawn by init and a zero bias. PyTorch's
// default is init [KaimingUniform] and a call of [Linear.ResetBias].
func NewLinear(be backend.Backend, name string, in, out int, init Init, rng *rand.Rand) *Linear {
	l := NewLinearNoBias(be, name, in, out, init, rng)
	l.B = vector(be, name+".bias", make([]float64, out))
	return l
}

// NewLinearNoBias returns a layer without bias.
func NewLinearNoBias(
	be backend.Backend, name string, in, out int, init Init, rng *rand.Rand,
) *Linear {
	w := autodiff.NewParam(be, name+".weight", in, out, init(rng, in, out))
	w.Layout = autodiff.Transposed
	return &Linear{W: w}
}

// vector returns a parameter [1×n] that is a vector in files.
func vector(be backend.Backend, name string, values []float64) *autodiff.Param {
	p := autodiff.NewParam(be, name, 1, len(values), values)
	p.Layout = autodiff.Vector
	return p
}

// ResetBias draws the bias from U(-1/√in, 1/√in), as PyTorch's Linear does.
func (l *Linear) ResetBias(be backend.Backend, rng *rand.Rand) {
	be.Upload(l.B.Value, uniform(rng, l.B.Value.Cols, 1/math.Sqrt(float64(l.W.Value.Rows))))
}

// Forward returns x·W + b [N×out] for x [N×in].
func (l *Linear) Forward(x *autodiff.Var) *autodiff.Var {
	y := x.MatMul(x.Tape().Param(l.W))
	if l.B != nil {
		y = y.AddRow(x.Tape().Param(l.B))
	}
	return y
}

// ForwardReLU returns max(x·W + b, 0) [N×out].
func (l *Linear) ForwardReLU(x *autodiff.Var) *autodiff.Var {
	y := x.MatMul(x.Tape().Param(l.W))
	if l.B == nil {
		return y.ReLU()
	}
	return y.AddRowReLU(x.Tape().Param(l.B))
}

// Parameters returns W and, if there is one, b.
func (l *Linear) Parameters() []*autodiff.Param {
	if l.B == nil {
		return []*autodiff.Param{l.W}
	}
	return []*autodiff.Param{l.W, l.B}
}

// Buffers returns none.
func (l *Linear) Buffers() []*Buffer { return nil }

// MLP is linear layers with ReLU between them: Linear → ReLU → … → Linear.
type MLP struct{ Layers []*Linear }

// NewMLP returns an MLP through the given widths; it panics if there are fewer than
// two. Layers are named name.0, name.2, …, as in a PyTorch Sequential, which counts
// the ReLUs between them.
func NewMLP(be backend.Backend, name string, widths []int, init Init, rng *rand.Rand) *MLP {
	if len(widths) < 2 {
		panic(fmt.Sprintf("nn: NewMLP: %d widths; want at least 2", len(widths)))
	}
	m := new(MLP)
	for i, width := range widths[:len(widths)-1] {
		m.Layers = append(m.Layers, NewLinear(
			be, fmt.Sprintf("%s.%d", name, 2*i), width, widths[i+1], init, rng,
		))
	}
	return m
}

// Forward returns the output [N×last width] for x [N×first width].
func (m *MLP) Forward(x *autodiff.Var) *autodiff.Var {
	output := len(m.Layers) - 1
	for _, l := range m.Layers[:output] {
		x = l.ForwardReLU(x)
	}
	return m.Layers[output].Forward(x)
}

// Parameters returns those of all layers, in order.
func (m *MLP) Parameters() []*autodiff.Param {
	var ps []*autodiff.Param
	for _, l := range m.Layers {
		ps = append(ps, l.Parameters()...)
	}
	return ps
}

// Buffers returns none.
func (m *MLP) Buffers() []*Buffer { return nil }

// ZeroGrad forgets the gradients of all parameters.
func ZeroGrad(m Module) {
	for _, p := range m.Parameters() {
		p.ZeroGrad()
	}
}

// NumParameters returns the number of trainable values.
func NumParameters(m Module) int {
	n := 0
	for _, p := range m.Parameters() {
		n += p.Value.Len()
	}
	return n
}
