package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/graph"
)

// parts are the keys that describe a graph.
var parts = []string{"nodes", "edges", "labels", "attributes", "directed", "edge_labels", "edge_weights"}

// jsonLine is the body of a graph that is a line of JSON.
type jsonLine string

func (r *reader) openJSONL() (next func() (*Record, error), err error) {
	if err := r.setContent(Graphs); err != nil {
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

func (text jsonLine) build(w *worker, rec *Record) (*graph.Graph, error) {
	if err := textfile.CheckUTF8(string(text)); err != nil {
		return nil, err
	}
	object, err := text.object()
	if err != nil {
		return nil, err
	}
	if err := rec.takeKeys(object, w.o); err != nil {
		return nil, err
	}
	// Other programs' layouts become the keys of this one.
	var unused []string
	isLabelled := false // by edge_attr
	switch {
	case isNodeLink(object):
		unused, err = w.o.nodeLink(object)
	case isEdgeIndex(object):
		isLabelled, err = w.o.fromEdgeIndex(object)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"labels", "attributes", "edge_labels", "edge_weights"} {
		if object[name] != nil && w.o.skips(name, name) {
			delete(object, name)
			unused = append(unused, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name == w.o.ID || slices.Contains(w.o.Fields, name) || slices.Contains(parts, name) {
			continue
		}
		if err := w.o.refused(name, parts...); err != nil {
			return nil, err
		}
		unused = append(unused, name)
	}
	g, err := decodeGraph(object)
	if err != nil {
		return nil, err
	}
	g.byEdgeAttr = isLabelled
	w.notes.note(unused, g)
	return g.build(w, rec)
}

// object returns the keys of the line and their values.
func (text jsonLine) object() (object map[string]json.RawMessage, err error) {
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		var e *json.SyntaxError
		if errors.As(err, &e) {
			return nil, text.syntaxError(e)
		}
		return nil, errors.New("want a JSON object")
	}
	if n := keys(string(text)); n != len(object) {
		return nil, fmt.Errorf("a key is there twice: %d keys have %d names", n, len(object))
	}
	return object, nil
}

// syntaxError returns an error with the place of a syntax error. Python's json.dumps writes NaN and Infinity, which
// JSON does not have.
func (text jsonLine) syntaxError(e *json.SyntaxError) error {
	start := max(0, int(e.Offset)-1) // of what is wrong
	for _, name := range []string{"NaN", "Infinity"} {
		if strings.HasPrefix(string(text[start:]), name) {
			return fmt.Errorf("column %d: %s is not JSON: fill missing values, or write null for a missing target",
				e.Offset, name)
		}
	}
	return fmt.Errorf("column %d: %v", e.Offset, e)
}

// takeKeys gives the record its ID and its fields.
func (rec *Record) takeKeys(object map[string]json.RawMessage, o *Options) error {
	if o.ID != "" {
		id, err := field(object, o.ID, false)
		if err != nil {
			return err
		}
		if id == "" {
			return fmt.Errorf("there is no %q, which is to name the graph", o.ID)
		}
		rec.ID = id
	}
	for _, name := range o.Fields {
		value, err := field(object, name, true)
		if err != nil {
			return err
		}
		rec.Fields = append(rec.Fields, value)
	}
	return nil
}

// decodeGraph returns the graph that the parts of an object describe.
func decodeGraph(object map[string]json.RawMessage) (*rawGraph, error) {
	g := &rawGraph{}
	isCounted := false // whether the object says how many nodes there are
	var edges [][]int
	for _, part := range []struct {
		key, want string
		into      any
	}{
		{"nodes", "the number of nodes", &g.nodes},
		{"edges", "pairs of nodes, as in [[0,1],[1,2]]", &edges},
		{"attributes", "a list of numbers for each node", &g.attributes},
		{"directed", "true or false", &g.directed},
		{"edge_weights", "a number for each edge", &g.weights},
	} {
		value, ok := object[part.key]
		ok = ok && string(value) != "null"
		if !ok && part.key == "edges" {
			return nil, errors.New(`there are no "edges"; want ` + part.want)
		}
		if !ok {
			continue
		}
		if err := json.Unmarshal(value, part.into); err != nil || bytes.Contains(value, []byte("null")) {
			if err := numberError(part.key, value); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%q: want %s", part.key, part.want)
		}
		isCounted = isCounted || part.key == "nodes"
	}
	if g.labels.decode(object["labels"]) != nil {
		return nil, errors.New(`"labels": want a whole number or a text for each node`)
	}
	if g.edgeLabels.decode(object["edge_labels"]) != nil {
		return nil, errors.New(`"edge_labels": want a whole number or a text for each edge`)
	}
	for _, e := range edges {
		if len(e) != 2 {
			return nil, fmt.Errorf(`"edges": %v is not a pair of nodes`, e)
		}
		g.edges = append(g.edges, [2]int{e[0], e[1]})
	}
	if !isCounted {
		g.nodes = max(g.labels.len(), len(g.attributes))
		if g.nodes == 0 {
			return nil, errors.New(
				`nothing says how many nodes there are; want "nodes", "labels" or "attributes"`,
			)
		}
	}
	return g, nil
}

// numberError returns an error that names the first number that is missing or too large among attributes of nodes or
// weights of edges, nil if there is none.
func numberError(key string, value json.RawMessage) error {
	switch key {
	case "attributes":
		var rows [][]json.RawMessage
		if json.Unmarshal(value, &rows) != nil {
			return nil
		}
		for node, row := range rows {
			for k, number := range row {
				if fault := numberFault(number); fault != "" {
					return fmt.Errorf("%q: attribute %d of node %d %s", key, k, node, fault)
				}
			}
		}
	case "edge_weights":
		var weights []json.RawMessage
		if json.Unmarshal(value, &weights) != nil {
			return nil
		}
		for edge, number := range weights {
			if fault := numberFault(number); fault != "" {
				return fmt.Errorf("%q: the weight of edge %d %s", key, edge, fault)
			}
		}
	}
	return nil
}

// numberFault says what is wrong with a number, "" if nothing is.
func numberFault(number json.RawMessage) string {
	_, err := strconv.ParseFloat(string(number), 32)
	switch {
	case string(number) == "null":
		return "is null, which is no finite number: fill missing values, or leave the graph out"
	case errors.Is(err, strconv.ErrRange):
		return fmt.Sprintf("is %s, beyond ±%.2g, the largest float32: take another unit or the logarithm",
			textfile.Shorten(string(number)), math.MaxFloat32)
	}
	return ""
}

// fromEdgeIndex replaces the keys of a graph in the layout of Hugging Face's data sets by the parts of
// this format. These keys are edge_index, two lists of nodes; num_nodes; node_feat, a list of numbers
// for each node; and edge_attr, if it is a list of one whole number for each edge, its label. It reports whether
// edge_attr is the labels.
func (o *Options) fromEdgeIndex(object map[string]json.RawMessage) (isLabelled bool, err error) {
	var index [][]int
	err = json.Unmarshal(object["edge_index"], &index)
	if err != nil || len(index) != 2 || len(index[0]) != len(index[1]) ||
		bytes.Contains(object["edge_index"], []byte("null")) {
		return false, errors.New(`"edge_index": want two lists of nodes of the same length`)
	}
	edges := make([][2]int, len(index[0]))
	for k := range edges {
		edges[k] = [2]int{index[0][k], index[1][k]}
	}
	object["edges"], _ = json.Marshal(edges)
	delete(object, "edge_index")
	for theirs, ours := range map[string]string{"num_nodes": "nodes", "node_feat": "attributes"} {
		value, ok := object[theirs]
		if !ok || slices.Contains(o.Ignore, theirs) {
			continue
		}
		if object[ours] != nil {
			return false, fmt.Errorf("has %q and %q: -ignore %[2]s drops the second", ours, theirs)
		}
		object[ours] = value
		delete(object, theirs)
	}
	labels := edgeLabelsOf(object["edge_attr"])
	isLabelled = labels != nil && object["edge_labels"] == nil && !slices.Contains(o.Ignore, "edge_attr")
	if isLabelled {
		object["edge_labels"], _ = json.Marshal(labels)
		delete(object, "edge_attr")
	}
	return isLabelled, nil
}

// edgeLabelsOf returns the labels of edges that have lists of one whole number, nil if theirs are other lists.
func edgeLabelsOf(attributes json.RawMessage) []int {
	var lists [][]int
	if json.Unmarshal(attributes, &lists) != nil || bytes.Contains(attributes, []byte("null")) {
		return nil
	}
	labels := make([]int, len(lists))
	for k, list := range lists {
		if len(list) != 1 {
			return nil
		}
		labels[k] = list[0]
	}
	return labels
}

// isEdgeIndex reports whether an object is a graph in the layout of Hugging Face's data sets.
func isEdgeIndex(object map[string]json.RawMessage) bool {
	return object["edge_index"] != nil && object["num_nodes"] != nil && object["edges"] == nil &&
		object["nodes"] == nil
}

// keys returns how many keys an object has, given its valid JSON text.
func keys(text string) (n int) {
	depth := 0
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ':' && depth == 1:
			n++
		}
	}
	return n
}

// field returns a number, a text or a truth value of an object as a text, "" for null or if there is
// none. If listed, it takes the value out of a list of one, or of a list of such a list.
func field(object map[string]json.RawMessage, name string, listed bool) (string, error) {
	raw := object[name]
	var text string
	for range 2 { // PyTorch Geometric lists a graph's y, and Hugging Face does so twice
		var list []json.RawMessage // raw may be in the last one, whose memory would be reused
		if listed && json.Unmarshal(raw, &list) == nil && len(list) == 1 {
			raw = list[0]
		}
	}
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
