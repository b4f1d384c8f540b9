// Package gnn has graph neural networks on package autodiff: message-passing
// layers, encoders and readouts.
//
// The mental model: a batch of B graphs is one big disconnected graph of N nodes
// ([graph.Batch]), so a layer has only two kinds of step. Message passing
// multiplies the node features [N×F] by the sparse adjacency, Σ_{j→i} x_j for every
// node i; everything else treats nodes as independent rows. A readout then sums the
// rows of each graph, [N×F] → [B×F].
//
//	b := gnn.NewBatch(tape, graphs)           // adjacency and features on the engine
//	h := encoder.Forward(b, nn.Train)         // [B×width], one row per graph
//
// Two terms recur. The features of nodes may be one-hot, a category 0..F-1 for each
// node, in which case the matrix is not built unless it must be. And in contrastive
// learning a batch holds two views of the same graphs, one after the other: batch
// norm takes separate statistics for each.
package gnn

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Batch is a [graph.Batch] on an engine. It belongs to one tape, and its host slices
// must not change before that tape's Reset.
type Batch struct {
	Host *graph.Batch
	// Adj is the adjacency [N×N]: row i lists the nodes j with an edge j→i.
	Adj *autodiff.Sparse
	// GraphPtr delimits the nodes of each graph, ViewNodes those of each view.
	GraphPtr, ViewNodes *backend.Indices

	tape *autodiff.Tape
	// The fields below are filled when they are first needed.
	x          *autodiff.Var
	category   *backend.Indices // of one-hot features
	members    *backend.CSR     // the transpose of one-hot features; only from [Inputs]
	normalized *autodiff.Sparse
	viewGraphs *backend.Indices
	edges      *autodiff.Var // the result of the last call of EdgeCounts
	edgesOf    string        // the name of the labels in that call
	fixed      bool          // of one size for all batches; only from [Inputs]
	given      bool          // x is from SetFeatures
}

// NewBatch puts a host batch on the tape's engine. A batch without views
// ([graph.Batch.EndView] was never called) counts as one view.
func NewBatch(t *autodiff.Tape, b *graph.Batch) *Batch {
	n := b.Nodes()
	a := &backend.CSR{Rows: n, Cols: n, Ptr: t.Indices(b.Ptr), Col: t.Indices(b.Adj)}
	at := a
	if b.Asymmetric {
		ptr, adj := b.Transpose()
		at = &backend.CSR{Rows: n, Cols: n, Ptr: t.Indices(ptr), Col: t.Indices(adj)}
	}
	views := []int32{0}
	for v := 1; v <= b.Views(); v++ {
		views = append(views, b.GraphPtr[b.ViewPtr[v]])
	}
	if int(views[len(views)-1]) != n {
		views = append(views, int32(n))
	}
	return &Batch{
		Host: b, Adj: &autodiff.Sparse{A: a, T: at},
		GraphPtr: t.Indices(b.GraphPtr), ViewNodes: t.Indices(views), tape: t,
	}
}

// Tape returns the tape that the batch belongs to.
func (b *Batch) Tape() *autodiff.Tape { return b.tape }

// Features returns the dense matrix [N×F] of the features, one-hot or not.
func (b *Batch) Features() *autodiff.Var {
	if b.x == nil {
		if features := &b.Host.X; features.Dense != nil {
			b.x = b.upload(b.Host.Nodes(), features.Width, features.Dense)
		} else {
			b.x = b.oneHot(b.categories())
		}
	}
	return b.x
}

// categories returns the categories [N] of one-hot features.
func (b *Batch) categories() *backend.Indices {
	if b.category == nil {
		b.category = b.tape.Indices(b.Host.X.Category[:b.Host.Nodes()])
	}
	return b.category
}

// ViewGraphs delimits the graphs of each view, as ViewNodes does their nodes: the
// groups of batch norm after a readout.
func (b *Batch) ViewGraphs() *backend.Indices {
	if b.viewGraphs == nil {
		views, n := slices.Clone(b.Host.ViewPtr), int32(b.Host.Graphs())
		if len(views) == 0 {
			views = []int32{0}
		}
		if views[len(views)-1] != n {
			views = append(views, n)
		}
		b.viewGraphs = b.tape.Indices(views)
	}
	return b.viewGraphs
}

// Normalized returns Â = D^-½·(A+I)·D^-½ [N×N], with D the degrees of A+I; see
// [graph.Batch.Normalized].
func (b *Batch) Normalized() *autodiff.Sparse {
	if b.normalized == nil {
		m, mt := b.Host.Normalized()
		n := b.Host.Nodes()
		a := b.weighted(n, n, m)
		at := a
		if b.Host.Asymmetric {
			at = b.weighted(n, n, mt)
		}
		b.normalized = &autodiff.Sparse{A: a, T: at}
	}
	return b.normalized
}

// weighted puts a matrix on the engine.
func (b *Batch) weighted(rows, cols int, m graph.Weighted) *backend.CSR {
	val := b.tape.Matrix(len(m.Val), 1, m.Val).Value()
	return &backend.CSR{Rows: rows, Cols: cols, Ptr: b.tape.Indices(m.Ptr), Col: b.tape.Indices(m.Col), Val: val}
}

// choose returns the matrix [N×W] that has for every node the row of table [F×W]
// that its category names: the one-hot features times the table.
func (b *Batch) choose(table *autodiff.Var) *autodiff.Var {
	if b.members != nil {
		return table.GatherRowsOf(b.category, b.members)
	}
	return table.GatherRows(b.Host.X.Category)
}

// GlobalAddPool is the sum readout: row g of the result [B×F] is the sum of x
// [N×F] over the nodes of graph g.
func GlobalAddPool(x *autodiff.Var, b *Batch) *autodiff.Var { return x.SegmentSum(b.GraphPtr) }

// GlobalMeanPool is the mean readout [B×F]; a graph without nodes gets zeros.
func GlobalMeanPool(x *autodiff.Var, b *Batch) *autodiff.Var { return x.SegmentMean(b.GraphPtr) }

// GlobalMaxPool has the largest of each column [B×F]; a graph without nodes gets zeros.
func GlobalMaxPool(x *autodiff.Var, b *Batch) *autodiff.Var { return x.SegmentMax(b.GraphPtr) }
