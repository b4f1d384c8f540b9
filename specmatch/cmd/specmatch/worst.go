package main

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/report"
)

// worst returns the predictions with the largest errors, of different molecules, with drawings for the report.
func (x *tuning) worst(
	ctx context.Context, m *model.Trained, predictions finetune.Predictions,
) (cases []report.Case, err error) {
	errs := predictions.Errors()
	var order []int
	for k, e := range errs {
		if !math.IsNaN(e) {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(errs[b], errs[a])
	})
	explainer, err := apply.NewExplainer(m)
	if err != nil {
		return nil, err
	}
	columns := x.examples.Head.Columns()
	var ordered []report.Case
	for _, k := range order {
		i, _, _ := predictions.Row(k)
		record := x.examples.Records[i]
		ordered = append(ordered, report.Case{ID: record.ID, SMILES: record.SMILES})
	}
	for _, position := range report.Different(ordered, report.MostCases) {
		k := order[position]
		i, values, output := predictions.Row(k)
		record := x.examples.Records[i]
		c := report.Case{
			ID:        record.ID,
			SMILES:    record.SMILES,
			Standard:  x.examples.Set.Standard,
			Error:     errs[k],
			Of:        columns[output],
			Predicted: values[output],
			Observed:  record.Fields[0],
		}
		if x.examples.Kind != model.Classes {
			c.Observed = record.Fields[output]
		}
		if g := x.examples.Set.Graphs[i]; g.Nodes() <= report.LargestDrawing {
			mol := x.parse(c.SMILES, g)
			contributions, err := explainer.Explain(ctx, g, mol)
			if err != nil {
				return nil, err
			}
			for v := range g.Nodes() {
				c.Values = append(c.Values, float64(float32(contributions.Parts[v*len(values)+output])))
			}
			if mol == nil {
				c.Edges = edgesOf(g)
			}
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// parse returns the molecule of a SMILES whose graph is g; nil if there is none.
func (x *tuning) parse(smiles string, g *graph.Graph) *molecule.Molecule {
	parser := molecule.Parser{Standard: x.examples.Set.Standard}
	mol, err := parser.Parse(smiles)
	if err != nil || len(mol.Atoms) != g.Nodes() {
		return nil
	}
	return mol
}

// edgesOf returns the pairs of nodes of a graph that edges join.
func edgesOf(g *graph.Graph) (edges [][2]int) {
	for v := range g.Nodes() {
		for _, j := range g.Neighbors(v) {
			if int(j) < v || g.Directed && !g.HasEdge(v, int(j)) {
				edges = append(edges, [2]int{int(j), v})
			}
		}
	}
	return edges
}
