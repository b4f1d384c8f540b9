package records

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
)

// ogb reads a set of graphs in a folder of the Open Graph Benchmark. The folder raw has tables without
// headers, which list the nodes and edges of one graph after another. The folder split/SCHEME lists the
// graphs of each set of a split.
type ogb struct {
	*reader
	nodes, edgeCounts *ogbTable // a number for each graph
	edges, features   *ogbTable // features is nil if nodes have none
	labels            *ogbTable // nil if no field needs it
	split             map[int]string
}

// ogbTable is a table without a header.
type ogbTable struct {
	text  *textfile.Text
	lines *textfile.Lines
}

// isOGB reports whether a folder is one of the Open Graph Benchmark.
func isOGB(dir string) bool {
	_, err := textfile.Find(filepath.Join(dir, "raw"), "num-node-list.csv.gz", "num-node-list.csv")
	return err == nil
}

// openOGB opens a folder of the Open Graph Benchmark. Its fields are "y", or "y1", "y2" … for several
// tasks, and "split": train, valid or test by its only scheme.
func (r *reader) openOGB() (next func() (*Record, error), err error) {
	if err := r.setContent(Graphs); err != nil {
		return nil, err
	}
	if r.o.ID != "" {
		return nil, fmt.Errorf("dataset: %s: graphs of the Open Graph Benchmark have no %q",
			r.file, r.o.ID)
	}
	o := &ogb{reader: r}
	for _, table := range []struct {
		name     string
		into     **ogbTable
		optional bool
	}{
		{"num-node-list", &o.nodes, false},
		{"num-edge-list", &o.edgeCounts, false},
		{"edge", &o.edges, false},
		{"node-feat", &o.features, true},
		{"graph-label", &o.labels, len(r.o.Fields) == 0},
	} {
		*table.into, err = o.open(table.name)
		if err != nil && !(table.optional && errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
	}
	if o.features != nil {
		r.reading.Attributes = []string{"node-feat"}
	}
	if _, err := textfile.Find(
		filepath.Join(r.file, "raw"), "edge-feat.csv.gz", "edge-feat.csv",
	); err == nil {
		r.reading.Unused = []string{"edge-feat"}
	}
	if slices.Contains(r.o.Fields, "split") {
		if err := o.readSplit(); err != nil {
			return nil, err
		}
	}
	return o.next, nil
}

// open opens a table of the folder raw.
func (o *ogb) open(name string) (*ogbTable, error) {
	path, err := textfile.Find(filepath.Join(o.file, "raw"), name+".csv.gz", name+".csv")
	if err != nil {
		return nil, err
	}
	text, err := textfile.Open(o.ctx, path, nil)
	if err != nil {
		return nil, err
	}
	o.closers = append(o.closers, text)
	return &ogbTable{text, text.Lines()}, nil
}

// row reads the fields of the next row.
func (t *ogbTable) row() (fields []string, err error) {
	line, err := t.lines.Next()
	return strings.Split(line, ","), err
}

// integers reads the next row of n whole numbers.
func (t *ogbTable) integers(n int) ([]int, error) {
	fields, err := t.row()
	if err != nil {
		return nil, t.early(err)
	}
	if len(fields) != n {
		return nil, t.bad(fmt.Sprintf("%d numbers, want %d", len(fields), n))
	}
	row := make([]int, n)
	for k, text := range fields {
		row[k], err = parseWhole(strings.TrimSpace(text))
		if err != nil || row[k] < 0 {
			return nil, t.bad(fmt.Sprintf("%q is not a whole number from 0 on", textfile.Shorten(text)))
		}
	}
	return row, nil
}

// bad returns an error about the current line.
func (t *ogbTable) bad(reason string) error {
	return &dataset.SyntaxError{File: t.text.Name, Line: t.lines.Line, Reason: reason}
}

// early turns the end of the table into an error.
func (t *ogbTable) early(err error) error {
	if err == io.EOF {
		return t.bad("the table ends too early")
	}
	return err
}

// next reads the next graph. Errors end the reading, as the tables are aligned by their lines.
func (o *ogb) next() (*Record, error) {
	line, err := o.nodes.lines.Next()
	if err != nil {
		return nil, err
	}
	nodes, err := parseWhole(line)
	if err != nil || nodes < 0 || nodes > maxNodes {
		return nil, o.nodes.bad(fmt.Sprintf("%q nodes; want 0 to %d", textfile.Shorten(line), maxNodes))
	}
	count, err := o.edgeCounts.integers(1)
	if err != nil {
		return nil, err
	}
	if count[0] > maxGraphNumbers {
		return nil, o.edgeCounts.bad(fmt.Sprintf("a graph of more than %d edges", maxGraphNumbers))
	}
	rec := o.record(o.number + 1)
	g := &rawGraph{nodes: nodes}
	for range count[0] {
		edge, err := o.edges.integers(2)
		if err != nil {
			return nil, err
		}
		g.edges = append(g.edges, [2]int{edge[0], edge[1]})
	}
	if o.features != nil {
		if err := o.readFeatures(g); err != nil {
			return nil, err
		}
	}
	rec.body = g
	rec.size = g.nodes*max(1, g.width()) + 2*len(g.edges)
	return rec, o.readFields(rec)
}

// readFeatures reads the attributes of the nodes of a graph.
func (o *ogb) readFeatures(g *rawGraph) error {
	for range g.nodes {
		fields, err := o.features.row()
		if err != nil {
			return o.features.early(err)
		}
		row := make([]float32, len(fields))
		for k, text := range fields {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 32)
			if err != nil || v-v != 0 {
				return o.features.bad(fmt.Sprintf("%q is not a finite number", textfile.Shorten(text)))
			}
			row[k] = float32(v)
		}
		g.attributes = append(g.attributes, row)
	}
	return nil
}

// readFields gives the record its fields.
func (o *ogb) readFields(rec *Record) error {
	if len(o.o.Fields) == 0 {
		return nil
	}
	labels, err := o.labels.row()
	if err != nil {
		return o.labels.early(err)
	}
	for _, name := range o.o.Fields {
		task, err := strconv.Atoi(strings.TrimPrefix(name, "y"))
		value := ""
		switch {
		case name == "split":
			value = o.split[rec.Number-1]
		case name == "y" && len(labels) == 1:
			value = labels[0]
		case strings.HasPrefix(name, "y") && err == nil && task >= 1 && task <= len(labels):
			value = labels[task-1]
		default:
			return fmt.Errorf("dataset: %s: has no %q; it has split and y, or y1 to y%d",
				o.file, name, len(labels))
		}
		value = strings.TrimSpace(value)
		if strings.EqualFold(value, "nan") {
			value = "" // missing
		}
		rec.Fields = append(rec.Fields, value)
	}
	return nil
}

// readSplit reads which graphs are in which set of the only splitting scheme.
func (o *ogb) readSplit() error {
	dir := filepath.Join(o.file, "split")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() })
	if len(entries) != 1 {
		return fmt.Errorf("dataset: %s: %d splitting schemes; want one", dir, len(entries))
	}
	o.split = map[int]string{}
	for _, set := range []string{"train", "valid", "test"} {
		path, err := textfile.Find(filepath.Join(dir, entries[0].Name()), set+".csv.gz", set+".csv")
		if err != nil {
			return err
		}
		text, err := textfile.Open(o.ctx, path, nil)
		if err != nil {
			return err
		}
		defer text.Close()
		lines := text.Lines()
		for line, err := lines.Next(); err != io.EOF; line, err = lines.Next() {
			if err != nil {
				return err
			}
			index, err := parseWhole(line)
			if err != nil {
				return &dataset.SyntaxError{
					File:   path,
					Line:   lines.Line,
					Value:  textfile.Shorten(line),
					Reason: "want the number of a graph",
				}
			}
			o.split[index] = set
		}
	}
	return nil
}
