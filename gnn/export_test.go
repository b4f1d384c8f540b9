package gnn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn/graph"
)

// GINLayer and GCNLayer are the operators behind the fused forms.
var (
	GINLayer = ginLayer
	GCNLayer = gcnLayer
)

// Embedded returns what the nodes of a batch are before the first layer.
func (g *ChemGIN) Embedded(b *Batch) *autodiff.Var {
	return g.embed(&rows{b: b})
}

// ColorRows returns how many rows the layers have that run on colors.
func (b *Batch) ColorRows(sight graph.Sight, rounds int) (rows []int) {
	for r := b.rowsOf(sight, rounds); r != nil && r.node != nil; r = r.next {
		rows = append(rows, len(r.node))
	}
	return rows
}
