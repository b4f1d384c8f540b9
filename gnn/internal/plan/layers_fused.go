package plan

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has the operators that run a layer, or a part of one, in a single call of the
// engine each way ([backend.GINFuser], [backend.GCNFuser], [backend.MessageFuser]).

// setOperands sets the places to the values of variables.
func setOperands(vars []*autodiff.Var, places ...**tensor.Tensor) {
	for i, place := range places {
		*place = vars[i].Value()
	}
}

// passBack allocates the gradients that the backward call of a fused layer computes, makes
// the call, and hands the gradients to params and, unless x is nil or needs none, to the
// input x.
func passBack(
	backward func(),
	x *autodiff.Var,
	dx **tensor.Tensor,
	params []*autodiff.Var,
	grads ...**tensor.Tensor,
) {
	be := params[0].Tape().Backend()
	if x != nil && x.NeedsGrad() {
		*dx = be.Alloc(x.Rows(), x.Cols())
	}
	for i, grad := range grads {
		*grad = be.Alloc(params[i].Rows(), params[i].Cols())
	}
	backward()
	for i, grad := range grads {
		params[i].AddGrad(*grad)
	}
	if *dx != nil {
		x.AddGrad(*dx)
	}
}

// GINLayer runs a GIN layer as one operator. It returns y [N×Out], or nil with pooledOnly,
// and the sums of y over the graphs [G×Out]. The caller sets all operands of f except x,
// which is nil for one-hot rows, and the parameters W1, b1, W2, b2, γ and β; GINLayer sets
// these and allocates the results.
//
// VJP: with dy + dpooled_g for every node of graph g in place of dy, batch
// norm's VJP gives d, gated by h2 > 0; then db2 = Σ d, dW2 = h1ᵀ·d,
// dh1 = d·W2ᵀ gated by h1 > 0, db1 = Σ dh1, dW1 = aggᵀ·dh1, dagg = dh1·W1ᵀ and
// dx = Aᵀ·dagg + self·dagg.
func GINLayer(
	f *backend.GINLayer, x *autodiff.Var, params []*autodiff.Var, pooledOnly bool,
) (y, pooled *autodiff.Var) {
	t := params[0].Tape()
	setOperands(params, &f.W1, &f.B1, &f.W2, &f.B2, &f.Gamma, &f.Beta)
	inWidth := f.W1.Rows
	hidden := f.W1.Cols
	out := f.W2.Cols
	nodes := f.Adj.Rows
	graphs := f.Graphs.Len() - 1
	views := f.Views.Len() - 1
	inputs := params
	if x != nil {
		f.X = x.Value()
		f.Agg = t.Alloc(nodes, inWidth)
		inputs = append(slices.Clip(inputs), x)
	}
	if !f.Running {
		f.Mean = t.Alloc(views, out)
		f.Var = t.Alloc(views, out)
	}
	f.H1 = t.Alloc(nodes, hidden)
	f.H2 = t.Alloc(nodes, out)
	f.Sums = t.Alloc(graphs, out)
	f.Pooled = t.Alloc(graphs, out)
	if !pooledOnly {
		f.Y = t.Alloc(nodes, out)
	}
	fuser := t.Fused().GIN
	fuser.GINForward(f)

	vjp := func(dy, dpooled *tensor.Tensor) {
		d := &backend.GINGradients{DY: dy, DPooled: dpooled}
		backward := func() { fuser.GINBackward(f, d) }
		passBack(backward, x, &d.DX, params, &d.W1, &d.B1, &d.W2, &d.B2, &d.Gamma, &d.Beta)
	}
	if pooledOnly {
		return nil, t.Record(
			"GINLayer", f.Pooled, func(dpooled *tensor.Tensor) { vjp(nil, dpooled) }, inputs...,
		)
	}
	return t.RecordPair("GINLayer", f.Y, f.Pooled, vjp, inputs...)
}

// GCNLayer runs a layer of ResGCN as one operator and returns y [N×Out]. The caller sets
// all operands of f except x and the parameters γ, β, W and b; GCNLayer sets these and
// allocates the results.
//
// VJP: d = dy gated by r > 0; db = Σ d; with e = Âᵀ·d, dW = zᵀ·e and dz = e·Wᵀ,
// from which batch norm's VJP gives dx; with a residual dx += dy.
func GCNLayer(f *backend.GCNLayer, x *autodiff.Var, params []*autodiff.Var) *autodiff.Var {
	t := x.Tape()
	f.X = x.Value()
	setOperands(params, &f.Gamma, &f.Beta, &f.W, &f.B)
	nodes := x.Rows()
	inWidth := f.W.Rows
	out := f.W.Cols
	views := f.Views.Len() - 1
	if !f.Running {
		f.Mean = t.Alloc(views, inWidth)
		f.Var = t.Alloc(views, inWidth)
	}
	f.R = t.Alloc(nodes, out)
	f.Y = f.R
	if f.Residual {
		f.Y = t.Alloc(nodes, out)
	}
	fuser := t.Fused().GCN
	fuser.GCNForward(f)

	return t.Record("GCNLayer", f.Y, func(dy *tensor.Tensor) {
		d := &backend.GCNGradients{DY: dy}
		backward := func() { fuser.GCNBackward(f, d) }
		passBack(backward, x, &d.DX, params, &d.Gamma, &d.Beta, &d.W, &d.B)
	}, append(slices.Clip(params), x)...)
}

// Messages returns A·x + self·x + counts·W in one call of an engine that offers
// [backend.MessageFuser]. W is the tables under one another; counts is constant.
func Messages(
	x *autodiff.Var, a *autodiff.Sparse, self float64, counts *autodiff.Var, tables []*autodiff.Var,
) *autodiff.Var {
	t := x.Tape()
	fuser := t.Fused().Messages
	weights := make([]*tensor.Tensor, len(tables))
	for k, table := range tables {
		weights[k] = table.Value()
	}
	out := t.Alloc(a.A.Rows, x.Cols())
	fuser.Messages(out, a.A, x.Value(), self, counts.Value(), weights)
	return t.Record("GINEConv", out, func(dy *tensor.Tensor) {
		var dx *tensor.Tensor
		var dtables []*tensor.Tensor
		var places []**tensor.Tensor
		if slices.ContainsFunc(tables, (*autodiff.Var).NeedsGrad) {
			dtables = make([]*tensor.Tensor, len(tables))
			for k := range dtables {
				places = append(places, &dtables[k])
			}
		}
		backward := func() {
			fuser.MessagesBackward(dx, dtables, dy, a.T, self, counts.Value())
		}
		passBack(backward, x, &dx, tables, places...)
	}, append(slices.Clip(tables), x)...)
}
