package gnn

import (
	"context"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Embed returns the embeddings of n graphs, row-major [n×Width], by an encoder in
// Eval mode. add appends a graph to a batch in the form that the encoder is to see;
// nil appends it unchanged. The graphs must be valid ([graph.Graph.Validate]) and
// have the features that the encoder was made for. Embed returns the error of ctx,
// which it checks between batches, or that of a device that failed.
//
// On the CPU in float32 the vectors of a [ChemGIN] do not depend on the other graphs, to the last
// bit: see [Environments].
func Embed(ctx context.Context, be backend.Backend, e Encoder, graphs []*graph.Graph, add func(b *graph.Batch, g *graph.Graph)) (h []float64, err error) {
	var m *Environments
	if g, ok := e.(*ChemGIN); ok && remembers(be) {
		m = NewEnvironments(g, 0)
		defer m.Close(be)
	}
	return m.embedAll(ctx, be, e, graphs, add)
}

// Embed is the function Embed with this memory, where that has one.
func (m *Environments) Embed(ctx context.Context, be backend.Backend, graphs []*graph.Graph, add func(b *graph.Batch, g *graph.Graph)) ([]float64, error) {
	if !remembers(be) {
		return Embed(ctx, be, m.encoder, graphs, add)
	}
	return m.embedAll(ctx, be, m.encoder, graphs, add)
}

// embedAll embeds graphs in batches, with a memory unless m is nil.
func (m *Environments) embedAll(ctx context.Context, be backend.Backend, e Encoder, graphs []*graph.Graph, add func(b *graph.Batch, g *graph.Graph)) (h []float64, err error) {
	defer backend.Recover(&err)
	if add == nil {
		add = (*graph.Batch).Append
	}
	w := e.Width()
	wide := w // what a node takes, about
	if a, err := ArchitectureOf(e); err == nil && a.Readout != "" {
		wide = a.Layers * a.Hidden
	}
	most := (embedElements + wide - 1) / wide
	if m != nil {
		most = environmentNodes
	}
	h = make([]float64, len(graphs)*w)
	t := autodiff.NewInference(be)
	defer t.Reset()
	b := new(graph.Batch)
	for lo := 0; lo < len(graphs); {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b.Reset(graphs[lo].X.Width)
		hi, nodes := lo, 0
		for hi < len(graphs) && (hi == lo || nodes < most) {
			add(b, graphs[hi])
			nodes += graphs[hi].Nodes()
			hi++
		}
		b.EndView()
		var x *autodiff.Var
		if m != nil {
			x = m.embed(t, b)
		} else {
			x = e.Forward(NewBatch(t, b), nn.Eval)
		}
		be.Download(h[lo*w:hi*w], x.Value())
		t.Reset()
		lo = hi
	}
	return h, nil
}

// embedElements bounds the size of an evaluation batch, nodes times the encoder's
// width, because the tape holds all activations until the batch is done. It amounts
// to 8192 nodes for a GIN 3×32 and 2621 for an encoder of width 300.
const embedElements = 8192 * 96

// environmentNodes bounds a batch by environment, whose activations are few.
const environmentNodes = 4096
