package graph

import "fmt"

// EdgeColumns describes edge labels that stand for several columns of
// categories: label = (v₁·Widths[1] + v₂)·Widths[2] + v₃ ….
type EdgeColumns struct {
	// Widths is the number of categories of every column.
	Widths []int
	// SelfLoop is the category, in every column, of the self-loop that a layer
	// adds to every node.
	SelfLoop []int
}

// Width returns the number of categories of all columns together.
func (c EdgeColumns) Width() int {
	n := 0
	for _, w := range c.Widths {
		n += w
	}
	return n
}

// EdgeCounts returns the row-major matrix [N×Width] of how often each category
// of each column occurs among the edges that end in a node, its own self-loop
// included. A sum over neighbours of table rows, Σ_{j→i} Σ_c T_c[v_c(j→i)], is
// then the product of this matrix with the stacked tables. Self-loops that an
// augmentation made (label -1) are not counted. It panics if the batch has edges
// without labels, or a label outside these categories. The matrix is
// valid until the batch is Reset.
func (b *Batch) EdgeCounts(c EdgeColumns) []float32 {
	b.needLabels("EdgeCounts")
	width := c.Width()
	combinations := int32(1)
	for _, w := range c.Widths {
		combinations *= int32(w)
	}
	counts := resize(&b.counts, b.Nodes()*width)
	clear(counts)
	for i := range b.Nodes() {
		row := counts[i*width : (i+1)*width]
		at := 0
		for k, w := range c.Widths {
			row[at+c.SelfLoop[k]]++
			at += w
		}
		for _, label := range b.EdgeLabel[b.Ptr[i]:b.Ptr[i+1]] {
			if label == -1 {
				continue
			}
			if label < 0 || label >= combinations {
				panic(fmt.Sprintf("graph: EdgeCounts: label %d is outside 0..%d", label, combinations-1))
			}
			rest, end := int(label), width
			for k := len(c.Widths) - 1; k >= 0; k-- {
				w := c.Widths[k]
				end -= w
				row[end+rest%w]++
				rest /= w
			}
		}
	}
	return counts
}

// EdgeBitCounts is EdgeCounts for labels whose bits are yes-or-no properties:
// row i of the matrix [N×(bits+1)] says how many of the edges that end in node i
// have bit 0, 1, …, and how many edges there are, its own self-loop, with the
// label loop, included. It panics as EdgeCounts does.
func (b *Batch) EdgeBitCounts(bits int, loop int32) []float32 {
	b.needLabels("EdgeBitCounts")
	counts := resize(&b.counts, b.Nodes()*(bits+1))
	clear(counts)
	for i := range b.Nodes() {
		row := counts[i*(bits+1) : (i+1)*(bits+1)]
		add := func(label int32) {
			if label < 0 || label >= 1<<bits {
				panic(fmt.Sprintf("graph: EdgeBitCounts: label %d is outside 0..%d", label, 1<<bits-1))
			}
			for k := range bits {
				row[k] += float32(label >> k & 1)
			}
			row[bits]++
		}
		add(loop)
		for _, label := range b.EdgeLabel[b.Ptr[i]:b.Ptr[i+1]] {
			if label != -1 {
				add(label)
			}
		}
	}
	return counts
}

func (b *Batch) needLabels(what string) {
	if len(b.EdgeLabel) != len(b.Adj) {
		panic(fmt.Sprintf("graph: %s: %d edges without labels", what, len(b.Adj)))
	}
}
