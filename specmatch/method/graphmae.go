package method

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// graphMAE is GraphMAE (Hou et al., GraphMAE: self-supervised masked graph autoencoders,
// KDD 2022). Its code has a recipe for each data set, with encoders of width 512 but for
// MUTAG's, of width 32 as all encoders of this regime; that recipe trains all sets here.
//
// What the code does otherwise: layers have batch norm inside their MLPs and PReLU; the
// vector of a graph is the last layer's sum, mean or maximum, by data set; batches are of
// 64 graphs; features are dropped with probability 0.2 in training.
var graphMAE = &Method{
	Name:      "graphmae",
	Title:     "GraphMAE",
	Regimes:   []Regime{Unsupervised},
	OnRequest: true,
	Recipe:    map[Regime]Recipe{Unsupervised: {Epochs: 20, Rate: 0.0005, Layers: 5}},
	new: func(s Setup) (*Learner, error) {
		return newPretext(s, func(s Setup, e gnn.Encoder, rng *rand.Rand) (Task, error) {
			return NewFeatureMasking(s.Backend, e, s.Encoder.NodeWidth(), s.Graphs[0].X.Width, rng), nil
		})
	},
}

// FeatureMasking hides the features of some nodes and asks for them. Of M hidden nodes of a batch,
// a token that is learned takes the place of ⌊(1-Replace)·M⌋ nodes' features, and the features of
// nodes drawn at random that of ⌊Replace·M⌋; rounding may leave one as it is. The encoder's vectors
// of the hidden nodes are hidden again before the decoder, a GIN layer, so that only neighbours
// tell of them:
//
//	H = encoder(X̃)·Bridge, rows of hidden nodes 0;  x̂ = Decoder(H)
//	loss = mean over hidden nodes of (1 - cos(x_i, x̂_i))²
//
// the scaled cosine error with the exponent 2.
type FeatureMasking struct {
	gnn.NodeEncoder
	Token   *autodiff.Param // [1×features], 0 at first
	Bridge  *nn.Linear      // [width×width], without bias
	Decoder *gnn.GINConv    // width → features
	Share   float64         // of the nodes that are hidden
	Replace float64         // of the hidden nodes, those with another node's features
}

// NewFeatureMasking returns the task with the shares of GraphMAE's recipe for MUTAG, 0.75
// and 0.1. width is that of the encoder's node embeddings, features that of its input.
func NewFeatureMasking(be backend.Backend, e gnn.NodeEncoder, width, features int, rng *rand.Rand) *FeatureMasking {
	bridge := nn.NewLinear(be, "pretext.bridge", width, width, nn.XavierUniform, rng)
	bridge.B = nil
	return &FeatureMasking{
		NodeEncoder: e,
		Token:       autodiff.NewParam(be, "pretext.token", 1, features, make([]float64, features)),
		Bridge:      bridge,
		Decoder:     gnn.NewGINConv(be, "pretext.decoder", width, width, features, nn.XavierUniform, rng),
		Share:       0.75,
		Replace:     0.1,
	}
}

// Loss implements [Task]. A batch with less than one hidden node has none.
func (m *FeatureMasking) Loss(b *graph.Batch, t *autodiff.Tape, rng *rand.Rand) *autodiff.Var {
	n := b.Nodes()
	hidden := make([]int32, 0, n)
	for _, i := range sample(rng, n, int(m.Share*float64(n))) {
		hidden = append(hidden, int32(i))
	}
	if len(hidden) == 0 {
		return nil
	}
	token := int((1 - m.Replace) * float64(len(hidden)))
	replaced := int(m.Replace * float64(len(hidden)))
	source := make([]int32, n) // whose features a node shows
	unmasked := make([]float64, n)
	visible := make([]float64, n)
	hides := make([]float64, n)
	for i := range source {
		source[i], unmasked[i], visible[i] = int32(i), 1, 1
	}
	for _, i := range hidden {
		visible[i] = 0
	}
	for _, i := range hidden[:token] {
		unmasked[i], hides[i] = 0, 1
	}
	for _, i := range hidden[len(hidden)-replaced:] {
		source[i] = rng.Int32N(int32(n))
	}
	batch := gnn.NewBatch(t, b)
	x := batch.Features()
	shown := x.GatherRows(source).MulCol(t.Matrix(n, 1, unmasked)).Add(t.Matrix(n, 1, hides).MatMul(t.Param(m.Token)))
	batch.SetFeatures(shown)
	h := m.Bridge.Forward(m.Nodes(batch, nn.Train)).MulCol(t.Matrix(n, 1, visible))
	guess := m.Decoder.Forward(batch, h).GatherRows(hidden).L2Normalize()
	cos := rowDots(guess, x.GatherRows(hidden).L2Normalize())
	return cos.Scale(-1).Shift(1).Square().Mean()
}

// Parameters returns the encoder's and the task's.
func (m *FeatureMasking) Parameters() []*autodiff.Param {
	return append(append(parameters(m.NodeEncoder), m.Token), parameters(m.Bridge, m.Decoder)...)
}
