package graph

import "fmt"

// Batch is a disjoint union of graphs: one adjacency, one feature matrix.
//
// A batch may hold several *views* of the same samples behind one another, as
// contrastive learning needs: with two views of B samples it holds 2B graphs,
// view 1 first, and ViewPtr = [0, B, 2B]. Batch normalisation then keeps the
// statistics of the views apart while every other operator sees one matrix.
//
// The zero Batch is empty and ready for [Batch.Append]. Reset empties a batch
// and keeps its memory, so that a training loop collates without allocating.
type Batch struct {
	// GraphPtr has one element more than there are graphs: the nodes of graph
	// g are GraphPtr[g]..GraphPtr[g+1]-1.
	GraphPtr []int32
	// ViewPtr has one element more than there are views: the graphs of view v
	// are ViewPtr[v]..ViewPtr[v+1]-1.
	ViewPtr []int32
	// Ptr and Adj are the adjacency by target, as in [Graph].
	Ptr, Adj []int32
	// X are the features of all nodes.
	X Features
	// Asymmetric records that some graph has an edge without its reverse; the
	// transpose must then be built ([Batch.Transpose]).
	Asymmetric bool

	spare []float32 // memory of X.Dense while the features are one-hot
}

// Nodes returns the number of nodes of all graphs.
func (b *Batch) Nodes() int { return max(len(b.Ptr)-1, 0) }

// Graphs returns the number of graphs.
func (b *Batch) Graphs() int { return max(len(b.GraphPtr)-1, 0) }

// Views returns the number of views: 1 unless EndView was called more than once.
func (b *Batch) Views() int { return max(len(b.ViewPtr)-1, 0) }

// Reset empties the batch and keeps its memory. width is the feature width of
// the graphs to come.
func (b *Batch) Reset(width int) {
	b.GraphPtr = append(b.GraphPtr[:0], 0)
	b.ViewPtr = append(b.ViewPtr[:0], 0)
	b.Ptr = append(b.Ptr[:0], 0)
	b.Adj = b.Adj[:0]
	b.Asymmetric = false
	b.X.Width = width
	b.X.Category = b.X.Category[:0]
	if b.X.Dense != nil {
		b.spare, b.X.Dense = b.X.Dense[:0], nil
	}
}

// Append adds an unchanged graph. It panics if the feature widths differ.
func (b *Batch) Append(g *Graph) {
	b.BeginGraph(g.X.Width)
	base := int32(b.Nodes())
	b.Asymmetric = b.Asymmetric || g.Directed
	for i := range g.Nodes() {
		for _, j := range g.Neighbors(i) {
			b.Adj = append(b.Adj, base+j)
		}
		b.Ptr = append(b.Ptr, int32(len(b.Adj)))
	}
	if g.X.OneHot() && b.X.OneHot() {
		b.X.Category = append(b.X.Category, g.X.Category...)
	} else {
		b.Densify(int(base))
		b.X.Dense = append(b.X.Dense, g.X.Materialize(g.Nodes())...)
	}
	b.EndGraph()
}

// BeginGraph and EndGraph bracket the writing of one graph straight into the
// batch's slices, as augmentations do: between them the caller appends rows to
// Adj and Ptr (with node numbers of the batch) and features to X.
// BeginGraph panics if width is not the batch's.
func (b *Batch) BeginGraph(width int) {
	if len(b.GraphPtr) == 0 {
		b.Reset(width)
	}
	if width != b.X.Width {
		panic(fmt.Sprintf("graph: Batch: feature width %d appended to a batch of width %d", width, b.X.Width))
	}
}

// EndGraph closes the graph begun by BeginGraph.
func (b *Batch) EndGraph() { b.GraphPtr = append(b.GraphPtr, int32(b.Nodes())) }

// EndView closes a view: the graphs since the last EndView belong to it.
// A batch of plain graphs calls it once, at the end.
func (b *Batch) EndView() { b.ViewPtr = append(b.ViewPtr, int32(b.Graphs())) }

// Densify turns the features of the first n nodes of the batch from one-hot to
// dense, because a later graph needs real numbers. It does nothing if they are
// dense already.
func (b *Batch) Densify(n int) {
	if b.X.Dense != nil {
		return
	}
	w := b.X.Width
	if cap(b.spare) < n*w || b.spare == nil {
		b.spare = make([]float32, 0, max(2*n*w, w))
	}
	b.X.Dense = b.spare[:n*w]
	clear(b.X.Dense)
	for i, c := range b.X.Category[:n] {
		b.X.Dense[i*w+int(c)] = 1
	}
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

// GraphID returns, for every node, the number of its graph.
func (b *Batch) GraphID() []int32 {
	id := make([]int32, b.Nodes())
	for g := range b.Graphs() {
		for i := b.GraphPtr[g]; i < b.GraphPtr[g+1]; i++ {
			id[i] = int32(g)
		}
	}
	return id
}

// Transpose returns the adjacency of the reversed edges. For a symmetric batch
// these are the batch's own slices.
func (b *Batch) Transpose() (ptr, adj []int32) {
	if !b.Asymmetric {
		return b.Ptr, b.Adj
	}
	return TransposeCSR(b.Ptr, b.Adj, b.Nodes())
}

// TransposeCSR returns the transpose of a CSR pattern with n columns. Columns
// of a row come out ascending.
func TransposeCSR(ptr, adj []int32, n int) (tptr, tadj []int32) {
	tptr = make([]int32, n+1)
	tadj = make([]int32, len(adj))
	for _, j := range adj {
		tptr[j+1]++
	}
	for i := range n {
		tptr[i+1] += tptr[i]
	}
	next := make([]int32, n)
	copy(next, tptr)
	for i := range len(ptr) - 1 {
		for _, j := range adj[ptr[i]:ptr[i+1]] {
			tadj[next[j]] = int32(i)
			next[j]++
		}
	}
	return tptr, tadj
}

// Validate returns an error that names the first broken invariant.
func (b *Batch) Validate() error {
	n := b.Nodes()
	if err := validateCSR(b.Ptr, b.Adj, n, true); err != nil {
		return err
	}
	if len(b.GraphPtr) == 0 || b.GraphPtr[0] != 0 || int(b.GraphPtr[b.Graphs()]) != n {
		return fmt.Errorf("graph: GraphPtr %v does not cover %d nodes", b.GraphPtr, n)
	}
	for g := range b.Graphs() {
		lo, hi := b.GraphPtr[g], b.GraphPtr[g+1]
		if hi < lo {
			return fmt.Errorf("graph: GraphPtr decreases at graph %d", g)
		}
		for i := lo; i < hi; i++ {
			for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
				if j < lo || j >= hi {
					return fmt.Errorf("graph: edge %d→%d leaves graph %d (nodes %d..%d)", j, i, g, lo, hi-1)
				}
			}
		}
	}
	if !b.Asymmetric {
		tp, ta := TransposeCSR(b.Ptr, b.Adj, n)
		for i := range tp {
			if tp[i] != b.Ptr[i] {
				return fmt.Errorf("graph: batch is marked symmetric and is not, at node %d", i)
			}
		}
		for k := range ta {
			if ta[k] != b.Adj[k] {
				return fmt.Errorf("graph: batch is marked symmetric and is not, at entry %d", k)
			}
		}
	}
	return b.X.validate(n)
}
