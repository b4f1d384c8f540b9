package gnn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn/graph"
)

// EdgeLabels maps every label of an edge to a vector of fixed width. The zero value has
// width 0.
type EdgeLabels struct {
	name   string
	width  int
	counts func(b *graph.Batch) []float32
}

// ColumnLabels returns the vectors of labels that combine several categories; see
// [graph.Batch.EdgeCounts].
func ColumnLabels(c graph.EdgeColumns) EdgeLabels {
	return EdgeLabels{fmt.Sprint(c), c.Width(), func(b *graph.Batch) []float32 {
		return b.EdgeCounts(c)
	}}
}

// WeightLabels returns the weights of edges as vectors of width 1; see [graph.WeightLabel].
func WeightLabels() EdgeLabels {
	return EdgeLabels{"weights", 1, (*graph.Batch).EdgeWeightSums}
}

// BitLabels returns the bits of labels as vectors; loop is the label of a self-loop. See
// [graph.Batch.EdgeBitCounts].
func BitLabels(bits int, loop int32) EdgeLabels {
	return EdgeLabels{fmt.Sprint(bits, loop), bits + 1, func(b *graph.Batch) []float32 {
		return b.EdgeBitCounts(bits, loop)
	}}
}

// EdgeCounts returns the sum of the vectors of each node's incoming edges and its self-loop
// [N×width]. All layers of an encoder share it.
func (b *Batch) EdgeCounts(l EdgeLabels) *autodiff.Var {
	if b.edges == nil || b.edgesOf != l.name {
		b.edges = b.upload(b.Host.Nodes(), l.width, l.counts(b.Host))
		b.edgesOf = l.name
	}
	return b.edges
}
