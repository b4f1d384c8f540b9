// Package graph holds graphs and batches of graphs as plain slices.
//
// The mental model: a [Graph] is one sample of a data set. A [Batch] is many
// graphs joined into one big disconnected graph, so that a mini-batch is one
// sparse matrix and one feature matrix. Node i of graph g becomes node
// GraphPtr[g]+i of the batch. The package is host-only: it knows no tensors,
// gradients or devices. Loading, augmentation and training share it.
//
// # Adjacency
//
// The adjacency is stored in compressed sparse rows (CSR) by *target*: the
// sources of the edges j→i that end in node i are Adj[Ptr[i]:Ptr[i+1]],
// ascending. Message passing Σ_{j→i} x_j is then one pass over the rows. An
// undirected edge is stored in both directions. Loaded graphs are simple: they
// have no self-loops and no duplicates.
//
// # Features
//
// Most benchmark graphs have one category per node (an atom type, or the
// constant 1). [Features] keeps it as an integer and does not build the one-hot
// matrix. If a feature is a real number, rows are dense.
package graph

import (
	"fmt"
	"slices"
)

// Features are the input features of n nodes, a row of Width numbers each. Rows
// are either one-hot and kept as column numbers, or dense. Exactly one of Category
// and Dense is used.
type Features struct {
	// Width is the number of columns F.
	Width int
	// Category has the column of the single 1 of every row, in 0..Width-1; it is nil
	// if the features are dense. The constant feature 1 is Width 1, Category 0.
	Category []int32
	// Dense is the row-major matrix [n×Width]; it is nil if the features are one-hot.
	Dense []float32
}

// OneHot reports whether the rows are one-hot categories.
func (f *Features) OneHot() bool { return f.Dense == nil }

// Row copies the features of node i to dst, which must have Width elements.
func (f *Features) Row(dst []float32, i int) {
	if f.Dense != nil {
		copy(dst, f.Dense[i*f.Width:(i+1)*f.Width])
		return
	}
	clear(dst)
	dst[f.Category[i]] = 1
}

// Materialize returns the features of n nodes as a dense row-major matrix
// [n×Width]. It does not copy a dense matrix.
func (f *Features) Materialize(n int) []float32 {
	if f.Dense != nil {
		return f.Dense
	}
	d := make([]float32, n*f.Width)
	for i, c := range f.Category[:n] {
		d[i*f.Width+int(c)] = 1
	}
	return d
}

// Graph is one sample: a graph with node features and a class.
type Graph struct {
	// Ptr delimits the rows of Adj, one for each node; see the package comment.
	Ptr []int32
	// Adj lists, row by row, the sources of the edges that end in a node,
	// ascending and distinct.
	Adj []int32
	// EdgeLabel has the category of every entry of Adj, or is nil. A number may
	// encode several columns of labels (Dataset.EdgeLabels of package dataset), or
	// its bits may be binary properties of the edge.
	EdgeLabel []int32
	// Globals are features of the whole graph, such as descriptors of a molecule; nil if it has
	// none. They live here because they must follow the graph through every subset and shuffle.
	Globals []float32
	// Directed records that some edge lacks its reverse. Loaders set it. It is false
	// for undirected benchmark graphs, and a batch of these is its own transpose.
	Directed bool
	// X are the node features.
	X Features
	// Class is the graph's label, in 0..C-1.
	Class int
}

// Nodes returns the number of nodes N.
func (g *Graph) Nodes() int { return len(g.Ptr) - 1 }

// Entries returns the number of directed edges, twice the number of undirected
// edges of a symmetric graph.
func (g *Graph) Entries() int { return len(g.Adj) }

// Neighbors returns the sources of the edges that end in node i, ascending.
// The slice is the graph's own.
func (g *Graph) Neighbors(i int) []int32 { return g.Adj[g.Ptr[i]:g.Ptr[i+1]] }

// HasEdge reports whether the edge j→i exists, in O(log degree).
func (g *Graph) HasEdge(j, i int) bool {
	_, ok := slices.BinarySearch(g.Neighbors(i), int32(j))
	return ok
}

// Symmetric reports whether every edge has its reverse. Rows are visited in ascending
// order, so the reverses of row j's entries must turn up exactly in row j's order.
func (g *Graph) Symmetric() bool {
	next := slices.Clone(g.Ptr)
	for i := range g.Nodes() {
		for _, j := range g.Neighbors(i) {
			p := next[j]
			if p == g.Ptr[j+1] || g.Adj[p] != int32(i) {
				return false
			}
			next[j]++
		}
	}
	return true
}

// Validate returns an error that names the first broken invariant: a pointer
// that decreases, a source out of range, an unsorted or repeated source, a
// self-loop, a category out of range, or a matrix of the wrong size.
func (g *Graph) Validate() error {
	n := g.Nodes()
	if err := validateCSR(g.Ptr, g.Adj, n, csrRules{}); err != nil {
		return err
	}
	if g.EdgeLabel != nil && len(g.EdgeLabel) != len(g.Adj) {
		return fmt.Errorf("graph: %d edge labels for %d entries", len(g.EdgeLabel), len(g.Adj))
	}
	if !g.Directed && !g.Symmetric() {
		return fmt.Errorf("graph: an edge lacks its reverse, but Directed is false")
	}
	if g.Class < 0 {
		return fmt.Errorf("graph: class %d is negative", g.Class)
	}
	return g.X.validate(n)
}

func (f *Features) validate(n int) error {
	if f.Width < 1 {
		return fmt.Errorf("graph: feature width %d", f.Width)
	}
	if f.Dense != nil {
		if f.Category != nil {
			return fmt.Errorf("graph: features are both dense and one-hot")
		}
		if len(f.Dense) != n*f.Width {
			return fmt.Errorf("graph: %d feature values for %d nodes of width %d",
				len(f.Dense), n, f.Width)
		}
		return nil
	}
	if len(f.Category) != n {
		return fmt.Errorf("graph: %d categories for %d nodes", len(f.Category), n)
	}
	for i, c := range f.Category {
		if c < 0 || int(c) >= f.Width {
			return fmt.Errorf("graph: node %d has category %d, outside 0..%d", i, c, f.Width-1)
		}
	}
	return nil
}

// validatePtr checks pointers that delimit n items: from 0 to n, not decreasing.
func validatePtr(name string, ptr []int32, n int) error {
	if len(ptr) == 0 {
		return fmt.Errorf("graph: %s is empty; it has one element more than it delimits", name)
	}
	end := len(ptr) - 1
	if ptr[0] != 0 || int(ptr[end]) != n {
		return fmt.Errorf("graph: %s runs from %d to %d, want 0 to %d", name, ptr[0], ptr[end], n)
	}
	for i := range end {
		if ptr[i+1] < ptr[i] {
			return fmt.Errorf("graph: %s decreases at %d", name, i)
		}
	}
	return nil
}

// csrRules says what a pattern may contain beyond a simple graph.
type csrRules struct{ loops, repeats bool }

func validateCSR(ptr, adj []int32, n int, may csrRules) error {
	if err := validatePtr("Ptr", ptr, len(adj)); err != nil {
		return err
	}
	for i := range n {
		for k := ptr[i]; k < ptr[i+1]; k++ {
			j := adj[k]
			switch {
			case j < 0 || int(j) >= n:
				return fmt.Errorf("graph: edge %d→%d: source outside 0..%d", j, i, n-1)
			case int(j) == i && !may.loops:
				return fmt.Errorf("graph: self-loop at node %d", i)
			case k > ptr[i] && adj[k-1] > j:
				return fmt.Errorf("graph: sources of node %d are not ascending at %d", i, j)
			case k > ptr[i] && adj[k-1] == j && !may.repeats:
				return fmt.Errorf("graph: node %d lists source %d twice", i, j)
			}
		}
	}
	return nil
}
