package gnn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn/internal/plan"
)

// This file hands the encoders and their batches to package plan, which computes layers
// faster than their definitions. Nothing here is needed to understand an encoder.

// forPlans returns the batch as plans read it.
func (b *Batch) forPlans() *plan.Batch {
	return &plan.Batch{
		Tape:       b.tape,
		Host:       b.Host,
		Adjacency:  b.Adj,
		Graphs:     b.GraphPtr,
		Views:      b.ViewNodes,
		Recorded:   b.recorded,
		Replaced:   b.replaced,
		Features:   b.Features,
		Categories: b.categories,
		Members:    b.members,
		Normalized: b.Normalized,
	}
}

func (g *GIN) plan(*Batch) plan.Plan {
	p := plan.GIN{Norms: g.Norms}
	for _, conv := range g.Convs {
		p.MLPs = append(p.MLPs, conv.MLP)
		p.Eps = append(p.Eps, conv.Eps)
	}
	return p
}

func (g *ResGCN) plan(*Batch) plan.Plan {
	p := plan.ResGCN{
		FeatureNorm: g.FeatureNorm,
		Feature:     g.Feature,
		Norms:       g.Norms,
		Residual:    g.Config.Residual,
	}
	for _, conv := range g.Convs {
		p.Convs = append(p.Convs, conv.Linear)
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
