package gnn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/internal/plan"
)

// GINLayer and GCNLayer are the operators behind the fused forms.
var (
	GINLayer = plan.GINLayer
	GCNLayer = plan.GCNLayer
)

// Embedded returns what the nodes of a batch are before the first layer.
func (g *ChemGIN) Embedded(b *Batch) *autodiff.Var { return g.batchAtoms(b) }

// ColorRows returns how many rows the layers have that run on colors.
func (b *Batch) ColorRows(sight graph.Sight, rounds int) (rows []int) {
	return b.forPlans().ColorCounts(sight, rounds)
}
