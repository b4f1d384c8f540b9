package plan

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
)

// GIN runs each layer of a GIN as one call of the engine.
type GIN struct {
	Convs []GINConv
	Norms []*nn.BatchNorm
}

// GINConv is a convolution of a GIN.
type GINConv struct {
	MLP *nn.MLP
	Eps float64
}

// Layers implements [Plan].
func (g *GIN) Layers(b *Batch, mode nn.Mode, wanted []int, sums bool) (layers []Layer) {
	if !g.fits(b) {
		return nil
	}
	layers = make([]Layer, 0, len(wanted))
	t := b.Tape
	var x *autodiff.Var // nil for one-hot features
	if !b.Host.X.OneHot() || b.Replaced {
		x = b.Features()
	}
	for l, norm := range g.Norms {
		conv := g.Convs[l]
		first := conv.MLP.Layers[0]
		second := conv.MLP.Layers[1]
		f := &backend.GINLayer{
			Adj:    b.Adjacency.A,
			AdjT:   b.Adjacency.T,
			Graphs: b.Graphs,
			Views:  b.Views,
			Self:   1 + conv.Eps,
			Eps:    norm.Eps,
		}
		if x == nil {
			f.Category = b.Categories()
			f.Members = b.Members
		}
		if mode == nn.Eval {
			f.Running = true
			f.Mean = norm.RunningMean.Value
			f.Var = norm.RunningVar.Value
		}
		params := []*autodiff.Var{
			t.Param(first.W), t.Param(first.B),
			t.Param(second.W), t.Param(second.B),
			t.Param(norm.Gamma), t.Param(norm.Bias),
		}
		// Nobody reads the nodes after the last layer if sums are all that is wanted.
		pooledOnly := sums && l == len(g.Norms)-1
		var sum *autodiff.Var
		x, sum = GINLayer(f, x, params, pooledOnly)
		if mode == nn.Train {
			norm.Track(t, f.H1.Rows, f.Mean, f.Var, b.Views)
		}
		if slices.Contains(wanted, l+1) {
			layer := Layer{Nodes: x}
			if sums {
				layer.Sum = sum
			}
			layers = append(layers, layer)
		}
	}
	return layers
}

// fits reports whether the engine offers GIN layers and they fit: the MLPs have two layers
// with biases, and the batch has views.
func (g *GIN) fits(b *Batch) bool {
	if b.Tape.Fused().GIN == nil || b.Adjacency.A.Val != nil || b.Views.Len() < 2 {
		return false
	}
	for _, conv := range g.Convs {
		if l := conv.MLP.Layers; len(l) != 2 || l[0].B == nil || l[1].B == nil {
			return false
		}
	}
	return true
}
