package gnn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn/graph"
)

// EdgeLabels gives every label of an edge a vector of width numbers. The zero value
// has width 0.
type EdgeLabels struct {
	name   string
	width  int
	counts func(b *graph.Batch) []float32
}

// ColumnLabels are for labels that combine several categories, see
// [graph.Batch.EdgeCounts].
func ColumnLabels(c graph.EdgeColumns) EdgeLabels {
	return EdgeLabels{fmt.Sprint(c), c.Width(), func(b *graph.Batch) []float32 { return b.EdgeCounts(c) }}
}

// BitLabels are for labels whose bits are the vector; loop is the label of a
// self-loop. See [graph.Batch.EdgeBitCounts].
func BitLabels(bits int, loop int32) EdgeLabels {
	return EdgeLabels{fmt.Sprint(bits, loop), bits + 1, func(b *graph.Batch) []float32 {
		return b.EdgeBitCounts(bits, loop)
	}}
}

// EdgeCounts returns the matrix [N×width] of the sums of the vectors of a node's
// incoming edges and its self-loop. All layers of an encoder share it.
func (b *Batch) EdgeCounts(l EdgeLabels) *autodiff.Var {
	if b.edges == nil || b.edgesOf != l.name {
		b.edges = b.upload(b.Host.Nodes(), l.width, l.counts(b.Host))
		b.edgesOf = l.name
	}
	return b.edges
}
