package specmatch

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
)

// Model is a contrastive model: an encoder, whose output h is what downstream
// tasks use, and a projection head z = g(h), which the losses see.
type Model struct {
	Encoder gnn.Encoder
	Head    *nn.MLP
}

// NewModel returns a model with the head Linear → ReLU → Linear of the
// encoder's width, Xavier-uniform with zero biases as in GraphCL's unsupervised
// code. Its code for semi-supervised and transfer learning uses PyTorch's default
// instead.
func NewModel(be backend.Backend, e gnn.Encoder, rng *rand.Rand) *Model {
	w := e.Width()
	return &Model{Encoder: e, Head: nn.NewMLP(be, "proj_head", []int{w, w, w}, nn.XavierUniform, rng)}
}

// NewGINModel returns the model of the unsupervised experiments: GIN 3×32 and
// a head 96-96-96, all drawn from rng.
func NewGINModel(be backend.Backend, width int, rng *rand.Rand) *Model {
	return NewModel(be, gnn.NewGIN(be, gnn.GINConfig{In: width, Hidden: 32, Layers: 3}, rng), rng)
}

// Forward returns h and z [B×Width] of all graphs of a batch.
func (m *Model) Forward(b *gnn.Batch, mode nn.Mode) (h, z *autodiff.Var) {
	h = m.Encoder.Forward(b, mode)
	return h, m.Head.Forward(h)
}

// Parameters returns the encoder's and the head's.
func (m *Model) Parameters() []*autodiff.Param {
	return append(m.Encoder.Parameters(), m.Head.Parameters()...)
}

// Buffers returns the encoder's and the head's.
func (m *Model) Buffers() []*nn.Buffer { return append(m.Encoder.Buffers(), m.Head.Buffers()...) }
