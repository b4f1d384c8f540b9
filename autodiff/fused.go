package autodiff

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// GINLayer is the operands of [GINLayer.Run]: a layer of the GIN encoder as one
// operator, for engines that can ([backend.GINFuser]). Its definition is the
// chain of operators that backend.GINLayer writes down.
type GINLayer struct {
	X        *Var             // input [N×In], or nil for one-hot rows with
	Category *backend.Indices // these columns, and
	Members  *backend.CSR     // their transpose, see backend.GINLayer; may be nil
	Adj      *Sparse          // without values; no edge joins two graphs
	Self     float64          // 1+ε

	W1, B1, W2, B2, Gamma, Beta *Var
	Eps                         float64 // of the batch norm

	// RunningMean and RunningVar [1×Out] replace the statistics of the views;
	// both or none is nil.
	RunningMean, RunningVar *tensor.Tensor

	// Graphs delimits the nodes of the graphs, Views those of the views.
	Graphs, Views *backend.Indices

	// PooledOnly leaves out y, as the last layer may.
	PooledOnly bool
}

// CanFuseGIN reports whether a tape's engine has GIN layers and the tape lets
// operators run in their fused form.
func (t *Tape) CanFuseGIN() bool {
	_, ok := t.be.(backend.GINFuser)
	return ok && t.Fused()
}

// Run returns y [N×Out], the features after batch norm (nil with PooledOnly),
// their sums over the graphs [G×Out], and the means and biased variances of the
// views [V×Out], which carry no gradient.
//
// VJP: with dy + dpooled_g for every node of graph g in place of dy, batch
// norm's VJP gives d, gated by h2 > 0; then db2 = Σ d, dW2 = h1ᵀ·d,
// dh1 = d·W2ᵀ gated by h1 > 0, db1 = Σ dh1, dW1 = aggᵀ·dh1, dagg = dh1·W1ᵀ and
// dx = Aᵀ·dagg + self·dagg.
func (l *GINLayer) Run() (y, pooled *Var, mean, variance *tensor.Tensor) {
	t := l.W1.tape
	be := t.be
	fuser := be.(backend.GINFuser)
	in, hid, out := l.W1.Rows(), l.W1.Cols(), l.W2.Cols()
	n, g := l.Adj.A.Rows, l.Graphs.Len()-1

	f := &backend.GINLayer{
		Adj: l.Adj.A, AdjT: l.Adj.T, Graphs: l.Graphs, Views: l.Views, Self: l.Self, Eps: l.Eps,
		W1: l.W1.value, B1: l.B1.value, W2: l.W2.value, B2: l.B2.value, Gamma: l.Gamma.value, Beta: l.Beta.value,
		H1: t.Alloc(n, hid), H2: t.Alloc(n, out), Sums: t.Alloc(g, out), Pooled: t.Alloc(g, out),
	}
	inputs := []*Var{l.W1, l.B1, l.W2, l.B2, l.Gamma, l.Beta}
	if l.X != nil {
		f.X, f.Agg = l.X.value, t.Alloc(n, in)
		inputs = append(inputs, l.X)
	} else {
		f.Category, f.Members = l.Category, l.Members
	}
	if l.RunningMean != nil {
		f.Running, f.Mean, f.Var = true, l.RunningMean, l.RunningVar
	} else {
		views := l.Views.Len() - 1
		f.Mean, f.Var = t.Alloc(views, out), t.Alloc(views, out)
	}
	if !l.PooledOnly {
		f.Y = t.Alloc(n, out)
	}
	fuser.GINForward(f)

	vjp := func(dy, dpooled *tensor.Tensor) {
		d := backend.GINGradients{
			DY: dy, DPooled: dpooled,
			W1: be.Alloc(in, hid), B1: be.Alloc(1, hid), W2: be.Alloc(hid, out), B2: be.Alloc(1, out),
			Gamma: be.Alloc(1, out), Beta: be.Alloc(1, out),
		}
		if l.X != nil && l.X.needs {
			d.DX = be.Alloc(n, in)
		}
		fuser.GINBackward(f, &d)
		for i, x := range [...]*tensor.Tensor{d.W1, d.B1, d.W2, d.B2, d.Gamma, d.Beta} {
			inputs[i].AddGrad(x)
		}
		if d.DX != nil {
			l.X.AddGrad(d.DX)
		}
	}
	if l.PooledOnly {
		pooled = t.Record("GINLayer", f.Pooled, func(dpooled *tensor.Tensor) { vjp(nil, dpooled) }, inputs...)
		return nil, pooled, f.Mean, f.Var
	}
	y, pooled = t.RecordPair("GINLayer", f.Y, f.Pooled, vjp, inputs...)
	return y, pooled, f.Mean, f.Var
}

// GCNLayer is the operands of [GCNLayer.Run]: a layer of ResGCN as one operator,
// for engines that can ([backend.GCNFuser]). Its definition is the chain of
// operators that backend.GCNLayer writes down.
type GCNLayer struct {
	X        *Var    // input [N×In]
	Adj      *Sparse // Â, with values; no edge joins two graphs
	Residual bool

	Gamma, Beta, W, B *Var
	Eps               float64 // of the batch norm

	// RunningMean and RunningVar [1×In] replace the statistics of the views;
	// both or none is nil.
	RunningMean, RunningVar *tensor.Tensor

	// Graphs delimits the nodes of the graphs, Views those of the views.
	Graphs, Views *backend.Indices
}

// CanFuseGCN reports whether a tape's engine has such layers and the tape lets
// operators run in their fused form.
func (t *Tape) CanFuseGCN() bool {
	_, ok := t.be.(backend.GCNFuser)
	return ok && t.Fused()
}

// Run returns y [N×Out], and the means and biased variances of x in the views
// [V×In], which carry no gradient. It panics with *[tensor.ShapeError] if the
// operands do not fit, and on an engine that does not have such layers. Source:
// Kipf and Welling (2017) for the convolution, Chen, Bian and Sun (2019) for its
// place in the layer.
//
// VJP: d = dy gated by r > 0; then db = Σ d, with e = Âᵀ·d also dW = zᵀ·e and
// dz = e·Wᵀ, from which batch norm's VJP gives dx; with a residual dx += dy.
func (l *GCNLayer) Run() (y *Var, mean, variance *tensor.Tensor) {
	t := l.X.tape
	be := t.be
	fuser := be.(backend.GCNFuser)
	n, in, out := l.X.Rows(), l.W.Rows(), l.W.Cols()

	f := &backend.GCNLayer{
		Adj: l.Adj.A, AdjT: l.Adj.T, Graphs: l.Graphs, Views: l.Views, Residual: l.Residual, Eps: l.Eps,
		X: l.X.value, Gamma: l.Gamma.value, Beta: l.Beta.value, W: l.W.value, B: l.B.value,
		R: t.Alloc(n, out),
	}
	f.Y = f.R
	if l.Residual {
		f.Y = t.Alloc(n, out)
	}
	if l.RunningMean != nil {
		f.Running, f.Mean, f.Var = true, l.RunningMean, l.RunningVar
	} else {
		views := l.Views.Len() - 1
		f.Mean, f.Var = t.Alloc(views, in), t.Alloc(views, in)
	}
	fuser.GCNForward(f)

	y = t.Record("GCNLayer", f.Y, func(dy *tensor.Tensor) {
		d := backend.GCNGradients{
			DY: dy, Gamma: be.Alloc(1, in), Beta: be.Alloc(1, in), W: be.Alloc(in, out), B: be.Alloc(1, out),
		}
		if l.X.needs {
			d.DX = be.Alloc(n, in)
		}
		fuser.GCNBackward(f, &d)
		l.Gamma.AddGrad(d.Gamma)
		l.Beta.AddGrad(d.Beta)
		l.W.AddGrad(d.W)
		l.B.AddGrad(d.B)
		if d.DX != nil {
			l.X.AddGrad(d.DX)
		}
	}, l.X, l.Gamma, l.Beta, l.W, l.B)
	return y, f.Mean, f.Var
}
