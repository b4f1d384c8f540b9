package graph

import "fmt"

// EdgeColumns describes edge labels that encode several columns of
// categories: label = (v₁·Widths[1] + v₂)·Widths[2] + v₃ ….
type EdgeColumns struct {
	// Widths has the number of categories of every column.
	Widths []int
	// SelfLoop has, for every column, the category of the self-loop that a layer
	// adds to every node. It is nil if the layer adds none.
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

// EdgeCounts returns the row-major matrix [N×Width] that counts the categories of
// each column among the edges that end in a node, including the self-loop that a
// layer adds. A sum over neighbours of table rows, Σ_{j→i} Σ_c T_c[v_c(j→i)], is
// then the product of this matrix with the stacked tables. Self-loops that an
// augmentation made (label -1) are not counted. EdgeCounts panics if the batch has
// edges without labels, or a label outside these categories. The matrix is valid
// until the batch is Reset.
func (b *Batch) EdgeCounts(c EdgeColumns) []float32 {
	combinations := 1
	loop := 0
	for k, w := range c.Widths {
		combinations *= w
		if c.SelfLoop != nil {
			loop = loop*w + c.SelfLoop[k]
		}
	}
	if c.SelfLoop == nil {
		loop = noLoop
	}
	return b.countEdges("EdgeCounts", c.Width(), combinations, loop, func(row []float32, label int) {
		end := len(row)
		for k := len(c.Widths) - 1; k >= 0; k-- {
			w := c.Widths[k]
			end -= w
			row[end+label%w]++
			label /= w
		}
	})
}

// EdgeBitCounts is EdgeCounts for labels whose bits are binary properties. Row i
// of the matrix [N×(bits+1)] counts the edges that end in node i and have bit 0,
// 1, …, and then all of these edges. The self-loop that a layer adds is counted
// with the label loop. EdgeBitCounts panics as EdgeCounts does.
func (b *Batch) EdgeBitCounts(bits int, loop int32) []float32 {
	return b.countEdges("EdgeBitCounts", bits+1, 1<<bits, int(loop), func(row []float32, label int) {
		for k := range bits {
			row[k] += float32(label >> k & 1)
		}
		row[bits]++
	})
}

// noLoop is the label of the self-loop of a layer that adds none.
const noLoop = -1

// countEdges returns a matrix with a row for every node. It calls add with the row for the
// self-loop, unless that is noLoop, and for every edge that ends in the node. Labels are 0 to labels-1.
func (b *Batch) countEdges(
	caller string, columns, labels, loop int, add func(row []float32, label int),
) []float32 {
	b.needLabels(caller)
	counts := resize(&b.counts, b.Nodes()*columns)
	clear(counts)
	for i := range b.Nodes() {
		row := counts[i*columns : (i+1)*columns]
		if loop != noLoop {
			add(row, loop)
		}
		for _, label := range b.EdgeLabel[b.Ptr[i]:b.Ptr[i+1]] {
			if label < -1 || int(label) >= labels {
				panic(fmt.Sprintf("graph: %s: label %d is outside 0..%d", caller, label, labels-1))
			}
			if label >= 0 { // others come from an augmentation
				add(row, int(label))
			}
		}
	}
	return counts
}

func (b *Batch) needLabels(caller string) {
	if len(b.EdgeLabel) != len(b.Adj) {
		panic(fmt.Sprintf("graph: %s: %d edges without labels", caller, len(b.Adj)))
	}
}
