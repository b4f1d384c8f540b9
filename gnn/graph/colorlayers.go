package graph

// ColorLayer is the state of a batch after some rounds of color refinement. It has a row for
// each color. Colors are numbered in the order of their first nodes.
type ColorLayer struct {
	Node   []int32   // [C] the first node of each color, ascending
	Weight []float64 // [C] how many nodes have the color

	// How the layer follows from the previous one, which has C' rows. The first layer has none
	// of these.
	Same               bool     // the colors are unchanged
	Before             []int32  // [C] the previous color of each color
	Sources, Transpose Weighted // [C×C'] and [C'×C], the sum over neighbours
}

// Sight says how the layers of an encoder aggregate a node's neighbours.
type Sight int

const (
	// Normalized is the sum by Â, [Batch.Normalized].
	Normalized Sight = iota
	// Labelled is x_i + Σ_{j→i} x_j, together with the labels of these edges.
	Labelled
)

// Layering selects the layers of an encoder for [Batch.ColorLayers].
type Layering struct {
	Sight  Sight
	Rounds int // layers after the first
	// Share, 0 to 1, bounds the colors of a layer, as a fraction of the nodes. If the last such
	// layer has at most the fraction Leave, one more layer follows with a row for every node.
	Share, Leave float64
}

// colorLayers is the result of Batch.ColorLayers and the memory that it reuses.
type colorLayers struct {
	made     bool
	layering Layering
	layers   []*ColorLayer
	final    []int32

	memory     []*ColorLayer
	nodes      [2][]int32
	diagonal   []float64
	ends       []int32
	refinement Colors
}

// ColorLayers returns the layers of color refinement, and the color [N] of every node in the last
// layer, nil if there are no layers. The first layer has the colors by features (and degree, for
// sight by Â). Each further layer has the colors after one more round, in which a node sees its
// neighbours. The layers end where there are too many colors.
//
// Both results lie in memory of the batch. They are valid until the batch is Reset, or until a
// call with another layering. A Constant batch keeps its last result. ColorLayers panics if the
// layering needs edge labels and the batch has none.
func (b *Batch) ColorLayers(layering Layering) (layers []*ColorLayer, final []int32) {
	s := &b.colors
	if b.Constant && s.made && s.layering == layering {
		return s.layers, s.final
	}
	s.made = true
	s.layering = layering
	s.layers = s.layers[:0]
	s.final = nil
	n := b.Nodes()
	if n == 0 {
		return nil, nil
	}
	m, labels, diagonal := b.sight(layering.Sight)
	c := &s.refinement
	colors := resize(&s.nodes[0], n)
	next := resize(&s.nodes[1], n)
	c.Begin(n / 4)
	c.Features(colors, b, diagonal)
	for count := c.Len(); float64(count) <= layering.Share*float64(n); {
		k := len(s.layers)
		layer := s.layer(k)
		layer.collect(colors, count)
		if k > 0 {
			layer.connect(s.layers[k-1], next, m, &s.ends)
		}
		s.layers = append(s.layers, layer)
		s.final = colors
		if k == layering.Rounds {
			break
		}
		c.Begin(2 * count)
		c.Refine(next, colors, count, m.Ptr, m.Col, labels)
		if c.Len() == count { // further rounds change nothing
			same := s.layer(k + 1)
			same.collect(colors, count)
			same.connect(layer, colors, m, &s.ends)
			same.Same = true
			for len(s.layers) <= layering.Rounds {
				s.layers = append(s.layers, same)
			}
			break
		}
		colors, next, count = next, colors, c.Len()
	}
	// Too many colors: the last layer has a row for every node.
	if k := len(s.layers); k > 0 && k <= layering.Rounds &&
		float64(len(s.layers[k-1].Node)) <= layering.Leave*float64(n) {
		for i := range colors {
			colors[i] = int32(i)
		}
		nodes := s.layer(k)
		nodes.collect(colors, n)
		nodes.connect(s.layers[k-1], s.final, m, &s.ends)
		s.layers = append(s.layers, nodes)
		s.final = colors
	}
	return s.layers, s.final
}

// sight returns the matrix by which nodes see their neighbours, the labels of its entries, and a
// value of each node; labels and values may be nil.
func (b *Batch) sight(sight Sight) (m Weighted, labels []int32, diagonal []float64) {
	if sight == Labelled {
		b.needLabels("ColorLayers")
		return Weighted{Ptr: b.Ptr, Col: b.Adj}, b.EdgeLabel, nil
	}
	// Â_ij = r_i·r_j: nodes of one color have equal r, and r² is the diagonal, which
	// comes first in its row.
	m, _ = b.Normalized()
	diagonal = resize(&b.colors.diagonal, b.Nodes())
	for i := range diagonal {
		diagonal[i] = m.Val[m.Ptr[i]]
	}
	return m, nil, diagonal
}

func (s *colorLayers) layer(k int) *ColorLayer {
	if k == len(s.memory) {
		s.memory = append(s.memory, new(ColorLayer))
	}
	return s.memory[k]
}

// collect sets the rows to the colors, which are numbers below count.
func (l *ColorLayer) collect(color []int32, count int) {
	l.Node = l.Node[:0]
	l.Same = false
	weight := resize(&l.Weight, count)
	clear(weight)
	for i, c := range color {
		if int(c) == len(l.Node) {
			l.Node = append(l.Node, int32(i))
		}
		weight[c]++
	}
}

// connect sets how the layer follows from a source layer, where color[i] is the row of node i. The
// entries of Sources are sums of values of m. If m has no values, each entry and the node itself
// count 1.
func (l *ColorLayer) connect(source *ColorLayer, color []int32, m Weighted, memory *[]int32) {
	rows := len(l.Node)
	bound := 0
	for _, i := range l.Node {
		bound += int(m.Ptr[i+1]-m.Ptr[i]) + 1
	}
	before := resize(&l.Before, rows)
	ptr := resize(&l.Sources.Ptr, rows+1)
	col := resize(&l.Sources.Col, bound)
	val := resize(&l.Sources.Val, bound)
	ends := resize(memory, len(source.Node)) // one behind a color's last entry
	clear(ends)
	k := int32(0)
	for r, i := range l.Node {
		target := color[i]
		before[r] = target
		ptr[r] = k
		if m.Val == nil {
			col[k] = target
			val[k] = 1
			k++
			ends[target] = k
		}
		for e := m.Ptr[i]; e < m.Ptr[i+1]; e++ {
			c := color[m.Col[e]]
			v := 1.
			if m.Val != nil {
				v = m.Val[e]
			}
			if ends[c] <= ptr[r] {
				col[k] = c
				val[k] = 0
				k++
				ends[c] = k
			}
			val[ends[c]-1] += v
		}
	}
	ptr[rows] = k
	l.Sources.Col = col[:k]
	l.Sources.Val = val[:k]
	l.Transpose.transpose(l.Sources, len(source.Node), ends)
}
