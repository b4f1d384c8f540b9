package graph

// ColorLayer has what the nodes of a batch know after some rounds of refinement: its
// rows are colors, numbered in the order of their first nodes.
type ColorLayer struct {
	Node   []int32   // [C] the first node of each color, ascending
	Weight []float64 // [C] how many nodes have the color

	// How the layer follows from the one before, which has C' rows. The first has none
	// of it.
	Same               bool     // the colors are those before
	Before             []int32  // [C] the color that each one was
	Sources, Transpose Weighted // [C×C'] and [C'×C], Σ over neighbours by Â
}

// colorLayers is the result of Batch.ColorLayers and its memory.
type colorLayers struct {
	made   bool
	rounds int
	share  float64
	layers []*ColorLayer
	last   []int32

	memory     []*ColorLayer
	nodes      [2][]int32
	diagonal   []float64
	at         []int32
	refinement Colors
}

// ColorLayers returns the colors of the nodes at the start, by features and degree, and
// after each of the given number of rounds, in which a node sees its neighbours by
// [Batch.Normalized], as long as the colors are at most share, 0 to 1, of the nodes; and
// the last color [N] of every node, nil without layers. Both lie in memory of the batch:
// they are valid until it is Reset, or asked for another number of rounds or share. A
// batch that is Constant keeps the last ones.
func (b *Batch) ColorLayers(rounds int, share float64) (layers []*ColorLayer, last []int32) {
	s := &b.colors
	if b.Constant && s.made && s.rounds == rounds && s.share == share {
		return s.layers, s.last
	}
	s.made, s.rounds, s.share = true, rounds, share
	s.layers, s.last = s.layers[:0], nil
	n := b.Nodes()
	if n == 0 {
		return nil, nil
	}
	m, _ := b.Normalized()
	// Â_ij = r_i·r_j: nodes of one color have equal r, and r² is the diagonal, which
	// comes first in its row.
	diagonal := resize(&s.diagonal, n)
	for i := range diagonal {
		diagonal[i] = m.Val[m.Ptr[i]]
	}
	c := &s.refinement
	own, next := resize(&s.nodes[0], n), resize(&s.nodes[1], n)
	c.Begin(n / 4)
	c.Features(own, b, diagonal)
	for count := c.Len(); float64(count) <= share*float64(n); {
		k := len(s.layers)
		layer := s.layer(k)
		layer.collect(own, count)
		if k > 0 {
			layer.connect(s.layers[k-1], next, m, &s.at)
		}
		s.layers, s.last = append(s.layers, layer), own
		if k == rounds {
			break
		}
		c.Begin(2 * count)
		c.Refine(next, own, count, m.Ptr, m.Col)
		if c.Len() == count { // so it will be after every round
			same := s.layer(k + 1)
			same.collect(own, count)
			same.connect(layer, own, m, &s.at)
			same.Same = true
			for len(s.layers) <= rounds {
				s.layers = append(s.layers, same)
			}
			break
		}
		own, next, count = next, own, c.Len()
	}
	return s.layers, s.last
}

// layer returns the memory of layer k.
func (s *colorLayers) layer(k int) *ColorLayer {
	if k == len(s.memory) {
		s.memory = append(s.memory, new(ColorLayer))
	}
	return s.memory[k]
}

// collect takes the nodes together whose colors, numbers below count, are equal.
func (l *ColorLayer) collect(color []int32, count int) {
	l.Node, l.Same = l.Node[:0], false
	weight := resize(&l.Weight, count)
	clear(weight)
	for i, c := range color {
		if int(c) == len(l.Node) {
			l.Node = append(l.Node, int32(i))
		}
		weight[c]++
	}
}

// connect sets how the layer follows from another, of which row color[i] is node i's.
func (l *ColorLayer) connect(from *ColorLayer, color []int32, m Weighted, memory *[]int32) {
	rows, bound := len(l.Node), 0
	for _, i := range l.Node {
		bound += int(m.Ptr[i+1] - m.Ptr[i])
	}
	before, ptr := resize(&l.Before, rows), resize(&l.Sources.Ptr, rows+1)
	col, val := resize(&l.Sources.Col, bound), resize(&l.Sources.Val, bound)
	at := resize(memory, len(from.Node)) // where a color's entry in the last row that has it ends
	clear(at)
	k := int32(0)
	for r, i := range l.Node {
		before[r], ptr[r] = color[i], k
		for e := m.Ptr[i]; e < m.Ptr[i+1]; e++ {
			c := color[m.Col[e]]
			if at[c] <= ptr[r] {
				col[k], val[k] = c, 0
				k++
				at[c] = k
			}
			val[at[c]-1] += m.Val[e]
		}
	}
	ptr[rows] = k
	l.Sources.Col, l.Sources.Val = col[:k], val[:k]
	l.Transpose.transpose(l.Sources, len(from.Node), at)
}
