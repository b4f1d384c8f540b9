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
	cached
}

// NewBatch puts a host batch on the tape's engine. A batch without views
// ([graph.Batch.EndView] was never called) counts as one view.
func NewBatch(t *autodiff.Tape, b *graph.Batch) *Batch {
	n := b.Nodes()
	a := &backend.CSR{
		Rows: n,
		Cols: n,
		Ptr:  t.Indices(b.Ptr),
		Col:  t.Indices(b.Adj),
	}
	at := a
	if b.Asymmetric {
		ptr, adj := b.Transpose()
		at = &backend.CSR{
			Rows: n,
			Cols: n,
			Ptr:  t.Indices(ptr),
			Col:  t.Indices(adj),
		}
	}
	views := []int32{0}
	for v := 1; v <= b.Views(); v++ {
		views = append(views, b.GraphPtr[b.ViewPtr[v]])
	}
	if int(views[len(views)-1]) != n {
		views = append(views, int32(n))
	}
	return &Batch{
		Host:      b,
		Adj:       &autodiff.Sparse{A: a, T: at},
		GraphPtr:  t.Indices(b.GraphPtr),
		ViewNodes: t.Indices(views),
		tape:      t,
	}
}

// Tape returns the tape that the batch belongs to.
func (b *Batch) Tape() *autodiff.Tape { return b.tape }

// ViewGraphs delimits the graphs of each view, as ViewNodes does their nodes: the
// groups of batch norm after a readout.
func (b *Batch) ViewGraphs() *backend.Indices {
	if b.viewGraphs == nil {
		views := slices.Clone(b.Host.ViewPtr)
		n := int32(b.Host.Graphs())
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
	return &backend.CSR{
		Rows: rows,
		Cols: cols,
		Ptr:  b.tape.Indices(m.Ptr),
		Col:  b.tape.Indices(m.Col),
		Val:  val,
	}
}

// GlobalAddPool is the sum readout: row g of the result [B×F] is the sum of x
// [N×F] over the nodes of graph g.
func GlobalAddPool(x *autodiff.Var, b *Batch) *autodiff.Var { return x.SegmentSum(b.GraphPtr) }

// GlobalMeanPool is the mean readout [B×F]; a graph without nodes gets zeros.
func GlobalMeanPool(x *autodiff.Var, b *Batch) *autodiff.Var { return x.SegmentMean(b.GraphPtr) }

// GlobalMaxPool has the largest of each column [B×F]; a graph without nodes gets zeros.
func GlobalMaxPool(x *autodiff.Var, b *Batch) *autodiff.Var { return x.SegmentMax(b.GraphPtr) }
