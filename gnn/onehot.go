package gnn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
)

// This file reads one-hot features by their categories, without building the matrix.

// categories returns the categories [N] of one-hot features.
func (b *Batch) categories() *backend.Indices {
	if b.category == nil {
		b.category = b.tape.Indices(b.Host.X.Category[:b.Host.Nodes()])
	}
	return b.category
}

// categorical reports whether a layer may pick rows of its weights by category.
func (b *Batch) categorical() bool { return b.Host.X.OneHot() && !b.replaced }

// choose returns the row of table [F×W] that the category of each node names [N×W]: the
// one-hot features times the table.
func (b *Batch) choose(table *autodiff.Var) *autodiff.Var {
	if b.members != nil {
		return table.GatherRowsOf(b.category, b.members)
	}
	return table.GatherRows(b.Host.X.Category)
}

// forwardOneHot returns [GINConv.Forward] of one-hot features X, nil for others or with edges.
// Aggregation is linear, so (X + A·X)·W = X·W + A·(X·W), and X·W picks rows of W: the matrix X is never
// built, and the sum over neighbours runs at the hidden width.
func (c *GINConv) forwardOneHot(b *Batch) *autodiff.Var {
	if !b.categorical() || c.Edges != nil {
		return nil
	}
	first := c.MLP.Layers[0]
	h := b.choose(b.tape.Param(first.W)).SpMM(b.Adj, 1+c.Eps)
	if first.B != nil {
		h = h.AddRow(b.tape.Param(first.B))
	}
	for _, l := range c.MLP.Layers[1:] {
		h = l.Forward(h.ReLU())
	}
	return h
}
