package records

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
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
	labels     []int       // of the nodes, or nil where they have none or texts
	names      []string    // labels of the nodes that are texts, or nil
	attributes [][]float32 // of the nodes, or nil
	directed   bool
}

// check returns an error unless the parts of the graph agree.
func (g *rawGraph) check() error {
	if g.nodes == 0 {
		return errors.New(noNodes)
	}
	if g.nodes < 1 || g.nodes > maxNodes {
		return fmt.Errorf("%d nodes; want 1 to %d", g.nodes, maxNodes)
	}
	if n := len(g.labels) + len(g.names); g.labeled() && n != g.nodes {
		return fmt.Errorf("%d labels for %d nodes", n, g.nodes)
	}
	for i, v := range g.labels {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return fmt.Errorf("node %d has the label %d, which does not fit in 32 bits", i, v)
		}
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
func (g *rawGraph) labeled() bool { return g.labels != nil || g.names != nil }

func (g *rawGraph) width() int {
	if g.attributes == nil {
		return 0
	}
	return len(g.attributes[0])
}

// like reports whether the nodes of g and h have the same kinds of features.
func (g *rawGraph) like(h *rawGraph) bool {
	return g.width() == h.width() && g.labeled() == h.labeled()
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

// dropped returns how many self-loops and how many repeated edges the graph that was built lacks.
func (g *rawGraph) dropped(built *graph.Graph) (loops, repeats int) {
	for _, e := range g.edges {
		if e[0] == e[1] {
			loops++
		}
	}
	proper := len(g.edges) - loops
	if !g.directed && built.Entries() == 2*proper || g.directed && built.Entries() == proper {
		return loops, 0
	}
	distinct := make(map[[2]int]bool, proper) // an undirected edge may be listed in both directions
	for _, e := range g.edges {
		if e[0] != e[1] {
			distinct[e] = true
		}
	}
	return loops, proper - len(distinct)
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
	labels := g.labels
	if len(c.Labels) > 0 {
		var err error
		labels, err = g.labelsIn(c.Labels[0])
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
	attributes := func(i int) []float32 { return g.attributes[i] }
	label := func(i, _ int) int { return labels[i] }
	return c.Apply(h, attributes, label)
}

// labelsIn returns the values that stand for the labels of the nodes. Where values have names, a number
// stands for its text; where they have none, a text must be a number.
func (g *rawGraph) labelsIn(values graph.LabelValues) (labels []int, err error) {
	if g.names == nil && values.Names == nil {
		return g.labels, nil
	}
	labels = make([]int, g.nodes)
	for i := range labels {
		text := g.label(i)
		if values.Names != nil {
			labels[i], err = values.Value(text)
		} else if labels[i], err = parseWhole(text); err != nil {
			err = fmt.Errorf("has the label %q, a text; the model has seen %v", text, values)
		}
		if err != nil {
			return nil, fmt.Errorf("node %d: %w", i, err)
		}
	}
	return labels, nil
}

// label returns the label of a node as a text.
func (g *rawGraph) label(node int) string {
	if g.names != nil {
		return g.names[node]
	}
	return strconv.Itoa(g.labels[node])
}

// addLabel appends the label of the next node: a whole number, which may be written as 4.0, or a text.
// It refuses empty texts and other numbers, which are measurements.
func (g *rawGraph) addLabel(text string) error {
	text = strings.TrimSpace(text)
	v, err := parseWhole(text)
	_, notNumber := strconv.ParseFloat(text, 64)
	if err := textfile.CheckUTF8(text); err != nil {
		return err
	}
	switch {
	case err == nil && g.names == nil:
		g.labels = append(g.labels, v)
	case text == "" || err != nil && notNumber == nil:
		return errors.New("want a whole number or a text, the node's label")
	default:
		for i := range g.labels {
			g.names = append(g.names, strconv.Itoa(g.labels[i]))
		}
		g.labels = nil
		if err == nil {
			text = strconv.Itoa(v)
		}
		g.names = append(g.names, text)
	}
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
	switch {
	case slices.ContainsFunc(graphs, func(g *rawGraph) bool { return g.names != nil }):
		has := map[string]bool{}
		for _, g := range graphs {
			for i := range g.nodes {
				has[g.label(i)] = true
			}
		}
		c.Labels = []graph.LabelValues{{Width: len(has), Names: slices.Sorted(maps.Keys(has))}}
		if err := c.Check(); err != nil {
			return c, trim(err)
		}
	case graphs[0].labels != nil:
		has := map[int]bool{}
		for _, g := range graphs {
			for _, v := range g.labels {
				has[v] = true
			}
		}
		values := slices.Sorted(maps.Keys(has))
		l := graph.LabelValues{Min: values[0], Width: values[len(values)-1] - values[0] + 1}
		c.Labels = []graph.LabelValues{l}
		if err := c.Check(); err != nil {
			return c, trim(err)
		}
		for k, v := range values[1:] {
			for u := values[k] + 1; u < v; u++ {
				c.Labels[0].Unseen = append(c.Labels[0].Unseen, u)
			}
		}
	}
	return c, nil
}
