package dataset

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxGraphNumbers bounds the edges and the attributes of one graph, which is in memory
// as a whole; a test has a lower one.
var maxGraphNumbers = 1 << 26

// isEdgeList reports whether a table is of edges, by its header.
func isEdgeList(c *csvRows) bool {
	for _, name := range []string{"graph", "source", "target"} {
		if !slices.Contains(c.header, name) {
			return false
		}
	}
	return true
}

// edgeTable reads the rows of one graph after another. Rows of a graph stand
// together. A row with a source and no target is a node, with its label and its
// attributes; nodes come before the edges that have them.
type edgeTable struct {
	*csvRows
	graph, source, target, label int   // columns; label is -1 if there is none
	attributes                   []int // the other columns
	ended                        bool
	seen                         map[string]bool // graphs that have ended
}

// readEdgeList reads a table of edges.
func (r *recordReader) readEdgeList(c *csvRows) error {
	if err := r.is(GraphContent); err != nil {
		return err
	}
	if err := c.distinct(); err != nil {
		return err
	}
	if r.o.ID != "" && r.o.ID != "graph" {
		return fmt.Errorf("dataset: %s: graphs of a table of edges are named by its column graph, not %q", r.file, r.o.ID)
	}
	_, fields, err := r.positions(c)
	if err != nil {
		return err
	}
	l := &edgeTable{csvRows: c, label: slices.Index(c.header, "label"), seen: map[string]bool{}}
	for i, name := range c.header {
		switch name {
		case "graph":
			l.graph = i
		case "source":
			l.source = i
		case "target":
			l.target = i
		case "label":
		default:
			if !slices.Contains(fields, i) {
				l.attributes = append(l.attributes, i)
			}
		}
	}
	if err := l.advance(); err != nil {
		return err
	}
	for !l.ended {
		line, _ := c.r.FieldPos(0)
		rec, skip := r.record(line)
		rec.take(c.row, l.graph, fields)
		if l.seen[rec.ID] {
			return c.bad(l.graph, "rows of a graph must stand together, and another graph's are between")
		}
		l.seen[rec.ID] = true
		g, bad, err := l.next(rec.ID)
		switch {
		case err != nil:
			return err
		case skip:
		case bad != nil:
			rec.Err = bad
			err = r.emit(rec)
		default:
			err = r.rawRecord(rec, g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// advance reads the next row.
func (l *edgeTable) advance() error {
	ok, err := l.csvRows.next()
	l.ended = !ok
	if err == io.EOF {
		return nil
	}
	return err
}

// next reads the rows of a graph, the first of which has been read. bad is the first
// thing wrong with one of them; err ends the reading.
func (l *edgeTable) next(id string) (g *rawGraph, bad *SyntaxError, err error) {
	g = &rawGraph{}
	number := map[string]int{}
	for !l.ended && l.row[l.graph] == id {
		if bad == nil {
			err := l.add(g, number)
			if err != nil && !errors.As(err, &bad) {
				return nil, nil, err
			}
		}
		if err := l.advance(); err != nil {
			return nil, nil, err
		}
	}
	return g, bad, nil
}

// add takes a row into g.
func (l *edgeTable) add(g *rawGraph, number map[string]int) error {
	source, target := strings.TrimSpace(l.row[l.source]), strings.TrimSpace(l.row[l.target])
	if source == "" {
		return l.bad(l.source, "a node has no name")
	}
	if n := len(g.edges) + g.nodes*max(1, len(l.attributes)); n >= maxGraphNumbers {
		return l.bad(l.graph, fmt.Sprintf("a graph of more than %d edges and numbers of nodes", maxGraphNumbers))
	}
	featured := l.label >= 0 || len(l.attributes) > 0
	if target != "" {
		var e [2]int
		for k, name := range []string{source, target} {
			i, ok := number[name]
			if !ok {
				if featured {
					return l.bad([]int{l.source, l.target}[k], "a node without a row of its own before, with its label and attributes and an empty target")
				}
				i = g.nodes
				number[name] = i
				g.nodes++
			}
			e[k] = i
		}
		g.edges = append(g.edges, e)
		return nil
	}
	if _, ok := number[source]; ok {
		if !featured { // an edge has named it before
			return nil
		}
		return l.bad(l.source, "a node that was listed before")
	}
	number[source] = g.nodes
	g.nodes++
	if l.label >= 0 {
		v, err := strconv.Atoi(strings.TrimSpace(l.row[l.label]))
		if err != nil {
			return l.bad(l.label, "want a whole number, the node's label")
		}
		g.labels = append(g.labels, v)
	}
	if len(l.attributes) > 0 {
		row := make([]float32, len(l.attributes))
		for k, c := range l.attributes {
			v, err := strconv.ParseFloat(strings.TrimSpace(l.row[c]), 32)
			if err != nil || v-v != 0 {
				return l.bad(c, fmt.Sprintf("column %s: want a finite number, an attribute of the node", l.header[c]))
			}
			row[k] = float32(v)
		}
		g.attributes = append(g.attributes, row)
	}
	return nil
}
