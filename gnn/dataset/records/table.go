package records

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// Table holds the records of a file in memory.
type Table struct {
	Records  []*Record              // those that can be used
	Rejected []*dataset.SyntaxError // the errors of the others
	// Set has the graphs of Records and describes their features, which have Options.Columns
	// if those are set. For molecules, it has their SMILES as well.
	Set     *dataset.Dataset
	Content Content
	Reading Reading

	empty []int // the graphs without nodes, which are rejected, numbered from 0
}

// ReadAll reads a file as [Read] does, and gives all graphs the columns of features that they
// need together. Graphs that have other kinds of features than the first are rejected, and those whose
// edges have others than those of the first with edges. It returns an error if no record can be used.
func ReadAll(ctx context.Context, path string, o Options) (*Table, error) {
	t := new(Table)
	o.table = t
	o.Reading = &t.Reading
	var raws []*rawGraph
	var reference *rawGraph // the first graph, and then the first one with edges
	var number int          // of the reference
	err := Read(ctx, path, o, func(rec *Record) error {
		if raw, ok := rec.body.(*rawGraph); ok && rec.Err == nil && o.Columns == nil {
			if reference == nil {
				reference = raw
				number = rec.Number
			}
			if raw.like(reference) {
				raws = append(raws, raw)
			} else {
				rec.Err = &dataset.SyntaxError{File: path, Line: rec.Line, Reason: fmt.Sprintf(
					"nodes have %s; those of graph %d have %s", raw.kinds(), number, reference.kinds())}
			}
			if rec.Err == nil && len(reference.edges) == 0 {
				reference = raw
				number = rec.Number
			}
		}
		if rec.Err != nil {
			t.Rejected = append(t.Rejected, rec.Err)
			if rec.Err.Reason == noNodes {
				t.empty = append(t.empty, rec.Number-1)
			}
		} else {
			t.Records = append(t.Records, rec)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.Reading.Rejected = len(t.Rejected)
	if len(t.Records) == 0 {
		if len(t.Rejected) > 0 {
			return nil, fmt.Errorf("dataset: %s: no record of it can be used, such as %w",
				path, t.Rejected[0])
		}
		return nil, fmt.Errorf("dataset: %s: there are no records in it", path)
	}
	if t.Set == nil || o.Columns != nil {
		if err := t.makeSet(raws, o.Standard); err != nil {
			return nil, fmt.Errorf("dataset: %s: %w", path, err)
		}
	}
	if o.Degrees && o.Columns == nil && t.Content == Graphs {
		if err := t.addDegrees(); err != nil {
			return nil, err
		}
	}
	t.Set.Name, _, _ = strings.Cut(filepath.Base(path), ".")
	return t, nil
}

// makeSet makes the set of the graphs of the records. raws are the bodies of the records, unless their
// columns were given.
func (t *Table) makeSet(raws []*rawGraph, standard feature.Standardisation) error {
	t.Set = &dataset.Dataset{
		Classes:      1,
		ClassValues:  []int{0},
		FeatureWidth: t.Records[0].Graph.X.Width,
		SelfLoops:    t.Reading.SelfLoops,
		Duplicates:   t.Reading.Repeats,
	}
	if raws != nil {
		if t.Reading.named {
			t.Set.AttributeNames = t.Reading.Attributes
		}
		if err := t.joinColumns(raws); err != nil {
			return err
		}
	}
	for _, rec := range t.Records {
		t.Set.Graphs = append(t.Set.Graphs, rec.Graph)
		if t.Content == Molecules {
			t.Set.SMILES = append(t.Set.SMILES, rec.SMILES)
			t.Set.Standard = standard
		}
	}
	return nil
}

// addDegrees makes degrees the features of nodes that have none.
func (t *Table) addDegrees() (err error) {
	t.Set, err = t.Set.WithOwnDegrees(dataset.DegreeLimit)
	for i, rec := range t.Records {
		if err == nil {
			rec.Graph = t.Set.Graphs[i]
		}
	}
	return err
}

// joinColumns gives the graphs of the records the columns that they need together.
func (t *Table) joinColumns(raws []*rawGraph) error {
	c, err := columnsOf(raws...)
	if err != nil {
		return err
	}
	t.Set.NodeAttributes = c.Attributes
	t.Set.FeatureWidth = c.Width()
	nodes := 0
	for i, raw := range raws {
		nodes += raw.nodes
		if c.Attributes > 0 && nodes > maxDense/c.Width() {
			return fmt.Errorf("more than %d nodes of %d features each: %w: limit %d numbers",
				nodes-raw.nodes, c.Width(), dataset.ErrTooLarge, maxDense)
		}
		t.Records[i].Graph, err = raw.with(c)
		if err != nil {
			return fmt.Errorf("line %d: %w", t.Records[i].Line, err)
		}
	}
	for _, l := range c.Labels {
		t.Set.NodeLabels = append(t.Set.NodeLabels, columnOf(l))
	}
	t.Set.Edges = c.Edges
	if c.Edges != nil && c.Edges.Labels != nil {
		t.Set.EdgeLabels = []dataset.LabelColumn{columnOf(*c.Edges.Labels)}
	}
	return nil
}

// columnOf describes the values of a label.
func columnOf(l graph.LabelValues) dataset.LabelColumn {
	return dataset.LabelColumn{
		Min:      l.Min,
		Width:    l.Width,
		Distinct: l.Width - len(l.Unseen),
		Names:    l.Names,
	}
}

// Open reads the data set NAME from dir as [dataset.Open] does, or a file of graphs whose name ends
// in .jsonl, .graphml or .csv. Each graph of such a file has a class under the key, or in the column,
// "class" or else "y". Its features are all attributes and labels. Graphs without nodes are dropped.
func Open(ctx context.Context, dir, name string, opts dataset.Options) (*dataset.Dataset, error) {
	if format := formatByName(name); format != CSV && format != JSONL && format != GraphML {
		ds, err := dataset.Open(ctx, dir, name, opts)
		if err == nil && ds.Classes < 2 && len(ds.Targets) > 0 {
			err = fmt.Errorf(
				"dataset: %s: has no classes but targets, such as %s: specmatch finetune -target "+
					"learns them",
				name, ds.Targets[0].Name,
			)
		}
		return ds, err
	}
	if err := dataset.CheckName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	t, err := readClassified(ctx, path, f, sum)
	if err != nil {
		return nil, err
	}
	if err := t.takeEmpty(); err != nil {
		return nil, err
	}
	if err := t.classify(path); err != nil {
		return nil, err
	}
	t.Set.Name = name
	if opts.Sum != nil {
		if _, err := io.Copy(sum, f); err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		opts.Sum(name, hex.EncodeToString(sum.Sum(nil)))
	}
	return t.Set, nil
}

// readClassified reads a file of graphs with the field "class" or, if no graph has one, "y". sum gets
// what is read.
func readClassified(ctx context.Context, path string, f *os.File, sum hash.Hash) (*Table, error) {
	read := func(field string) (*Table, error) {
		return ReadAll(ctx, path, Options{
			Input:  io.TeeReader(f, sum),
			Want:   Graphs,
			Fields: []string{field},
		})
	}
	t, err := read("class")
	hasClass := func(r *Record) bool { return strings.TrimSpace(r.Fields[0]) != "" }
	if err == nil && slices.ContainsFunc(t.Records, hasClass) {
		return t, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	sum.Reset()
	if second, err := read("y"); err == nil {
		return second, nil
	}
	return t, err
}

// takeEmpty notes the graphs without nodes in the set. It returns an error if other records are rejected.
func (t *Table) takeEmpty() error {
	isEmpty := func(e *dataset.SyntaxError) bool { return e.Reason == noNodes }
	t.Set.Empty = t.empty
	t.Rejected = slices.DeleteFunc(t.Rejected, isEmpty)
	if n := len(t.Rejected); n > 0 {
		return fmt.Errorf("dataset: %d of %d graphs cannot be used, such as %w",
			n, n+len(t.Records), t.Rejected[0])
	}
	return nil
}

// classify makes classes of the only field of the records.
func (t *Table) classify(path string) error {
	var texts []string
	for _, r := range t.Records {
		text := strings.TrimSpace(r.Fields[0])
		if text == "" {
			return &dataset.SyntaxError{File: path, Line: r.Line, Reason: "the graph has no class"}
		}
		texts = append(texts, text)
	}
	classes := Classes(texts)
	if len(classes) < 2 || len(classes) > len(texts)/2 {
		return fmt.Errorf(
			"dataset: %s: %d different values of class on %d graphs, such as %q, cannot be classes",
			path, len(classes), len(texts), classes[:min(3, len(classes))],
		)
	}
	t.Set.Classes = len(classes)
	t.Set.ClassValues, t.Set.ClassNames = classValues(classes)
	for i, g := range t.Set.Graphs {
		g.Class = slices.Index(classes, texts[i])
	}
	return nil
}

// classValues returns the numbers that classes stand for, ascending. If one is no whole number, or two are the same
// one, these are 0, 1 and so on, and names are the classes.
func classValues(classes []string) (values []int, names []string) {
	values = make([]int, len(classes))
	for c, text := range classes {
		value, err := parseWhole(text)
		if err != nil || c > 0 && value <= values[c-1] {
			for k := range values {
				values[k] = k
			}
			return values, classes
		}
		values[c] = value
	}
	return values, nil
}

// gaps are the texts of a missing value of any kind, in lower case: those of pandas and R.
var gaps = []string{
	"", "nan", "-nan", "na", "n/a", "<na>", "#na", "#n/a", "#n/a n/a", "null", "none", "1.#ind",
	"-1.#ind", "1.#qnan", "-1.#qnan",
}

// IsGap reports whether a text, without blanks around it, is that of a missing value of any kind.
func IsGap(text string) bool { return slices.Contains(gaps, strings.ToLower(text)) }

// Classes returns the distinct texts that are not empty: numbers in the order of their values, and then
// other texts.
func Classes(texts []string) (classes []string) {
	for _, v := range texts {
		v = strings.TrimSpace(v)
		if v != "" {
			classes = append(classes, v)
		}
	}
	slices.SortFunc(classes, func(a, b string) int {
		p, errP := strconv.ParseFloat(a, 64)
		q, errQ := strconv.ParseFloat(b, 64)
		switch {
		case errP == nil && errQ == nil:
			return cmp.Or(cmp.Compare(p, q), strings.Compare(a, b))
		case errP == nil:
			return -1
		case errQ == nil:
			return 1
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(classes)
}
