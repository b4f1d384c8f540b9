package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// isNodeLink reports whether an object is a graph as networkx.node_link_data writes it: a list
// of nodes that are objects, and one of edges, under "links" or "edges".
func isNodeLink(object map[string]json.RawMessage) bool {
	var nodes []map[string]json.RawMessage
	raw, ok := object["nodes"]
	return ok && len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &nodes) == nil
}

// nodeLink replaces the keys of a node-link object by the parts of a graph: nodes get numbers in
// their order. A node may have a "label", a whole number or a text, and "attributes", a list of
// numbers, and an edge a "label" or a "weight". Other keys of nodes and edges are not read; they are
// returned.
func (o *Options) nodeLink(object map[string]json.RawMessage) (unused []string, err error) {
	var nodes, edges []map[string]json.RawMessage
	err = json.Unmarshal(object["nodes"], &nodes)
	name := "links"
	if _, ok := object[name]; !ok {
		name = "edges"
	}
	err = errors.Join(err, json.Unmarshal(object[name], &edges))
	if err != nil {
		return nil, fmt.Errorf(
			`nodes are objects with an "id", so that %q want objects with "source" and "target"`,
			name,
		)
	}
	if name == "links" && object["edges"] != nil {
		return nil, errors.New(`has "links" and "edges"`)
	}
	unread := map[string]bool{}
	number, features, err := o.linkNodes(nodes, unread)
	if err != nil {
		return nil, err
	}
	pairs, ofEdges, err := o.linkEdges(edges, number, unread)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		checkAll(features, len(nodes), "nodes"), checkAll(ofEdges, len(edges), "edges"),
	); err != nil {
		return nil, err
	}
	for key := range features {
		delete(unread, key)
	}
	for _, key := range slices.Sorted(maps.Keys(unread)) {
		if err := o.refused(key, "label", "attributes"); err != nil {
			return nil, err
		}
	}
	// The parts take the place of the keys.
	delete(object, "links")
	delete(object, "multigraph")
	if string(object["graph"]) == "{}" {
		delete(object, "graph")
	}
	object["nodes"], _ = json.Marshal(len(nodes)) // as all of these, of numbers and of what has been JSON
	object["edges"], _ = json.Marshal(pairs)
	for key, values := range map[string][]json.RawMessage{
		"labels":       features["label"],
		"attributes":   features["attributes"],
		"edge_labels":  ofEdges["label"],
		"edge_weights": ofEdges["weight"],
	} {
		if values != nil {
			object[key], _ = json.Marshal(values)
		}
	}
	return slices.Sorted(maps.Keys(unread)), nil
}

// checkAll returns an error unless all of the n nodes or edges have each of the features.
func checkAll(features map[string][]json.RawMessage, n int, items string) error {
	for _, key := range slices.Sorted(maps.Keys(features)) {
		if count := len(features[key]); count != n {
			return fmt.Errorf("%d of %d %s have %q", count, n, items, key)
		}
	}
	return nil
}

// linkNodes numbers the nodes by their id, and returns their labels and attributes by key. It notes other
// keys in unread.
func (o *Options) linkNodes(nodes []map[string]json.RawMessage, unread map[string]bool) (
	number map[string]int, features map[string][]json.RawMessage, err error,
) {
	number = map[string]int{}
	features = map[string][]json.RawMessage{}
	for i, node := range nodes {
		id := string(node["id"])
		if _, ok := number[id]; ok || id == "" {
			return nil, nil, fmt.Errorf("node %d: the id %s is missing or there twice", i, id)
		}
		number[id] = i
		for key, value := range node {
			switch {
			case key == "id":
			case key == "label" && !o.skips("labels", key), key == "attributes" && !o.skips(key, key):
				features[key] = append(features[key], value)
			default:
				unread[key] = true
			}
		}
	}
	return number, features, nil
}

// linkEdges returns the edges as pairs of nodes, and their labels and weights by key. It notes other keys
// in unread.
func (o *Options) linkEdges(
	edges []map[string]json.RawMessage, number map[string]int, unread map[string]bool,
) (pairs [][2]int, features map[string][]json.RawMessage, err error) {
	features = map[string][]json.RawMessage{}
	pairs = make([][2]int, 0, len(edges))
	for i, edge := range edges {
		source, okS := number[string(edge["source"])]
		target, okT := number[string(edge["target"])]
		if !okS || !okT {
			return nil, nil, fmt.Errorf("edge %d, from %s to %s: there is no such node",
				i, edge["source"], edge["target"])
		}
		pairs = append(pairs, [2]int{source, target})
		for _, key := range slices.Sorted(maps.Keys(edge)) {
			switch {
			case key == "source" || key == "target" || key == "key":
			case key == "label" && !o.skips("edge_labels", key),
				key == "weight" && !o.skips("edge_weights", key):
				features[key] = append(features[key], edge[key])
			default:
				if err := o.refused(key, "edge_label", "edge_weight"); err != nil {
					return nil, nil, err
				}
				unread[key] = true
			}
		}
	}
	return pairs, features, nil
}
