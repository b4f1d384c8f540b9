package records

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Bounds of one graph: its nodes, and the numbers of its features, so that one wrong
// record does not ask for all of the memory.
const (
	maxNodes = 1 << 24
	maxDense = 1 << 28
)

// noNodes is the reason for which a graph without any is left out.
const noNodes = "the graph has no nodes"

type rawGraph struct {
	nodes      int
	edges      [][2]int
	labels     []int       // of the nodes, or nil
	attributes [][]float32 // of the nodes, or nil
	directed   bool
}

func (g *rawGraph) check() error {
	if g.nodes == 0 {
		return errors.New(noNodes)
	}
	if g.nodes < 1 || g.nodes > maxNodes {
		return fmt.Errorf("%d nodes; want 1 to %d", g.nodes, maxNodes)
	}
	if g.labels != nil && len(g.labels) != g.nodes {
		return fmt.Errorf("%d labels for %d nodes", len(g.labels), g.nodes)
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
		if len(row) == 0 || len(row) != len(g.attributes[0]) {
			return fmt.Errorf("node %d has %d attributes, node 0 has %d; want the same number, and at least 1", i, len(row), len(g.attributes[0]))
		}
	}
	return nil
}

func (g *rawGraph) width() int {
	if g.attributes == nil {
		return 0
	}
	return len(g.attributes[0])
}

// like reports whether nodes have the same kinds of features as those of h.
func (g *rawGraph) like(h *rawGraph) bool {
	return g.width() == h.width() && (g.labels == nil) == (h.labels == nil)
}

// build returns the graph with the columns that are wanted, or those of its own. It
// stays the body of the record, for [ReadAll].
func (g *rawGraph) build(w *worker, rec *Record) (*graph.Graph, error) {
	rec.body = g
	if err := g.check(); err != nil {
		return nil, err
	}
	if w.o.Columns != nil {
		return g.with(*w.o.Columns)
	}
	c, err := columnsOf(g)
	if err != nil {
		return nil, err
	}
	return g.with(c)
}

func (g *rawGraph) with(c graph.Columns) (*graph.Graph, error) {
	labels := 0
	if g.labels != nil {
		labels = 1
	}
	if err := c.Match(g.width(), labels); err != nil {
		return nil, err
	}
	if n := int64(g.nodes) * int64(c.Width()); n > maxDense && (c.Attributes > 0 || c.DegreeColumns > 0) {
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
	return c.Apply(h, func(i int) []float32 { return g.attributes[i] }, func(i, _ int) int { return g.labels[i] })
}

// trim returns an error of package graph without its prefix.
func trim(err error) error { return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "graph: ")) }

// columnsOf returns the columns that graphs with the same kinds of features need
// together.
func columnsOf(graphs ...*rawGraph) (graph.Columns, error) {
	c := graph.Columns{Attributes: graphs[0].width()}
	if graphs[0].labels != nil {
		has := map[int]bool{}
		for _, g := range graphs {
			for _, v := range g.labels {
				has[v] = true
			}
		}
		seen := slices.Sorted(maps.Keys(has))
		l := graph.LabelValues{Min: seen[0], Width: seen[len(seen)-1] - seen[0] + 1}
		c.Labels = []graph.LabelValues{l}
		if err := c.Check(); err != nil {
			return c, trim(err)
		}
		for k, v := range seen[1:] {
			for u := seen[k] + 1; u < v; u++ {
				c.Labels[0].Unseen = append(c.Labels[0].Unseen, u)
			}
		}
	}
	return c, nil
}
