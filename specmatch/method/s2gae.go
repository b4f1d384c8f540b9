package method

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// s2gae is S2GAE (Tan et al., S2GAE: self-supervised graph autoencoders are generalizable
// learners with graph masking, WSDM 2023). The code that made its table of graph
// classification is not published; encoder and recipe are those of the regime.
//
// What its code for nodes does otherwise: pairs that should have no edge are drawn among all
// nodes of one large graph, which in a batch of graphs would mostly lie apart; here they are of
// one graph. Gradients are clipped at norm 1, and dropout is 0.5 in encoder and decoder.
var s2gae = &Method{
	Name:      "s2gae",
	Title:     "S2GAE",
	Regimes:   []Regime{Unsupervised},
	OnRequest: true,
	new: func(s Setup) (*Learner, error) {
		return newPretext(s, func(s Setup, e gnn.Encoder, rng *rand.Rand) (Task, error) {
			if s.Encoder.Kind != gnn.KindGIN {
				return nil, fmt.Errorf("method: s2gae reads every layer of a GIN, not of encoder %s",
					s.Encoder.Kind)
			}
			return NewArcMasking(s.Backend, e, s.Encoder.Layers, s.Encoder.Hidden, rng), nil
		})
	},
}

// ArcMasking hides arcs, edges in one of their directions, and tells those from pairs of
// nodes drawn at random in their graphs. With h_k(i) the embedding of node i after layer k
// of L, the decoder sees the cross-correlation of the two ends,
//
//	c(i, j) = [ h_k(i) ∘ h_l(j) for all k, l ] of L²·width columns,
//	loss = mean over hidden arcs j→i of -ln σ(Decoder(c(i, j)))
//	     + mean over as many pairs (i, j) of -ln(1 - σ(Decoder(c(i, j)))).
//
// That one direction of an edge may stay while the other is hidden is the method's masking
// "with directions".
type ArcMasking struct {
	gnn.NodeEncoder         // [N×Layers·width], layer by layer
	Decoder         *nn.MLP // Layers²·width → 128 → 1
	Layers          int
	Share           float64 // of the arcs that are hidden
}

// NewArcMasking returns the task that hides half of the arcs. width is that of one layer.
func NewArcMasking(be backend.Backend, e gnn.NodeEncoder, layers, width int, rng *rand.Rand) *ArcMasking {
	d := nn.NewMLP(be, "pretext.decoder", []int{layers * layers * width, 128, 1}, nn.XavierUniform, rng)
	return &ArcMasking{
		NodeEncoder: e,
		Decoder:     d,
		Layers:      layers,
		Share:       0.5,
	}
}

// Loss implements [Task]. A batch with less than one hidden arc has none.
func (m *ArcMasking) Loss(b *graph.Batch, t *autodiff.Tape, rng *rand.Rand) *autodiff.Var {
	hide := make([]bool, len(b.Adj))
	for _, k := range sample(rng, len(b.Adj), int(m.Share*float64(len(b.Adj)))) {
		hide[k] = true
	}
	var heads, tails, noTo, noFrom []int32
	remaining := *b // the encoder sees what is left of the arcs
	remaining.Ptr = []int32{0}
	remaining.Adj = nil
	remaining.EdgeLabel = nil
	remaining.Asymmetric = true
	remaining.Constant = false
	for g := range b.Graphs() {
		lo, hi := b.GraphPtr[g], b.GraphPtr[g+1]
		for i := lo; i < hi; i++ {
			for k := b.Ptr[i]; k < b.Ptr[i+1]; k++ {
				if !hide[k] {
					remaining.Adj = append(remaining.Adj, b.Adj[k])
					if len(b.EdgeLabel) > 0 {
						remaining.EdgeLabel = append(remaining.EdgeLabel, b.EdgeLabel[k])
					}
					continue
				}
				heads = append(heads, i)
				tails = append(tails, b.Adj[k])
				noTo = append(noTo, lo+rng.Int32N(hi-lo))
				noFrom = append(noFrom, lo+rng.Int32N(hi-lo))
			}
			remaining.Ptr = append(remaining.Ptr, int32(len(remaining.Adj)))
		}
	}
	if len(heads) == 0 {
		return nil
	}
	h := m.Nodes(gnn.NewBatch(t, &remaining), nn.Train)
	var layers []*autodiff.Var
	for w := h.Cols() / m.Layers; len(layers) < m.Layers; {
		layers = append(layers, h.SliceCols(len(layers)*w, (len(layers)+1)*w))
	}
	return isTrue(m.logits(layers, heads, tails)).Add(isFalse(m.logits(layers, noTo, noFrom)))
}

// logits returns the decoder's [E×1] of pairs of nodes, from the layers' [N×width].
func (m *ArcMasking) logits(layers []*autodiff.Var, heads, tails []int32) *autodiff.Var {
	var a, b, parts []*autodiff.Var
	for _, h := range layers {
		a = append(a, h.GatherRows(heads))
		b = append(b, h.GatherRows(tails))
	}
	for _, x := range a {
		for _, y := range b {
			parts = append(parts, x.Mul(y))
		}
	}
	return m.Decoder.Forward(autodiff.ConcatCols(parts...))
}

// Parameters returns the encoder's and the decoder's.
func (m *ArcMasking) Parameters() []*autodiff.Param {
	return parameters(m.NodeEncoder, m.Decoder)
}
