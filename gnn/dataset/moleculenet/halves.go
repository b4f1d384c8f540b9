package moleculenet

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// Halves returns the molecules of the table name.csv or name.csv.gz in dir as graphs of
// two classes: 0 where a column of numbers is below its median (the upper one if the
// number of rows is even), 1 elsewhere. Nodes are labelled by element, numbered from 0 in
// the order of the atomic numbers that occur; bonds have no labels. Rows without a usable
// molecule or number are dropped.
func Halves(ctx context.Context, dir, name, column string) (*dataset.Dataset, error) {
	path, err := textfile.Find(dir, name+".csv", name+".csv.gz")
	if err != nil {
		return nil, err
	}
	table, err := records.ReadAll(ctx, path, records.Options{
		Want:   records.Molecules,
		Fields: []string{column},
	})
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
			r.Graph.X.Category[i] = c / feature.ChiralityTags
			category[c/feature.ChiralityTags] = 0
		}
		r.Graph.EdgeLabel = nil
		values = append(values, v)
		ds.Graphs = append(ds.Graphs, r.Graph)
	}
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 || sorted[0] == sorted[len(sorted)/2] { // no number is below the median
		return nil, fmt.Errorf("%s: the numbers of column %q do not fall into halves", path, column)
	}
	for z := range int32(feature.AtomTypes) {
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
		g.Class = 0
		if values[k] >= sorted[len(sorted)/2] {
			g.Class = 1
		}
	}
	return ds, nil
}
