package gnn

import (
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

// maxShare is the share of colors among the nodes beyond which layers run on nodes,
// which blocks of whole graphs make cheaper a row.
const maxShare = 0.8

// colors are the rows of a layer.
type colors struct {
	node    []int32          // a node of each color
	weights *tensor.Tensor   // [C×1], how many nodes have the color
	views   *backend.Indices // delimits the colors of each view

	// From the colors before: the color that each one was, nil if these are the same, and
	// Σ over neighbours.
	before  *backend.Indices
	after   *backend.CSR // the transpose of before
	sources *autodiff.Sparse
}

// colorLayers returns the colors of the nodes before the first layer and after the
// layers that follow, rounds at the most, as long as there are few enough, and with them
// the last color of every node. A layer sums over neighbours by Â of [Batch.Normalized].
// The result is empty if the engine has no weighted batch norm, or if it records.
func (b *Batch) colorLayers(rounds int) (layers []*colors, last []int32) {
	n := b.Host.Nodes()
	if b.tape.Fused().WeightedNorm == nil || b.fixed || n == 0 {
		return nil, nil
	}
	m, _ := b.Host.Normalized()
	// Â_ij = r_i·r_j: nodes of one color have equal r, and r² is the diagonal, which
	// comes first in its row.
	diagonal := make([]float64, n)
	for i := range diagonal {
		diagonal[i] = m.Val[m.Ptr[i]]
	}
	var c graph.Colors
	own, next := make([]int32, n), make([]int32, n)
	c.Begin(n / 4)
	c.Features(own, b.Host, diagonal)
	for count := c.Len(); float64(count) <= maxShare*float64(n); {
		layer := b.colorsOf(own, count)
		if len(layers) > 0 {
			b.connect(layer, layers[len(layers)-1], last, m)
		}
		layers, last = append(layers, layer), own
		if len(layers) > rounds {
			break
		}
		c.Begin(2 * count)
		c.Refine(next, own, count, m.Ptr, m.Col)
		if c.Len() == count { // so it will be after every round
			same := &colors{node: layer.node, weights: layer.weights, views: layer.views}
			b.connect(same, layer, own, m)
			same.before = nil
			for len(layers) <= rounds {
				layers = append(layers, same)
			}
			break
		}
		own, next, count = next, make([]int32, n), c.Len()
	}
	return layers, last
}

// colorsOf takes the nodes together whose colors, numbers below count, are equal.
func (b *Batch) colorsOf(color []int32, count int) *colors {
	l := &colors{node: make([]int32, 0, count)}
	weights, views := make([]float64, count), make([]int32, 1, b.ViewPtr.Len())
	view := 1
	for i, c := range color {
		for int(b.ViewPtr.Host[view]) <= i {
			views = append(views, int32(len(l.node)))
			view++
		}
		if int(c) == len(l.node) {
			l.node = append(l.node, int32(i))
		}
		weights[c]++
	}
	for len(views) < b.ViewPtr.Len() {
		views = append(views, int32(count))
	}
	l.weights, l.views = b.tape.Matrix(count, 1, weights).Value(), b.tape.Indices(views)
	return l
}

// connect sets how the layer l follows from another, of which row color[i] is node i's.
func (b *Batch) connect(l, from *colors, color []int32, m graph.Weighted) {
	rows, count := len(l.node), len(from.node)
	before := make([]int32, rows)
	ptr, col, val := make([]int32, 1, rows+1), make([]int32, 0, 4*rows), make([]float64, 0, 4*rows)
	at := make([]int, count) // where a color's entry in the last row that has it ends
	for r, i := range l.node {
		before[r] = color[i]
		start := len(col)
		for e := m.Ptr[i]; e < m.Ptr[i+1]; e++ {
			c := color[m.Col[e]]
			if at[c] <= start {
				col, val = append(col, c), append(val, 0)
				at[c] = len(col)
			}
			val[at[c]-1] += m.Val[e]
		}
		ptr = append(ptr, int32(len(col)))
	}
	t := b.tape
	put := func(rows, cols int, ptr, col []int32, val []float64) *backend.CSR {
		return &backend.CSR{Rows: rows, Cols: cols, Ptr: t.Indices(ptr), Col: t.Indices(col), Val: t.Matrix(len(val), 1, val).Value()}
	}
	l.sources = &autodiff.Sparse{A: put(rows, count, ptr, col, val)}
	tptr, order := backend.Members(nil, nil, col, count)
	tcol, tval := make([]int32, len(col)), make([]float64, len(col))
	row := int32(0)
	rowOf := make([]int32, len(col))
	for e := range col {
		for int(ptr[row+1]) <= e {
			row++
		}
		rowOf[e] = row
	}
	for k, e := range order {
		tcol[k], tval[k] = rowOf[e], val[e]
	}
	l.sources.T = put(count, rows, tptr, tcol, tval)
	l.before, l.after = b.choices(before, count)
}

// choices puts the indices of [autodiff.Var.GatherRowsOf] on the engine, with their
// transpose.
func (b *Batch) choices(idx []int32, n int) (*backend.Indices, *backend.CSR) {
	ptr, col := backend.Members(nil, nil, idx, n)
	t := b.tape
	return t.Indices(idx), &backend.CSR{Rows: n, Cols: len(idx), Ptr: t.Indices(ptr), Col: t.Indices(col)}
}

// norm is batch norm of rows x for the colors.
func (l *colors) norm(b *Batch, n *nn.BatchNorm, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	return n.ForwardWeighted(x, l.views, l.weights, b.ViewPtr, mode)
}

// featuresOf returns the rows of Features of some nodes.
func (b *Batch) featuresOf(nodes []int32) *autodiff.Var {
	features := &b.Host.X
	if features.Dense == nil {
		category := make([]int32, len(nodes))
		for k, i := range nodes {
			category[k] = features.Category[i]
		}
		return b.oneHot(b.tape.Indices(category))
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

// oneHot returns the matrix whose rows are those of the identity with the numbers.
func (b *Batch) oneHot(category *backend.Indices) *autodiff.Var {
	be, w := b.tape.Backend(), b.Host.X.Width
	identity, x := b.tape.Alloc(w, w), b.tape.Alloc(category.Len(), w)
	be.Fill(identity, 0)
	be.FillDiagonal(identity, 1)
	be.GatherRows(x, identity, category)
	return b.tape.Const(x)
}
