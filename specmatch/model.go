package specmatch

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Encoder maps the graphs of a batch to embeddings h [B×Width].
type Encoder interface {
	nn.Module
	Forward(b *gnn.Batch, mode nn.Mode) *autodiff.Var
	Width() int
}

// Model is a contrastive model: an encoder, whose output h is what downstream
// tasks use, and a projection head z = g(h), which the losses see.
type Model struct {
	Encoder Encoder
	Head    *nn.MLP
}

// NewModel returns a model with the head Linear → ReLU → Linear of the
// encoder's width, Xavier-uniform with zero biases as GraphCL's unsupervised code
// has it. Its codes for semi-supervised and transfer learning leave PyTorch's
// default there.
func NewModel(be backend.Backend, e Encoder, rng *rand.Rand) *Model {
	w := e.Width()
	return &Model{Encoder: e, Head: nn.NewMLP(be, "proj_head", []int{w, w, w}, nn.XavierUniform, rng)}
}

// NewGINModel returns the model of the unsupervised experiments: GIN 3×32 and
// a head 96-96-96, all drawn from rng.
func NewGINModel(be backend.Backend, in int, rng *rand.Rand) *Model {
	return NewModel(be, gnn.NewGIN(be, gnn.GINConfig{In: in, Hidden: 32, Layers: 3}, rng), rng)
}

// Forward returns h and z of all graphs of a batch.
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

// Embed returns the embeddings h of n graphs, row-major [n×Width], in Eval
// mode. collate fills the batch with the graphs lo..hi-1; nil feeds the graphs
// as they are.
func (m *Model) Embed(be backend.Backend, graphs []*graph.Graph, collate func(b *graph.Batch, lo, hi int)) []float64 {
	w := m.Encoder.Width()
	out := make([]float64, len(graphs)*w)
	t := autodiff.NewInference(be)
	b := new(graph.Batch)
	for lo := 0; lo < len(graphs); {
		hi, nodes := lo, 0
		for hi < len(graphs) && (hi == lo || nodes*w < embedElements) {
			nodes += graphs[hi].Nodes()
			hi++
		}
		b.Reset(graphs[lo].X.Width)
		if collate != nil {
			collate(b, lo, hi)
		} else {
			for _, g := range graphs[lo:hi] {
				b.Append(g)
			}
		}
		b.EndView()
		h := m.Encoder.Forward(gnn.NewBatch(t, b), nn.Eval)
		be.Download(out[lo*w:hi*w], h.Value())
		t.Reset()
		lo = hi
	}
	return out
}

// embedElements bounds an evaluation batch, nodes times the encoder's width, so
// that its activations, all of which the tape holds until the batch is done, take
// megabytes. It is 8192 nodes of a GIN 3×32 and 2621 of one of width 300.
const embedElements = 8192 * 96
