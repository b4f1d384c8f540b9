package gnn

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// messagesFused returns A·x + self·x + counts·w, where w is the tables under one another, in
// one call of the engine; counts is constant.
func messagesFused(fuser backend.MessageFuser, x *autodiff.Var, a *autodiff.Sparse, self float64, counts *autodiff.Var, tables []*autodiff.Var) *autodiff.Var {
	t := x.Tape()
	be := t.Backend()
	ws := make([]*tensor.Tensor, len(tables))
	for k, w := range tables {
		ws[k] = w.Value()
	}
	out := t.Alloc(a.A.Rows, x.Cols())
	fuser.Messages(out, a.A, x.Value(), self, counts.Value(), ws)
	return t.Record("GINEConv", out, func(dy *tensor.Tensor) {
		var dx *tensor.Tensor
		if x.NeedsGrad() {
			dx = be.Alloc(x.Rows(), x.Cols())
		}
		var dws []*tensor.Tensor
		if slices.ContainsFunc(tables, (*autodiff.Var).NeedsGrad) {
			for _, w := range tables {
				dws = append(dws, be.Alloc(w.Rows(), w.Cols()))
			}
		}
		fuser.MessagesBackward(dx, dws, dy, a.T, self, counts.Value())
		if dx != nil {
			x.AddGrad(dx)
		}
		for k, dw := range dws {
			tables[k].AddGrad(dw)
		}
	}, append(slices.Clip(tables), x)...)
}
