package dataset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
)

// Record is an item of a user's file: a graph and what stands beside it.
type Record struct {
	Number int      // of the record, from 1
	Line   int      // where it begins; of a set in TUDataset's format, Number
	ID     string   // the field that RecordOptions.ID names, otherwise Number
	Fields []string // those that RecordOptions.Fields names; empty where one is missing
	// Graph is nil if the record cannot be used. Err says why.
	Graph    *graph.Graph
	Scaffold string // of a molecule, if RecordOptions.Scaffolds asks for it
	Err      *SyntaxError

	raw *rawGraph
}

// Content is what the records of a file are.
type Content string

// The contents.
const (
	MoleculeContent Content = "molecules"
	GraphContent    Content = "graphs"
)

// RecordOptions say how a file of records is read. The zero value reads whatever the
// name of the file tells.
type RecordOptions struct {
	// Format is one of [Formats]; "" goes by the name.
	Format string
	// Input, if set, is read in place of the file, whose name then stands in errors
	// alone. The file "-" needs it.
	Input io.Reader
	// Want makes a file of other content an error. "" takes both.
	Want Content
	// SMILES is the column of molecules; "" is "smiles", in upper or lower case, or else the
	// only column whose name contains that, such as canonical_smiles.
	SMILES string
	// ID and Fields are columns of a table, keys of a JSON object, or "class" of a set
	// in TUDataset's format.
	ID     string
	Fields []string
	// Scaffolds asks for those of molecules.
	Scaffolds bool
	// Columns are the features that graphs get. Without them, records of [ReadRecords]
	// have the constant feature 1; [ReadTable] finds the columns.
	Columns *graph.Columns
	// Skip is how many records are passed over.
	Skip int
}

// The formats of records.
const (
	FormatCSV   = "csv"   // a table with a header: of molecules, or of edges
	FormatSMI   = "smi"   // a SMILES a line, which a name may follow
	FormatJSONL = "jsonl" // a graph a line, as a JSON object
	FormatTU    = "tu"    // TUDataset's archive or folder
)

// Formats lists them.
var Formats = []string{FormatCSV, FormatSMI, FormatJSONL, FormatTU}

// FormatOf returns the format of a file by its name: .csv, .smi, .txt, .jsonl or
// .ndjson, each of which .gz may follow, .zip, or a folder.
func FormatOf(path string) (string, error) {
	if format := formatByName(path); format != "" {
		return format, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("dataset: %w", err)
	case info.IsDir():
		return FormatTU, nil
	}
	return "", fmt.Errorf("dataset: %s: the name does not tell the format; want .csv, .smi, .jsonl, each with .gz or without, .zip or a folder", path)
}

// formatByName returns the format that the ending of a name stands for, "" if none.
func formatByName(path string) string {
	switch filepath.Ext(strings.TrimSuffix(strings.ToLower(path), ".gz")) {
	case ".csv":
		return FormatCSV
	case ".smi", ".txt":
		return FormatSMI
	case ".jsonl", ".ndjson":
		return FormatJSONL
	case ".zip":
		return FormatTU
	}
	return ""
}

// ReadRecords calls emit with the records of a file, in their order. It streams:
// memory does not grow with the file, unless it is in TUDataset's format. Molecules
// are parsed on all processors. A record that cannot be read has an Err and does not
// end the reading; an error of emit does. See the package comment for the formats.
func ReadRecords(ctx context.Context, path string, o RecordOptions, emit func(*Record) error) error {
	return (&recordReader{file: path, o: o, emit: emit}).read(ctx)
}

// recordReader reads one file.
type recordReader struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	file   string
	o      RecordOptions
	emit   func(*Record) error

	number  int // of the last record
	content Content
	tu      *Dataset // in TUDataset's format
}

func (r *recordReader) read(ctx context.Context) error {
	format := r.o.Format
	if format == "" {
		var err error
		if format, err = FormatOf(r.file); err != nil {
			return err
		}
	}
	if r.o.Columns != nil {
		if err := r.o.Columns.Check(); err != nil {
			return err
		}
	}
	var cancel context.CancelCauseFunc
	r.ctx, cancel = context.WithCancelCause(ctx)
	defer cancel(nil)
	r.cancel = cancel
	err := r.readFormat(format)
	if cause := context.Cause(r.ctx); cause != nil {
		return cause
	}
	return err
}

func (r *recordReader) readFormat(format string) error {
	if format == FormatTU {
		return r.readTU()
	}
	var in io.Reader
	if r.o.Input != nil {
		text, err := plainText(r.ctx, r.file, r.o.Input)
		if err != nil {
			return err
		}
		in = text
	} else {
		text, err := openText(r.ctx, r.file)
		if err != nil {
			return err
		}
		defer text.Close()
		in = text
	}
	switch format {
	case FormatCSV:
		rows, err := newCSV(r.file, in)
		if err != nil {
			return err
		}
		if isEdgeList(rows) {
			return r.readEdgeList(rows)
		}
		return r.readTable(rows)
	case FormatSMI:
		return r.readSMI(newLines(r.file, in))
	case FormatJSONL:
		return r.readJSON(newLines(r.file, in))
	}
	return fmt.Errorf("dataset: %q is not a format of records; want one of %s", format, strings.Join(Formats, ", "))
}

// is notes the content, and returns an error unless it is wanted.
func (r *recordReader) is(c Content) error {
	r.content = c
	if r.o.Want != "" && r.o.Want != c {
		return fmt.Errorf("dataset: %s: has %s, want %s", r.file, c, r.o.Want)
	}
	return nil
}

// record returns the next record, and whether it is to be passed over.
func (r *recordReader) record(line int) (rec *Record, skip bool) {
	r.number++
	return &Record{Number: r.number, Line: line, ID: strconv.Itoa(r.number)}, r.number <= r.o.Skip
}

// readTable reads a table of molecules.
func (r *recordReader) readTable(c *csvRows) error {
	if err := r.is(MoleculeContent); err != nil {
		return err
	}
	if err := c.distinct(); err != nil {
		return err
	}
	smiles, err := r.smilesColumn(c)
	if err != nil {
		return err
	}
	id, fields, err := r.positions(c)
	if err != nil {
		return err
	}
	return r.molecules(func() (row smilesRow, skip bool, err error) {
		ok, err := c.next()
		if err == nil && !ok {
			return row, false, io.EOF
		}
		var bad *SyntaxError
		if errors.As(err, &bad) {
			row.record, skip = r.record(bad.Line)
			row.err = bad
			return row, skip, nil
		}
		if err != nil {
			return row, false, err
		}
		row.line, _ = c.r.FieldPos(smiles)
		if row.record, skip = r.record(row.line); !skip {
			row.smiles = strings.TrimSpace(c.row[smiles])
			row.record.take(c.row, id, fields)
		}
		return row, skip, nil
	})
}

// smilesColumn returns the position of the SMILES.
func (r *recordReader) smilesColumn(c *csvRows) (int, error) {
	if r.o.SMILES != "" {
		return position(c, r.o.SMILES)
	}
	var like []int
	for i, h := range c.header {
		switch h := strings.ToLower(h); {
		case h == "smiles":
			return i, nil
		case strings.Contains(h, "smiles") && !strings.ContainsAny(h, ";\t\r"): // not a line that was not divided
			like = append(like, i)
		}
	}
	switch {
	case len(like) == 1:
		return like[0], nil
	case len(like) > 1:
		return 0, &SyntaxError{c.file, 1, shorten(strings.Join(c.header, ",")), fmt.Sprintf("no column %q, and several whose names contain it: say which", "smiles")}
	}
	return position(c, "smiles")
}

// positions returns those of ID, -1 if there is none, and of Fields in a table.
func (r *recordReader) positions(c *csvRows) (id int, fields []int, err error) {
	id = -1
	if r.o.ID != "" {
		if id, err = position(c, r.o.ID); err != nil {
			return 0, nil, err
		}
	}
	for _, name := range r.o.Fields {
		f, err := position(c, name)
		if err != nil {
			return 0, nil, err
		}
		fields = append(fields, f)
	}
	return id, fields, nil
}

func (rec *Record) take(row []string, id int, fields []int) {
	if id >= 0 {
		rec.ID = row[id]
	}
	for _, f := range fields {
		rec.Fields = append(rec.Fields, row[f])
	}
}

// readSMI reads a SMILES a line.
func (r *recordReader) readSMI(l *lines) error {
	if err := r.is(MoleculeContent); err != nil {
		return err
	}
	if len(r.o.Fields) > 0 {
		return fmt.Errorf("dataset: %s: has no columns, such as %q; want a .csv", r.file, r.o.Fields[0])
	}
	return r.molecules(func() (row smilesRow, skip bool, err error) {
		text, err := l.next()
		if err != nil {
			return row, false, err
		}
		row.line = l.line
		row.record, skip = r.record(l.line)
		row.smiles = text
		if at := strings.IndexAny(text, " \t"); at > 0 {
			row.smiles, row.record.ID = text[:at], strings.TrimSpace(text[at:])
		}
		return row, skip, nil
	})
}

// molecules parses rows and emits their records.
func (r *recordReader) molecules(next func() (row smilesRow, skip bool, err error)) error {
	unskipped := func() (smilesRow, error) {
		for {
			if row, skip, err := next(); !skip || err != nil {
				return row, err
			}
		}
	}
	return parseSMILES(r.ctx, r.file, unskipped, r.o.Scaffolds, func(p *parsed) {
		rec := p.row.record
		rec.Graph, rec.Scaffold, rec.Err = p.graph, p.scaffold, p.err
		if err := r.emit(rec); err != nil {
			r.cancel(err)
		}
	})
}

// readTU reads a set in TUDataset's format.
func (r *recordReader) readTU() error {
	if err := r.is(GraphContent); err != nil {
		return err
	}
	for _, name := range append(slices.Clone(r.o.Fields), cmp.Or(r.o.ID, "class")) {
		if name != "class" {
			return fmt.Errorf("dataset: %s: has no %q; a set in TUDataset's format has a \"class\"", r.file, name)
		}
	}
	ds, err := LoadTU(r.ctx, r.file, Options{NodeAttributes: true})
	if err != nil {
		return err
	}
	r.tu = ds
	for _, g := range ds.Graphs {
		rec, skip := r.record(r.number + 1)
		if skip {
			continue
		}
		for range r.o.Fields {
			rec.Fields = append(rec.Fields, strconv.Itoa(ds.ClassValues[g.Class]))
		}
		one := *ds
		one.Graphs = []*graph.Graph{g}
		if err := r.graph(rec, &one); err != nil {
			return err
		}
	}
	return nil
}

// graph emits the record of the only graph in a set.
func (r *recordReader) graph(rec *Record, one *Dataset) error {
	if r.o.Columns != nil {
		with, err := one.withColumns(*r.o.Columns)
		if err != nil {
			rec.Err = &SyntaxError{File: r.file, Line: rec.Line, Reason: strings.TrimPrefix(err.Error(), "graph 0: ")}
			return r.emit(rec)
		}
		one = with
	}
	rec.Graph = one.Graphs[0]
	return r.emit(rec)
}

// rawGraph is a graph as a file has it.
type rawGraph struct {
	nodes      int
	edges      [][2]int
	labels     []int       // of the nodes, or nil
	attributes [][]float32 // of the nodes, or nil
	directed   bool
}

// check returns an error unless the parts fit together.
func (g *rawGraph) check() error {
	if g.nodes < 1 || g.nodes > maxNetworkNodes {
		return fmt.Errorf("%d nodes; want 1 to %d", g.nodes, maxNetworkNodes)
	}
	if g.labels != nil && len(g.labels) != g.nodes {
		return fmt.Errorf("%d labels for %d nodes", len(g.labels), g.nodes)
	}
	for i, v := range g.labels {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return fmt.Errorf("node %d has the label %d, which does not fit in 32 bits", i, v)
		}
	}
	if g.attributes != nil && len(g.attributes) != g.nodes {
		return fmt.Errorf("attributes of %d nodes; there are %d", len(g.attributes), g.nodes)
	}
	for i, row := range g.attributes {
		if len(row) == 0 || len(row) != len(g.attributes[0]) {
			return fmt.Errorf("node %d has %d attributes, node 0 has %d; want the same number, and at least 1", i, len(row), len(g.attributes[0]))
		}
	}
	return nil
}

func (g *rawGraph) width() int {
	if g.attributes == nil {
		return 0
	}
	return len(g.attributes[0])
}

// datasetOf makes a set of graphs that pass check and have the same kinds of
// features.
func datasetOf(graphs []*rawGraph) (*Dataset, error) {
	ds := &Dataset{Classes: 1, ClassValues: []int{0}, NodeAttributes: graphs[0].width(), FeatureWidth: graphs[0].width()}
	nodes := 0
	for _, g := range graphs {
		nodes += g.nodes
	}
	labelled := graphs[0].labels != nil
	if labelled {
		lo, hi := math.MaxInt32, math.MinInt32
		for _, g := range graphs {
			lo, hi = min(lo, slices.Min(g.labels)), max(hi, slices.Max(g.labels))
		}
		ds.NodeLabels = []LabelColumn{{Min: lo, Width: hi - lo + 1}}
		ds.FeatureWidth += hi - lo + 1
	}
	ds.FeatureWidth = max(ds.FeatureWidth, 1)
	dense := ds.NodeAttributes > 0
	if n := int64(nodes) * int64(ds.FeatureWidth); dense && n > maxDense {
		return nil, fmt.Errorf("%d nodes of %d features each: %w: limit %d numbers", nodes, ds.FeatureWidth, ErrTooLarge, int64(maxDense))
	}
	for _, g := range graphs {
		x := graph.Features{Width: ds.FeatureWidth}
		if dense {
			x.Dense = make([]float32, g.nodes*x.Width)
		} else {
			x.Category = make([]int32, g.nodes)
		}
		for i := range g.nodes {
			if dense {
				copy(x.Dense[i*x.Width:], g.attributes[i])
			}
			switch {
			case labelled && dense:
				x.Dense[i*x.Width+ds.NodeAttributes+g.labels[i]-ds.NodeLabels[0].Min] = 1
			case labelled:
				x.Category[i] = int32(g.labels[i] - ds.NodeLabels[0].Min)
			}
		}
		make := graph.FromEdges
		if g.directed {
			make = graph.FromDirectedEdges
		}
		h, err := make(g.nodes, g.edges, x)
		if err != nil {
			return nil, err
		}
		ds.Graphs = append(ds.Graphs, h)
	}
	if labelled {
		c, err := ds.Columns()
		if err != nil {
			return nil, err
		}
		ds.NodeLabels[0].Distinct = ds.NodeLabels[0].Width - len(c.Labels[0].Unseen)
	}
	return ds, nil
}

// rawRecord emits the record of a graph, whose faults are those of the record.
func (r *recordReader) rawRecord(rec *Record, g *rawGraph) error {
	err := g.check()
	if err == nil {
		var one *Dataset
		if one, err = datasetOf([]*rawGraph{g}); err == nil {
			rec.raw = g
			return r.graph(rec, one)
		}
	}
	rec.Err = &SyntaxError{File: r.file, Line: rec.Line, Reason: strings.TrimPrefix(err.Error(), "graph: ")}
	return r.emit(rec)
}

// readJSON reads a graph a line.
func (r *recordReader) readJSON(l *lines) error {
	if err := r.is(GraphContent); err != nil {
		return err
	}
	for {
		text, err := l.next()
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		rec, skip := r.record(l.line)
		if skip {
			continue
		}
		g, err := rec.parseJSON(text, r.o)
		if err != nil {
			rec.Err = &SyntaxError{File: r.file, Line: l.line, Reason: err.Error()}
			if err := r.emit(rec); err != nil {
				return err
			}
			continue
		}
		if err := r.rawRecord(rec, g); err != nil {
			return err
		}
	}
}

// parseJSON fills the record from an object and returns its graph.
func (rec *Record) parseJSON(text string, o RecordOptions) (*rawGraph, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		var e *json.SyntaxError
		if errors.As(err, &e) {
			return nil, fmt.Errorf("column %d: %v", e.Offset, err)
		}
		return nil, errors.New("want a JSON object")
	}
	if o.ID != "" {
		id, err := field(object, o.ID)
		if err != nil {
			return nil, err
		}
		rec.ID = cmp.Or(id, rec.ID)
	}
	for _, name := range o.Fields {
		value, err := field(object, name)
		if err != nil {
			return nil, err
		}
		rec.Fields = append(rec.Fields, value)
	}
	g := &rawGraph{nodes: -1}
	var edges [][]int
	for _, part := range []struct {
		key, want string
		into      any
	}{
		{"nodes", "the number of nodes", &g.nodes}, {"edges", "pairs of nodes, as in [[0,1],[1,2]]", &edges},
		{"labels", "a whole number for each node", &g.labels}, {"attributes", "a list of numbers for each node", &g.attributes},
		{"directed", "true or false", &g.directed},
	} {
		value, ok := object[part.key]
		if !ok && part.key == "edges" {
			return nil, errors.New(`there are no "edges"; want ` + part.want)
		}
		if err := json.Unmarshal(value, part.into); ok && err != nil {
			return nil, fmt.Errorf("%q: want %s", part.key, part.want)
		}
	}
	for _, e := range edges {
		if len(e) != 2 {
			return nil, fmt.Errorf(`"edges": %v is not a pair of nodes`, e)
		}
		g.edges = append(g.edges, [2]int{e[0], e[1]})
	}
	if _, ok := object["nodes"]; !ok {
		if g.nodes = max(len(g.labels), len(g.attributes)); g.nodes == 0 {
			return nil, errors.New(`nothing says how many nodes there are; want "nodes", "labels" or "attributes"`)
		}
	}
	return g, nil
}

// field returns a number, a text or a truth value of an object; nothing for null or if
// there is none.
func field(object map[string]json.RawMessage, name string) (string, error) {
	raw := object[name]
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '[' || raw[0] == '{':
		return "", fmt.Errorf("%q: want a number or a text", name)
	case json.Unmarshal(raw, &text) == nil:
		return text, nil
	}
	return string(raw), nil
}

// Table is the records of a file, all in memory.
type Table struct {
	Records  []*Record      // those that can be used
	Rejected []*SyntaxError // the others
	// Set has the graphs of Records, and says what their features are, which have
	// RecordOptions.Columns if those are given. Of molecules it has the graphs only.
	Set     *Dataset
	Content Content
}

// ReadTable reads a file as [ReadRecords] does, and finds the columns of features that
// all graphs together need. Graphs that have other kinds of features than the first
// are rejected. It is an error if no record can be used.
func ReadTable(ctx context.Context, path string, o RecordOptions) (*Table, error) {
	t := new(Table)
	var raws []*rawGraph
	r := &recordReader{file: path, o: o}
	r.emit = func(rec *Record) error {
		if rec.raw != nil && rec.Err == nil && o.Columns == nil {
			if len(raws) > 0 {
				if first := raws[0]; rec.raw.width() != first.width() || (rec.raw.labels == nil) != (first.labels == nil) {
					rec.Err = &SyntaxError{File: path, Line: rec.Line, Reason: fmt.Sprintf("nodes have %d attributes and labels (%v); those of the first graph %d and labels (%v)",
						rec.raw.width(), rec.raw.labels != nil, first.width(), first.labels != nil)}
				}
			}
			if rec.Err == nil {
				raws = append(raws, rec.raw)
			}
		}
		if rec.Err != nil {
			t.Rejected = append(t.Rejected, rec.Err)
			return nil
		}
		t.Records = append(t.Records, rec)
		return nil
	}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	if len(t.Records) == 0 {
		if len(t.Rejected) > 0 {
			return nil, fmt.Errorf("dataset: %s: no record of it can be used, such as %w", path, t.Rejected[0])
		}
		return nil, fmt.Errorf("dataset: %s: there are no records in it", path)
	}
	t.Content = r.content
	t.Set = &Dataset{Classes: 1, ClassValues: []int{0}, FeatureWidth: t.Records[0].Graph.X.Width}
	switch {
	case raws != nil:
		var err error
		if t.Set, err = datasetOf(raws); err != nil {
			return nil, fmt.Errorf("dataset: %s: %w", path, err)
		}
		for i, rec := range t.Records {
			rec.Graph = t.Set.Graphs[i]
		}
	case r.tu != nil && o.Columns == nil:
		t.Set = r.tu
	default:
		for _, rec := range t.Records {
			t.Set.Graphs = append(t.Set.Graphs, rec.Graph)
		}
	}
	t.Set.Name, _, _ = strings.Cut(filepath.Base(path), ".")
	return t, nil
}
