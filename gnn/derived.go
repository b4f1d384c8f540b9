package gnn

import (
	"fmt"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/internal/plan"
)

// Features returns the features as a dense matrix [N×F], one-hot or not.
func (b *Batch) Features() *autodiff.Var {
	if b.x == nil {
		features := &b.Host.X
		switch {
		case features.Dense != nil:
			b.x = b.upload(b.Host.Nodes(), features.Width, features.Dense)
		case features.Width > plan.WidestIdentity && !b.recorded:
			b.x = b.tape.Const(plan.WideOneHot(b.tape, features.Category[:b.Host.Nodes()], features.Width))
		default:
			b.x = b.tape.Const(plan.OneHot(b.tape, b.categories(), features.Width))
		}
	}
	return b.x
}

// SetFeatures replaces the features of the graphs by x [N×F]. GIN and ResGCN read it; encoders
// of categories, such as ChemGIN, do not. It panics if the shape differs.
func (b *Batch) SetFeatures(x *autodiff.Var) {
	if x.Rows() != b.Host.Nodes() || x.Cols() != b.Host.X.Width {
		panic(fmt.Sprintf("gnn: SetFeatures: %d×%d for %d nodes with features of width %d",
			x.Rows(), x.Cols(), b.Host.Nodes(), b.Host.X.Width))
	}
	b.x = x
	b.replaced = true
}

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
		matrix, transposed := b.Host.Normalized()
		n := b.Host.Nodes()
		a := b.weighted(n, n, matrix)
		transpose := a
		if b.Host.Asymmetric {
			transpose = b.weighted(n, n, transposed)
		}
		b.normalized = &autodiff.Sparse{A: a, T: transpose}
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

// upload puts single-precision values on the engine.
func (b *Batch) upload(rows, cols int, values []float32) *autodiff.Var {
	x := b.tape.Alloc(rows, cols)
	b.tape.Backend().Upload32(x, values)
	return b.tape.Const(x)
}
