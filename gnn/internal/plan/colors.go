package plan

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// This file lets a layer compute one row for all nodes that it cannot tell apart.
//
// Nodes that have one color after l rounds of the Weisfeiler-Lehman refinement have equal
// rows after l layers (Morris et al. 2019, Xu et al. 2019). This also holds in training,
// because batch norm depends on the rows of the batch and not on their order. So the rows
// of layer l are its colors, and sums over nodes count each color as often as it has nodes.
// Bollen, Steegmans, Van den Bussche and Vansummeren (2023) compress a graph once for all
// layers. Here each layer has its own colors, over all graphs of a batch, so that the first
// layers have few rows on graphs of any kind.

// layerings says, for each kind of encoder, up to which share of colors a layer runs on
// colors. A ResGCN layer on nodes is one fused call, which is cheaper by row; a ChemGIN
// layer is not. A ResGCN multiplies by its weights before it sums over neighbours, so the
// layer that goes from colors back to nodes still gains.
var layerings = map[graph.Sight]graph.Layering{
	graph.Normalized: {Sight: graph.Normalized, Share: 0.8, Leave: 0.4},
	graph.Labelled:   {Sight: graph.Labelled, Share: 0.95},
}

// rows says what the rows of a matrix between two layers stand for: the nodes of a batch,
// or colors of them.
type rows struct {
	batch   *Batch
	sight   graph.Sight      // what layers see of neighbours
	next    *rows            // the rows after the next layer; for nodes, nodes again
	first   []int32          // [C] the first node of each color; nil for nodes
	groups  *backend.Indices // delimits the rows of each view
	weights *tensor.Tensor   // [C×1] the number of nodes of each color; nil for nodes
	// sources sums the rows before the layer over the neighbours of a color. before [C] is
	// the row before the layer that each color refines; nil if the colors are the same.
	sources *autodiff.Sparse
	before  []int32
	// color [N] is the color of every node, if the next layer has nodes again; else nil.
	color []int32
}

// rowsOf returns the rows before the first of the given number of layers: colors while
// they are few enough, then nodes. All rows are nodes if the engine's batch norm takes no
// weights or the step is recorded.
func rowsOf(b *Batch, sight graph.Sight, layers int) *rows {
	var colors []*graph.ColorLayer
	var color []int32
	if takesWeights(b.Tape) && !b.Recorded && !b.Replaced {
		layering := layerings[sight]
		layering.Rounds = layers
		colors, color = b.Host.ColorLayers(layering)
	}
	nodes := &rows{batch: b, sight: sight, groups: b.Views}
	nodes.next = nodes
	var chain []*rows
	for k, c := range colors {
		if k > 0 && c == colors[k-1] {
			same := *chain[k-1]
			chain = append(chain, &same)
		} else {
			chain = append(chain, colorRows(b, colors, k))
		}
	}
	chain = append(chain, nodes)
	for k, r := range chain[:len(colors)] {
		r.next = chain[k+1]
	}
	if n := len(colors); n > 0 {
		chain[n-1].color = color
	}
	return chain[0]
}

// takesWeights reports whether the engine's fused batch norm takes weights of rows.
func takesWeights(t *autodiff.Tape) bool {
	norm := t.Fused().Norm
	if norm == nil {
		return false
	}
	_, weights := norm.NormOperands()
	return weights
}

// colorRows puts the colors of layer k on the engine.
func colorRows(b *Batch, layers []*graph.ColorLayer, k int) *rows {
	c := layers[k]
	t := b.Tape
	count := len(c.Node)
	r := &rows{batch: b, first: c.Node, weights: t.Matrix(count, 1, c.Weight).Value()}
	// Colors are in the order of their first nodes, so those of a view are adjacent.
	views := make([]int32, 0, b.Views.Len())
	for _, end := range b.Views.Host {
		position, _ := slices.BinarySearch(c.Node, end)
		views = append(views, int32(position))
	}
	r.groups = t.Indices(views)
	if k > 0 {
		previous := len(layers[k-1].Node)
		r.sources = &autodiff.Sparse{
			A: b.weighted(count, previous, c.Sources),
			T: b.weighted(previous, count, c.Transpose),
		}
		if !c.Same {
			r.before = c.Before
		}
	}
	return r
}

// norm returns how batch norm sees the rows; it counts the rows of Batch.Views.
func (r *rows) norm() autodiff.Norm {
	return autodiff.Norm{Groups: r.groups, Weights: r.weights}
}

// neighbours returns the arguments of [autodiff.Var.SpMM] that sum the rows before the layer
// over neighbours.
func (r *rows) neighbours() (a *autodiff.Sparse, self float64) {
	switch {
	case r.first != nil:
		return r.sources, 0
	case r.sight == graph.Normalized:
		return r.batch.Normalized(), 0
	}
	return r.batch.Adjacency, 1
}

// expand ends a layer with the result x. Where the next layer has nodes as rows, it gives
// each node the row of its color. It returns what the rows of the new x stand for, too.
func (r *rows) expand(x *autodiff.Var) (*rows, *autodiff.Var) {
	if r.color == nil {
		return r, x
	}
	if x.Rows() < len(r.color) {
		x = x.GatherRows(r.color)
	}
	return r.next, x
}

// refine returns, for each row, the row of x before the layer that it refines.
func (r *rows) refine(x *autodiff.Var) *autodiff.Var {
	if r.before != nil {
		x = x.GatherRows(r.before)
	}
	return x
}

// nodes returns the row of every node [N×F] for x, whose rows are r.
func (r *rows) nodes(x *autodiff.Var) *autodiff.Var {
	if r.first == nil {
		return x
	}
	return x.GatherRows(r.colors())
}

// colors returns the color [N] of every node.
func (r *rows) colors() []int32 {
	if r.color != nil {
		return r.color
	}
	finer := r.next.colors()
	before := r.next.before
	if before == nil {
		return finer
	}
	coarser := make([]int32, len(finer))
	for i, c := range finer {
		coarser[i] = before[c]
	}
	return coarser
}

// features returns the rows of Batch.Features.
func (r *rows) features() *autodiff.Var {
	b := r.batch
	features := &r.batch.Host.X
	switch {
	case r.first == nil:
		return b.Features()
	case features.Dense == nil && features.Width > WidestIdentity:
		return b.Tape.Const(WideOneHot(b.Tape, r.categories(), features.Width))
	case features.Dense == nil:
		return b.Tape.Const(OneHot(b.Tape, b.Tape.Indices(r.categories()), features.Width))
	}
	width := features.Width
	values := make([]float32, 0, len(r.first)*width)
	for _, i := range r.first {
		values = append(values, features.Dense[int(i)*width:][:width]...)
	}
	return b.values(len(r.first), width, values)
}

// categories returns the categories of rows that are colors.
func (r *rows) categories() []int32 {
	categories := make([]int32, len(r.first))
	for k, i := range r.first {
		categories[k] = r.batch.Host.X.Category[i]
	}
	return categories
}

// ofNodes returns the rows of x, in which each node has a row that is equal for nodes of one color.
func (r *rows) ofNodes(x *autodiff.Var) *autodiff.Var {
	if r.first == nil {
		return x
	}
	return x.GatherRows(r.first)
}

// ColorCounts returns how many rows each layer on colors has, of the given number.
func (b *Batch) ColorCounts(sight graph.Sight, layers int) (counts []int) {
	for r := rowsOf(b, sight, layers); r != nil && r.first != nil; r = r.next {
		counts = append(counts, len(r.first))
	}
	return counts
}

// WidestIdentity bounds the width of [OneHot], which makes a square of it.
const WidestIdentity = 4096

// OneHot returns the matrix [N×width] whose row i has a one in column categories[i], on the engine alone.
func OneHot(t *autodiff.Tape, categories *backend.Indices, width int) *tensor.Tensor {
	be := t.Backend()
	identity := t.Alloc(width, width)
	x := t.Alloc(categories.Len(), width)
	be.Fill(identity, 0)
	be.FillDiagonal(identity, 1)
	be.GatherRows(x, identity, categories)
	return x
}

// WideOneHot is [OneHot] without the square, for categories that the host knows.
func WideOneHot(t *autodiff.Tape, categories []int32, width int) *tensor.Tensor {
	x := t.Alloc(len(categories), width)
	t.Backend().Upload32(x, graph.AppendOneHot(nil, categories, width))
	return x
}
