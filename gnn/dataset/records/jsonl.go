package records

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/specmatch/specmatch/gnn/graph"
)

// jsonLine is the body of a graph that is a line of JSON.
type jsonLine string

// openJSONL reads a graph a line.
func (r *reader) openJSONL() (next func() (*Record, error), err error) {
	if err := r.is(Graphs); err != nil {
		return nil, err
	}
	if err := r.openText(); err != nil {
		return nil, err
	}
	lines := r.text.Lines()
	return func() (*Record, error) {
		text, rec, err := r.line(lines)
		if err == nil {
			rec.body = jsonLine(text)
		}
		return rec, err
	}, nil
}

// build fills the record from the object and builds its graph.
func (text jsonLine) build(w *worker, rec *Record) (*graph.Graph, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		var e *json.SyntaxError
		if errors.As(err, &e) {
			return nil, fmt.Errorf("column %d: %v", e.Offset, err)
		}
		return nil, errors.New("want a JSON object")
	}
	if w.o.ID != "" {
		id, err := field(object, w.o.ID)
		if err != nil {
			return nil, err
		}
		rec.ID = cmp.Or(id, rec.ID)
	}
	for _, name := range w.o.Fields {
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
	return g.build(w, rec)
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
