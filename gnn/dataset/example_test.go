package dataset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

// The way from a data set to the graphs of one fold. With real data the first
// line is
//
//	ds, err := dataset.Open(ctx, dir, "MUTAG", dataset.Options{})
func Example() {
	ds := dataset.Default()
	s := dataset.Stats(ds)
	fmt.Printf("%s: %d graphs of %d classes, %.2f nodes and %.2f edges each, features of width %d\n",
		ds.Name, s.Graphs, s.Classes, s.MeanNodes(), s.MeanEdges(), ds.FeatureWidth)

	folds, err := dataset.StratifiedKFold(ds.Labels(), 10, true, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("fold 0: %d graphs to train on, %d to test\n", len(folds[0].Train), len(folds[0].Test))

	batch := new(graph.Batch)
	for _, i := range folds[0].Test {
		batch.Append(ds.Graphs[i])
	}
	batch.EndView()
	fmt.Printf("the test graphs as one batch: %d nodes\n", batch.Nodes())
	// Output:
	// motifs: 240 graphs of 3 classes, 24.31 nodes and 29.94 edges each, features of width 5
	// fold 0: 216 graphs to train on, 24 to test
	// the test graphs as one batch: 568 nodes
}

// What cannot be read is reported with file, line and value.
func ExampleSyntaxError() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "TOY")
	if err := os.Mkdir(dir, 0o777); err != nil {
		fmt.Println(err)
		return
	}
	for part, text := range map[string]string{
		"A":               "1, 2\n2, 1\n2, 4\n",
		"graph_indicator": "1\n1\n2\n",
		"graph_labels":    "0\n1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "TOY_"+part+".txt"), []byte(text), 0o666); err != nil {
			fmt.Println(err)
			return
		}
	}
	_, err = dataset.LoadTU(context.Background(), dir, dataset.Options{})
	var e *dataset.SyntaxError
	if errors.As(err, &e) {
		fmt.Printf("%s, line %d: %q: %s\n", filepath.Base(e.File), e.Line, e.Value, e.Reason)
	}
	// Output:
	// TOY_A.txt, line 3: "4": nodes are numbered 1 to 3
}

// Folds hold every class as evenly as its size permits, and are those of
// scikit-learn.
func ExampleStratifiedKFold() {
	labels := []int{0, 0, 0, 0, 0, 0, 1, 1, 1}
	folds, err := dataset.StratifiedKFold(labels, 3, false, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range folds {
		fmt.Println(f.Test)
	}
	// Output:
	// [0 1 6]
	// [2 3 7]
	// [4 5 8]
}

// Graphs of the size and shape of a real set's, for timing.
func ExampleMoleculeStats() {
	graphs := dataset.NCI1Like.Generate(rand.New(rand.NewPCG(1, 2)))
	s := dataset.Stats(&dataset.Dataset{Graphs: graphs, Classes: 1})
	fmt.Printf("%d graphs of %d to %d nodes, %.1f on average\n", s.Graphs, s.MinNodes, s.MaxNodes, s.MeanNodes())
	// Output: 4110 graphs of 3 to 83 nodes, 30.1 on average
}

// What nodes are told apart by is said, and chosen: "auto" takes labels, or attributes where
// there are none.
func ExampleNodeFeatures_Open() {
	ds, err := dataset.FeaturesAuto.Open(dataset.Options{}, func(o dataset.Options) (*dataset.Dataset, error) {
		return dataset.Open(context.Background(), filepath.Join("..", "..", "testdata"), "motifs", o)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ds.Summary())
	// Output: motifs: 240 graphs, 3 classes; features of nodes: labels of 5 values
}
