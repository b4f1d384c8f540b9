package gnn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Inputs are batches of one size on an engine, one after the other in the same
// place: what a recorded step ([backend.Backend.Capture]) reads. The host batches
// are padded to the size ([graph.Batch.Pad]); no operator lets padding reach a
// graph, and its gradients are zero.
type Inputs struct {
	be      backend.Backend
	host    graph.Batch // padded
	nodes   int
	entries int
	hosts   [][]int32
	indices []*backend.Indices
	views   []int32
	members [2][]int32
	x       *tensor.Tensor
	normal  [2]*tensor.Tensor // values of Normalized and of its transpose, if wanted
	values  [2][]float64
	labels  EdgeLabels
	edges   *tensor.Tensor // their counts, if wanted
}

// Reads is what an encoder reads of a batch beside its adjacency, features and
// pointers.
type Reads struct {
	Normalized bool       // [Batch.Normalized]
	Edges      EdgeLabels // [Batch.EdgeCounts] of these; the zero value is none
}

// NewInputs makes room for batches like b of the given numbers of nodes and of
// entries of Adj, for what is to be read of them, and loads b.
func NewInputs(be backend.Backend, b *graph.Batch, nodes, entries int, reads Reads) *Inputs {
	in := &Inputs{be: be, nodes: nodes, entries: entries, labels: reads.Edges}
	if reads.Normalized {
		in.normal[0] = be.Alloc(entries+nodes, 1)
		if in.normal[1] = in.normal[0]; b.Asymmetric {
			in.normal[1] = be.Alloc(entries+nodes, 1)
		}
	}
	if in.labels.width > 0 {
		in.edges = be.Alloc(nodes, in.labels.width)
	}
	in.fill(b)
	in.indices = be.IndexBlock(in.hosts)
	if !b.X.OneHot() {
		in.x = be.Alloc(nodes, b.X.Width)
	}
	in.upload()
	return in
}

// upload moves what is not indices.
func (in *Inputs) upload() {
	if in.x != nil {
		in.be.Upload32(in.x, in.host.X.Dense)
	}
	for k, t := range in.normal {
		if t != nil && (k == 0 || in.host.Asymmetric) {
			in.be.Upload(t, in.values[k])
		}
	}
	if in.edges != nil {
		in.be.Upload32(in.edges, in.labels.counts(&in.host))
	}
}

// Load puts b in the place of the batch before. It panics unless b has as many
// graphs and views, the same kind of features and of edges, and fits.
func (in *Inputs) Load(b *graph.Batch) {
	if b.Graphs() != in.host.Graphs() || b.Views() != in.host.Views() || b.X.Width != in.host.X.Width ||
		b.X.OneHot() != in.host.X.OneHot() || b.Asymmetric != in.host.Asymmetric {
		panic(fmt.Sprintf("gnn: Inputs: a batch of %d graphs in %d views (width %d, one-hot %v, asymmetric %v) in the place of %d in %d (%d, %v, %v)",
			b.Graphs(), b.Views(), b.X.Width, b.X.OneHot(), b.Asymmetric,
			in.host.Graphs(), in.host.Views(), in.host.X.Width, in.host.X.OneHot(), in.host.Asymmetric))
	}
	in.fill(b)
	in.be.UpdateIndices(in.indices, in.hosts)
	in.upload()
}

// Where the index vectors lie in hosts. The transposed adjacency, the normalised
// one with its transpose, and the categories with their members follow where
// there are such.
const (
	rowPtr = iota
	columns
	graphPtr
	viewPtr
	viewGraphs
	others
)

// fill sets host and hosts.
func (in *Inputs) fill(b *graph.Batch) {
	b.Pad(&in.host, in.nodes, in.entries)
	in.views = in.views[:0]
	for _, g := range b.ViewPtr {
		in.views = append(in.views, b.GraphPtr[g])
	}
	in.hosts = append(in.hosts[:0], in.host.Ptr, in.host.Adj, in.host.GraphPtr, in.views, in.host.ViewPtr)
	if b.Asymmetric {
		ptr, adj := graph.TransposeCSR(b.Ptr, b.Adj, b.Nodes())
		for len(ptr) <= in.nodes {
			ptr = append(ptr, int32(len(adj)))
		}
		in.hosts = append(in.hosts, ptr, append(adj, make([]int32, in.entries-len(adj))...))
	}
	if in.normal[0] != nil {
		m, mt := in.host.Normalized()
		in.addNormal(0, m)
		if b.Asymmetric {
			in.addNormal(1, mt)
		}
	}
	if b.X.OneHot() {
		in.members[0], in.members[1] = backend.Members(in.members[0], in.members[1], in.host.X.Category, b.X.Width)
		in.hosts = append(in.hosts, in.host.X.Category, in.members[0], in.members[1])
	}
}

// addNormal adds a normalised adjacency to hosts, and its values.
func (in *Inputs) addNormal(k int, m graph.Weighted) {
	col, n := m.Col, in.entries+in.nodes
	for len(col) < n {
		col = append(col, 0)
	}
	in.values[k] = append(in.values[k][:0], m.Val...)
	for len(in.values[k]) < n {
		in.values[k] = append(in.values[k], 0)
	}
	in.hosts = append(in.hosts, m.Ptr, col)
}

// Batch returns the batch that is loaded, or the one that will be when a recorded
// step is replayed, for the operators of a tape.
func (in *Inputs) Batch(t *autodiff.Tape) *Batch {
	n, x := in.nodes, in.indices
	a := &backend.CSR{Rows: n, Cols: n, Ptr: x[rowPtr], Col: x[columns]}
	b := &Batch{Host: &in.host, Adj: &autodiff.Sparse{A: a, T: a}, GraphPtr: x[graphPtr], ViewPtr: x[viewPtr], tape: t}
	rest := x[others:]
	if in.host.Asymmetric {
		b.Adj.T = &backend.CSR{Rows: n, Cols: n, Ptr: rest[0], Col: rest[1]}
		rest = rest[2:]
	}
	b.viewGraphs = x[viewGraphs]
	if in.normal[0] != nil {
		take := func(val *tensor.Tensor) *backend.CSR {
			c := &backend.CSR{Rows: n, Cols: n, Ptr: rest[0], Col: rest[1], Val: val}
			rest = rest[2:]
			return c
		}
		a := take(in.normal[0])
		b.normalized = &autodiff.Sparse{A: a, T: a}
		if in.host.Asymmetric {
			b.normalized.T = take(in.normal[1])
		}
	}
	if in.edges != nil {
		b.edges, b.edgesOf = t.Const(in.edges), in.labels.name
	}
	if in.x != nil {
		b.x = t.Const(in.x)
	} else {
		b.category = rest[0]
		b.members = &backend.CSR{Rows: in.host.X.Width, Cols: n, Ptr: rest[1], Col: rest[2]}
	}
	return b
}

// Close gives the memory back.
func (in *Inputs) Close() {
	for _, x := range in.indices {
		in.be.FreeIndices(x)
	}
	if in.normal[1] != in.normal[0] {
		in.be.Free(in.normal[1])
	}
	for _, t := range []*tensor.Tensor{in.x, in.normal[0], in.edges} {
		if t != nil {
			in.be.Free(t)
		}
	}
	in.indices, in.x, in.normal, in.edges = nil, nil, [2]*tensor.Tensor{}, nil
}
