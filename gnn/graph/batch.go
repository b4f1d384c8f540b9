package graph

import (
	"fmt"
	"slices"
)

// Batch is a disjoint union of graphs: one adjacency, one feature matrix.
//
// A batch may hold several *views* of the same samples one after another, as
// contrastive learning needs. With two views of B samples it holds 2B graphs,
// view 1 first, and ViewPtr = [0, B, 2B]. Batch normalisation then keeps the
// statistics of the views apart, while every other operator sees one matrix.
//
// The zero Batch is empty and ready for [Batch.Append]. Reset empties a batch
// and keeps its memory, so that a training loop collates without allocating.
type Batch struct {
	// GraphPtr delimits the graphs: the nodes of graph g are
	// GraphPtr[g]..GraphPtr[g+1]-1.
	GraphPtr []int32
	// ViewPtr delimits the views: the graphs of view v are
	// ViewPtr[v]..ViewPtr[v+1]-1.
	ViewPtr []int32
	// Ptr and Adj are the adjacency by target, as in [Graph].
	Ptr, Adj []int32
	// EdgeLabel has the category of every entry of Adj; it is empty if the graphs
	// have none. A self-loop that an augmentation made has the category -1.
	EdgeLabel []int32
	// X are the features of all nodes.
	X Features
	// Asymmetric records that some graph has an edge without its reverse; the
	// transpose must then be built ([Batch.Transpose]).
	Asymmetric bool
	// Multigraph records that some row may list a source more than once. Such an
	// edge counts as often as it is listed. Loaded graphs are simple; GraphCL's
	// edge perturbation makes multigraphs.
	Multigraph bool
	// Constant is set by an owner who uses the batch more than once without changing it
	// before Reset. [Batch.ColorLayers] then computes its result once.
	Constant bool

	// Memory for the form of X that is not in use.
	spareDense    []float32
	spareCategory []int32

	degree []float64 // memory of Normalized, EdgeCounts and EdgeBitCounts
	normal [2]Weighted
	counts []float32
	colors colorLayers
}

// Nodes returns the number of nodes of all graphs.
func (b *Batch) Nodes() int { return max(len(b.Ptr)-1, 0) }

// Graphs returns the number of graphs.
func (b *Batch) Graphs() int { return max(len(b.GraphPtr)-1, 0) }

// Views returns the number of views, that is, of calls of EndView.
func (b *Batch) Views() int { return max(len(b.ViewPtr)-1, 0) }

// Reset empties the batch and keeps its memory. width is the feature width of
// the next graphs.
func (b *Batch) Reset(width int) {
	b.GraphPtr = append(b.GraphPtr[:0], 0)
	b.ViewPtr = append(b.ViewPtr[:0], 0)
	b.Ptr = append(b.Ptr[:0], 0)
	b.Adj = b.Adj[:0]
	b.EdgeLabel = b.EdgeLabel[:0]
	b.Asymmetric = false
	b.Multigraph = false
	b.Constant = false
	b.colors.made = false
	b.X.Width = width
	if b.X.Dense != nil {
		b.spareDense = b.X.Dense[:0]
		b.X.Dense = nil
		b.X.Category = b.spareCategory
	}
	b.X.Category = b.X.Category[:0]
}

// Append adds an unchanged graph. It panics if the feature widths differ.
func (b *Batch) Append(g *Graph) {
	b.BeginGraph(g.X.Width)
	base := b.Nodes()
	entries := len(b.Adj)
	b.Asymmetric = b.Asymmetric || g.Directed
	b.Adj = appendShifted(b.Adj, g.Adj, int32(base))
	b.EdgeLabel = append(b.EdgeLabel, g.EdgeLabel...)
	b.Ptr = appendShifted(b.Ptr, g.Ptr[1:], int32(entries))
	switch {
	case g.X.OneHot() && b.X.OneHot():
		b.X.Category = append(b.X.Category, g.X.Category...)
	case g.X.OneHot():
		b.X.Dense = AppendOneHot(b.X.Dense, g.X.Category, g.X.Width)
	default:
		b.Densify(base)
		b.X.Dense = append(b.X.Dense, g.X.Dense...)
	}
	b.EndGraph()
}

// appendShifted appends every element of src plus shift.
func appendShifted(dst, src []int32, shift int32) []int32 {
	n := len(dst)
	dst = slices.Grow(dst, len(src))[:n+len(src)]
	for k, v := range src {
		dst[n+k] = v + shift
	}
	return dst
}

// AppendOneHot appends the one-hot rows [N×width] of N categories, each below width.
func AppendOneHot(dst []float32, category []int32, width int) []float32 {
	n := len(dst)
	added := len(category) * width
	dst = slices.Grow(dst, added)[:n+added]
	rows := dst[n:]
	clear(rows)
	for i, c := range category {
		rows[i*width+int(c)] = 1
	}
	return dst
}

// BeginGraph and EndGraph bracket the writing of one graph straight into the
// batch's slices, as augmentations do. Between them, the caller appends rows to
// Adj and Ptr (with node numbers of the batch), features to X and, if the graph
// has edge labels, categories to EdgeLabel. BeginGraph panics if width is not the
// batch's width.
func (b *Batch) BeginGraph(width int) {
	if len(b.GraphPtr) == 0 {
		b.Reset(width)
	}
	if width != b.X.Width {
		panic(fmt.Sprintf("graph: Batch: feature width %d appended to a batch of width %d",
			width, b.X.Width))
	}
}

// EndGraph closes the graph begun by BeginGraph. It panics if some graphs of the
// batch have edge labels and others, with edges, do not.
func (b *Batch) EndGraph() {
	if len(b.EdgeLabel) != 0 && len(b.EdgeLabel) != len(b.Adj) {
		panic(fmt.Sprintf("graph: Batch: %d edge labels for %d entries: only some of the "+
			"graphs have them",
			len(b.EdgeLabel), len(b.Adj)))
	}
	b.GraphPtr = append(b.GraphPtr, int32(b.Nodes()))
}

// EndView closes a view, which has the graphs since the last EndView. A batch of
// plain graphs calls it once, at the end.
func (b *Batch) EndView() { b.ViewPtr = append(b.ViewPtr, int32(b.Graphs())) }

// Densify makes the features of the first n nodes of the batch dense, because a
// later graph needs real numbers. It does nothing if they are dense already.
func (b *Batch) Densify(n int) {
	if b.X.Dense != nil {
		return
	}
	w := b.X.Width
	if cap(b.spareDense) < n*w || b.spareDense == nil {
		b.spareDense = make([]float32, 0, max(2*n*w, w))
	}
	b.X.Dense = AppendOneHot(b.spareDense[:0], b.X.Category[:n], w)
	b.spareCategory = b.X.Category
	b.X.Category = nil
}

// Collate returns the batch of the given graphs as one view.
func Collate(graphs ...*Graph) *Batch {
	b := new(Batch)
	for _, g := range graphs {
		b.Append(g)
	}
	b.EndView()
	return b
}

// Transpose returns the adjacency of the reversed edges. For a symmetric batch,
// it returns the batch's own slices.
func (b *Batch) Transpose() (ptr, adj []int32) {
	if !b.Asymmetric {
		return b.Ptr, b.Adj
	}
	return TransposeCSR(b.Ptr, b.Adj, b.Nodes())
}

// TransposeCSR returns the transpose of a CSR pattern with n columns. Columns
// of a row come out ascending.
func TransposeCSR(ptr, adj []int32, n int) (tptr, tadj []int32) {
	var t Weighted
	t.transpose(Weighted{Ptr: ptr, Col: adj}, n, make([]int32, n))
	return t.Ptr, t.Col
}

// Validate returns an error that names the first broken invariant:
//   - those of [Graph.Validate], but self-loops are allowed, and repeated sources if
//     Multigraph is set;
//   - GraphPtr and, once a view is closed, ViewPtr cover the batch;
//   - no edge joins two graphs;
//   - every edge has its reverse unless Asymmetric is set.
func (b *Batch) Validate() error {
	n := b.Nodes()
	if err := validateCSR(b.Ptr, b.Adj, n, csrRules{loops: true, repeats: b.Multigraph}); err != nil {
		return err
	}
	if len(b.EdgeLabel) != 0 && len(b.EdgeLabel) != len(b.Adj) {
		return fmt.Errorf("graph: %d edge labels for %d entries", len(b.EdgeLabel), len(b.Adj))
	}
	if err := validatePtr("GraphPtr", b.GraphPtr, n); err != nil {
		return err
	}
	if b.Views() > 0 { // a batch under construction has none yet
		if err := validatePtr("ViewPtr", b.ViewPtr, b.Graphs()); err != nil {
			return err
		}
	}
	for g := range b.Graphs() {
		lo, hi := b.GraphPtr[g], b.GraphPtr[g+1]
		for i := lo; i < hi; i++ {
			for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
				if j < lo || j >= hi {
					return fmt.Errorf("graph: edge %d→%d leaves graph %d (nodes %d..%d)",
						j, i, g, lo, hi-1)
				}
			}
		}
	}
	if !b.Asymmetric {
		tp, ta := TransposeCSR(b.Ptr, b.Adj, n)
		if !slices.Equal(tp, b.Ptr) || !slices.Equal(ta, b.Adj) {
			return fmt.Errorf("graph: batch is marked symmetric and is not")
		}
	}
	return b.X.validate(n)
}
