package gnn

import (
	"cmp"
	"slices"

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

// Reads says what an encoder reads of a batch besides its adjacency, features and
// pointers.
type Reads struct {
	Normalized bool       // whether it calls [Batch.Normalized]
	Edges      EdgeLabels // the argument of [Batch.EdgeCounts]; the zero value is no call
	Host       bool       // whether Forward computes on the host and so cannot be recorded
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
	// readout returns the readout that replaces the encoder's own, or "", and the number of
	// layers.
	readout() (Readout, int)
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

// readOut returns the embeddings [B×Width] of a batch by the readout of e or, if it has none, by
// own; sums are multiplied by unit.
func readOut(e encoder, b *Batch, mode nn.Mode, own Readout, unit float64) *autodiff.Var {
	return readOutBy(e.plan(b), e, b, mode, own, unit)
}

// readOutBy is readOut with the given plan, which may be nil.
func readOutBy(p plan.Plan, e encoder, b *Batch, mode nn.Mode, own Readout, unit float64) *autodiff.Var {
	readout, count := e.readout()
	wanted, kinds := cmp.Or(readout, own).mustParse(count)
	// Only the encoder's own readout takes the sums that a plan may offer.
	sums := readout == "" && slices.Equal(kinds, []string{readSum})
	parts := make([]*autodiff.Var, 0, len(wanted)*len(kinds))
	for _, layer := range runLayers(e, p, b, mode, wanted, sums) {
		for _, kind := range kinds {
			h := pool(b, layer, kind)
			if kind == readSum && unit != 1 {
				h = h.Scale(unit)
			}
			parts = append(parts, h)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return autodiff.ConcatCols(parts...)
}

// pool returns the features of the nodes after a layer, pooled over each graph [B×F].
func pool(b *Batch, layer plan.Layer, kind string) *autodiff.Var {
	pooled := layer.Max
	global := GlobalMaxPool
	switch kind {
	case readSum:
		pooled = layer.Sum
		global = GlobalAddPool
	case readMean:
		pooled = layer.Mean
		global = GlobalMeanPool
	}
	if pooled != nil {
		return pooled
	}
	return global(layer.Nodes, b)
}
