package main

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/report"
)

// worstShown is how many of the worst predictions a report shows.
const worstShown = 10

// worst returns the predictions with the largest errors, with drawings for the report.
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
	columns := x.examples.Head.Columns()
	for _, k := range order[:min(worstShown, len(order))] {
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
			contributions, err := m.Explain(ctx, g)
			if err != nil {
				return nil, err
			}
			for v := range g.Nodes() {
				c.Values = append(c.Values, float64(float32(contributions[v*len(values)+output])))
			}
			x.draw(&c, g)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// bondOrders are the orders of bonds in a drawing; 1 for other bonds.
var bondOrders = map[molecule.BondType]int{molecule.Double: 2, molecule.Triple: 3, molecule.Aromatic: 4}

// draw adds the atoms and bonds of a molecule, or the edges of a graph, to a case.
func (x *tuning) draw(c *report.Case, g *graph.Graph) {
	parser := molecule.Parser{Standard: x.examples.Set.Standard}
	mol, err := parser.Parse(c.SMILES)
	if err == nil && len(mol.Atoms) == g.Nodes() {
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
