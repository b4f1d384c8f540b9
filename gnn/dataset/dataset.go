package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// Dataset is a set of labelled graphs.
type Dataset struct {
	// Name is the set's name as TUDataset spells it.
	Name string
	// Graphs are simple graphs in the order of the files: no self-loops, no
	// duplicate edges, rows sorted.
	Graphs []*graph.Graph
	// SMILES are those of the graphs, if these are molecules of a file. Standard says how the
	// molecules were standardised before they became graphs.
	SMILES   []string
	Standard feature.Standardisation
	// Classes is the number of classes C; every Graph.Class is in 0..C-1.
	Classes int
	// ClassValues[c] is the label that class c has in the files; ascending.
	ClassValues []int
	// ClassNames are the texts that ClassValues stand for, if the classes of a file are texts; else nil.
	ClassNames []string
	// Targets are what graphs have in addition to a class or instead of one: the columns
	// "class1", "class2" … where there are several labels, and "attribute" or "attribute1" …
	// for regression. A set without classes has one, 0.
	Targets []Target
	// Empty are the graphs of the files that have no nodes and were dropped, numbered from 0.
	Empty []int
	// FeatureWidth is the width of every graph's features.
	FeatureWidth int
	// NodeAttributes is how many of the features, the leading ones, are real
	// attributes; 0 unless [Options] asked for them.
	NodeAttributes int
	// AttributeNames are the names of the attributes; nil if the files have none.
	AttributeNames []string
	// AttributesLeftOut is set if the nodes have attributes that are not among the
	// features, because [Options] did not ask for them.
	AttributesLeftOut bool
	// NodeLabels describes the columns of node labels, whose one-hot encodings
	// follow the attributes. It is empty if nodes have no labels; without
	// attributes either, every node has the constant feature 1.
	NodeLabels []LabelColumn
	// Degrees is the number of one-hot columns of degrees that stand for missing attributes and labels;
	// 0 is none.
	Degrees int
	// DegreeColumns is how many of the features, the last ones, are made from the
	// degree; 0 without [Dataset.WithDegrees].
	DegreeColumns int
	// EdgeLabels describes the columns of edge labels; it is empty if edges
	// have none. Graph.EdgeLabel is the single column, shifted to start at 0;
	// of several columns it is the combination
	// (v₁·Width₂ + v₂)·Width₃ + v₃ … of the shifted values.
	EdgeLabels []LabelColumn
	// Edges are the labels or weights of edges that a model reads. They are nil if edges have neither, and for
	// sets in TUDataset's format, whose edge labels only kernels read.
	Edges *graph.EdgeValues
	// SelfLoops is the number of distinct self-loops that loading removed, and
	// Duplicates the number of edges that repeated an earlier one.
	SelfLoops, Duplicates int
	// Reads describes the columns or keys of a user's file that the features are from.
	Reads string
	// Sums are the SHA-256 sums, in hexadecimal, of the files that the set was read
	// from, by name; nil if they were not computed.
	Sums map[string]string
}

// Directed returns how many graphs have an edge without its reverse. TUDataset's format
// lists undirected edges in both directions; a file that lists them once makes all graphs
// directed.
func (d *Dataset) Directed() (graphs int) {
	for _, g := range d.Graphs {
		if g.Directed {
			graphs++
		}
	}
	return graphs
}

// Target is a column with a number for each graph.
type Target struct {
	Name   string
	Values []float64
}

// LabelColumn describes one column of integer labels.
type LabelColumn struct {
	Min      int // smallest label, which becomes category 0
	Width    int // number of categories: largest label - Min + 1
	Distinct int // number of categories that occur
	// Names are the texts that the categories stand for, ascending, if the labels are texts.
	Names []string
}

// EdgeCategories returns the number of categories of Graph.EdgeLabel, 0 if edges
// have no labels.
func (d *Dataset) EdgeCategories() int {
	if len(d.EdgeLabels) == 0 {
		return 0
	}
	n := int64(1)
	for _, c := range d.EdgeLabels {
		n = min(n*int64(c.Width), math.MaxInt32) // loading allows far fewer
	}
	return int(n)
}

// Labels returns the class of every graph, as [StratifiedKFold] wants it.
func (d *Dataset) Labels() []int {
	y := make([]int, len(d.Graphs))
	for i, g := range d.Graphs {
		y[i] = g.Class
	}
	return y
}

// Options say how a data set is read. The zero value reads it as the reference
// implementations do.
type Options struct {
	// NodeAttributes makes the features [attributes | one-hot labels] instead
	// of the labels alone; PyTorch Geometric calls it use_node_attr. It has no
	// effect on a set without attributes.
	NodeAttributes bool
	// Sum, if set, is called for every file that has been read, also in an archive,
	// with its name, such as MUTAG_A.txt, and the SHA-256 sum of its contents in
	// hexadecimal.
	Sum func(file, sum string)

	limits limits // for tests
}

// LoadTU reads the data set at path, an archive NAME.zip or a folder NAME with
// NAME_A.txt and the other files. The archive is read in place and never unpacked.
// Content that cannot be used is reported as a [*SyntaxError]. A cancelled ctx ends
// the reading soon, with an error that wraps that of ctx.
func LoadTU(ctx context.Context, path string, opts Options) (*Dataset, error) {
	s, err := openSource(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	defer s.closer.Close()
	return readTU(s, opts)
}

// Open reads the data set NAME from dir: the archive dir/NAME.zip or else the
// folder dir/NAME. If there is neither, the error wraps [fs.ErrNotExist] and
// names what was looked for and what is there.
func Open(ctx context.Context, dir, name string, opts Options) (*Dataset, error) {
	path, err := Find(dir, name)
	if err != nil {
		return nil, err
	}
	return LoadTU(ctx, path, opts)
}

// Find returns the path of the data set NAME in dir that [Open] would read.
func Find(dir, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	archive := filepath.Join(dir, name+".zip")
	folder := filepath.Join(dir, name)
	for _, path := range []string{archive, folder} {
		if _, err := os.Lstat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("dataset: %w", err)
		}
	}
	names, err := List(dir)
	if err != nil {
		return "", err
	}
	contents := "there are no data sets in it"
	const most = 12
	switch similar := slices.IndexFunc(names, func(h string) bool {
		return strings.EqualFold(h, name)
	}); {
	case similar >= 0:
		contents = "is " + names[similar] + " meant?"
	case len(names) > most:
		contents = fmt.Sprintf("it has %s and %d more",
			strings.Join(names[:most], ", "), len(names)-most)
	case len(names) > 0:
		contents = "it has " + strings.Join(names, ", ")
	}
	return "", fmt.Errorf("dataset: no %s in %s (looked for %s and %s%c; %s): %w",
		name, dir, archive, folder, filepath.Separator, contents, fs.ErrNotExist)
}

// List returns the names of the data sets in dir, sorted: its archives and the
// folders that hold the files of a set of the same name.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".zip"); ok && !e.IsDir() {
			names = append(names, name)
		} else if _, err := os.Lstat(filepath.Join(dir, e.Name(), e.Name()+"_A.txt")); err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// CheckName refuses names that could lead to another folder or host.
func CheckName(name string) error {
	ok := name != "" && name[0] != '.' && len(name) <= 100
	for _, c := range []byte(name) {
		ok = ok &&
			(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-+", c) >= 0)
	}
	if !ok {
		return fmt.Errorf(
			"dataset: %q is not the name of a data set; names are letters, digits and ._-+",
			name,
		)
	}
	return nil
}
