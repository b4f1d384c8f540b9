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
				c.Values = append(c.Values, float64(float32(contributions.Nodes[v*len(values)+output])))
			}
			draw(&c, g, mol)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// bondOrders are the orders of bonds in a drawing; 1 for other bonds.
var bondOrders = map[molecule.BondType]int{molecule.Double: 2, molecule.Triple: 3, molecule.Aromatic: 4}

// parse returns the molecule of a SMILES whose graph is g; nil if there is none.
func (x *tuning) parse(smiles string, g *graph.Graph) *molecule.Molecule {
	parser := molecule.Parser{Standard: x.examples.Set.Standard}
	mol, err := parser.Parse(smiles)
	if err != nil || len(mol.Atoms) != g.Nodes() {
		return nil
	}
	return mol
}

// draw adds the atoms and bonds of a molecule, or the edges of a graph without one, to a case.
func draw(c *report.Case, g *graph.Graph, mol *molecule.Molecule) {
	if mol != nil {
		for _, a := range mol.Atoms {
			c.Nodes = append(c.Nodes, molecule.Symbol(a.Z))
		}
		for _, b := range mol.Bonds {
			c.Edges = append(c.Edges, [3]int{int(b.Begin), int(b.End), max(bondOrders[b.Type], 1)})
		}
		return
	}
	for v := range g.Nodes() {
		for _, j := range g.Neighbors(v) {
			if int(j) < v || g.Directed && !g.HasEdge(v, int(j)) {
				c.Edges = append(c.Edges, [3]int{int(j), v, 1})
			}
		}
	}
}
