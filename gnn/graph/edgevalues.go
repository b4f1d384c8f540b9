package graph

import (
	"errors"
	"fmt"
	"math"
)

// EdgeValues describes what [Graph.EdgeLabel] has of every edge: a label, or a weight.
type EdgeValues struct {
	// Labels are the values of the labels; EdgeLabel counts them from Min. They are nil for weights.
	Labels *LabelValues `json:"labels,omitempty"`
	// Weights says that EdgeLabel has a [WeightLabel] of every edge.
	Weights bool `json:"weights,omitempty"`
}

// check returns an error unless the edges have either labels or weights.
func (e *EdgeValues) check() error {
	if (e.Labels != nil) == e.Weights {
		return errors.New("graph: columns: edges need either labels or weights")
	}
	if e.Labels == nil {
		return nil
	}
	columns := Columns{Labels: []LabelValues{*e.Labels}}
	if err := columns.Check(); err != nil {
		return fmt.Errorf("%w, of edges", err)
	}
	return nil
}

// checkSeen returns an error that names the first label of an edge of g among the unseen values.
func (e *EdgeValues) checkSeen(g *Graph) error {
	if e.Labels == nil || len(e.Labels.Unseen) == 0 {
		return nil
	}
	for _, label := range g.EdgeLabel {
		if v := e.Labels.Min + int(label); !e.Labels.Seen(v) {
			return fmt.Errorf("graph: an edge has the label %d, which the model has not seen; it has seen %v",
				v, *e.Labels)
		}
	}
	return nil
}

// EdgeLabels returns the number of labels of edges, 0 without.
func (c Columns) EdgeLabels() int {
	if c.Edges == nil || c.Edges.Labels == nil {
		return 0
	}
	return c.Edges.Labels.Width
}

// EdgeWeights reports whether edges have weights.
func (c Columns) EdgeWeights() bool { return c.Edges != nil && c.Edges.Weights }

// WeightLabel returns the label that stands for the weight of an edge, with 23 bits of its mantissa, so
// that weights go wherever labels go. It is never negative.
func WeightLabel(weight float32) int32 { return int32(math.Float32bits(weight) >> 1) }

// LabelWeight returns the weight that a label stands for.
func LabelWeight(label int32) float32 { return math.Float32frombits(uint32(label) << 1) }

// EdgeWeightSums returns the sum of the weights of the edges that end in each node [N×1]. Self-loops that
// an augmentation made have no weight. It panics if the batch has edges without labels. The sums are valid
// until the batch is Reset.
func (b *Batch) EdgeWeightSums() []float32 {
	return b.countEdges("EdgeWeightSums", 1, math.MaxInt32, noLoop, func(row []float32, label int) {
		row[0] += LabelWeight(int32(label))
	})
}
