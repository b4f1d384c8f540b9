package records

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

// tuGraph is the body of a graph of a set in TUDataset's format: the set with that
// graph only.
type tuGraph dataset.Dataset

// openTU reads a set in TUDataset's format.
func (r *reader) openTU() (next func() (*Record, error), err error) {
	if err := r.is(Graphs); err != nil {
		return nil, err
	}
	for _, name := range append(slices.Clone(r.o.Fields), cmp.Or(r.o.ID, "class")) {
		if name != "class" {
			return nil, fmt.Errorf("dataset: %s: has no %q; a set in TUDataset's format has a \"class\"", r.file, name)
		}
	}
	if r.set, err = dataset.LoadTU(r.ctx, r.file, dataset.Options{NodeAttributes: true}); err != nil {
		return nil, err
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
	r.reading.Directed = r.set.Directed()
	return func() (*Record, error) {
		if r.number == len(r.set.Graphs) {
			return nil, io.EOF
		}
		one := tuGraph(*r.set)
		one.Graphs = r.set.Graphs[r.number : r.number+1]
		rec := r.record(r.number + 1)
		rec.body, rec.size = &one, one.Graphs[0].Nodes()
		for range r.o.Fields {
			rec.Fields = append(rec.Fields, strconv.Itoa(one.ClassValues[one.Graphs[0].Class]))
		}
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
