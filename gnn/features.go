package gnn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/internal/plan"
)

// cached holds what is computed from a batch when it is first needed.
type cached struct {
	x          *autodiff.Var
	category   *backend.Indices // of one-hot features
	normalized *autodiff.Sparse
	viewGraphs *backend.Indices
	edges      *autodiff.Var // the result of the last call of EdgeCounts
	edgesOf    string        // the name of the labels in that call

	replaced bool         // x comes from SetFeatures
	recorded bool         // the batch comes from [Inputs]
	members  *backend.CSR // the transpose of one-hot features; only from [Inputs]
}

// Features returns the dense matrix [N×F] of the features, one-hot or not.
func (b *Batch) Features() *autodiff.Var {
	if b.x == nil {
		if features := &b.Host.X; features.Dense != nil {
			b.x = b.upload(b.Host.Nodes(), features.Width, features.Dense)
		} else {
			b.x = b.tape.Const(plan.OneHot(b.tape, b.categories(), features.Width))
		}
	}
	return b.x
}

// SetFeatures replaces the features of the graphs by x [N×F]. GIN and ResGCN read it; encoders
// of categories, as ChemGIN, do not. It panics if the shape differs.
func (b *Batch) SetFeatures(x *autodiff.Var) {
	if x.Rows() != b.Host.Nodes() || x.Cols() != b.Host.X.Width {
		panic(fmt.Sprintf("gnn: SetFeatures: %d×%d for %d nodes with features of width %d",
			x.Rows(), x.Cols(), b.Host.Nodes(), b.Host.X.Width))
	}
	b.x = x
	b.replaced = true
}

// upload puts single-precision values on the engine.
func (b *Batch) upload(rows, cols int, values []float32) *autodiff.Var {
	x := b.tape.Alloc(rows, cols)
	b.tape.Backend().Upload32(x, values)
	return b.tape.Const(x)
}

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

// forwardOneHot returns [GINConv.Forward] of one-hot features X. Aggregation is linear, so
// (X + A·X)·W = X·W + A·(X·W), and X·W picks rows of W: the matrix X is never built, and
// the sum over neighbours runs at the hidden width.
func (c *GINConv) forwardOneHot(b *Batch) *autodiff.Var {
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
		panic(fmt.Sprintf("gnn: %s: want %d categories of nodes; the features have width %d (one-hot: %v)",
			encoder, n, x.Width, x.OneHot()))
	}
}
