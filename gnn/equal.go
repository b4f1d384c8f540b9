package gnn

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// This file computes a layer once for all nodes that it cannot tell apart. Nodes that
// have one color after l rounds of the Weisfeiler-Lehman refinement have equal rows
// after l layers (Morris et al. 2019, Xu et al. 2019), in training as well, since batch
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

// colors are the rows of a layer on an engine; see [graph.ColorLayer].
type colors struct {
	*graph.ColorLayer
	weights *tensor.Tensor   // [C×1]
	views   *backend.Indices // delimits the colors of each view
	before  *backend.Indices
	after   *backend.CSR // the transpose of before
	sources *autodiff.Sparse
}

// colorLayers returns the colors of the nodes before the first layer and after the
// layers that follow, rounds at the most, as long as there are few enough, and with them
// the last color of every node. The result is empty if the engine has no weighted batch
// norm, or if it records.
func (b *Batch) colorLayers(sight graph.Sight, rounds int) (layers []*colors, last []int32) {
	if b.tape.Fused().WeightedNorm == nil || b.fixed {
		return nil, nil
	}
	of := byColor[sight]
	of.Rounds = rounds
	host, last := b.Host.ColorLayers(of)
	for k, h := range host {
		if k > 0 && h == host[k-1] {
			layers = append(layers, layers[k-1])
			continue
		}
		l := &colors{ColorLayer: h, weights: b.tape.Matrix(len(h.Weight), 1, h.Weight).Value()}
		views := make([]int32, 0, b.ViewPtr.Len())
		for _, end := range b.ViewPtr.Host {
			c, _ := slices.BinarySearch(h.Node, end)
			views = append(views, int32(c))
		}
		l.views = b.tape.Indices(views)
		if k > 0 {
			rows, from := len(h.Node), len(host[k-1].Node)
			l.sources = &autodiff.Sparse{A: b.weighted(rows, from, h.Sources), T: b.weighted(from, rows, h.Transpose)}
			if !h.Same {
				l.before, l.after = b.choices(h.Before, from)
			}
		}
		layers = append(layers, l)
	}
	return layers, last
}

// choices puts the indices of [autodiff.Var.GatherRowsOf] on the engine, with their
// transpose.
func (b *Batch) choices(idx []int32, n int) (*backend.Indices, *backend.CSR) {
	ptr, col := backend.Members(nil, nil, idx, n)
	t := b.tape
	return t.Indices(idx), &backend.CSR{Rows: n, Cols: len(idx), Ptr: t.Indices(ptr), Col: t.Indices(col)}
}

// toNodes returns the matrix that has for every node the row of its color.
func (b *Batch) toNodes(x *autodiff.Var, color []int32) *autodiff.Var {
	if x.Rows() == len(color) { // each has its own
		return x
	}
	idx, members := b.choices(color, x.Rows())
	return x.GatherRowsOf(idx, members)
}

// norm is batch norm of rows x for the colors.
func (l *colors) norm(b *Batch, n *nn.BatchNorm, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	return n.ForwardWeighted(x, l.views, l.weights, b.ViewPtr, mode)
}

// featuresOf returns the rows of Features of some nodes.
func (b *Batch) featuresOf(nodes []int32) *autodiff.Var {
	features := &b.Host.X
	if features.Dense == nil {
		return b.oneHot(b.tape.Indices(b.categoriesOf(nodes)))
	}
	w := features.Width
	rows := make([]float32, 0, len(nodes)*w)
	for _, i := range nodes {
		rows = append(rows, features.Dense[int(i)*w:][:w]...)
	}
	x := b.tape.Alloc(len(nodes), w)
	b.tape.Backend().Upload32(x, rows)
	return b.tape.Const(x)
}

// categoriesOf returns the categories of some nodes, of one-hot features.
func (b *Batch) categoriesOf(nodes []int32) []int32 {
	category := make([]int32, len(nodes))
	for k, i := range nodes {
		category[k] = b.Host.X.Category[i]
	}
	return category
}

// oneHot returns the matrix whose rows are those of the identity with the numbers.
func (b *Batch) oneHot(category *backend.Indices) *autodiff.Var {
	be, w := b.tape.Backend(), b.Host.X.Width
	identity, x := b.tape.Alloc(w, w), b.tape.Alloc(category.Len(), w)
	be.Fill(identity, 0)
	be.FillDiagonal(identity, 1)
	be.GatherRows(x, identity, category)
	return b.tape.Const(x)
}
