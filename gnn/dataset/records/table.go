package records

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// Table is the records of a file, all in memory.
type Table struct {
	Records  []*Record              // those that can be used
	Rejected []*dataset.SyntaxError // the others
	// Set has the graphs of Records, and says what their features are, which have
	// Options.Columns if those are given. Of molecules it has the graphs and their SMILES.
	Set     *dataset.Dataset
	Content Content
	Reading Reading
}

// ReadAll reads a file as [Read] does, and finds the columns of features that all
// graphs together need. Graphs that have other kinds of features than the first are
// rejected. It is an error if no record can be used.
func ReadAll(ctx context.Context, path string, o Options) (*Table, error) {
	t := new(Table)
	o.table = t
	o.Reading = &t.Reading
	var raws []*rawGraph
	err := Read(ctx, path, o, func(rec *Record) error {
		if raw, ok := rec.body.(*rawGraph); ok && rec.Err == nil && o.Columns == nil {
			raws = append(raws, raw)
			if !raw.like(raws[0]) {
				raws = raws[:len(raws)-1]
				rec.Err = &dataset.SyntaxError{File: path, Line: rec.Line, Reason: fmt.Sprintf(
					"nodes have %d attributes and labels (%v); those of the first graph %d and labels (%v)",
					raw.width(), raw.labeled(), raws[0].width(), raws[0].labeled())}
			}
		}
		if rec.Err != nil {
			t.Rejected = append(t.Rejected, rec.Err)
		} else {
			t.Records = append(t.Records, rec)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.Reading.Rejected = len(t.Rejected)
	if t.Set != nil {
		t.Reading.SelfLoops = t.Set.SelfLoops
		t.Reading.Repeats = t.Set.Duplicates
	}
	if len(t.Records) == 0 {
		if len(t.Rejected) > 0 {
			return nil, fmt.Errorf("dataset: %s: no record of it can be used, such as %w",
				path, t.Rejected[0])
		}
		return nil, fmt.Errorf("dataset: %s: there are no records in it", path)
	}
	if t.Set == nil || o.Columns != nil {
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
			err = t.joinColumns(raws)
		}
		for _, rec := range t.Records {
			t.Set.Graphs = append(t.Set.Graphs, rec.Graph)
			if t.Content == Molecules {
				t.Set.SMILES = append(t.Set.SMILES, rec.SMILES)
				t.Set.Standard = o.Standard
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", path, err)
	}
	t.Set.Name, _, _ = strings.Cut(filepath.Base(path), ".")
	return t, nil
}

// joinColumns gives the graphs of the records the columns that all of them need.
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
			return err
		}
	}
	for _, l := range c.Labels {
		column := dataset.LabelColumn{
			Min:      l.Min,
			Width:    l.Width,
			Distinct: l.Width - len(l.Unseen),
			Names:    l.Names,
		}
		t.Set.NodeLabels = append(t.Set.NodeLabels, column)
	}
	return nil
}

// Open reads the data set NAME from dir as [dataset.Open] does, and also one whose name
// ends in .jsonl, .graphml or .csv: a file of graphs in one of these formats, each with a class
// under the key, or in the column, class, or else y. Their features are all attributes and labels
// that they have. Graphs without nodes are left out.
func Open(ctx context.Context, dir, name string, opts dataset.Options) (*dataset.Dataset, error) {
	if format := formatByName(name); format != CSV && format != JSONL && format != GraphML {
		ds, err := dataset.Open(ctx, dir, name, opts)
		if err == nil && ds.Classes < 2 && len(ds.Targets) > 0 {
			err = fmt.Errorf(
				"dataset: %s: has no classes but targets, such as %s: specmatch finetune -target learns them",
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
	t, err := ReadAll(ctx, path, Options{
		Input:  io.TeeReader(f, sum),
		Want:   Graphs,
		Fields: []string{"class"},
	})
	if err != nil ||
		!slices.ContainsFunc(t.Records, func(r *Record) bool { return strings.TrimSpace(r.Fields[0]) != "" }) {
		if _, again := f.Seek(0, io.SeekStart); again != nil {
			return nil, again
		}
		sum.Reset()
		y, again := ReadAll(ctx, path, Options{
			Input:  io.TeeReader(f, sum),
			Want:   Graphs,
			Fields: []string{"y"},
		})
		if again == nil {
			t = y
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	var empty []int
	for _, e := range t.Rejected {
		if e.Reason == noNodes {
			empty = append(empty, e.Line-1)
		}
	}
	t.Rejected = slices.DeleteFunc(t.Rejected, func(e *dataset.SyntaxError) bool {
		return e.Reason == noNodes
	})
	if n := len(t.Rejected); n > 0 {
		return nil, fmt.Errorf("dataset: %d of %d graphs cannot be used, such as %w",
			n, n+len(t.Records), t.Rejected[0])
	}
	var texts []string
	for _, r := range t.Records {
		text := strings.TrimSpace(r.Fields[0])
		if text == "" {
			return nil, &dataset.SyntaxError{File: path, Line: r.Line, Reason: "the graph has no class"}
		}
		texts = append(texts, text)
	}
	classes := Classes(texts)
	if len(classes) < 2 || len(classes) > len(texts)/2 {
		return nil, fmt.Errorf(
			"dataset: %s: %d different values of class on %d graphs, such as %q, cannot be classes",
			path, len(classes), len(texts), classes[:min(3, len(classes))],
		)
	}
	ds := t.Set
	ds.Empty = empty
	ds.Name = name
	ds.Classes = len(classes)
	ds.ClassValues = nil
	for c, text := range classes {
		value, err := strconv.Atoi(text)
		if err != nil {
			value = c
		}
		ds.ClassValues = append(ds.ClassValues, value)
	}
	for i, g := range ds.Graphs {
		g.Class = slices.Index(classes, texts[i])
	}
	if opts.Sum != nil {
		if _, err := io.Copy(sum, f); err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		opts.Sum(name, hex.EncodeToString(sum.Sum(nil)))
	}
	return ds, nil
}

// Classes returns the distinct texts but for empty ones, sorted: numbers by value and
// before other texts.
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
