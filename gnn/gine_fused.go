package gnn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// messagesFused returns A·x + x + counts·table in one call of the engine; counts is
// constant.
func messagesFused(fuser backend.MessageFuser, b *Batch, x, counts, table *autodiff.Var) *autodiff.Var {
	t := b.tape
	be := t.Backend()
	out := t.Alloc(x.Rows(), x.Cols())
	fuser.Messages(out, b.Adj.A, x.Value(), 1, counts.Value(), table.Value())
	return t.Record("GINEConv", out, func(dy *tensor.Tensor) {
		var dx, dw *tensor.Tensor
		if x.NeedsGrad() {
			dx = be.Alloc(dy.Rows, dy.Cols)
		}
		if table.NeedsGrad() {
			dw = be.Alloc(table.Rows(), table.Cols())
		}
		fuser.MessagesBackward(dx, dw, dy, b.Adj.T, 1, counts.Value())
		if dx != nil {
			x.AddGrad(dx)
		}
		if dw != nil {
			table.AddGrad(dw)
		}
	}, x, table)
}
