// Package plan computes the layers of the encoders of package gnn in faster ways than
// their definitions, with the same results up to rounding. To understand what an encoder
// computes, read its definition in package gnn and skip this package.
//
// There are three ideas:
//
//   - Fused layers (layers_fused.go): an engine that offers a whole layer as one call runs it as one.
//   - Colors (colors.go): equal nodes have equal rows, so a layer computes each row once.
//   - Environments (environments.go): in evaluation, the row of an atom depends only on the
//     atoms and bonds around it. Rows are cached across batches by what surrounds the atom.
//
// [GIN] uses the first, [ResGCN] and [ChemGIN] the first two, [Environments] the third.
package plan

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Plan is a way to compute the layers of one encoder.
type Plan interface {
	// Layers runs all layers on a batch and returns the wanted ones, which are numbered
	// from 1 in ascending order. If sums is set, the caller reads nothing but the sums over
	// the nodes of each graph. Layers returns nil, without side effects, if the plan does
	// not fit the batch or its engine.
	Layers(b *Batch, mode nn.Mode, wanted []int, sums bool) []Layer
}

// Layer is the result of a layer: the features of the nodes, or their values pooled over
// the nodes of each graph. What a plan does not compute is nil.
type Layer struct {
	Nodes          *autodiff.Var // [N×F]
	Sum, Mean, Max *autodiff.Var // [B×F]
}

// Batch is a batch of package gnn as plans read it.
type Batch struct {
	Tape *autodiff.Tape
	Host *graph.Batch
	// Adjacency is the adjacency [N×N]. Graphs delimits the nodes of each graph, Views those
	// of each view.
	Adjacency     *autodiff.Sparse
	Graphs, Views *backend.Indices
	// Recorded is set if the step is recorded and replayed on other batches. Plans may then
	// not depend on the host's copy.
	Recorded bool
	// Replaced is set if the features are not those of Host.
	Replaced bool
	Members  *backend.CSR // the transpose of one-hot features; may be nil
	Values
}

// Values computes each value of a batch at the first call, and returns it again later.
type Values interface {
	Features() *autodiff.Var      // [N×F], one-hot or not
	Categories() *backend.Indices // [N], of one-hot features
	Normalized() *autodiff.Sparse // Â [N×N]
}

// values puts single-precision values on the engine as a constant [rows×cols].
func (b *Batch) values(rows, cols int, values []float32) *autodiff.Var {
	x := b.Tape.Alloc(rows, cols)
	b.Tape.Backend().Upload32(x, values)
	return b.Tape.Const(x)
}

// weighted puts a host matrix on the engine.
func (b *Batch) weighted(rows, cols int, m graph.Weighted) *backend.CSR {
	return &backend.CSR{
		Rows: rows,
		Cols: cols,
		Ptr:  b.Tape.Indices(m.Ptr),
		Col:  b.Tape.Indices(m.Col),
		Val:  b.Tape.Matrix(len(m.Val), 1, m.Val).Value(),
	}
}
