package records

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Bounds of the nodes of one graph and of the numbers of its features, so that one wrong record
// does not ask for all of the memory.
const (
	maxNodes = 1 << 24
	maxDense = 1 << 28
)

// noNodes is the reason why a graph without nodes is dropped.
const noNodes = "the graph has no nodes"

// rawGraph is a graph as a file lists it, before its features have columns.
type rawGraph struct {
	nodes      int
	edges      [][2]int
	labels     labelList   // of the nodes
	attributes [][]float32 // of the nodes, or nil
	edgeLabels labelList
	weights    []float32 // of the edges, or nil
	directed   bool
	byEdgeAttr bool // edgeLabels are edge_attr in the file
}

// edgeLabelError returns an error about edgeLabels under the name that they have in the file.
func (g *rawGraph) edgeLabelError(err error) error {
	if err == nil || !g.byEdgeAttr {
		return err
	}
	return fmt.Errorf(`"edge_attr": %w; -ignore edge_attr reads the graph without them`, err)
}

// check returns an error unless the parts of the graph agree.
func (g *rawGraph) check() error {
	if g.nodes == 0 {
		return errors.New(noNodes)
	}
	if g.nodes < 1 || g.nodes > maxNodes {
		return fmt.Errorf("%d nodes; want 1 to %d", g.nodes, maxNodes)
	}
	if err := g.labels.check(g.nodes, "node"); err != nil {
		return err
	}
	if err := g.edgeLabels.check(len(g.edges), "edge"); err != nil {
		return g.edgeLabelError(err)
	}
	switch {
	case g.weights != nil && len(g.weights) != len(g.edges):
		return fmt.Errorf("%d weights for %d edges", len(g.weights), len(g.edges))
	case g.weights != nil && !g.edgeLabels.empty():
		return errors.New("edges have labels and weights, of which one can be read: -ignore names the other")
	}
	if g.attributes != nil && len(g.attributes) != g.nodes {
		return fmt.Errorf("attributes of %d nodes; there are %d", len(g.attributes), g.nodes)
	}
	for i, row := range g.attributes {
		switch width := len(g.attributes[0]); {
		case width == 0:
			return errors.New(
				"node 0 has an empty list of attributes; leave the attributes out if there are none",
			)
		case len(row) != width:
			return fmt.Errorf("node %d has %d attributes, node 0 has %d; want the same number",
				i, len(row), width)
		}
	}
	return nil
}

// labeled reports whether nodes have labels.
func (g *rawGraph) labeled() bool { return !g.labels.empty() }

func (g *rawGraph) width() int {
	if g.attributes == nil {
		return 0
	}
	return len(g.attributes[0])
}

// kinds says in words which features nodes and edges have.
func (g *rawGraph) kinds() string {
	text := fmt.Sprintf("%d attributes and labels (%v)", g.width(), g.labeled())
	switch {
	case !g.edgeLabels.empty():
		text += ", and edges have labels"
	case g.weights != nil:
		text += ", and edges have weights"
	}
	return text
}

// like reports whether g and h have the same kinds of features. A graph without edges may have any of theirs.
func (g *rawGraph) like(h *rawGraph) bool {
	sameEdges := g.edgeLabels.empty() == h.edgeLabels.empty() && (g.weights == nil) == (h.weights == nil)
	return g.width() == h.width() && g.labeled() == h.labeled() &&
		(sameEdges || len(g.edges) == 0 || len(h.edges) == 0)
}

// build returns the graph with the columns of the options, or else with its own. It stays the
// body of the record, for [ReadAll].
func (g *rawGraph) build(w *worker, rec *Record) (*graph.Graph, error) {
	rec.body = g
	if err := g.check(); err != nil {
		return nil, err
	}
	var columns graph.Columns
	if w.o.Columns != nil {
		columns = *w.o.Columns
	} else {
		var err error
		columns, err = columnsOf(g)
		if err != nil {
			return nil, err
		}
	}
	built, err := g.with(columns)
	if err == nil {
		rec.loops, rec.repeats = g.dropped(built)
	}
	return built, err
}

// dropped returns how many distinct self-loops the graph that was built lacks, and how many repeated edges, loops
// among them.
func (g *rawGraph) dropped(built *graph.Graph) (loops, repeats int) {
	looped := map[int]bool{}
	proper := 0
	for _, e := range g.edges {
		if e[0] == e[1] {
			looped[e[0]] = true
		} else {
			proper++
		}
	}
	loops = len(looped)
	repeats = len(g.edges) - proper - loops
	if !g.directed && built.Entries() == 2*proper || g.directed && built.Entries() == proper {
		return loops, repeats
	}
	distinct := make(map[[2]int]bool, proper) // an undirected edge may be listed in both directions
	for _, e := range g.edges {
		if e[0] != e[1] {
			distinct[e] = true
		}
	}
	return loops, repeats + proper - len(distinct)
}

// with returns the graph with features of these columns.
func (g *rawGraph) with(c graph.Columns) (*graph.Graph, error) {
	columns := 0
	if g.labeled() {
		columns = 1
	}
	if err := c.Match(g.width(), columns); err != nil {
		return nil, err
	}
	labels := g.labels.whole
	if len(c.Labels) > 0 {
		var err error
		labels, err = g.labels.in(c.Labels[0], "node")
		if err != nil {
			return nil, err
		}
	}
	if n := int64(g.nodes) * int64(c.Width()); n > maxDense &&
		(c.Attributes > 0 || c.DegreeColumns > 0) {
		return nil, fmt.Errorf("%d nodes of %d features each: %w: limit %d numbers",
			g.nodes, c.Width(), dataset.ErrTooLarge, maxDense)
	}
	fromEdges := graph.FromEdges
	if g.directed {
		fromEdges = graph.FromDirectedEdges
	}
	h, err := fromEdges(g.nodes, g.edges, graph.Features{})
	if err != nil {
		return nil, trim(err)
	}
	if c.Edges != nil {
		h.EdgeLabel, err = g.labelEntries(h, *c.Edges)
		if err != nil {
			return nil, err
		}
	}
	attributes := func(i int) []float32 { return g.attributes[i] }
	label := func(i, _ int) int { return labels[i] }
	return c.Apply(h, attributes, label)
}

// labelEntries returns what [graph.Graph.EdgeLabel] has for the entries of the graph that was built.
func (g *rawGraph) labelEntries(built *graph.Graph, values graph.EdgeValues) ([]int32, error) {
	labels, err := g.labelsOfEdges(values)
	if err != nil {
		return nil, err
	}
	ofPair := make(map[[2]int]int32, len(g.edges))
	for k, e := range g.edges {
		label, repeated := ofPair[e]
		if repeated && label != labels[k] {
			err := fmt.Errorf("edge %d joins %d and %d once more, with another label or weight", k, e[0], e[1])
			return nil, g.edgeLabelError(err)
		}
		ofPair[e] = labels[k]
		if !g.directed {
			ofPair[[2]int{e[1], e[0]}] = labels[k]
		}
	}
	entries := make([]int32, 0, len(built.Adj))
	for i := range built.Nodes() {
		for _, j := range built.Adj[built.Ptr[i]:built.Ptr[i+1]] {
			entries = append(entries, ofPair[[2]int{int(j), i}])
		}
	}
	return entries, nil
}

// labelsOfEdges returns the label of each edge that is listed, counted from the smallest value, or the one that
// stands for its weight.
func (g *rawGraph) labelsOfEdges(values graph.EdgeValues) ([]int32, error) {
	labels := make([]int32, len(g.edges))
	if len(labels) == 0 {
		return labels, nil
	}
	if values.Weights {
		if g.weights == nil {
			return nil, errors.New("edges have no weights, which the model wants")
		}
		for k, w := range g.weights {
			labels[k] = graph.WeightLabel(w)
		}
		return labels, nil
	}
	if g.edgeLabels.empty() {
		return nil, errors.New("edges have no labels, which the model wants")
	}
	whole, err := g.edgeLabels.in(*values.Labels, "edge")
	if err != nil {
		return nil, err
	}
	for k, v := range whole {
		if !values.Labels.Seen(v) {
			return nil, fmt.Errorf("edge %d has the label %d, which the model has not seen; it has seen %v",
				k, v, *values.Labels)
		}
		labels[k] = int32(v - values.Labels.Min)
	}
	return labels, nil
}

// addWeight appends the weight of an edge.
func (g *rawGraph) addWeight(text string) error {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 32)
	if err != nil || v-v != 0 {
		return fmt.Errorf("%q is not a finite number, the weight of the edge", textfile.Shorten(text))
	}
	g.weights = append(g.weights, float32(v))
	return nil
}

// parseWhole parses a whole number, which may be written as 4.0, as in columns with gaps.
func parseWhole(text string) (int, error) { return strconv.Atoi(withoutFraction(text)) }

// withoutFraction returns a whole number without a fraction of zeros, and other texts as they are.
func withoutFraction(text string) string {
	whole, fraction, ok := strings.Cut(text, ".")
	if ok && strings.Trim(fraction, "0") == "" && whole != "" &&
		strings.Trim(strings.TrimPrefix(whole, "-"), "0123456789") == "" {
		return whole
	}
	return text
}

// trim removes the prefix of an error of package graph.
func trim(err error) error {
	return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "graph: "))
}

// columnsOf returns the columns that graphs need together, which have the same kinds of features.
func columnsOf(graphs ...*rawGraph) (graph.Columns, error) {
	c := graph.Columns{Attributes: graphs[0].width()}
	var nodes, edges []*labelList
	weighted := false
	labelled := graphs[0] // one by edge_attr, if there is any
	for _, g := range graphs {
		nodes = append(nodes, &g.labels)
		edges = append(edges, &g.edgeLabels)
		weighted = weighted || len(g.weights) > 0
		if g.byEdgeAttr {
			labelled = g
		}
	}
	labels, err := valuesOf(nodes)
	if err != nil {
		return c, err
	}
	if labels != nil {
		c.Labels = []graph.LabelValues{*labels}
	}
	labels, err = valuesOf(edges)
	if err != nil {
		return c, labelled.edgeLabelError(err)
	}
	if labels != nil || weighted {
		c.Edges = &graph.EdgeValues{Labels: labels, Weights: weighted}
	}
	return c, nil
}
