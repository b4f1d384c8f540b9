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

// nodeLink puts the parts of a graph in place of those of a node-link object: nodes get
// numbers in their order. A node may have a "label", a whole number, and "attributes", a list
// of numbers; other keys of nodes and edges are not read, and are returned.
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
	number := map[string]int{}
	unread := map[string]bool{}
	parts := map[string][]json.RawMessage{}
	for i, node := range nodes {
		id := string(node["id"])
		if _, ok := number[id]; ok || id == "" {
			return nil, fmt.Errorf("node %d: the id %s is missing or there twice", i, id)
		}
		number[id] = i
		for key, value := range node {
			switch key {
			case "id":
			case "label", "attributes":
				parts[key] = append(parts[key], value)
			default:
				unread[key] = true
			}
		}
	}
	pairs := [][2]int{}
	for i, edge := range edges {
		source, okS := number[string(edge["source"])]
		target, okT := number[string(edge["target"])]
		if !okS || !okT {
			return nil, fmt.Errorf("edge %d, from %s to %s: there is no such node",
				i, edge["source"], edge["target"])
		}
		pairs = append(pairs, [2]int{source, target})
		for key := range edge {
			if key != "source" && key != "target" && key != "key" {
				if err := o.refused(key); err != nil {
					return nil, err
				}
				unread[key] = true
			}
		}
	}
	for key, values := range parts {
		if len(values) != len(nodes) {
			return nil, fmt.Errorf("%d of %d nodes have %q", len(values), len(nodes), key)
		}
		delete(unread, key)
	}
	put := func(key string, v any) {
		text, _ := json.Marshal(v) // of numbers, and of what has been JSON
		object[key] = text
	}
	delete(object, "links")
	delete(object, "multigraph")
	if string(object["graph"]) == "{}" {
		delete(object, "graph")
	}
	put("nodes", len(nodes))
	put("edges", pairs)
	if parts["label"] != nil {
		put("labels", parts["label"])
	}
	if parts["attributes"] != nil {
		put("attributes", parts["attributes"])
	}
	for key := range unread {
		if err := o.refused(key, "label", "attributes"); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(unread)), nil
}
