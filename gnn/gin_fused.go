package gnn

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has GIN for engines that run a whole layer in one call
// ([backend.GINFuser]); the definition is in gin.go.

// canFuse reports whether the engine has such a call and it fits: the MLPs have two
// layers with biases, as NewGIN makes them, and the batch has views.
func (g *GIN) canFuse(b *Batch) bool {
	if b.tape.Fused().GIN == nil || b.Adj.A.Val != nil || b.ViewPtr.Len() < 2 {
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
	if !b.Host.X.OneHot() {
		x = b.Features()
	}
	for l, conv := range g.Convs {
		first, second, norm := conv.MLP.Layers[0], conv.MLP.Layers[1], g.Norms[l]
		f := &backend.GINLayer{
			Adj: b.Adj.A, AdjT: b.Adj.T, Graphs: b.GraphPtr, Views: b.ViewPtr, Self: 1 + conv.Eps, Eps: norm.Eps,
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
			norm.Track(t, f.H1.Rows, f.Mean, f.Var, b.ViewPtr)
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
	be := t.Backend()
	for i, p := range []**tensor.Tensor{&f.W1, &f.B1, &f.W2, &f.B2, &f.Gamma, &f.Beta} {
		*p = params[i].Value()
	}
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
		if x != nil && x.NeedsGrad() {
			d.DX = be.Alloc(n, in)
		}
		grads := []**tensor.Tensor{&d.W1, &d.B1, &d.W2, &d.B2, &d.Gamma, &d.Beta}
		for i, g := range grads {
			*g = be.Alloc(params[i].Rows(), params[i].Cols())
		}
		fuser.GINBackward(f, d)
		for i, g := range grads {
			params[i].AddGrad(*g)
		}
		if d.DX != nil {
			x.AddGrad(d.DX)
		}
	}
	if pooledOnly {
		return nil, t.Record("GINLayer", f.Pooled, func(dpooled *tensor.Tensor) { vjp(nil, dpooled) }, inputs...)
	}
	return t.RecordPair("GINLayer", f.Y, f.Pooled, vjp, inputs...)
}
