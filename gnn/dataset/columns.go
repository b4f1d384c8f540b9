package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
)

// columns returns the columns of the features that the set's fields describe.
func (d *Dataset) columns() graph.Columns {
	c := graph.Columns{
		Attributes:    d.NodeAttributes,
		Names:         d.AttributeNames,
		DegreeColumns: d.DegreeColumns,
		Degrees:       d.Degrees,
		Edges:         d.Edges,
	}
	for _, l := range d.NodeLabels {
		c.Labels = append(c.Labels, graph.LabelValues{Min: l.Min, Width: l.Width, Names: l.Names})
	}
	return c
}

// Columns describes the columns of the features of the set's graphs. It returns an error if
// the set's fields do not describe them, which only happens to sets that a caller made.
func (d *Dataset) Columns() (graph.Columns, error) {
	c := d.columns()
	if c.Width() != d.FeatureWidth {
		return c, fmt.Errorf(
			"dataset: %s: FeatureWidth is %d, but NodeAttributes, NodeLabels and DegreeColumns make %d",
			d.Name, d.FeatureWidth, c.Width(),
		)
	}
	for k := range c.Labels {
		l := &c.Labels[k]
		occurs := make([]bool, l.Width)
		for _, g := range d.Graphs {
			for i := range g.Nodes() {
				occurs[d.category(g, i, k)] = true
			}
		}
		for v, s := range occurs {
			if !s {
				l.Unseen = append(l.Unseen, l.Min+v)
			}
		}
	}
	return c, nil
}

// category returns the category of node i of g in column k of the labels.
func (d *Dataset) category(g *graph.Graph, i, k int) int {
	if g.X.OneHot() {
		return int(g.X.Category[i])
	}
	offset := d.NodeAttributes
	for _, c := range d.NodeLabels[:k] {
		offset += c.Width
	}
	row := g.X.Dense[i*g.X.Width+offset:][:d.NodeLabels[k].Width]
	best := 0
	for v, x := range row {
		if x > row[best] {
			best = v
		}
	}
	return best
}

// WithColumns returns the set with the columns c of features in place of its own, such as
// those that a model was trained on. The set must have as many attributes and columns of
// labels as c, unless c has none; degrees are counted. A label that c has not seen is an
// error, or its Other value. The graphs share everything else with d.
func (d *Dataset) WithColumns(c graph.Columns) (*Dataset, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	bad := func(err error) (*Dataset, error) {
		return nil, fmt.Errorf("dataset: %s: %w", d.Name, err)
	}
	if c.Edges != nil && !reflect.DeepEqual(c.Edges, d.Edges) {
		return bad(errors.New("edges have no labels or weights, or other ones than the model wants"))
	}
	if err := c.Match(d.NodeAttributes, len(d.NodeLabels)); err != nil {
		return bad(err)
	}
	nodes := int64(0)
	for _, g := range d.Graphs {
		nodes += int64(g.Nodes())
	}
	dense := c.Attributes > 0 || len(c.Labels) > 1 || c.DegreeColumns > 0
	if width := int64(c.Width()); dense && nodes*width > maxDense {
		return bad(fmt.Errorf("%d nodes of %d features each: %w: limit %d numbers",
			nodes, width, ErrTooLarge, int64(maxDense)))
	}
	e := *d
	e.NodeAttributes = c.Attributes
	e.AttributeNames = c.Names
	e.DegreeColumns = c.DegreeColumns
	e.Degrees = c.Degrees
	e.Edges = c.Edges
	e.FeatureWidth = c.Width()
	e.Graphs = make([]*graph.Graph, len(d.Graphs))
	for n, g := range d.Graphs {
		var unknown error
		attributes := func(i int) []float32 {
			return g.X.Dense[i*g.X.Width:][:c.Attributes]
		}
		label := func(i, k int) int {
			value, err := d.NodeLabels[k].valueIn(c.Labels[k], d.category(g, i, k))
			if err != nil && unknown == nil {
				unknown = fmt.Errorf("node %d: %w", i, err)
			}
			return value
		}
		applied, err := c.Apply(g, attributes, label)
		err = cmp.Or(unknown, err)
		if err != nil {
			return bad(fmt.Errorf("graph %d: %w", n, err))
		}
		e.Graphs[n] = applied
	}
	e.NodeLabels = nil
	for _, l := range c.Labels {
		e.NodeLabels = append(e.NodeLabels, LabelColumn{Min: l.Min, Width: l.Width, Names: l.Names})
	}
	found, err := e.Columns()
	for k, l := range found.Labels {
		e.NodeLabels[k].Distinct = l.Width - len(l.Unseen)
	}
	return &e, err
}

// valueIn returns the value among values that a category of the column has. Texts are found by name,
// and a number stands for its text.
func (c LabelColumn) valueIn(values graph.LabelValues, category int) (int, error) {
	if c.Names == nil && values.Names == nil {
		return c.Min + category, nil
	}
	text := strconv.Itoa(c.Min + category)
	if c.Names != nil {
		text = c.Names[category]
	}
	if values.Names != nil {
		return values.Value(text)
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		return values.Min, fmt.Errorf("the label %q is a text; the model has seen %v", text, values)
	}
	return value, nil
}

// WithAttributesAsLabels returns the set with its attributes as labels 0, 1, … in place of all
// features. It returns an error unless they are one-hot in every node. The graphs share everything
// else with d.
func (d *Dataset) WithAttributesAsLabels() (*Dataset, error) {
	width := d.NodeAttributes
	if width == 0 {
		return nil, fmt.Errorf("dataset: %s: the nodes have no attributes that could be labels", d.Name)
	}
	e := *d
	e.NodeAttributes = 0
	e.AttributeNames = nil
	e.Degrees = 0
	e.DegreeColumns = 0
	e.FeatureWidth = width
	e.Graphs = nil
	found := map[int]bool{}
	for n, g := range d.Graphs {
		h := *g
		h.X = graph.Features{Width: width, Category: make([]int32, g.Nodes())}
		for i := range h.X.Category {
			row := g.X.Dense[i*g.X.Width:][:width]
			hot := slices.Index(row, 1)
			if hot < 0 || slices.ContainsFunc(row[:hot], isSet) ||
				slices.ContainsFunc(row[hot+1:], isSet) {
				return nil, fmt.Errorf("dataset: %s: graph %d: node %d: the "+
					"attributes %v are not one-hot",
					d.Name, n, i, row[:min(width, 10)])
			}
			h.X.Category[i] = int32(hot)
			found[hot] = true
		}
		e.Graphs = append(e.Graphs, &h)
	}
	e.NodeLabels = []LabelColumn{{Width: width, Distinct: len(found)}}
	return &e, nil
}

// WithOwnDegrees returns the set with one-hot degrees as features, up to the largest degree of the set or
// limit, in place of the constant that stands for no features. A set with features is returned as it is.
func (d *Dataset) WithOwnDegrees(limit int) (*Dataset, error) {
	if d.NodeAttributes > 0 || len(d.NodeLabels) > 0 || d.Degrees > 0 {
		return d, nil
	}
	largest := 0
	for _, g := range d.Graphs {
		degrees := make([]int, g.Nodes())
		for _, j := range g.Adj {
			degrees[j]++
			largest = max(largest, degrees[j])
		}
	}
	columns := d.columns()
	columns.Degrees = min(largest, limit) + 1
	return d.WithColumns(columns)
}

// WithDegreesAsLabels returns the set with the degrees of nodes, cut off at limit, as labels in
// place of all features: the one-hot degrees of the literature for sets without labels. The graphs
// share everything else with d. It panics if limit is negative.
func (d *Dataset) WithDegreesAsLabels(limit int) *Dataset {
	if limit < 0 {
		panic(fmt.Sprintf("dataset: WithDegreesAsLabels(%d)", limit))
	}
	e := *d
	e.NodeAttributes = 0
	e.AttributeNames = nil
	e.Degrees = 0
	e.DegreeColumns = 0
	e.FeatureWidth = limit + 1
	e.Graphs = nil
	degrees := map[int32]bool{}
	for _, g := range d.Graphs {
		h := *g
		h.X = graph.Features{Width: limit + 1, Category: make([]int32, g.Nodes())}
		for _, j := range g.Adj {
			h.X.Category[j] = min(h.X.Category[j]+1, int32(limit))
		}
		for _, c := range h.X.Category {
			degrees[c] = true
		}
		e.Graphs = append(e.Graphs, &h)
	}
	e.NodeLabels = []LabelColumn{{Width: limit + 1, Distinct: len(degrees)}}
	return &e
}

func isSet(v float32) bool { return v != 0 }

// DegreeCap returns the largest degree that gets a column of its own in the
// semi-supervised experiments of GraphCL: 10 for DD and the REDDIT sets, whose
// degrees vary widely, and 100 for all others.
func DegreeCap(name string) int {
	name = strings.ToUpper(name)
	if name == "DD" || strings.HasPrefix(name, "REDDIT") {
		return 10
	}
	return 100
}

// WithDegrees returns the set with the node degrees appended to the features, as
// GraphCL's semi-supervised code expands them ([graph.Graph.WithDegrees]). From then on
// they are features like others: augmentations keep the degrees of the whole graph. The
// graphs share everything else with d. It panics if limit is negative or the set has
// degrees already.
func (d *Dataset) WithDegrees(limit int) *Dataset {
	if limit < 0 || d.DegreeColumns > 0 {
		panic(fmt.Sprintf("dataset: WithDegrees(%d) of a set with %d columns of degrees",
			limit, d.DegreeColumns))
	}
	e := *d
	e.DegreeColumns = limit + 2
	e.FeatureWidth = d.FeatureWidth + e.DegreeColumns
	e.Graphs = make([]*graph.Graph, len(d.Graphs))
	for k, g := range d.Graphs {
		e.Graphs[k] = g.WithDegrees(limit)
	}
	return &e
}
