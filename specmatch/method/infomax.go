package method

import (
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// infomax is Deep Graph Infomax, in the transfer regime as Hu et al. have it, and in
// the semi-supervised one as GraphCL's code: the loss of [InfoGraph] between the
// nodes after the last convolution and the embeddings of graphs, each through an MLP
// of its own. How that was trained is not published.
var infomax = &Method{
	Name:    "infomax",
	Title:   "Infomax",
	Regimes: []Regime{SemiSupervised, Transfer},
	Recipe:  map[Regime]Recipe{Transfer: {Epochs: 100}},
	new: func(s Setup) (*Learner, error) {
		if s.Regime == SemiSupervised {
			return newInfoGraph(s, func(be backend.Backend, name string, width int, rng *rand.Rand) block {
				return nn.NewMLP(be, name, []int{width, width, width}, nn.XavierUniform, rng)
			})
		}
		return newPretext(s, func(s Setup, e gnn.Encoder, rng *rand.Rand) (Task, error) {
			return NewInfomax(s.Backend, e, s.Encoder.Hidden, rng), nil
		})
	},
}

// Infomax asks whether a node belongs to a graph, given a summary of the graph
// (Veličković et al. 2019). With h_i the embedding of node i, g(i) its graph and
// s_g = σ(mean of h over graph g), the logit of node i and graph g is
// l(i, g) = h_i·(s_g·W). It should be true for the node's own graph and false for
// the next one of the batch:
//
//	loss = mean_i -ln σ(l(i, g(i))) + mean_i -ln(1 - σ(l(i, g(i)+1)))
type Infomax struct {
	gnn.NodeEncoder
	W *autodiff.Param // [width×width]
}

// NewInfomax returns the task with W uniform in ±1/√width. width is the width of
// the encoder's node embeddings.
func NewInfomax(be backend.Backend, e gnn.NodeEncoder, width int, rng *rand.Rand) *Infomax {
	w := make([]float64, width*width)
	bound := 1 / math.Sqrt(float64(width))
	for i := range w {
		w[i] = bound * (2*rng.Float64() - 1)
	}
	return &Infomax{e, autodiff.NewParam(be, "pretext.discriminator", width, width, w)}
}

// Loss implements [Task]. A batch of one graph has no negatives.
func (m *Infomax) Loss(b *graph.Batch, t *autodiff.Tape, _ *rand.Rand) *autodiff.Var {
	if b.Graphs() < 2 || b.Nodes() == 0 {
		return nil
	}
	batch := gnn.NewBatch(t, b)
	h := m.Nodes(batch, nn.Train)
	s := gnn.GlobalMeanPool(h, batch).Sigmoid().MatMul(t.Param(m.W))
	negatives := s.GatherRows(shifted(b.Graphs()))
	return isTrue(rowDots(h, s.SegmentExpand(batch.GraphPtr, h.Rows()))).Add(isFalse(rowDots(
		h, negatives.SegmentExpand(batch.GraphPtr, h.Rows()),
	)))
}

// Parameters returns the encoder's and W.
func (m *Infomax) Parameters() []*autodiff.Param {
	return append(m.NodeEncoder.Parameters(), m.W)
}
