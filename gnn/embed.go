package gnn

import (
	"context"
	"sync"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/internal/plan"
	"github.com/specmatch/specmatch/tensor"
)

// Embed returns the embeddings of n graphs, row-major [n×Width], by an encoder in
// Eval mode. add appends a graph to a batch in the form that the encoder reads; nil appends
// it unchanged. The graphs must be valid ([graph.Graph.Validate]) and have the features that
// the encoder was made for. Embed returns the error of ctx, which it checks between batches,
// or of a device that failed.
//
// On the CPU in float32, the bits of a [ChemGIN]'s vectors do not depend on the other graphs;
// see [Environments].
func Embed(
	ctx context.Context,
	be backend.Backend,
	e Encoder,
	graphs []*graph.Graph,
	add func(b *graph.Batch, g *graph.Graph),
) (h []float64, err error) {
	if g, ok := e.(*ChemGIN); ok && cachesRows(be) {
		m := NewEnvironments(g, 0)
		defer m.Close(be)
		return m.Embed(ctx, be, graphs, add)
	}
	return EmbedInTurn(ctx, be, new(sync.Mutex), e, graphs, add)
}

// EmbedInTurn is [Embed] for goroutines that share an engine. Each makes its batches while another
// one uses the engine, and holds turn when it uses the engine itself. It has no cache.
func EmbedInTurn(
	ctx context.Context,
	be backend.Backend,
	turn sync.Locker,
	e Encoder,
	graphs []*graph.Graph,
	add func(b *graph.Batch, g *graph.Graph),
) (h []float64, err error) {
	return downloaded(be, e.Width(), len(graphs), func(store store) error {
		return embedComposed(ctx, be, turn, e, graphs, add, store)
	})
}

// EmbedInTurn32 is [EmbedInTurn] in float32, into dst [n×Width].
func EmbedInTurn32(
	ctx context.Context,
	be backend.Backend,
	turn sync.Locker,
	e Encoder,
	dst []float32,
	graphs []*graph.Graph,
	add func(b *graph.Batch, g *graph.Graph),
) error {
	if narrow := backend.CapabilitiesOf(be).Narrow; narrow != nil && be.Precision() == tensor.Float32 {
		return embedComposed(ctx, be, turn, e, graphs, add, narrowStore(narrow, dst, e.Width()))
	}
	h, err := EmbedInTurn(ctx, be, turn, e, graphs, add)
	for i, v := range h {
		dst[i] = float32(v)
	}
	return err
}

// embedComposed is [embed] without a cache.
func embedComposed(
	ctx context.Context,
	be backend.Backend,
	turn sync.Locker,
	e Encoder,
	graphs []*graph.Graph,
	add func(b *graph.Batch, g *graph.Graph),
	store store,
) error {
	values := e.Width() // about the values of a node
	if a, err := ArchitectureOf(e); err == nil {
		if a.Readout != "" {
			values = a.Layers * a.Hidden
		}
		if a.Kind == KindResGCN || a.EdgeLabels > 0 || a.Weights { // one-hot features are then rows of a matrix
			values = max(values, a.In, a.EdgeLabels)
		}
	}
	elements := embedElements
	if recorder := backend.CapabilitiesOf(be).Recorder; recorder != nil && recorder.Records() {
		elements = deviceElements
	}
	nodes := (elements + values - 1) / values
	forward := func(b *Batch) *autodiff.Var { return e.Forward(b, nn.Eval) }
	return embed(ctx, be, turn, nodes, graphs, add, forward, store)
}

// Environments is a cache of the layers of a [ChemGIN] in Eval mode. It keeps the row of an
// atom after each layer under the atoms and bonds around it, its environment; molecules
// share most of these. Neither the cache nor the batch changes the bits of a vector.
type Environments struct {
	encoder *ChemGIN
	plan    *plan.Environments
}

// NewEnvironments returns an empty cache of about the given number of bytes, or of the few
// that the atoms of one batch need. It is valid for the encoder's present weights only. Goroutines
// need a cache each, or share one by [Environments.Share].
func NewEnvironments(e *ChemGIN, bytes int) *Environments {
	return &Environments{e, e.newEnvironments(bytes)}
}

// Share returns the cache for another goroutine, with an engine of its own of the same kind: what one
// of them has computed, the others find.
func (m *Environments) Share() *Environments {
	return &Environments{m.encoder, m.plan.Share()}
}

// Embed is the function [Embed] with the cache, on engines that allow one.
func (m *Environments) Embed(
	ctx context.Context,
	be backend.Backend,
	graphs []*graph.Graph,
	add func(b *graph.Batch, g *graph.Graph),
) ([]float64, error) {
	if !cachesRows(be) {
		return Embed(ctx, be, m.encoder, graphs, add)
	}
	return downloaded(be, m.encoder.Width(), len(graphs), func(store store) error {
		return embed(ctx, be, new(sync.Mutex), environmentNodes, graphs, add, m.forward, store)
	})
}

// Embed32 is [Environments.Embed] in float32, into dst [n×Width]. On an engine that allows a cache,
// the vectors are never converted.
func (m *Environments) Embed32(
	ctx context.Context,
	be backend.Backend,
	dst []float32,
	graphs []*graph.Graph,
	add func(b *graph.Batch, g *graph.Graph),
) error {
	if !cachesRows(be) {
		return EmbedInTurn32(ctx, be, new(sync.Mutex), m.encoder, dst, graphs, add)
	}
	store := narrowStore(backend.CapabilitiesOf(be).Narrow, dst, m.encoder.Width())
	return embed(ctx, be, new(sync.Mutex), environmentNodes, graphs, add, m.forward, store)
}

// forward returns the vectors of a batch with the cache.
func (m *Environments) forward(b *Batch) *autodiff.Var {
	return m.encoder.forward(m.plan, b, nn.Eval)
}

// Close frees the cache, which can then be used again. Of one that is shared, it frees what was
// allocated on this engine; no goroutine may use it meanwhile.
func (m *Environments) Close(be backend.Backend) { m.plan.Close(be) }

// cachesRows reports whether an engine computes rows of layers one by one.
func cachesRows(be backend.Backend) bool {
	return backend.CapabilitiesOf(be).Rows != nil && be.Precision() == tensor.Float32
}

// store takes the vectors of the graphs lo to hi-1, which are valid until it returns.
type store func(lo, hi int, h *tensor.Tensor)

// narrowStore stores vectors in dst [n×width].
func narrowStore(narrow backend.NarrowDownloader, dst []float32, width int) store {
	return func(lo, hi int, h *tensor.Tensor) { narrow.Download32(dst[lo*width:hi*width], h) }
}

// downloaded returns the vectors [n×width] that f stores.
func downloaded(be backend.Backend, width, n int, f func(store) error) ([]float64, error) {
	h := make([]float64, n*width)
	err := f(func(lo, hi int, vectors *tensor.Tensor) {
		be.Download(h[lo*width:hi*width], vectors)
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// embed stores the vectors that forward computes of graphs, in batches that end with the graph
// that brings them to the given number of nodes. It holds turn while it uses the engine.
func embed(
	ctx context.Context,
	be backend.Backend,
	turn sync.Locker,
	nodes int,
	graphs []*graph.Graph,
	add func(b *graph.Batch, g *graph.Graph),
	forward func(b *Batch) *autodiff.Var,
	store store,
) (err error) {
	defer backend.Recover(&err)
	if add == nil {
		add = (*graph.Batch).Append
	}
	t := autodiff.NewInference(be)
	compute := func(b *graph.Batch, lo, hi int) {
		turn.Lock()
		defer turn.Unlock()
		defer t.Reset()
		store(lo, hi, forward(NewBatch(t, b)).Value())
	}
	b := new(graph.Batch)
	for lo := 0; lo < len(graphs); {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.Reset(graphs[lo].X.Width)
		hi := lo
		total := 0
		for hi < len(graphs) && (hi == lo || total < nodes) {
			add(b, graphs[hi])
			total += graphs[hi].Nodes()
			hi++
		}
		b.EndView()
		compute(b, lo, hi)
		lo = hi
	}
	return nil
}

// embedElements bounds the size of an evaluation batch, nodes times the encoder's
// width, because the tape holds all activations until the batch is done. It amounts
// to 8192 nodes for a GIN 3×32 and 2621 for an encoder of width 300.
const embedElements = 8192 * 96

// deviceElements is that bound for engines that are given a batch with hundreds of launches, which take
// some milliseconds whatever its size. The outputs of all layers together are then 100 MB.
const deviceElements = 32 * embedElements

// environmentNodes bounds a batch of [Environments], which has few activations.
const environmentNodes = 4096
