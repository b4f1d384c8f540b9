package records

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

// tuGraph is the body of a graph of a set in TUDataset's format: the set with that
// graph only.
type tuGraph dataset.Dataset

func (r *reader) openTU() (next func() (*Record, error), err error) {
	if err := r.is(Graphs); err != nil {
		return nil, err
	}
	r.set, err = dataset.LoadTU(r.ctx, r.file, dataset.Options{NodeAttributes: true})
	if err != nil {
		return nil, err
	}
	values := map[string]func(index int) string{}
	if len(r.set.Targets) == 0 || strings.HasPrefix(r.set.Targets[0].Name, "attribute") && r.set.Classes > 1 {
		values["class"] = func(index int) string {
			return strconv.Itoa(r.set.ClassValues[r.set.Graphs[index].Class])
		}
	}
	for _, t := range r.set.Targets {
		values[t.Name] = func(index int) string {
			return strconv.FormatFloat(t.Values[index], 'g', -1, 64)
		}
	}
	for _, name := range append(slices.Clone(r.o.Fields), r.o.ID) {
		if values[name] == nil && name != "" {
			return nil, fmt.Errorf("dataset: %s: has no %q; it has %s",
				r.file, name, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
		}
	}
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

func (one *tuGraph) build(w *worker, _ *Record) (*graph.Graph, error) {
	if w.o.Columns == nil {
		return one.Graphs[0], nil
	}
	with, err := (*dataset.Dataset)(one).WithColumns(*w.o.Columns)
	if err != nil { // without the set's name and the number of its only graph
		return nil, errors.New(strings.TrimPrefix(errors.Unwrap(err).Error(), "graph 0: "))
	}
	return with.Graphs[0], nil
}
