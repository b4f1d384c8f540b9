package plan

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// ChemGIN runs the layers of a ChemGIN on colors where there are few, up to the first
// dropout. It also joins message passing to one call of the engine, and the bias before a
// batch norm and the ReLU behind it to the norm.
type ChemGIN struct {
	// Atoms returns the rows before the first layer of nodes with the given categories.
	Atoms func(t *autodiff.Tape, categories []int32) *autodiff.Var
	// BatchAtoms returns the rows of all nodes of the batch.
	BatchAtoms func() *autodiff.Var
	// EdgeCounts returns how often each label of an edge occurs at a node [N×K].
	EdgeCounts func() *autodiff.Var
	MLPs       []*nn.MLP
	// Tables holds the embeddings of edges of each layer.
	Tables [][]*nn.Embedding
	Norms  []*nn.BatchNorm
	Drops  []*nn.Dropout
}

// Layers implements [Plan].
func (g ChemGIN) Layers(b *Batch, mode nn.Mode, wanted []int, _ bool) (layers []Layer) {
	engine := b.Tape.Fused()
	if engine.Norm == nil && engine.Messages == nil {
		return nil
	}
	count := len(g.MLPs)
	if mode == nn.Train && g.Drops[0].P > 0 {
		count = 1 // equal nodes differ after dropout
	}
	r := rowsOf(b, graph.Labelled, count)
	if r.color != nil { // nothing is computed before the first layer
		r = r.next
	}
	var x *autodiff.Var
	if r.first == nil {
		x = g.BatchAtoms()
	} else {
		x = g.Atoms(b.Tape, r.categories())
	}
	for l := range g.MLPs {
		r, x = r.next.expand(g.layer(l, r.next, x, mode))
		x = g.Drops[l].Forward(x, mode)
		if slices.Contains(wanted, l+1) {
			layers = append(layers, Layer{Nodes: r.nodes(x)})
		}
	}
	return layers
}

// layer returns the rows r of the result of layer l before dropout; x is the input.
func (g ChemGIN) layer(l int, r *rows, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	t := x.Tape()
	tables := g.edgeTables(t, l)
	adjacency, self := r.neighbours()
	counts := r.ofNodes(g.EdgeCounts())
	if t.Fused().Messages != nil {
		x = Messages(x, adjacency, self, counts, tables)
	} else {
		x = x.SpMM(adjacency, self).Add(counts.MatMul(autodiff.ConcatRows(tables...)))
	}
	first := g.MLPs[l].Layers[0]
	second := g.MLPs[l].Layers[1]
	norm := r.norm()
	norm.Bias = t.Param(second.B)
	norm.ReLU = l < len(g.MLPs)-1
	x = first.ForwardReLU(x).MatMul(t.Param(second.W))
	return g.Norms[l].ForwardNorm(x, norm, r.batch.Views, mode)
}

// edgeTables returns the tables of layer l on a tape.
func (g ChemGIN) edgeTables(t *autodiff.Tape, l int) (tables []*autodiff.Var) {
	for _, e := range g.Tables[l] {
		tables = append(tables, t.Param(e.Table))
	}
	return tables
}
