package main

import (
	"context"
	"fmt"

	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/gnn/dataset"
)

// isTable reports whether a set is one of MoleculeNet's, which are tables.
func isTable(name string) bool {
	_, err := dataset.MoleculeNetByName(name)
	return err == nil
}

// newMoleculeTable returns the table for the statistics of MoleculeNet's sets.
func newMoleculeTable() *table.Table {
	var columns []table.Column
	for _, name := range []string{"rows", "official", "dropped", "atoms", "bonds", "sizes", "tasks", "yes", "no", "missing", "scaffolds"} {
		columns = append(columns, table.Column{Name: name})
	}
	t := table.New("set", columns...)
	t.Caption = "Measured statistics of molecules; atoms and bonds are means, yes, no and missing count labels."
	return t
}

// addMolecules measures a set. The molecules that are dropped are named in footnotes.
func addMolecules(ctx context.Context, t *table.Table, dir, name string) error {
	set, err := dataset.MoleculeNetByName(name)
	if err != nil {
		return err
	}
	data, err := dataset.OpenMoleculeNet(ctx, dir, name)
	if err != nil {
		return err
	}
	rows := len(data.Graphs) + len(data.Dropped)
	title := name
	if rows != set.Rows {
		title += " †"
		t.Footnotes = append(t.Footnotes, fmt.Sprintf("† %s disagrees: %d rows, official %d", name, rows, set.Rows))
	}
	labels := map[int8]int{}
	for _, l := range data.Labels {
		labels[l]++
	}
	scaffolds := 0
	for _, s := range data.Scaffolds {
		scaffolds = max(scaffolds, s+1)
	}
	s := dataset.Stats(&dataset.Dataset{Graphs: data.Graphs, Classes: 1})
	t.Add(title, integer(rows), integer(set.Rows), integer(len(data.Dropped)), table.Number(s.MeanNodes(), 2), table.Number(s.MeanEdges(), 2),
		table.Text(fmt.Sprintf("%d–%d", s.MinNodes, s.MaxNodes)), integer(len(data.Tasks)),
		integer(labels[1]), integer(labels[-1]), integer(labels[0]), integer(scaffolds))
	for _, d := range data.Dropped {
		t.Footnotes = append(t.Footnotes, fmt.Sprintf("dropped: %v", d))
	}
	if rows != set.Rows {
		return fmt.Errorf("the statistics are not the official ones: %d rows, official %d", rows, set.Rows)
	}
	return nil
}
