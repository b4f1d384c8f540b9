package records

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

// tuGraph is the body of a graph in TUDataset's format: the set with that graph alone.
type tuGraph dataset.Dataset

// openTU reads a set in TUDataset's format, all of it at once.
func (r *reader) openTU() (next func() (*Record, error), err error) {
	if err := r.setContent(Graphs); err != nil {
		return nil, err
	}
	r.set, err = dataset.LoadTU(r.ctx, r.file, dataset.Options{NodeAttributes: true})
	if err != nil {
		return nil, err
	}
	values := tuFields(r.set)
	for _, name := range append(slices.Clone(r.o.Fields), r.o.ID) {
		if values[name] == nil && name != "" {
			return nil, fmt.Errorf("dataset: %s: has no %q; it has %s",
				r.file, name, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
		}
	}
	r.describeTU()
	current := 0
	empty := r.set.Empty
	return func() (*Record, error) {
		if current == len(r.set.Graphs) && len(empty) == 0 {
			return nil, io.EOF
		}
		rec := r.record(r.number + 1)
		if len(empty) > 0 && empty[0] == rec.Number-1 {
			empty = empty[1:]
			rec.Err = &dataset.SyntaxError{File: r.file, Line: rec.Line, Reason: noNodes}
			return rec, nil
		}
		one := tuGraph(*r.set)
		one.Graphs = r.set.Graphs[current : current+1]
		rec.body = &one
		rec.size = one.Graphs[0].Nodes()
		for _, name := range r.o.Fields {
			rec.Fields = append(rec.Fields, values[name](current))
		}
		if r.o.ID != "" {
			rec.ID = values[r.o.ID](current)
		}
		current++
		return rec, nil
	}, nil
}

// tuFields returns the fields of the graphs of a set, by their names: functions of a graph's index.
func tuFields(set *dataset.Dataset) map[string]func(index int) string {
	values := map[string]func(index int) string{}
	if len(set.Targets) == 0 || strings.HasPrefix(set.Targets[0].Name, "attribute") && set.Classes > 1 {
		values["class"] = func(index int) string {
			return strconv.Itoa(set.ClassValues[set.Graphs[index].Class])
		}
	}
	for _, t := range set.Targets {
		values[t.Name] = func(index int) string {
			return formatTarget(t.Values[index])
		}
	}
	return values
}

// formatTarget writes a whole number without an exponent, as it stands in the file: it may be the name of a class.
func formatTarget(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// describeTU says in the reading what is used of the set.
func (r *reader) describeTU() {
	if len(r.set.NodeLabels) > 0 {
		r.reading.Labels = "node_labels"
	}
	if r.set.NodeAttributes > 0 {
		r.reading.Attributes = []string{"node_attributes"}
	}
	if len(r.set.EdgeLabels) > 0 {
		r.reading.Unused = []string{"edge_labels"}
	}
	for _, t := range r.set.Targets {
		if !slices.Contains(r.o.Fields, t.Name) {
			r.reading.Unused = append(r.reading.Unused, t.Name)
		}
	}
	r.reading.Directed = r.set.Directed()
	r.reading.SelfLoops = r.set.SelfLoops
	r.reading.Repeats = r.set.Duplicates
}

func (one *tuGraph) build(w *worker, _ *Record) (*graph.Graph, error) {
	if w.o.Columns == nil {
		return one.Graphs[0], nil
	}
	with, err := (*dataset.Dataset)(one).WithColumns(*w.o.Columns)
	if err != nil { // say it without the set's name and the index of its only graph
		return nil, errors.New(strings.TrimPrefix(errors.Unwrap(err).Error(), "graph 0: "))
	}
	return with.Graphs[0], nil
}
