package gnn

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
)

// GINConv is the graph isomorphism layer of Xu et al. (2019):
//
//	y_i = MLP((1+ε)·x_i + Σ_{j→i} x_j),
//
// where ε is a constant.
type GINConv struct {
	MLP   *nn.MLP
	Eps   float64
	Edges *EdgeTable // added to x_j; nil adds nothing
}

// NewGINConv returns a layer in → hidden → out with ε = 0 and the MLP
// Linear → ReLU → Linear.
func NewGINConv(be backend.Backend, name string, in, hidden, out int, init nn.Init, rng *rand.Rand) *GINConv {
	return &GINConv{MLP: nn.NewMLP(be, name, []int{in, hidden, out}, init, rng)}
}

// Forward returns y [N×out] for x [N×in]; x nil stands for the input features of the batch.
func (c *GINConv) Forward(b *Batch, x *autodiff.Var) *autodiff.Var {
	if x == nil {
		if y := c.forwardOneHot(b); y != nil {
			return y // the same, without building the one-hot matrix
		}
		x = b.Features()
	}
	return c.MLP.Forward(c.Edges.Forward(b, x.SpMM(b.Adj, 1+c.Eps)))
}

// Parameters returns the parameters of the MLP and of Edges.
func (c *GINConv) Parameters() []*autodiff.Param {
	return append(c.MLP.Parameters(), c.Edges.Parameters()...)
}

// Buffers returns none.
func (c *GINConv) Buffers() []*nn.Buffer { return nil }

// GINConfig describes a [GIN].
type GINConfig struct {
	In     int     // width of the input features
	Hidden int     // width of every layer; 32 in the unsupervised experiments
	Layers int     // 3 in the unsupervised experiments
	Eps    float64 // ε of all layers; 1 equals a self-loop on every node
	// Readout replaces the sum readout.
	Readout Readout
}

// GIN is the encoder of GraphCL's unsupervised experiments (You et al. 2020,
// after InfoGraph): in every layer
//
//	x ← BatchNorm(ReLU(GINConv(x))),
//
// and the embedding of a graph is the concatenation of the sum readouts of all layers,
// [B × Layers·Hidden]. The input features are not read out.
type GIN struct {
	Config GINConfig
	Convs  []*GINConv
	Norms  []*nn.BatchNorm
}

// NewGIN returns an encoder with Xavier-uniform weights and zero biases. It panics
// unless all sizes are positive.
func NewGIN(be backend.Backend, c GINConfig, rng *rand.Rand) *GIN {
	if c.In < 1 || c.Hidden < 1 || c.Layers < 1 {
		panic(fmt.Sprintf("gnn: NewGIN: want positive sizes, have %+v", c))
	}
	g := &GIN{Config: c}
	for l := range c.Layers {
		width := c.Hidden
		if l == 0 {
			width = c.In
		}
		g.Convs = append(g.Convs, NewGINConv(
			be, fmt.Sprintf("encoder.convs.%d.nn", l), width, c.Hidden, c.Hidden, nn.XavierUniform, rng,
		))
		g.Convs[l].Eps = c.Eps
		g.Norms = append(g.Norms, nn.NewBatchNorm(be, fmt.Sprintf("encoder.bns.%d", l), c.Hidden))
	}
	return g
}

// layers returns the features [N×Hidden] of the nodes after each layer; encoder.go knows faster ways.
func (g *GIN) layers(b *Batch, mode nn.Mode) (xs []*autodiff.Var) {
	var x *autodiff.Var
	for l, conv := range g.Convs {
		x = g.Norms[l].Forward(conv.Forward(b, x).ReLU(), b.ViewNodes, mode)
		xs = append(xs, x)
	}
	return xs
}

// Forward returns the embeddings [B×Width] of the graphs of a batch: the layers, each summed
// over the nodes of every graph, side by side. It panics if the features do not have width
// Config.In.
func (g *GIN) Forward(b *Batch, mode nn.Mode) *autodiff.Var {
	return readOut(g, b, mode, "all:sum", 1)
}

// Readout returns the sums [B×Layers·Hidden] of x over the nodes of each graph.
func (g *GIN) Readout(b *Batch, x *autodiff.Var, _ nn.Mode) *autodiff.Var {
	return GlobalAddPool(x, b)
}

// modules returns the layers in the order of their parameters in files.
func (g *GIN) modules() (ms []nn.Module) {
	for l := range g.Convs {
		ms = append(ms, g.Convs[l], g.Norms[l])
	}
	return ms
}
