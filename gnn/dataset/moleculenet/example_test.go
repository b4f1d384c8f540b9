package moleculenet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
)

// A set of molecules, divided by scaffold.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	const table = "smiles,FDA_APPROVED,CT_TOX\nCC(=O)Oc1ccccc1,1,0\nCCO,1,\nCCc1ccccc1,0,1\n"
	if err := os.WriteFile(filepath.Join(dir, "clintox.csv"), []byte(table), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	set, err := moleculenet.Open(context.Background(), dir, "clintox")
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := dataset.ScaffoldSplit(set.Scaffolds, 0.7, 0.3)
	fmt.Println(set.Tasks, set.Labels)
	fmt.Println("train", parts.Train, "valid", parts.Valid, err)
	// Output:
	// [FDA_APPROVED CT_TOX] [1 -1 1 0 -1 1]
	// train [0 2] valid [1] <nil>
}

// A table of numbers as a set of two classes, for methods that tell classes apart.
func ExampleHalves() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	const table = "smiles,logd\nCCO,1.5\nCN,-2\nCCl,3\nC=O,0.5\n"
	if err := os.WriteFile(filepath.Join(dir, "lipo.csv"), []byte(table), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	set, err := moleculenet.Halves(context.Background(), dir, "lipo", "logd")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Labels(), "by", set.FeatureWidth, "elements")
	// Output: [1 0 1 0] by 4 elements
}

// Molecules to pre-train on, from any file of SMILES.
func ExampleCorpus() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "corpus")
	if err := os.WriteFile(path, []byte("CCO ethanol\nCc1ccccc1\nnonsense\n"), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	corpus, err := moleculenet.Corpus(context.Background(), path, func(rows int) { fmt.Println(rows, "rows") })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(corpus.Graphs), "molecules,", len(corpus.Dropped), "dropped")
	// Output: 2 molecules, 1 dropped
}
