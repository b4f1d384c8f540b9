package gnn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
)

// This file has the methods that all encoders share: each encoder's own file defines
// layers, modules and Forward.

// Nodes returns the features [N×Layers·Hidden] of the nodes after every layer, side by side.
func (g *GIN) Nodes(b *Batch, mode nn.Mode) *autodiff.Var {
	layers := make([]int, len(g.Convs))
	for l := range layers {
		layers[l] = l + 1
	}
	return autodiff.ConcatCols(nodesAfter(g, b, mode, layers...)...)
}

// Nodes returns the features [N×Hidden] of the nodes after the last convolution.
func (g *ResGCN) Nodes(b *Batch, mode nn.Mode) *autodiff.Var {
	return nodesAfter(g, b, mode, len(g.Convs))[0]
}

// Nodes returns the features [N×Hidden] of the nodes after the last layer.
func (g *ChemGIN) Nodes(b *Batch, mode nn.Mode) *autodiff.Var {
	return nodesAfter(g, b, mode, len(g.Convs))[0]
}

// Nodes returns the features [N×Hidden] of the nodes after the last layer.
func (g *BioGIN) Nodes(b *Batch, mode nn.Mode) *autodiff.Var {
	return nodesAfter(g, b, mode, len(g.Convs))[0]
}

// Width returns the width of the embedding, without a Readout Layers·Hidden.
func (g *GIN) Width() int { return widthOf(g) }

// Width returns the width of the embedding, without a Readout Hidden.
func (g *ResGCN) Width() int { return widthOf(g) }

// Width returns the width of the embedding, without a Readout Hidden.
func (g *ChemGIN) Width() int { return widthOf(g) }

// Width returns the width of the embedding.
func (g *BioGIN) Width() int { return widthOf(g) }

func widthOf(e Encoder) int {
	a, _ := ArchitectureOf(e)
	return a.Width()
}

// Parameters returns, layer by layer, the convolution's and the norm's.
func (g *GIN) Parameters() []*autodiff.Param { return parameters(g.modules()) }

// Parameters returns the parameters of all layers, from the features to the embedding.
func (g *ResGCN) Parameters() []*autodiff.Param { return parameters(g.modules()) }

// Parameters returns the parameters of all layers, from the tables to the last norm.
func (g *ChemGIN) Parameters() []*autodiff.Param { return parameters(g.modules()) }

// Parameters returns the parameters of all layers, from the table on.
func (g *BioGIN) Parameters() []*autodiff.Param { return parameters(g.modules()) }

func parameters(modules []nn.Module) (ps []*autodiff.Param) {
	for _, m := range modules {
		ps = append(ps, m.Parameters()...)
	}
	return ps
}

// Buffers returns the running statistics, layer by layer.
func (g *GIN) Buffers() []*nn.Buffer { return buffers(g.modules()) }

// Buffers returns the running statistics, from the features to the embedding.
func (g *ResGCN) Buffers() []*nn.Buffer { return buffers(g.modules()) }

// Buffers returns the running statistics, layer by layer.
func (g *ChemGIN) Buffers() []*nn.Buffer { return buffers(g.modules()) }

// Buffers returns the running statistics, layer by layer.
func (g *BioGIN) Buffers() []*nn.Buffer { return buffers(g.modules()) }

func buffers(modules []nn.Module) (bs []*nn.Buffer) {
	for _, m := range modules {
		bs = append(bs, m.Buffers()...)
	}
	return bs
}

func (g *GIN) readout() (Readout, int)     { return g.Config.Readout, len(g.Convs) }
func (g *ResGCN) readout() (Readout, int)  { return g.Config.Readout, len(g.Convs) }
func (g *ChemGIN) readout() (Readout, int) { return g.Config.Readout, len(g.Convs) }
func (g *BioGIN) readout() (Readout, int)  { return g.Config.Readout, len(g.Convs) }

func (g *GIN) check(b *Batch)     { b.checkWidth("GIN", g.Config.In) }
func (g *ResGCN) check(b *Batch)  { b.checkWidth("ResGCN", g.Config.In) }
func (g *ChemGIN) check(b *Batch) { b.checkCategories("ChemGIN", g.Columns.NodeWidth()) }
func (g *BioGIN) check(b *Batch)  { b.checkCategories("BioGIN", NodeFlags) }

// checkWidth panics unless the features have the width that an encoder wants.
func (b *Batch) checkWidth(encoder string, width int) {
	if b.Host.X.Width != width {
		panic(fmt.Sprintf("gnn: %s: features of width %d for an encoder of width %d",
			encoder, b.Host.X.Width, width))
	}
}

// checkCategories panics unless the features are one-hot with the number of categories that an
// encoder wants.
func (b *Batch) checkCategories(encoder string, n int) {
	if x := &b.Host.X; x.Width != n || !x.OneHot() {
		panic(fmt.Sprintf("gnn: %s: want %d categories of nodes; the features have width "+
			"%d (one-hot: %v)",
			encoder, n, x.Width, x.OneHot()))
	}
}
