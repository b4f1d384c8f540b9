// Package gnn implements graph neural networks on package autodiff: message-passing
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
// Two terms recur. Node features may be one-hot, that is, a category 0..F-1 for each node;
// their matrix is built only where a layer needs it. In contrastive learning, a batch holds
// two views of the same graphs, one after the other; batch norm computes separate statistics
// for each view.
//
// An encoder is defined in a file of its own (gin.go, resgcn.go, chemgin.go, biogin.go). Faster
// ways to compute its layers are in gnn/internal/plan; [autodiff.Composed] turns them off.
package gnn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/internal/plan"
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
	derived
}

// derived holds values that are computed from a batch at their first use.
type derived struct {
	x          *autodiff.Var
	category   *backend.Indices // of one-hot features
	normalized *autodiff.Sparse
	viewGraphs *backend.Indices
	edges      *autodiff.Var // the result of the last call of EdgeCounts
	edgesOf    string        // the name of the labels in that call

	replaced bool         // x comes from SetFeatures
	recorded bool         // the batch comes from [Inputs]
	members  *backend.CSR // the transpose of one-hot features; only from [Inputs]
	plans    plan.Batch   // the batch as plans read it
}

// NewBatch puts a host batch on the tape's engine. A batch without views
// ([graph.Batch.EndView] was never called) is treated as one view.
func NewBatch(t *autodiff.Tape, b *graph.Batch) *Batch {
	n := b.Nodes()
	a := &backend.CSR{
		Rows: n,
		Cols: n,
		Ptr:  t.Indices(b.Ptr),
		Col:  t.Indices(b.Adj),
	}
	transpose := a
	if b.Asymmetric {
		ptr, adj := b.Transpose()
		transpose = &backend.CSR{
			Rows: n,
			Cols: n,
			Ptr:  t.Indices(ptr),
			Col:  t.Indices(adj),
		}
	}
	views := make([]int32, 0, len(b.ViewPtr)+2)
	for _, g := range b.ViewPtr {
		views = append(views, b.GraphPtr[g])
	}
	if len(views) == 0 {
		views = append(views, 0)
	}
	if int(views[len(views)-1]) != n {
		views = append(views, int32(n))
	}
	return &Batch{
		Host:      b,
		Adj:       &autodiff.Sparse{A: a, T: transpose},
		GraphPtr:  t.Indices(b.GraphPtr),
		ViewNodes: t.Indices(views),
		tape:      t,
	}
}

// Tape returns the tape that the batch belongs to.
func (b *Batch) Tape() *autodiff.Tape { return b.tape }

// GlobalAddPool is the sum readout: row g of the result [B×F] is the sum of x
// [N×F] over the nodes of graph g.
func GlobalAddPool(x *autodiff.Var, b *Batch) *autodiff.Var { return x.SegmentSum(b.GraphPtr) }

// GlobalMeanPool is the mean readout [B×F]; a graph without nodes gets zeros.
func GlobalMeanPool(x *autodiff.Var, b *Batch) *autodiff.Var { return x.SegmentMean(b.GraphPtr) }
