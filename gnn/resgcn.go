package gnn

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
)

// ResGCNConfig describes a [ResGCN].
type ResGCNConfig struct {
	In       int  // width of the input features
	Hidden   int  // width of every layer
	Layers   int  // number of graph convolutions
	Residual bool // a convolution's result is added to its input
	// Readout replaces the sum over nodes together with the linear layer and the two norms
	// after it. Its layers are the convolutions.
	Readout Readout
}

// PaperResGCN is the encoder that GraphCL and SpecMatch-CL describe for their
// semi-supervised experiments: five residual convolutions of width 128.
func PaperResGCN(in int) ResGCNConfig {
	return ResGCNConfig{
		In:       in,
		Hidden:   128,
		Layers:   5,
		Residual: true,
	}
}

// ResGCN is the encoder of the semi-supervised experiments (Chen, Bian and Sun
// 2019, on which GraphCL's code builds):
//
//	x ← ReLU(BatchNorm(x)·W)                        feature layer, without bias
//	x ← x + ReLU(GCNConv(BatchNorm(x)))             Layers times; without Residual x ← ReLU(…)
//	g ← Σ x over the nodes of a graph               [B×Hidden]
//	h ← BatchNorm(ReLU(Linear(BatchNorm(g))))       the embedding [B×Hidden]
//
// See [GCNConv] for directed graphs.
type ResGCN struct {
	Config                 ResGCNConfig
	FeatureNorm            *nn.BatchNorm
	Feature                *nn.Linear
	Norms                  []*nn.BatchNorm
	Convs                  []*GCNConv
	PooledNorm, HiddenNorm *nn.BatchNorm
	Hidden                 *nn.Linear
}

// normBias is the initial bias of the norms in GraphCL's code.
const normBias = 1e-4

// NewResGCN returns an encoder with Xavier-uniform convolutions, PyTorch's
// default for the linear layer after the readout, and norms with γ = 1 and bias
// 1e-4. It panics unless all sizes are positive.
func NewResGCN(be backend.Backend, c ResGCNConfig, rng *rand.Rand) *ResGCN {
	if c.In < 1 || c.Hidden < 1 || c.Layers < 1 {
		panic(fmt.Sprintf("gnn: NewResGCN: want positive sizes, have %+v", c))
	}
	norm := func(name string, width int) *nn.BatchNorm {
		b := nn.NewBatchNorm(be, "encoder."+name, width)
		be.Fill(b.Bias.Value, normBias)
		return b
	}
	g := &ResGCN{
		Config:      c,
		FeatureNorm: norm("bn_feat", c.In),
		Feature:     nn.NewLinearNoBias(be, "encoder.conv_feat", c.In, c.Hidden, nn.XavierUniform, rng),
	}
	for l := range c.Layers {
		g.Norms = append(g.Norms, norm(fmt.Sprintf("bns_conv.%d", l), c.Hidden))
		g.Convs = append(g.Convs, NewGCNConv(
			be, fmt.Sprintf("encoder.convs.%d", l), c.Hidden, c.Hidden, rng,
		))
	}
	g.PooledNorm, g.HiddenNorm = norm("bns_fc.0", c.Hidden), norm("bn_hidden", c.Hidden)
	g.Hidden = nn.NewLinear(be, "encoder.lins.0", c.Hidden, c.Hidden, nn.KaimingUniform, rng)
	g.Hidden.ResetBias(be, rng)
	return g
}

// Forward returns the embeddings [B×Width] of the graphs of a batch. It panics if
// the features do not have width Config.In.
func (g *ResGCN) Forward(b *Batch, mode nn.Mode) *autodiff.Var {
	if g.Config.Readout != "" {
		return readOut(g, b, mode, "", 1)
	}
	return g.Readout(b, g.Nodes(b, mode), mode)
}

// Readout returns the embeddings [B×Width] of graphs with the features x [N×Hidden]
// of their nodes.
func (g *ResGCN) Readout(b *Batch, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	h := g.PooledNorm.Forward(GlobalAddPool(x, b), b.ViewGraphs(), mode)
	return g.HiddenNorm.Forward(g.Hidden.ForwardReLU(h), b.ViewGraphs(), mode)
}

// layers returns the features [N×Hidden] of the nodes after each convolution.
func (g *ResGCN) layers(b *Batch, mode nn.Mode) (xs []*autodiff.Var) {
	x := g.FeatureNorm.Forward(b.Features(), b.ViewNodes, mode)
	x = g.Feature.ForwardReLU(x)
	for l, conv := range g.Convs {
		y := conv.Forward(b, g.Norms[l].Forward(x, b.ViewNodes, mode)).ReLU()
		if g.Config.Residual {
			y = x.Add(y)
		}
		x = y
		xs = append(xs, x)
	}
	return xs
}

func (g *ResGCN) modules() []nn.Module {
	ms := []nn.Module{g.FeatureNorm, g.Feature}
	for l := range g.Convs {
		ms = append(ms, g.Norms[l], g.Convs[l])
	}
	return append(ms, g.PooledNorm, g.Hidden, g.HiddenNorm)
}
