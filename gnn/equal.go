package gnn

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// This file may be skipped: it computes a layer once for all nodes that it cannot tell
// apart, which is faster and changes no result beyond rounding. Encoders ask for the rows of
// their layers (rowsOf); without this file each row would be a node.
//
// Nodes that have one color after l rounds of the Weisfeiler-Lehman refinement have equal
// rows after l layers (Morris et al. 2019, Xu et al. 2019), in training as well, since batch
// norm depends on the rows of the batch, not on their order. So the rows of layer l are
// its colors, and sums over nodes count each color as often as it has nodes. Bollen,
// Steegmans, Van den Bussche and Vansummeren (2023) compress a graph once for all
// layers; by layer, and over the graphs of a batch, the first layers have few rows on
// graphs of any kind.

// byColor are the layers that are worth it: one of a ResGCN on whole graphs is a fused
// call, and cheaper by row; one of a ChemGIN is not. A ResGCN multiplies by its weights
// before it sums over neighbours, so a layer that leaves the colors still gains.
var byColor = map[graph.Sight]graph.Layering{
	graph.Normalized: {Sight: graph.Normalized, Share: 0.8, Leave: 0.4},
	graph.Labelled:   {Sight: graph.Labelled, Share: 0.95},
}

// rows are what the rows of a matrix between two layers are: the nodes of a batch, or
// colors of them.
type rows struct {
	b       *Batch
	sight   graph.Sight      // what layers see of neighbours
	next    *rows            // those after the next layer: of nodes, nodes again
	node    []int32          // [C] the first node of each color; nil for nodes
	groups  *backend.Indices // delimits the rows of each view
	weights *tensor.Tensor   // [C×1] how many nodes have the color; nil for nodes
	// Of colors after a layer: the sum over neighbours of the rows before it; and which of
	// those each was, nil if they are the same.
	sources *autodiff.Sparse
	before  []int32
	// color [N] of every node, where the next layer is one of nodes again, else nil.
	color []int32
}

// rowsOf returns the rows before the first of so many layers: colors for as long as they are
// few enough, then nodes. They are all nodes if the engine's batch norm takes no weights, or
// the step is recorded.
func (b *Batch) rowsOf(sight graph.Sight, layers int) *rows {
	var colors []*graph.ColorLayer
	var color []int32
	if norm := b.tape.Fused().Norm; norm != nil && !b.fixed {
		if _, weights := norm.NormOperands(); weights && !b.given {
			how := byColor[sight]
			how.Rounds = layers
			colors, color = b.Host.ColorLayers(how)
		}
	}
	nodes := &rows{b: b, sight: sight, groups: b.ViewNodes}
	nodes.next = nodes
	all := []*rows{}
	for k, c := range colors {
		if k > 0 && c == colors[k-1] {
			same := *all[k-1]
			all = append(all, &same)
		} else {
			all = append(all, b.colorRows(colors, k))
		}
	}
	for k, r := range all {
		if r.next = nodes; k+1 < len(all) {
			r.next = all[k+1]
		} else {
			r.color = color
		}
	}
	return append(all, nodes)[0]
}

// colorRows puts the colors of layer k on the engine.
func (b *Batch) colorRows(layers []*graph.ColorLayer, k int) *rows {
	c, t := layers[k], b.tape
	n := len(c.Node)
	r := &rows{b: b, node: c.Node, weights: t.Matrix(n, 1, c.Weight).Value()}
	views := make([]int32, 0, b.ViewNodes.Len())
	for _, end := range b.ViewNodes.Host {
		at, _ := slices.BinarySearch(c.Node, end)
		views = append(views, int32(at))
	}
	r.groups = t.Indices(views)
	if k > 0 {
		from := len(layers[k-1].Node)
		r.sources = &autodiff.Sparse{A: b.weighted(n, from, c.Sources), T: b.weighted(from, n, c.Transpose)}
		if !c.Same {
			r.before = c.Before
		}
	}
	return r
}

// norm says how batch norm sees the rows; it counts the rows of b.ViewNodes.
func (r *rows) norm() autodiff.Norm { return autodiff.Norm{Groups: r.groups, Weights: r.weights} }

// sum returns what [autodiff.Var.SpMM] of the rows before takes for the sum over neighbours.
func (r *rows) sum() (a *autodiff.Sparse, self float64) {
	switch {
	case r.node != nil:
		return r.sources, 0
	case r.sight == graph.Normalized:
		return r.b.Normalized(), 0
	}
	return r.b.Adj, 1
}

// settle ends a layer with the result x: where the next one is of nodes, it gives each node
// the row of its color. It returns the rows of the result too.
func (r *rows) settle(x *autodiff.Var) (*rows, *autodiff.Var) {
	if r.color == nil {
		return r, x
	}
	if x.Rows() < len(r.color) {
		x = x.GatherRows(r.color)
	}
	return r.next, x
}

// carry returns for each row that of x, the rows before the layer, which it was then.
func (r *rows) carry(x *autodiff.Var) *autodiff.Var {
	if r.before != nil {
		x = x.GatherRows(r.before)
	}
	return x
}

// nodes returns for every node the row of x, which has those of r.
func (r *rows) nodes(x *autodiff.Var) *autodiff.Var {
	if r.node == nil {
		return x
	}
	return x.GatherRows(r.colors())
}

// colors returns the color [N] of every node.
func (r *rows) colors() []int32 {
	if r.color != nil {
		return r.color
	}
	finer, before := r.next.colors(), r.next.before
	if before == nil {
		return finer
	}
	all := make([]int32, len(finer))
	for i, c := range finer {
		all[i] = before[c]
	}
	return all
}

// features returns the rows of [Batch.Features].
func (r *rows) features() *autodiff.Var {
	b, features := r.b, &r.b.Host.X
	switch {
	case r.node == nil:
		return b.Features()
	case features.Dense == nil:
		return b.oneHot(b.tape.Indices(r.categories()))
	}
	w := features.Width
	values := make([]float32, 0, len(r.node)*w)
	for _, i := range r.node {
		values = append(values, features.Dense[int(i)*w:][:w]...)
	}
	return b.upload(len(r.node), w, values)
}

func (r *rows) categories() []int32 {
	if r.node == nil {
		return r.b.Host.X.Category[:r.b.Host.Nodes()]
	}
	category := make([]int32, len(r.node))
	for k, i := range r.node {
		category[k] = r.b.Host.X.Category[i]
	}
	return category
}

// choose is [Batch.choose] for the rows.
func (r *rows) choose(table *autodiff.Var) *autodiff.Var {
	if r.node == nil {
		return r.b.choose(table)
	}
	return table.GatherRows(r.categories())
}

// edgeCounts returns the rows of [Batch.EdgeCounts].
func (r *rows) edgeCounts(l EdgeLabels) *autodiff.Var {
	if r.node == nil {
		return r.b.EdgeCounts(l)
	}
	return r.b.EdgeCounts(l).GatherRows(r.node)
}
