package gnn

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/internal/plan"
)

// Protein graphs of Hu et al. (2020), the input of [BioGIN], have edges with nine binary
// features: the bits of the edge's label.
const (
	EdgeBits     = 9      // bits 0 to 6 are channels of evidence; bit 8 masks
	EdgeSelfLoop = 1 << 7 // the label of a self-loop
	NodeFlags    = 2      // categories of nodes; all proteins have category 1
)

// BioConv is the layer of Hu et al.'s encoder of protein graphs:
//
//	y_i = MLP(Σ_{j→i} [x_j ; W·v_ji + b]),
//
// where v_ji are the bits of the edge's label, every node is its own neighbour with
// the label EdgeSelfLoop, and MLP is Linear → BatchNorm → ReLU → Linear. As in
// [GINEConv], the bits are summed first, so that no matrix has a row for each edge.
type BioConv struct {
	Edge          *nn.Linear // [EdgeBits×width]
	First, Second *nn.Linear
	Norm          *nn.BatchNorm
}

// NewBioConv returns a layer width → 2·width → width with PyTorch's default
// linear layers.
func NewBioConv(be backend.Backend, name string, width int, rng *rand.Rand) *BioConv {
	linear := func(part string, in, out int) *nn.Linear {
		l := nn.NewLinear(be, name+"."+part, in, out, nn.KaimingUniform, rng)
		l.ResetBias(be, rng)
		return l
	}
	return &BioConv{
		Edge:   linear("edge_encoder", EdgeBits, width),
		First:  linear("mlp.0", 2*width, 2*width),
		Norm:   nn.NewBatchNorm(be, name+".mlp.1", 2*width),
		Second: linear("mlp.3", 2*width, width),
	}
}

// Forward returns y [N×width] for x [N×width].
func (c *BioConv) Forward(b *Batch, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	edges := b.EdgeCounts(BitLabels(EdgeBits, EdgeSelfLoop)).MatMul(autodiff.ConcatRows(
		b.tape.Param(c.Edge.W), b.tape.Param(c.Edge.B),
	))
	y := autodiff.ConcatCols(x.SpMM(b.Adj, 1), edges)
	norm := autodiff.Norm{Groups: b.ViewNodes, Bias: b.tape.Param(c.First.B), ReLU: true}
	return c.Second.Forward(c.Norm.ForwardNorm(
		y.MatMul(b.tape.Param(c.First.W)), norm, b.ViewNodes, mode,
	))
}

func (c *BioConv) modules() []nn.Module {
	return []nn.Module{c.Edge, c.First, c.Norm, c.Second}
}

// Parameters returns the parameters of the edge encoder, then of the MLP.
func (c *BioConv) Parameters() []*autodiff.Param { return parameters(c.modules()) }

// Buffers returns the norm's running statistics.
func (c *BioConv) Buffers() []*nn.Buffer { return buffers(c.modules()) }

// BioGINConfig describes a [BioGIN].
type BioGINConfig struct {
	Hidden  int     // width of every layer; 300 in the literature
	Layers  int     // 5 in the literature
	Dropout float64 // probability; 0 while pre-training and 0.5 while fine-tuning
	// Center appends the features of each graph's first node, the protein that the
	// ego network is about, to the mean over all nodes.
	Center bool
	// Readout replaces the mean; Center must then be false.
	Readout Readout
}

// BioGIN is the encoder of protein graphs of Hu et al. (2020):
//
//	x ← E[flag]                                     [N×Hidden]
//	x ← Dropout(ReLU(BioConv(x)))                   Layers times, the last without ReLU
//	h ← the mean of x over the nodes of a graph     [B×Hidden]
//
// or, with Center, [mean ; x of the first node], [B×2·Hidden]. Features must be
// categories of width NodeFlags.
type BioGIN struct {
	Config BioGINConfig
	Flag   *nn.Embedding
	Convs  []*BioConv
	Drops  []*nn.Dropout
}

// NewBioGIN returns an encoder with a Xavier-uniform table and PyTorch's default
// linear layers. It panics unless all sizes are positive and 0 ≤ Dropout < 1.
func NewBioGIN(be backend.Backend, c BioGINConfig, rng *rand.Rand) *BioGIN {
	if c.Hidden < 1 || c.Layers < 1 {
		panic(fmt.Sprintf("gnn: NewBioGIN: want positive sizes, have %+v", c))
	}
	g := &BioGIN{
		Config: c,
		Flag:   nn.NewEmbedding(be, "encoder.input_node_embeddings", NodeFlags, c.Hidden, rng),
	}
	for l := range c.Layers {
		g.Convs = append(g.Convs, NewBioConv(be, fmt.Sprintf("encoder.gnns.%d", l), c.Hidden, rng))
		g.Drops = append(g.Drops, nn.NewDropout(be, c.Dropout, rng.Uint64()))
	}
	return g
}

// Forward returns the embeddings [B×Width] of the graphs of a batch. With Center
// it panics if a graph has no node.
func (g *BioGIN) Forward(b *Batch, mode nn.Mode) *autodiff.Var {
	if !g.Config.Center || g.Config.Readout != "" {
		return readOut(g, b, mode, "last:mean", 1)
	}
	x := g.Nodes(b, mode)
	ptr := b.Host.GraphPtr
	for k := range b.Host.Graphs() {
		if ptr[k] == ptr[k+1] {
			panic(fmt.Sprintf("gnn: BioGIN: graph %d of the batch has no center", k))
		}
	}
	return autodiff.ConcatCols(GlobalMeanPool(x, b), x.GatherRows(ptr[:b.Host.Graphs()]))
}

// layers returns the features [N×Hidden] of the nodes after each layer.
func (g *BioGIN) layers(b *Batch, mode nn.Mode) (xs []*autodiff.Var) {
	x := b.choose(b.tape.Param(g.Flag.Table))
	for l, conv := range g.Convs {
		x = conv.Forward(b, x, mode)
		if l < len(g.Convs)-1 {
			x = x.ReLU()
		}
		x = g.Drops[l].Forward(x, mode)
		xs = append(xs, x)
	}
	return xs
}

func (g *BioGIN) plan(*Batch) plan.Plan { return nil }

func (g *BioGIN) modules() []nn.Module {
	ms := []nn.Module{g.Flag}
	for _, c := range g.Convs {
		ms = append(ms, c)
	}
	return ms
}

// DropoutState is the same as [ChemGIN.DropoutState].
func (g *BioGIN) DropoutState() []*nn.Buffer { return dropoutState(g.Drops) }
