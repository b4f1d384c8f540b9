package graph

import "fmt"

// Pad makes dst a copy of b that is padded to the given numbers of nodes and of
// entries of Adj, so that batches of different sizes have the same shape. The added
// nodes come after the last graph and belong to none. They have no edges, and zero
// features or category 0. If edges have labels, the padding has the label -1. Pad
// panics if b has more nodes or entries.
func (b *Batch) Pad(dst *Batch, nodes, entries int) {
	if b.Nodes() > nodes || len(b.Adj) > entries {
		panic(fmt.Sprintf("graph: Pad: cannot pad %d nodes and %d entries to %d and %d",
			b.Nodes(), len(b.Adj), nodes, entries))
	}
	dst.GraphPtr = append(dst.GraphPtr[:0], b.GraphPtr...)
	dst.ViewPtr = append(dst.ViewPtr[:0], b.ViewPtr...)
	dst.Ptr = extend(append(dst.Ptr[:0], b.Ptr...), nodes+1, int32(len(b.Adj)))
	dst.Adj = extend(append(dst.Adj[:0], b.Adj...), entries, 0)
	dst.EdgeLabel = append(dst.EdgeLabel[:0], b.EdgeLabel...)
	if len(b.EdgeLabel) == len(b.Adj) {
		dst.EdgeLabel = extend(dst.EdgeLabel, entries, -1)
	}
	dst.Asymmetric = b.Asymmetric
	dst.Multigraph = b.Multigraph
	dst.X.Width = b.X.Width
	if b.X.OneHot() {
		dst.X.Dense = nil
		dst.X.Category = extend(append(dst.X.Category[:0], b.X.Category...), nodes, 0)
	} else {
		dst.X.Dense = extend(append(dst.X.Dense[:0], b.X.Dense...), nodes*b.X.Width, 0)
		dst.X.Category = nil
	}
}

// extend appends v until s has n elements.
func extend[T any](s []T, n int, v T) []T {
	for len(s) < n {
		s = append(s, v)
	}
	return s
}
