package gnn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Inputs is the memory from which a recorded step ([backend.Backend.Capture]) reads its
// batch. Batches are loaded into it one after the other and padded to its size
// ([graph.Batch.Pad]). Padding never affects a graph, and its gradients are zero.
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
	edges   *tensor.Tensor // counts of the labels, if wanted
}

// Reads implements [Encoder]: a GIN may read labels or weights of edges.
func (g *GIN) Reads() Reads { return g.Config.Readout.reads(Reads{Edges: g.edges().counts()}) }

// Reads implements [Encoder]: a ResGCN reads the normalised adjacency.
func (g *ResGCN) Reads() Reads { return g.Config.Readout.reads(Reads{Normalized: true}) }

// Reads implements [Encoder]: a ChemGIN reads the counts of the labels of bonds.
func (g *ChemGIN) Reads() Reads {
	labels := ColumnLabels(g.Columns.EdgeColumns())
	return g.Config.Readout.reads(Reads{Edges: labels, Host: g.tables == nil})
}

// Reads implements [Encoder]: a BioGIN reads the counts of the bits of the labels of edges, and with Center the host's
// places of graphs.
func (g *BioGIN) Reads() Reads {
	labels := BitLabels(EdgeBits, EdgeSelfLoop)
	return g.Config.Readout.reads(Reads{Edges: labels, Host: g.Config.Center && g.Config.Readout == ""})
}

// reads adds what a readout reads: the host takes part in finding maxima.
func (r Readout) reads(reads Reads) Reads {
	reads.Host = reads.Host || r.hasMax()
	return reads
}

// NewInputs allocates memory for batches like b, with at most the given numbers of nodes and
// of entries of Adj, and for the values that reads names. It loads b.
func NewInputs(be backend.Backend, b *graph.Batch, nodes, entries int, reads Reads) *Inputs {
	inputs := &Inputs{
		be:      be,
		nodes:   nodes,
		entries: entries,
		labels:  reads.Edges,
	}
	if reads.Normalized {
		inputs.normal[0] = be.Alloc(entries+nodes, 1)
		inputs.normal[1] = inputs.normal[0]
		if b.Asymmetric {
			inputs.normal[1] = be.Alloc(entries+nodes, 1)
		}
	}
	if inputs.labels.width > 0 {
		inputs.edges = be.Alloc(nodes, inputs.labels.width)
	}
	inputs.fill(b)
	inputs.indices = be.IndexBlock(inputs.hosts)
	if !b.X.OneHot() {
		inputs.x = be.Alloc(nodes, b.X.Width)
	}
	inputs.upload()
	return inputs
}

// upload moves everything except indices to the engine.
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

// Load replaces the batch by b. It panics unless b has the same number of graphs and
// of views and the same kind of features and edges, and fits into the size.
func (in *Inputs) Load(b *graph.Batch) {
	if b.Graphs() != in.host.Graphs() || b.Views() != in.host.Views() || b.X.Width != in.host.X.Width ||
		b.X.OneHot() != in.host.X.OneHot() || b.Asymmetric != in.host.Asymmetric {
		panic(fmt.Sprintf(
			"gnn: Inputs: Load of a batch of %d graphs in %d views (width %d, one-hot %v, "+
				"asymmetric %v) where %d in %d are wanted (%d, %v, %v)",
			b.Graphs(),
			b.Views(),
			b.X.Width,
			b.X.OneHot(),
			b.Asymmetric,
			in.host.Graphs(),
			in.host.Views(),
			in.host.X.Width,
			in.host.X.OneHot(),
			in.host.Asymmetric,
		))
	}
	in.fill(b)
	in.be.UpdateIndices(in.indices, in.hosts)
	in.upload()
}

// Positions of the index vectors in hosts. From others on follow those that the batch has:
// the transposed adjacency, the normalised adjacency with its transpose, and the categories
// with their members.
const (
	rowPtr = iota
	columns
	graphPtr
	viewPtr
	viewGraphs
	others
)

func (in *Inputs) fill(b *graph.Batch) {
	b.Pad(&in.host, in.nodes, in.entries)
	in.views = in.views[:0]
	for _, g := range b.ViewPtr {
		in.views = append(in.views, b.GraphPtr[g])
	}
	in.hosts = append(
		in.hosts[:0], in.host.Ptr, in.host.Adj, in.host.GraphPtr, in.views, in.host.ViewPtr,
	)
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
		in.members[0], in.members[1] = backend.Members(
			in.members[0], in.members[1], in.host.X.Category, b.X.Width,
		)
		in.hosts = append(in.hosts, in.host.X.Category, in.members[0], in.members[1])
	}
}

// addNormal appends a normalised adjacency to hosts, padded, and sets values[k].
func (in *Inputs) addNormal(k int, m graph.Weighted) {
	col := m.Col
	n := in.entries + in.nodes
	for len(col) < n {
		col = append(col, 0)
	}
	in.values[k] = append(in.values[k][:0], m.Val...)
	for len(in.values[k]) < n {
		in.values[k] = append(in.values[k], 0)
	}
	in.hosts = append(in.hosts, m.Ptr, col)
}

// Batch returns the batch for the operators of a tape. In a recorded step they see
// the batch that is loaded when the step is replayed.
func (in *Inputs) Batch(t *autodiff.Tape) *Batch {
	n := in.nodes
	x := in.indices
	a := &backend.CSR{
		Rows: n,
		Cols: n,
		Ptr:  x[rowPtr],
		Col:  x[columns],
	}
	b := &Batch{
		Host:      &in.host,
		Adj:       &autodiff.Sparse{A: a, T: a},
		GraphPtr:  x[graphPtr],
		ViewNodes: x[viewPtr],
		tape:      t,
	}
	b.recorded = true
	b.viewGraphs = x[viewGraphs]
	optional := x[others:]
	nextCSR := func(val *tensor.Tensor) *backend.CSR {
		c := &backend.CSR{
			Rows: n,
			Cols: n,
			Ptr:  optional[0],
			Col:  optional[1],
			Val:  val,
		}
		optional = optional[2:]
		return c
	}
	if in.host.Asymmetric {
		b.Adj.T = nextCSR(nil)
	}
	if in.normal[0] != nil {
		a := nextCSR(in.normal[0])
		b.normalized = &autodiff.Sparse{A: a, T: a}
		if in.host.Asymmetric {
			b.normalized.T = nextCSR(in.normal[1])
		}
	}
	if in.edges != nil {
		b.edges = t.Const(in.edges)
		b.edgesOf = in.labels.name
	}
	if in.x != nil {
		b.x = t.Const(in.x)
	} else {
		b.category = optional[0]
		b.members = &backend.CSR{
			Rows: in.host.X.Width,
			Cols: n,
			Ptr:  optional[1],
			Col:  optional[2],
		}
	}
	return b
}

// Close frees the memory.
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
	in.indices = nil
	in.x = nil
	in.normal = [2]*tensor.Tensor{}
	in.edges = nil
}
