package gnn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
)

// This file is the encoder on engines that run a whole layer as one call
// ([autodiff.GINLayer]); the definition is in gin.go.

// fused reports whether the layers of the encoder can run so: with an engine
// that has them, and MLPs of two biased layers, as NewGIN makes them.
func (g *GIN) fused(b *Batch) bool {
	if !b.tape.CanFuseGIN() || b.Adj.A.Val != nil || b.ViewPtr.Len() < 2 {
		return false
	}
	for _, c := range g.Convs {
		if l := c.MLP.Layers; len(l) != 2 || l[0].B == nil || l[1].B == nil {
			return false
		}
	}
	return true
}

// forwardFused is Forward with one operator for each layer.
func (g *GIN) forwardFused(b *Batch, mode nn.Mode) *autodiff.Var {
	t := b.tape
	var x *autodiff.Var
	if !b.Host.X.OneHot() {
		x = b.Features()
	} else {
		b.categories()
	}
	readouts := make([]*autodiff.Var, len(g.Convs))
	for l, conv := range g.Convs {
		first, second, norm := conv.MLP.Layers[0], conv.MLP.Layers[1], g.Norms[l]
		layer := &autodiff.GINLayer{
			X: x, Category: b.category, Members: b.members, Adj: b.Adj, Self: 1 + conv.Eps,
			W1: t.Param(first.W), B1: t.Param(first.B), W2: t.Param(second.W), B2: t.Param(second.B),
			Gamma: t.Param(norm.Gamma), Beta: t.Param(norm.Bias), Eps: norm.Eps,
			Graphs: b.GraphPtr, Views: b.ViewPtr, PooledOnly: l == len(g.Convs)-1,
		}
		if mode == nn.Eval {
			layer.RunningMean, layer.RunningVar = norm.RunningMean.Value, norm.RunningVar.Value
		}
		y, pooled, mean, variance := layer.Run()
		if mode == nn.Train {
			norm.Track(mean, variance, b.ViewPtr)
		}
		x, readouts[l] = y, pooled
	}
	return autodiff.ConcatCols(readouts...)
}
