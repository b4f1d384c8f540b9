package gnn

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has a layer of ResGCN for engines that run it in one call
// ([backend.GCNFuser]); the definition is in resgcn.go.

// layerFused is [ResGCN.layer] as one operator.
func (g *ResGCN) layerFused(b *Batch, l int, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	t, norm, conv := b.tape, g.Norms[l], g.Convs[l].Linear
	adj := b.Normalized()
	f := &backend.GCNLayer{
		Adj: adj.A, AdjT: adj.T, Graphs: b.GraphPtr, Views: b.ViewPtr, Residual: g.Config.Residual, Eps: norm.Eps,
	}
	if mode == nn.Eval {
		f.Running, f.Mean, f.Var = true, norm.RunningMean.Value, norm.RunningVar.Value
	}
	y := gcnLayer(f, x, []*autodiff.Var{t.Param(norm.Gamma), t.Param(norm.Bias), t.Param(conv.W), t.Param(conv.B)})
	if mode == nn.Train {
		norm.Track(t, x.Rows(), f.Mean, f.Var, b.ViewPtr)
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
	be := t.Backend()
	f.X = x.Value()
	for i, p := range []**tensor.Tensor{&f.Gamma, &f.Beta, &f.W, &f.B} {
		*p = params[i].Value()
	}
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
		if x.NeedsGrad() {
			d.DX = be.Alloc(n, in)
		}
		grads := []**tensor.Tensor{&d.Gamma, &d.Beta, &d.W, &d.B}
		for i, g := range grads {
			*g = be.Alloc(params[i].Rows(), params[i].Cols())
		}
		fuser.GCNBackward(f, d)
		for i, g := range grads {
			params[i].AddGrad(*g)
		}
		if d.DX != nil {
			x.AddGrad(d.DX)
		}
	}, append(slices.Clip(params), x)...)
}
