package gnn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn/internal/plan"
)

// Encoder maps the graphs of a batch to embeddings [B×Width].
type Encoder interface {
	NodeEncoder
	Forward(b *Batch, mode nn.Mode) *autodiff.Var
	Width() int
	// Reads says what Forward reads of a batch, for [NewInputs].
	Reads() Reads
}

// NodeEncoder embeds the nodes of a batch.
type NodeEncoder interface {
	nn.Module
	// Nodes returns the embeddings [N×F] of the nodes of a batch.
	Nodes(b *Batch, mode nn.Mode) *autodiff.Var
}

// ReadoutEncoder is an encoder in two steps, as [GIN] and [ResGCN] are: Forward(b, mode)
// equals Readout(b, Nodes(b, mode), mode).
type ReadoutEncoder interface {
	Encoder
	// Readout returns the embeddings [B×Width] of the graphs of a batch from the
	// embeddings x of its nodes.
	Readout(b *Batch, x *autodiff.Var, mode nn.Mode) *autodiff.Var
}

// encoder is what each encoder of this package defines in its own file. Everything else, such
// as the choice between the definition and a faster plan, is here.
type encoder interface {
	Encoder
	// check panics unless the encoder can read the features of the batch.
	check(b *Batch)
	// layers is the definition: it returns the features [N×Hidden] of the nodes after
	// each layer.
	layers(b *Batch, mode nn.Mode) []*autodiff.Var
	// plan returns a faster way to compute the layers of a batch, which may not fit; or nil.
	plan(b *Batch) plan.Plan
}

// runLayers returns the wanted layers, numbered from 1 in ascending order: by p if there is
// such a plan and it fits the batch, else by definition. With sums, the caller reads nothing
// but sums over the nodes of each graph.
func runLayers(e encoder, p plan.Plan, b *Batch, mode nn.Mode, wanted []int, sums bool) []plan.Layer {
	e.check(b)
	if p != nil {
		if layers := p.Layers(b.forPlans(), mode, wanted, sums); layers != nil {
			return layers
		}
	}
	var layers []plan.Layer
	defined := e.layers(b, mode)
	for _, l := range wanted {
		layers = append(layers, plan.Layer{Nodes: defined[l-1]})
	}
	return layers
}

// nodesAfter returns the features [N×Hidden] of the nodes after the wanted layers.
func nodesAfter(e encoder, b *Batch, mode nn.Mode, wanted ...int) (xs []*autodiff.Var) {
	for _, layer := range runLayers(e, e.plan(b), b, mode, wanted, false) {
		xs = append(xs, layer.Nodes)
	}
	return xs
}
