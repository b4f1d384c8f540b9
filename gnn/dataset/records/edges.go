package records

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
)

// maxGraphNumbers bounds the edges and the attributes of one graph, which is in memory
// as a whole; a test has a lower one.
var maxGraphNumbers = 1 << 26

// isEdgeList reports whether a table with this header lists edges.
func isEdgeList(header []string) bool {
	return slices.Contains(header, "graph") && slices.Contains(header, "source") &&
		slices.Contains(header, "target")
}

// almostEdges returns the columns of a table of edges that has other names for them, "" if the header is
// not that of one.
func almostEdges(header []string) string {
	var found []string
	for _, names := range [][]string{
		{"graph", "graph_id", "graphid", "graph_idx"},
		{"source", "src", "from", "u", "source_id"},
		{"target", "dst", "to", "v", "target_id", "dest"},
	} {
		i := slices.IndexFunc(header, func(h string) bool {
			return slices.Contains(names, strings.ToLower(strings.TrimSpace(h)))
		})
		if i < 0 {
			return ""
		}
		found = append(found, header[i])
	}
	return strings.Join(found, ", ")
}

// edgeTable reads the rows of one graph after another. Rows of a graph stand
// together. A row with a source and no target describes a node, with its label and its
// attributes; nodes come before their edges. Other rows describe edges, perhaps with a label or a weight.
// Other columns are not read.
type edgeTable struct {
	*textfile.Rows
	graph, source, target, label int             // columns; label is -1 if there is none
	edgeLabel, weight            int             // columns, or -1
	fields                       []int           // columns of Options.Fields
	attributes                   []int           // columns, in the order of the features
	err                          error           // of the last row, which ends the table
	begun                        map[string]bool // graphs that have begun
	// damaged is the error of the row before this one, which may belong to either graph.
	damaged *dataset.SyntaxError
}

// openEdges opens a table of edges whose header has been read.
func (r *reader) openEdges(rows *textfile.Rows) (next func() (*Record, error), err error) {
	if err := r.setContent(Graphs); err != nil {
		return nil, err
	}
	if r.o.ID != "" && r.o.ID != "graph" {
		return nil, fmt.Errorf(
			"dataset: %s: graphs of a table of edges are named by its column graph, not %q",
			r.file, r.o.ID,
		)
	}
	_, fields, err := r.columns(rows)
	if err != nil {
		return nil, err
	}
	l := &edgeTable{
		Rows:      rows,
		label:     slices.Index(rows.Header, "label"),
		edgeLabel: -1,
		weight:    -1,
		fields:    fields,
		begun:     map[string]bool{},
	}
	if slices.Contains(fields, l.label) || r.o.skips("labels", "label") {
		l.label = -1
	}
	if err := l.assignColumns(r); err != nil {
		return nil, err
	}
	l.advance()
	return func() (*Record, error) {
		if l.err == io.EOF && r.number == 0 && l.damaged != nil { // no row can be read
			return nil, l.damaged
		}
		if l.err != nil {
			return nil, l.err
		}
		rec := r.record(l.Line(0))
		rec.take(l.Rows, l.graph, fields)
		rec.ID = strings.TrimSpace(rec.ID)
		if l.begun[rec.ID] {
			return nil, l.Bad(l.graph,
				"rows of a graph must stand together, and another graph's are between")
		}
		l.begun[rec.ID] = true
		rec.Err = cmp.Or(rec.Err, l.damaged)
		l.damaged = nil
		g := l.next(rec)
		if l.err != nil && l.err != io.EOF {
			return nil, l.err
		}
		rec.body = g
		rec.size = g.nodes*max(1, len(l.attributes)) + 2*len(g.edges)
		return rec, nil
	}, nil
}

// assignColumns finds out what each column is used for, and says so in the reading.
func (l *edgeTable) assignColumns(r *reader) error {
	named, err := r.namedAttributes()
	if err != nil {
		return err
	}
	for _, name := range named {
		i, err := l.Column(name)
		if err != nil {
			return err
		}
		if slices.Contains(l.fields, i) {
			return l.BadHeader(name, "a target or a column of the split cannot be an attribute as well")
		}
		l.attributes = append(l.attributes, i)
	}
	for i, name := range l.Header {
		switch {
		case name == "graph":
			l.graph = i
		case name == "source":
			l.source = i
		case name == "target":
			l.target = i
		case i == l.label || slices.Contains(l.fields, i) || slices.Contains(l.attributes, i):
		case named == nil && strings.HasPrefix(name, "attribute") && !slices.Contains(r.o.Ignore, name):
			l.attributes = append(l.attributes, i)
		case name == "edge_label" && !r.o.skips("edge_labels", name):
			l.edgeLabel = i
			r.reading.EdgeLabels = name
		case (name == "weight" || name == "edge_weight") && l.weight < 0 && !r.o.skips("edge_weights", name):
			l.weight = i
			r.reading.EdgeWeights = name
		default:
			if err := r.o.refused(name, "label", "edge_label", "edge_weight"); err != nil {
				_, doubled := l.Column(name)
				return cmp.Or(doubled, error(l.BadHeader("", err.Error())))
			}
			r.reading.Unused = append(r.reading.Unused, name)
		}
	}
	if err := l.checkNames(); err != nil {
		return err
	}
	r.reading.ID = "graph"
	r.reading.named = len(l.attributes) > 0
	if l.label >= 0 {
		r.reading.Labels = "label"
	}
	for _, i := range l.attributes {
		r.reading.Attributes = append(r.reading.Attributes, l.Header[i])
	}
	return nil
}

// checkNames returns an error if a column that is used has the name of another.
func (l *edgeTable) checkNames() error {
	columns := append([]int{l.graph, l.source, l.target, l.label, l.edgeLabel, l.weight}, l.attributes...)
	for _, i := range columns {
		if i < 0 {
			continue
		}
		if _, err := l.Column(l.Header[i]); err != nil {
			return err
		}
	}
	return nil
}

// namedAttributes returns the names of the attributes that the options or the model ask for, nil if
// neither does.
func (r *reader) namedAttributes() ([]string, error) {
	named := r.o.Attributes
	if c := r.o.Columns; c != nil && c.Names != nil {
		if named != nil && !slices.Equal(named, c.Names) {
			return nil, fmt.Errorf("dataset: %s: the model's attributes are %q, not %q",
				r.file, c.Names, named)
		}
		named = c.Names
	}
	return named, nil
}

// advance reads the next row, or the next after those that are damaged.
func (l *edgeTable) advance() {
	for {
		l.err = l.Rows.Next()
		bad, ok := l.err.(*dataset.SyntaxError)
		if !ok {
			return
		}
		if l.damaged == nil {
			l.damaged = bad
		}
	}
}

// next reads the rows of a graph, the first of which has been read. rec.Err becomes the first
// error of one of them. A damaged row spoils the graph before it and, unless that goes on, the
// one after it.
func (l *edgeTable) next(rec *Record) *rawGraph {
	g := &rawGraph{}
	number := map[string]int{}
	for l.err == nil && strings.TrimSpace(l.Row[l.graph]) == rec.ID {
		if rec.Err == nil {
			rec.Err = l.add(g, number)
		}
		if rec.Err == nil {
			rec.Err = l.addFields(rec)
		}
		l.advance()
		if l.damaged != nil && rec.Err == nil {
			rec.Err = l.damaged
		}
		if l.err == nil && strings.TrimSpace(l.Row[l.graph]) == rec.ID {
			l.damaged = nil
		}
	}
	return g
}

// addFields takes the fields of a row that those before lack, being blank or NA. A field that they have given another
// value is an error: which one is meant, nothing says.
func (l *edgeTable) addFields(rec *Record) *dataset.SyntaxError {
	for k, column := range l.fields {
		value := strings.TrimSpace(l.Row[column])
		previous := strings.TrimSpace(rec.Fields[k])
		if IsGap(value) || value == previous {
			continue
		}
		if !IsGap(previous) {
			return l.Bad(column, fmt.Sprintf("column %s: earlier rows of this graph have %q",
				l.Header[column], textfile.Shorten(previous)))
		}
		if err := textfile.CheckUTF8(value); err != nil {
			return l.Bad(column, err.Error())
		}
		rec.Fields[k] = strings.Clone(l.Row[column])
	}
	return nil
}

// add adds the node or the edge of a row to the graph. number maps the names of its nodes to their
// numbers.
func (l *edgeTable) add(g *rawGraph, number map[string]int) *dataset.SyntaxError {
	// A column of whole numbers with gaps is written as 1.0, where another is as 1.
	source := withoutFraction(strings.TrimSpace(l.Row[l.source]))
	target := withoutFraction(strings.TrimSpace(l.Row[l.target]))
	if source == "" {
		return l.Bad(l.source, "a node has no name")
	}
	for _, column := range []int{l.source, l.target} {
		if err := textfile.CheckUTF8(l.Row[column]); err != nil {
			return l.Bad(column, err.Error())
		}
	}
	if n := len(g.edges) + g.nodes*max(1, len(l.attributes)); n >= maxGraphNumbers {
		return l.Bad(l.graph, fmt.Sprintf("a graph of more than %d edges and numbers of nodes",
			maxGraphNumbers))
	}
	featured := l.label >= 0 || len(l.attributes) > 0
	_, hasTarget := number[target]
	if featured && !hasTarget && IsGap(target) {
		target = "" // as R writes it. A node called NA would have a row of its own before its edges.
	}
	if target == "" {
		if _, ok := number[source]; !ok {
			number[source] = g.nodes
			return l.addNode(g)
		}
		if featured {
			return l.Bad(l.source, "a node that was listed before")
		}
		return nil // an edge has named it before
	}
	var edge [2]int
	for k, name := range []string{source, target} {
		i, ok := number[name]
		if !ok && featured {
			return l.Bad([]int{l.source, l.target}[k],
				"a node without a row of its own before, with its label and attributes "+
					"and an empty target")
		}
		if !ok {
			i = g.nodes
			number[name] = i
			g.nodes++
		}
		edge[k] = i
	}
	g.edges = append(g.edges, edge)
	return l.addEdgeValues(g)
}

// addEdgeValues adds the label or the weight of the edge of a row.
func (l *edgeTable) addEdgeValues(g *rawGraph) *dataset.SyntaxError {
	if l.edgeLabel >= 0 {
		if err := g.edgeLabels.add(l.Row[l.edgeLabel]); err != nil {
			return l.Bad(l.edgeLabel, err.Error())
		}
	}
	if l.weight >= 0 {
		if err := g.addWeight(l.Row[l.weight]); err != nil {
			return l.Bad(l.weight, err.Error())
		}
	}
	return nil
}

// addNode adds the node of a row, with its features.
func (l *edgeTable) addNode(g *rawGraph) *dataset.SyntaxError {
	g.nodes++
	if l.label >= 0 {
		if err := g.labels.add(l.Row[l.label]); err != nil {
			return l.Bad(l.label, err.Error())
		}
	}
	if len(l.attributes) == 0 {
		return nil
	}
	row := make([]float32, len(l.attributes))
	for k, c := range l.attributes {
		v, err := strconv.ParseFloat(strings.TrimSpace(l.Row[c]), 32)
		if err != nil || v-v != 0 {
			return l.Bad(c, fmt.Sprintf("column %s: want a finite number, an attribute of the node",
				l.Header[c]))
		}
		row[k] = float32(v)
	}
	g.attributes = append(g.attributes, row)
	return nil
}
