package plan

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// ResGCN runs the layers of a ResGCN on colors where there are few, else each as one call
// of the engine.
type ResGCN struct {
	FeatureNorm *nn.BatchNorm
	Feature     *nn.Linear
	Norms       []*nn.BatchNorm
	Convs       []*nn.Linear
	Residual    bool
}

// Layers implements [Plan].
func (g *ResGCN) Layers(b *Batch, mode nn.Mode, wanted []int, _ bool) (layers []Layer) {
	engine := b.Tape.Fused()
	if engine.Norm == nil && engine.GCN == nil {
		return nil
	}
	layers = make([]Layer, 0, len(wanted))
	r := rowsOf(b, graph.Normalized, len(g.Convs))
	x := g.Feature.ForwardReLU(g.FeatureNorm.ForwardNorm(r.features(), r.norm(), b.Views, mode))
	r, x = r.expand(x)
	fused := engine.GCN != nil && b.Views.Len() > 1
	for l := range g.Convs {
		if fused && r.first == nil {
			x = g.fusedLayer(b, l, x, mode)
		} else {
			r, x = r.next.expand(g.layer(l, r, x, mode))
		}
		if slices.Contains(wanted, l+1) {
			layers = append(layers, Layer{Nodes: r.nodes(x)})
		}
	}
	return layers
}

// layer runs convolution l on x, whose rows are r, and returns the rows r.next.
func (g *ResGCN) layer(l int, r *rows, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	t := x.Tape()
	conv := g.Convs[l]
	y := g.Norms[l].ForwardNorm(x, r.norm(), r.batch.Views, mode)
	y = y.MatMul(t.Param(conv.W)).SpMM(r.next.neighbours()).AddRowReLU(t.Param(conv.B))
	if g.Residual {
		y = r.next.refine(x).Add(y)
	}
	return y
}

// fusedLayer runs convolution l on the nodes as one operator.
func (g *ResGCN) fusedLayer(b *Batch, l int, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	t := b.Tape
	norm := g.Norms[l]
	conv := g.Convs[l]
	adjacency := b.Normalized()
	f := &backend.GCNLayer{
		Adj:      adjacency.A,
		AdjT:     adjacency.T,
		Graphs:   b.Graphs,
		Views:    b.Views,
		Residual: g.Residual,
		Eps:      norm.Eps,
	}
	if mode == nn.Eval {
		f.Running = true
		f.Mean = norm.RunningMean.Value
		f.Var = norm.RunningVar.Value
	}
	y := GCNLayer(f, x, []*autodiff.Var{
		t.Param(norm.Gamma), t.Param(norm.Bias), t.Param(conv.W), t.Param(conv.B),
	})
	if mode == nn.Train {
		norm.Track(t, x.Rows(), f.Mean, f.Var, b.Views)
	}
	return y
}
