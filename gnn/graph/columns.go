package graph

import (
	"fmt"
	"math"
	"slices"
)

// maxColumns bounds the columns that a file can ask for, and with them its memory.
const maxColumns = 1 << 20

// Columns describes the columns of [Features], so that a model finds the columns that it was
// trained on in the graphs of another set:
//
//	[ attributes | one-hot labels, column by column | degree | one-hot degree ]
//
// The zero Columns are the constant 1, which stands in where there are neither attributes nor
// labels; Degrees replaces it. Columns survive JSON.
type Columns struct {
	// Degrees, if it is not 0, is the number of one-hot columns of degrees, the last of which stands
	// for all larger ones. Then there are neither attributes nor labels.
	Degrees int `json:"degrees,omitempty"`
	// Attributes is the number of real attributes.
	Attributes int `json:"attributes,omitempty"`
	// Names are those of the attributes, in their order, if the file has names for them.
	Names []string `json:"attribute_names,omitempty"`
	// Labels are the columns of node labels.
	Labels []LabelValues `json:"labels,omitempty"`
	// DegreeColumns is the number of columns that [Graph.WithDegrees] adds: 0, or limit+2.
	DegreeColumns int `json:"degree_columns,omitempty"`
	// Edges are the labels or the weights of edges, which are no columns of the nodes; nil for neither.
	Edges *EdgeValues `json:"edges,omitempty"`
}

// LabelValues are the values of a column of node labels, Min to Min+Width-1. Each has a one-hot
// column.
type LabelValues struct {
	Min   int `json:"min"`
	Width int `json:"width"`
	// Unseen are the values among these that no node had, ascending. A model's weights for them
	// are untrained.
	Unseen []int `json:"unseen,omitempty"`
	// Other is the value that stands for labels that the model has not seen. If it is nil, such
	// a label is an error.
	Other *int `json:"other,omitempty"`
	// Names are the texts that the values 0 to Width-1 stand for, ascending, if labels are texts.
	Names []string `json:"names,omitempty"`
}

// Width returns the number of columns.
func (c Columns) Width() int {
	w := c.Attributes
	for _, l := range c.Labels {
		w += l.Width
	}
	return max(w, c.Degrees, 1) + c.DegreeColumns
}

// Check returns an error that names the first inconsistent column.
func (c Columns) Check() error {
	if c.Names != nil && len(c.Names) != c.Attributes {
		return fmt.Errorf("graph: columns: %d names of %d attributes", len(c.Names), c.Attributes)
	}
	if c.Edges != nil {
		if err := c.Edges.check(); err != nil {
			return err
		}
	}
	width := c.Attributes
	for k, l := range c.Labels {
		if l.Width < 1 || l.Width > maxColumns || l.Min < math.MinInt32 || l.Min > math.MaxInt32 {
			return fmt.Errorf(
				"graph: columns: column %d of the labels has %d values from %d on; want 1 to %d",
				k+1, l.Width, l.Min, maxColumns,
			)
		}
		if l.Names != nil {
			distinct := slices.Compact(slices.Sorted(slices.Values(l.Names)))
			if l.Min != 0 || len(l.Names) != l.Width || !slices.Equal(distinct, l.Names) {
				return fmt.Errorf(
					"graph: columns: column %d of the labels: the names are not %d texts, ascending",
					k+1, l.Width,
				)
			}
		}
		for i, v := range l.Unseen {
			if !l.has(v) || i > 0 && v <= l.Unseen[i-1] {
				return fmt.Errorf(
					"graph: columns: column %d of the labels: the unseen values are not "+
						"ascending from %d to %d",
					k+1,
					l.Min,
					l.Min+l.Width-1,
				)
			}
		}
		if l.Other != nil && !l.Seen(*l.Other) {
			return fmt.Errorf(
				"graph: columns: column %d of the labels: the value for unseen labels, "+
					"%d, is itself unseen",
				k+1, *l.Other,
			)
		}
		width += l.Width
	}
	if c.Degrees < 0 || c.Degrees > maxColumns || c.Degrees > 0 && width > 0 {
		return fmt.Errorf("graph: columns: %d columns of degrees in place of attributes and labels, "+
			"which have %d", c.Degrees, width)
	}
	if c.Attributes < 0 || c.Attributes > maxColumns || len(c.Labels) > maxColumns ||
		width > maxColumns || c.DegreeColumns > maxColumns ||
		c.DegreeColumns != 0 && c.DegreeColumns < 2 {
		return fmt.Errorf("graph: columns: %d attributes, %d columns in all and %d of degrees; want at "+
			"most %d, and none or at least 2 of degrees",
			c.Attributes, width, c.DegreeColumns, maxColumns)
	}
	return nil
}

// CheckSeen returns an error that names the first node or edge of g with a label among the unseen values.
// The features of g must have these columns.
func (c Columns) CheckSeen(g *Graph) error {
	if c.Edges != nil {
		if err := c.Edges.checkSeen(g); err != nil {
			return err
		}
	}
	offset := c.Attributes
	for _, l := range c.Labels {
		for i := range g.Nodes() {
			if v, ok := l.unseenAt(g.X, i, offset); ok {
				return fmt.Errorf(
					"graph: node %d has the label %d, which the model has not seen; it has seen %v",
					i, v, l,
				)
			}
		}
		offset += l.Width
	}
	return nil
}

// unseenAt returns the label of a node, in the columns from offset on, if it is an unseen one. There may be many
// more unseen values than nodes.
func (l LabelValues) unseenAt(x Features, node, offset int) (v int, ok bool) {
	if x.OneHot() {
		v = l.Min + int(x.Category[node]) - offset
		return v, l.has(v) && !l.Seen(v)
	}
	row := x.Dense[node*x.Width+offset:]
	for _, v := range l.Unseen {
		if row[v-l.Min] != 0 {
			return v, true
		}
	}
	return 0, false
}

// Match returns an error unless nodes with these numbers of attributes and label columns can have
// features of these columns. The columns may use neither.
func (c Columns) Match(attributes, labels int) error {
	if c.Attributes != 0 && c.Attributes != attributes {
		return fmt.Errorf("nodes have %d attributes, the model wants %d", attributes, c.Attributes)
	}
	if len(c.Labels) != 0 && len(c.Labels) != labels {
		return fmt.Errorf("nodes have %d columns of labels, the model wants %d", labels, len(c.Labels))
	}
	return nil
}

// Apply returns a graph with features of these columns that shares everything else with g.
// attributes returns the attributes of a node, and label its label in column k. They are called
// only if the columns have attributes or labels. An unseen label becomes Other, or is an error.
func (c Columns) Apply(
	g *Graph, attributes func(node int) []float32, label func(node, k int) int,
) (*Graph, error) {
	n := g.Nodes()
	width := c.Width() - c.DegreeColumns
	h := *g
	h.X = Features{Width: width}
	dense := c.Attributes > 0 || len(c.Labels) > 1
	if dense {
		h.X.Dense = make([]float32, n*width)
	} else {
		h.X.Category = make([]int32, n)
	}
	if c.Degrees > 0 {
		for _, j := range g.Adj {
			h.X.Category[j] = min(h.X.Category[j]+1, int32(c.Degrees-1))
		}
	}
	for i := range n {
		offset := c.Attributes
		if offset > 0 {
			copy(h.X.Dense[i*width:], attributes(i)[:offset])
		}
		for k, l := range c.Labels {
			v := label(i, k)
			if !l.Seen(v) {
				if l.Other == nil {
					return nil, fmt.Errorf(
						"node %d has the label %d, which the model has not seen; it has seen %v",
						i, v, l,
					)
				}
				v = *l.Other
			}
			if dense {
				h.X.Dense[i*width+offset+v-l.Min] = 1
			} else {
				h.X.Category[i] = int32(v - l.Min)
			}
			offset += l.Width
		}
	}
	if c.DegreeColumns > 0 {
		return h.WithDegrees(c.DegreeColumns - 2), nil
	}
	return &h, nil
}

// WithDegrees returns the graph with the node degrees appended to the features. Row i becomes
//
//	[ x_i | d_i | one-hot of min(d_i, limit) ]
//
// with limit+2 more columns, where d_i is the number of edges that leave node i. The graph shares
// everything else with g.
func (g *Graph) WithDegrees(limit int) *Graph {
	degree := make([]int, g.Nodes())
	for _, j := range g.Adj {
		degree[j]++
	}
	h := *g
	width := g.X.Width
	columns := width + limit + 2
	h.X = Features{Width: columns, Dense: make([]float32, g.Nodes()*columns)}
	for i, d := range degree {
		row := h.X.Dense[i*columns : (i+1)*columns]
		g.X.Row(row[:width], i)
		row[width] = float32(d)
		row[width+1+min(d, limit)] = 1
	}
	return &h
}

func (l LabelValues) has(v int) bool { return v >= l.Min && v-l.Min < l.Width }

// Seen reports whether v is a value that some node had.
func (l LabelValues) Seen(v int) bool {
	_, unseen := slices.BinarySearch(l.Unseen, v)
	return l.has(v) && !unseen
}

// Value returns the value that stands for a label that is a text. A text that has none is an error, or
// gets the Other value.
func (l LabelValues) Value(text string) (int, error) {
	v, ok := slices.BinarySearch(l.Names, text)
	switch {
	case ok && l.Seen(v):
		return v, nil
	case l.Other != nil:
		return *l.Other, nil
	}
	return 0, fmt.Errorf("the label %q, which the model has not seen; it has seen %v", text, l)
}

// String returns the values in words.
func (l LabelValues) String() string {
	if l.Names != nil {
		const most = 5
		s := fmt.Sprintf("%q", l.Names[:min(most, len(l.Names))])
		if n := len(l.Names) - most; n > 0 {
			s += fmt.Sprintf(" and %d more", n)
		}
		return s
	}
	s := fmt.Sprintf("%d to %d", l.Min, l.Min+l.Width-1)
	if n := len(l.Unseen); n > 0 {
		s += fmt.Sprintf(" except %d of them", n)
	}
	return s
}
