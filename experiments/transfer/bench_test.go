package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
)

// BenchmarkColors is the search for the atoms of a batch that a ChemGIN cannot tell apart,
// of molecules of a real set that lies beside the project's root. It reports how many
// rows they leave before the first layer and after each one, in % of the atoms.
func BenchmarkColors(b *testing.B) {
	c, err := records.ReadAll(b.Context(), filepath.FromSlash("../../../shared/data/moleculenet/bbbp.csv.gz"), records.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		b.Skipf("no real data here: %v", err)
	} else if err != nil {
		b.Fatal(err)
	}
	batch := new(graph.Batch)
	for _, g := range c.Set.Graphs[:256] {
		batch.Append(g)
	}
	batch.EndView()
	var layers []*graph.ColorLayer
	for b.Loop() {
		layers, _ = batch.ColorLayers(graph.Layering{Sight: graph.Labelled, Rounds: 5, Share: 1})
	}
	for k, l := range layers {
		b.ReportMetric(100*float64(len(l.Node))/float64(batch.Nodes()), fmt.Sprintf("%%after-%d", k))
	}
}
