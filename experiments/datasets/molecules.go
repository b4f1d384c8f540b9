package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
)

// isTable reports whether a set is one of MoleculeNet's, which are tables.
func isTable(name string) bool {
	_, err := moleculenet.ByName(name)
	return err == nil
}

// newMoleculeTable returns the table for the statistics of MoleculeNet's sets.
func newMoleculeTable() *table.Table {
	t := table.New("set", table.Names("rows", "official", "dropped", "atoms", "bonds", "sizes", "tasks", "yes", "no", "missing", "scaffolds")...)
	t.Caption = "Measured statistics of molecules; atoms and bonds are means, yes, no and missing count labels."
	return t
}

// addMolecules measures a set. The molecules that are dropped are named in footnotes.
func addMolecules(ctx context.Context, t *table.Table, dir, name string) error {
	set, err := moleculenet.ByName(name)
	if err != nil {
		return err
	}
	data, err := moleculenet.Open(ctx, dir, name)
	if err != nil {
		return err
	}
	rows := len(data.Graphs) + len(data.Dropped)
	var wrong []string
	if rows != set.Rows {
		wrong = []string{fmt.Sprintf("%d rows, official %d", rows, set.Rows)}
	}
	title, err := compared(t, name, wrong)
	labels := map[int8]int{}
	for _, l := range data.Labels {
		labels[l]++
	}
	scaffolds := len(slices.Compact(slices.Sorted(slices.Values(data.Scaffolds))))
	s := dataset.Stats(&dataset.Dataset{Graphs: data.Graphs, Classes: 1})
	t.Add(title, integer(rows), integer(set.Rows), integer(len(data.Dropped)), table.Number(s.MeanNodes(), 2), table.Number(s.MeanEdges(), 2),
		table.Text(fmt.Sprintf("%d–%d", s.MinNodes, s.MaxNodes)), integer(len(data.Tasks)),
		integer(labels[1]), integer(labels[-1]), integer(labels[0]), integer(scaffolds))
	for _, d := range data.Dropped {
		t.Footnotes = append(t.Footnotes, fmt.Sprintf("dropped: %v", d))
	}
	return err
}

// halves returns the molecules of the table name.csv or name.csv.gz in dir as graphs of
// two classes: 0 where a column of numbers is below its median (of an even number of
// rows the upper one), 1 elsewhere. Nodes are labelled by element, from 0 in the
// order of the atomic numbers that occur; bonds are not labelled. Rows without a
// usable molecule or number are left out.
func halves(ctx context.Context, dir, name, column string) (*dataset.Dataset, error) {
	path := filepath.Join(dir, name+".csv")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path += ".gz"
	}
	table, err := records.ReadAll(ctx, path, records.Options{Want: records.Molecules, Fields: []string{column}})
	if err != nil {
		return nil, err
	}
	var values []float64
	ds := &dataset.Dataset{Name: name, Classes: 2, ClassValues: []int{0, 1}}
	category := map[int32]int32{} // by atomic number less 1
	for _, r := range table.Records {
		v, err := strconv.ParseFloat(r.Fields[0], 64)
		if err != nil || math.IsNaN(v) {
			continue
		}
		for i, c := range r.Graph.X.Category {
			r.Graph.X.Category[i] = c / graph.ChiralityTags
			category[c/graph.ChiralityTags] = 0
		}
		r.Graph.EdgeLabel = nil
		values, ds.Graphs = append(values, v), append(ds.Graphs, r.Graph)
	}
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 || sorted[0] == sorted[len(sorted)-1] {
		return nil, fmt.Errorf("%s: the numbers of column %q do not fall into halves", path, column)
	}
	for z := range int32(graph.AtomTypes) {
		if _, ok := category[z]; ok {
			category[z] = int32(ds.FeatureWidth)
			ds.FeatureWidth++
		}
	}
	ds.NodeLabels = []dataset.LabelColumn{{Width: ds.FeatureWidth, Distinct: ds.FeatureWidth}}
	for k, g := range ds.Graphs {
		g.X.Width = ds.FeatureWidth
		for i, z := range g.X.Category {
			g.X.Category[i] = category[z]
		}
		if g.Class = 0; values[k] >= sorted[len(sorted)/2] {
			g.Class = 1
		}
	}
	return ds, nil
}
