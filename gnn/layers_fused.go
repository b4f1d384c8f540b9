package gnn

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has the layers of encoders for engines that run one in one call
// ([backend.GINFuser], [backend.GCNFuser], [backend.MessageFuser]); the definitions are in
// gin.go, resgcn.go and gine.go.

// operands sets the places to the values of variables.
func operands(vars []*autodiff.Var, places ...**tensor.Tensor) {
	for i, p := range places {
		*p = vars[i].Value()
	}
}

// passBack allocates the gradients that a fused layer's backward call computes, makes the call
// and hands them to params and, unless it is nil or needs none, to the input x.
func passBack(backward func(), x *autodiff.Var, dx **tensor.Tensor, params []*autodiff.Var, grads ...**tensor.Tensor) {
	be := params[0].Tape().Backend()
	if x != nil && x.NeedsGrad() {
		*dx = be.Alloc(x.Rows(), x.Cols())
	}
	for i, g := range grads {
		*g = be.Alloc(params[i].Rows(), params[i].Cols())
	}
	backward()
	for i, g := range grads {
		params[i].AddGrad(*g)
	}
	if *dx != nil {
		x.AddGrad(*dx)
	}
}

// canFuse reports whether the engine has such a call and it fits: the MLPs have two
// layers with biases, as NewGIN makes them, and the batch has views.
func (g *GIN) canFuse(b *Batch) bool {
	if b.tape.Fused().GIN == nil || b.Adj.A.Val != nil || b.ViewNodes.Len() < 2 {
		return false
	}
	for _, c := range g.Convs {
		if l := c.MLP.Layers; len(l) != 2 || l[0].B == nil || l[1].B == nil {
			return false
		}
	}
	return true
}

// layersFused is layers with one operator for each.
func (g *GIN) layersFused(b *Batch, mode nn.Mode, pooled bool) (xs, readouts []*autodiff.Var) {
	t := b.tape
	var x *autodiff.Var
	if !b.categorical() {
		x = b.Features()
	}
	for l, conv := range g.Convs {
		first, second, norm := conv.MLP.Layers[0], conv.MLP.Layers[1], g.Norms[l]
		f := &backend.GINLayer{
			Adj: b.Adj.A, AdjT: b.Adj.T, Graphs: b.GraphPtr, Views: b.ViewNodes, Self: 1 + conv.Eps, Eps: norm.Eps,
		}
		if x == nil {
			f.Category, f.Members = b.categories(), b.members
		}
		if mode == nn.Eval {
			f.Running, f.Mean, f.Var = true, norm.RunningMean.Value, norm.RunningVar.Value
		}
		params := []*autodiff.Var{
			t.Param(first.W), t.Param(first.B), t.Param(second.W), t.Param(second.B), t.Param(norm.Gamma), t.Param(norm.Bias),
		}
		var sums *autodiff.Var
		x, sums = ginLayer(f, x, params, pooled && l == len(g.Convs)-1)
		xs, readouts = append(xs, x), append(readouts, sums)
		if mode == nn.Train {
			norm.Track(t, f.H1.Rows, f.Mean, f.Var, b.ViewNodes)
		}
	}
	return xs, readouts
}

// ginLayer runs a layer as one operator and returns y [N×Out], or nil with
// pooledOnly, and its sums over the graphs [G×Out]. The caller sets all operands of
// f except x, which is nil for one-hot rows, and the parameters W1, b1, W2, b2, γ
// and β; ginLayer sets these, and allocates the results.
//
// VJP: with dy + dpooled_g for every node of graph g in place of dy, batch
// norm's VJP gives d, gated by h2 > 0; then db2 = Σ d, dW2 = h1ᵀ·d,
// dh1 = d·W2ᵀ gated by h1 > 0, db1 = Σ dh1, dW1 = aggᵀ·dh1, dagg = dh1·W1ᵀ and
// dx = Aᵀ·dagg + self·dagg.
func ginLayer(f *backend.GINLayer, x *autodiff.Var, params []*autodiff.Var, pooledOnly bool) (y, pooled *autodiff.Var) {
	t := params[0].Tape()
	operands(params, &f.W1, &f.B1, &f.W2, &f.B2, &f.Gamma, &f.Beta)
	in, hid, out := f.W1.Rows, f.W1.Cols, f.W2.Cols
	n, graphs, views := f.Adj.Rows, f.Graphs.Len()-1, f.Views.Len()-1
	inputs := params
	if x != nil {
		f.X, f.Agg = x.Value(), t.Alloc(n, in)
		inputs = append(slices.Clip(inputs), x)
	}
	if !f.Running {
		f.Mean, f.Var = t.Alloc(views, out), t.Alloc(views, out)
	}
	f.H1, f.H2, f.Sums, f.Pooled = t.Alloc(n, hid), t.Alloc(n, out), t.Alloc(graphs, out), t.Alloc(graphs, out)
	if !pooledOnly {
		f.Y = t.Alloc(n, out)
	}
	fuser := t.Fused().GIN
	fuser.GINForward(f)

	vjp := func(dy, dpooled *tensor.Tensor) {
		d := &backend.GINGradients{DY: dy, DPooled: dpooled}
		passBack(func() { fuser.GINBackward(f, d) }, x, &d.DX, params, &d.W1, &d.B1, &d.W2, &d.B2, &d.Gamma, &d.Beta)
	}
	if pooledOnly {
		return nil, t.Record("GINLayer", f.Pooled, func(dpooled *tensor.Tensor) { vjp(nil, dpooled) }, inputs...)
	}
	return t.RecordPair("GINLayer", f.Y, f.Pooled, vjp, inputs...)
}

// layerFused is [ResGCN.layer] as one operator.
func (g *ResGCN) layerFused(b *Batch, l int, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	t, norm, conv := b.tape, g.Norms[l], g.Convs[l].Linear
	adj := b.Normalized()
	f := &backend.GCNLayer{
		Adj: adj.A, AdjT: adj.T, Graphs: b.GraphPtr, Views: b.ViewNodes, Residual: g.Config.Residual, Eps: norm.Eps,
	}
	if mode == nn.Eval {
		f.Running, f.Mean, f.Var = true, norm.RunningMean.Value, norm.RunningVar.Value
	}
	y := gcnLayer(f, x, []*autodiff.Var{t.Param(norm.Gamma), t.Param(norm.Bias), t.Param(conv.W), t.Param(conv.B)})
	if mode == nn.Train {
		norm.Track(t, x.Rows(), f.Mean, f.Var, b.ViewNodes)
	}
	return y
}

// gcnLayer runs a layer as one operator and returns y [N×Out]. The caller sets all
// operands of f except x and the parameters γ, β, W and b; gcnLayer sets these, and
// allocates the results.
//
// VJP: d = dy gated by r > 0; db = Σ d; with e = Âᵀ·d, dW = zᵀ·e and dz = e·Wᵀ,
// from which batch norm's VJP gives dx; with a residual dx += dy.
func gcnLayer(f *backend.GCNLayer, x *autodiff.Var, params []*autodiff.Var) *autodiff.Var {
	t := x.Tape()
	f.X = x.Value()
	operands(params, &f.Gamma, &f.Beta, &f.W, &f.B)
	n, in, out, views := x.Rows(), f.W.Rows, f.W.Cols, f.Views.Len()-1
	if !f.Running {
		f.Mean, f.Var = t.Alloc(views, in), t.Alloc(views, in)
	}
	f.R = t.Alloc(n, out)
	f.Y = f.R
	if f.Residual {
		f.Y = t.Alloc(n, out)
	}
	fuser := t.Fused().GCN
	fuser.GCNForward(f)

	return t.Record("GCNLayer", f.Y, func(dy *tensor.Tensor) {
		d := &backend.GCNGradients{DY: dy}
		passBack(func() { fuser.GCNBackward(f, d) }, x, &d.DX, params, &d.Gamma, &d.Beta, &d.W, &d.B)
	}, append(slices.Clip(params), x)...)
}

// messagesFused returns A·x + self·x + counts·w, where w is the tables under one another, in
// one call of the engine; counts is constant.
func messagesFused(fuser backend.MessageFuser, x *autodiff.Var, a *autodiff.Sparse, self float64, counts *autodiff.Var, tables []*autodiff.Var) *autodiff.Var {
	t := x.Tape()
	ws := make([]*tensor.Tensor, len(tables))
	for k, w := range tables {
		ws[k] = w.Value()
	}
	out := t.Alloc(a.A.Rows, x.Cols())
	fuser.Messages(out, a.A, x.Value(), self, counts.Value(), ws)
	return t.Record("GINEConv", out, func(dy *tensor.Tensor) {
		var dx *tensor.Tensor
		var dws []*tensor.Tensor
		var places []**tensor.Tensor
		if slices.ContainsFunc(tables, (*autodiff.Var).NeedsGrad) {
			dws = make([]*tensor.Tensor, len(tables))
			for k := range dws {
				places = append(places, &dws[k])
			}
		}
		passBack(func() { fuser.MessagesBackward(dx, dws, dy, a.T, self, counts.Value()) }, x, &dx, tables, places...)
	}, append(slices.Clip(tables), x)...)
}
