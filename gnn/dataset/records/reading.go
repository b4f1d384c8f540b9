package records

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/dataset/suggest"
)

// Reading says what is used of a file, and for what. It is complete when [Read] has returned.
type Reading struct {
	Content    Content
	SMILES     string   // the column of molecules, of a table
	ID         string   // the column or key of the IDs
	Fields     []string // the columns or keys of [Options.Fields]
	Absent     []string // the Fields that no record of an SD file has, sorted; skipped records count
	Labels     string   // the column or key of the nodes' labels; "" if there is none
	Attributes []string // the columns of the nodes' attributes, or the key
	// EdgeLabels and EdgeWeights are the column or key of the edges' labels or weights; "" if there is none.
	EdgeLabels, EdgeWeights string
	// Directed is how many graphs in TUDataset's format list an edge in one direction only, and
	// so are directed.
	Directed int
	// Unused are the columns and keys that are not used: columns in the order of the header, keys sorted.
	Unused []string
	// SelfLoops and Repeats are how many edges are dropped: the distinct ones that join a node to itself,
	// and those that are listed again.
	SelfLoops, Repeats int
	// Records is the number of records without those that are skipped, and Rejected how many
	// of them cannot be used.
	Records, Rejected int

	named bool // whether the attributes have names
}

// String returns the reading as a line of text, without a line end.
func (r Reading) String() string {
	parts := []string{fmt.Sprintf("%d %s", r.Records, r.Content)}
	if r.Rejected > 0 {
		parts[0] += fmt.Sprintf(", of which %d are skipped", r.Rejected)
	}
	add := func(role string, names ...string) {
		parts = appendRole(parts, role, names...)
	}
	add("SMILES", r.SMILES)
	add("id", r.ID)
	add("also read", r.present()...)
	if features := r.Features(); features != "" {
		parts = append(parts, features)
	}
	if r.Directed > 0 {
		parts = append(parts, fmt.Sprintf(
			"%d of the graphs directed, an edge being listed in one direction only",
			r.Directed,
		))
	}
	if dropped := droppedEdges(r.SelfLoops, r.Repeats); dropped != "" {
		parts = append(parts, dropped+" dropped")
	}
	add("not used", r.Unused...)
	return strings.Join(parts, "; ")
}

// lacks reports whether a field is absent.
func (r Reading) lacks(field string) bool { return slices.Contains(r.Absent, field) }

// present returns the fields that are not absent.
func (r Reading) present() []string { return slices.DeleteFunc(slices.Clone(r.Fields), r.lacks) }

// NoValue returns the message about a field of which no record has a value. It suggests another name, above all one
// that is not used.
func (r Reading) NoValue(field string) string {
	names := slices.Clone(r.Unused)
	if r.lacks(field) { // of an SD file
		names = append(names, r.present()...)
		names = append(names, title)
	}
	return fmt.Sprintf("no record has a value of %s%s", field, suggest.DidYouMean(field, names))
}

// Askable returns the columns that can be asked for by their names: those whose names are neither empty nor doubled.
func Askable(columns []string) (names []string) {
	counts := map[string]int{}
	for _, name := range columns {
		counts[name]++
	}
	for _, name := range columns {
		if name != "" && counts[name] == 1 {
			names = append(names, name)
		}
	}
	return names
}

// Features returns the part of the line about the features of nodes and edges, which a model keeps; "" for
// molecules.
func (r Reading) Features() string {
	parts := appendRole(
		appendRole(nil, "labels of nodes", r.Labels), "attributes of nodes", r.Attributes...,
	)
	if r.Content == Graphs && parts == nil {
		parts = []string{"no features of nodes"}
	}
	parts = appendRole(parts, "labels of edges", r.EdgeLabels)
	parts = appendRole(parts, "weights of edges", r.EdgeWeights)
	return strings.Join(parts, "; ")
}

// droppedEdges counts the dropped edges in words; "" if there are none.
func droppedEdges(loops, repeats int) string {
	var parts []string
	if loops > 0 {
		parts = append(parts, fmt.Sprintf("%d self-loops", loops))
	}
	if repeats > 0 {
		parts = append(parts, fmt.Sprintf("%d repeated edges", repeats))
	}
	return strings.Join(parts, " and ")
}

// appendRole appends a role with the names that have it, up to a dozen, unless none has.
func appendRole(parts []string, role string, names ...string) []string {
	const most = 12
	shown := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == ""
	})
	for i, name := range shown {
		shown[i] = textfile.Printable(name)
	}
	if hidden := len(shown) - most; hidden > 0 {
		shown = append(shown[:most], fmt.Sprintf("and %d more", hidden))
	}
	if len(shown) > 0 {
		parts = append(parts, role+" "+strings.Join(shown, ", "))
	}
	return parts
}

// notes collect what workers find out about the keys of their records.
type notes struct {
	sync.Mutex
	unused                  map[string]bool
	labels, attributes      bool
	edgeLabels, edgeWeights bool
}

// note adds the keys of a record that are not used, and the kinds of its graph's features.
func (n *notes) note(unused []string, g *rawGraph) {
	const most = 1000
	n.Lock()
	defer n.Unlock()
	n.labels = n.labels || g.labeled()
	n.attributes = n.attributes || g.attributes != nil
	n.edgeLabels = n.edgeLabels || !g.edgeLabels.empty()
	n.edgeWeights = n.edgeWeights || g.weights != nil
	for _, name := range unused {
		if len(n.unused) < most {
			n.unused[name] = true
		}
	}
}

// into completes the reading.
func (n *notes) into(r *Reading) {
	r.Unused = append(r.Unused, slices.Sorted(maps.Keys(n.unused))...)
	if n.labels {
		r.Labels = "labels"
	}
	if n.attributes {
		r.Attributes = []string{"attributes"}
	}
	if n.edgeLabels {
		r.EdgeLabels = "edge_labels"
	}
	if n.edgeWeights {
		r.EdgeWeights = "edge_weights"
	}
}

// meant maps the names that other programs have for parts of a graph to the names here. Features of
// edges that are not read are mapped to "".
var meant = map[string]string{
	"weight":          "edge_weights",
	"weights":         "edge_weights",
	"edge_weight":     "edge_weights",
	"edge_weights":    "edge_weights",
	"edge_attr":       "",
	"edge_attrs":      "",
	"edge_attribute":  "",
	"edge_attributes": "",
	"edge_label":      "edge_labels",
	"edge_labels":     "edge_labels",
	"edge_feature":    "",
	"edge_features":   "",
	"edge_type":       "edge_labels",
	"edge_types":      "edge_labels",
	"label":           "labels",
	"node_label":      "labels",
	"node_labels":     "labels",
	"node_type":       "labels",
	"node_types":      "labels",
	"x":               "attributes",
	"attribute":       "attributes",
	"attr":            "attributes",
	"attrs":           "attributes",
	"feat":            "attributes",
	"feature":         "attributes",
	"features":        "attributes",
	"node_attr":       "attributes",
	"node_attrs":      "attributes",
	"node_attribute":  "attributes",
	"node_attributes": "attributes",
	"node_feat":       "attributes",
	"node_feature":    "attributes",
	"node_features":   "attributes",
	"edge":            "edges",
	"edge_index":      "edges",
	"edge_list":       "edges",
	"links":           "edges",
	"adj":             "edges",
	"adjacency":       "edges",
	"node":            "nodes",
	"num_nodes":       "nodes",
	"n_nodes":         "nodes",
	"is_directed":     "directed",
	"labels":          "labels",
	"attributes":      "attributes",
	"edges":           "edges",
	"nodes":           "nodes",
	"directed":        "directed",
}

// skips reports whether Ignore has one of the names of a part of the graph. It cannot skip what the model wants:
// predict ignores the names of targets, and nodes or edges may have a label of the same name.
func (o *Options) skips(part string, names ...string) bool {
	if !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.Ignore, name) }) {
		return false
	}
	switch c := o.Columns; {
	case c == nil:
	case part == "labels":
		return len(c.Labels) == 0
	case part == "attributes":
		return c.Attributes == 0
	case part == "edge_labels":
		return c.Edges == nil || c.Edges.Labels == nil
	case part == "edge_weights":
		return c.Edges == nil || !c.Edges.Weights
	}
	return true
}

// refused returns an error for the name of an unused column or key that was probably meant to be
// used: a part of the graph under another name, or a feature of edges. parts are the names of the
// parts in this format.
func (o *Options) refused(name string, parts ...string) error {
	part, ok := meant[strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(
		strings.TrimSpace(name),
	))]
	switch {
	case !ok || slices.Contains(o.Ignore, name):
		return nil
	case part == "":
		return fmt.Errorf(
			"%q: features of edges are not read, but for a label or a weight; "+
				"the graph is read without them if -ignore names it",
			name,
		)
	}
	for _, k := range parts {
		if k == part || k+"s" == part {
			return fmt.Errorf("%q is not read: is it meant to be %q? If not, -ignore names it", name, k)
		}
	}
	return nil
}
