package dataset

import (
	"fmt"

	"github.com/specmatch/specmatch/gnn/graph"
)

// Columns describes the columns of the features of the set's graphs. The error says
// that the set's fields do not, which only those of a caller's own making can.
func (d *Dataset) Columns() (graph.Columns, error) {
	c := graph.Columns{Attributes: d.NodeAttributes, DegreeColumns: d.DegreeColumns}
	for k, column := range d.NodeLabels {
		seen := make([]bool, column.Width)
		for _, g := range d.Graphs {
			for i := range g.Nodes() {
				seen[d.category(g, i, k)] = true
			}
		}
		l := graph.LabelValues{Min: column.Min, Width: column.Width}
		for v, s := range seen {
			if !s {
				l.Unseen = append(l.Unseen, column.Min+v)
			}
		}
		c.Labels = append(c.Labels, l)
	}
	if c.Width() != d.FeatureWidth {
		return c, fmt.Errorf("dataset: %s: FeatureWidth is %d, but NodeAttributes, NodeLabels and DegreeColumns make %d", d.Name, d.FeatureWidth, c.Width())
	}
	return c, nil
}

// category returns that of node i of g in column k of the labels.
func (d *Dataset) category(g *graph.Graph, i, k int) int {
	if g.X.OneHot() {
		return int(g.X.Category[i])
	}
	at := d.NodeAttributes
	for _, c := range d.NodeLabels[:k] {
		at += c.Width
	}
	row := g.X.Dense[i*g.X.Width+at:][:d.NodeLabels[k].Width]
	best := 0
	for v, x := range row {
		if x > row[best] {
			best = v
		}
	}
	return best
}

// WithColumns returns the set with features of the columns c in place of its own,
// such as those that a model was trained on. Attributes and labels are the set's,
// which must have as many of them as c, unless c has none; degrees are counted. A
// label that c has not seen is an error, or its Other value. The graphs share all
// else with d.
func (d *Dataset) WithColumns(c graph.Columns) (*Dataset, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	e, err := d.withColumns(c)
	if err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", d.Name, err)
	}
	return e, nil
}

// withColumns is WithColumns with columns that make sense.
func (d *Dataset) withColumns(c graph.Columns) (*Dataset, error) {
	bad := func(format string, args ...any) (*Dataset, error) { return nil, fmt.Errorf(format, args...) }
	if c.Attributes != 0 && c.Attributes != d.NodeAttributes {
		return bad("nodes have %d attributes, the model wants %d (Options.NodeAttributes reads them)", d.NodeAttributes, c.Attributes)
	}
	if len(c.Labels) != 0 && len(c.Labels) != len(d.NodeLabels) {
		return bad("nodes have %d columns of labels, the model wants %d", len(d.NodeLabels), len(c.Labels))
	}
	e := *d
	e.NodeAttributes, e.DegreeColumns, e.FeatureWidth = c.Attributes, 0, c.Width()-c.DegreeColumns
	e.NodeLabels = nil
	seen := make([][]bool, len(c.Labels))
	for k, l := range c.Labels {
		e.NodeLabels = append(e.NodeLabels, LabelColumn{Min: l.Min, Width: l.Width})
		seen[k] = make([]bool, l.Width)
	}
	nodes := int64(0)
	for _, g := range d.Graphs {
		nodes += int64(g.Nodes())
	}
	dense := c.Attributes > 0 || len(c.Labels) > 1
	if width := int64(c.Width()); (dense || c.DegreeColumns > 0) && nodes*width > maxDense {
		return bad("%d nodes of %d features each: %w: limit %d numbers", nodes, width, ErrTooLarge, int64(maxDense))
	}
	e.Graphs = make([]*graph.Graph, len(d.Graphs))
	for n, g := range d.Graphs {
		h := *g
		h.X = graph.Features{Width: e.FeatureWidth}
		if dense {
			h.X.Dense = make([]float32, g.Nodes()*e.FeatureWidth)
		} else {
			h.X.Category = make([]int32, g.Nodes())
		}
		for i := range g.Nodes() {
			at := c.Attributes
			if at > 0 {
				copy(h.X.Dense[i*e.FeatureWidth:], g.X.Dense[i*g.X.Width:][:at])
			}
			for k, l := range c.Labels {
				label := d.NodeLabels[k].Min + d.category(g, i, k)
				if !l.Seen(label) {
					if l.Other == nil {
						return bad("graph %d: node %d has the label %d, which the model has not seen; it has seen %v", n, i, label, l)
					}
					label = *l.Other
				}
				seen[k][label-l.Min] = true
				if dense {
					h.X.Dense[i*e.FeatureWidth+at+label-l.Min] = 1
				} else {
					h.X.Category[i] = int32(label - l.Min)
				}
				at += l.Width
			}
		}
		e.Graphs[n] = &h
	}
	for k := range seen {
		for _, s := range seen[k] {
			if s {
				e.NodeLabels[k].Distinct++
			}
		}
	}
	if c.DegreeColumns > 0 {
		return e.WithDegrees(c.DegreeColumns - 2), nil
	}
	return &e, nil
}
