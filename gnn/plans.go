package gnn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/internal/plan"
)

// This file hands the encoders and their batches to package plan, which computes layers
// faster than their definitions. Nothing here is needed to understand an encoder.

// forPlans returns the batch as plans read it.
func (b *Batch) forPlans() *plan.Batch {
	b.plans = plan.Batch{
		Tape:      b.tape,
		Host:      b.Host,
		Adjacency: b.Adj,
		Graphs:    b.GraphPtr,
		Views:     b.ViewNodes,
		Recorded:  b.recorded,
		Replaced:  b.replaced,
		Members:   b.members,
		Values:    values{b},
	}
	return &b.plans
}

// values offers plans the values that a batch computes at their first use.
type values struct{ *Batch }

// Categories implements [plan.Values].
func (v values) Categories() *backend.Indices { return v.categories() }

func (g *GIN) plan(*Batch) plan.Plan {
	if g.edges() != (EdgeInput{}) {
		return nil
	}
	p := &plan.GIN{
		Convs: make([]plan.GINConv, len(g.Convs)),
		Norms: g.Norms,
	}
	for l, conv := range g.Convs {
		p.Convs[l] = plan.GINConv{MLP: conv.MLP, Eps: conv.Eps}
	}
	return p
}

func (g *ResGCN) plan(*Batch) plan.Plan {
	p := &plan.ResGCN{
		FeatureNorm: g.FeatureNorm,
		Feature:     g.Feature,
		Norms:       g.Norms,
		Convs:       make([]*nn.Linear, len(g.Convs)),
		Residual:    g.Config.Residual,
	}
	for l, conv := range g.Convs {
		p.Convs[l] = conv.Linear
	}
	return p
}

func (g *ChemGIN) plan(b *Batch) plan.Plan {
	p := g.chemPlan()
	p.Atoms = g.atomsOf
	p.BatchAtoms = func() *autodiff.Var { return g.batchAtoms(b) }
	p.EdgeCounts = func() *autodiff.Var {
		return b.EdgeCounts(ColumnLabels(g.Columns.EdgeColumns()))
	}
	return p
}

// chemPlan returns the plan without what it reads of a batch.
func (g *ChemGIN) chemPlan() plan.ChemGIN {
	p := plan.ChemGIN{Norms: g.Norms, Drops: g.Drops}
	for _, conv := range g.Convs {
		p.MLPs = append(p.MLPs, conv.MLP)
		p.Tables = append(p.Tables, conv.Tables)
	}
	return p
}

// newEnvironments returns the plan that caches rows, of about the given size.
func (g *ChemGIN) newEnvironments(bytes int) *plan.Environments {
	p := g.chemPlan()
	p.Atoms = func(t *autodiff.Tape, categories []int32) *autodiff.Var { // all different
		return g.sumTables(t, g.atomRows(categories, t.Indices))
	}
	wanted := []int{len(g.Convs)}
	if r := g.Config.Readout; r != "" {
		wanted, _ = r.mustParse(len(g.Convs))
	}
	return plan.NewEnvironments(p, g.Columns.EdgeColumns(), wanted, g.Config.Readout.hasMax(), bytes)
}
