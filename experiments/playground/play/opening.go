package play

import (
	"fmt"
	"math"
	"slices"
)

// Opening is what the page shows before anything else: a graph, two views of it, and the embeddings of all graphs
// by epoch of a training.
type Opening struct {
	Graph   *Drawing    `json:"graph"`
	Views   [2]*Drawing `json:"views"`
	Classes []int       `json:"classes"` // of the points
	Frames  []Frame     `json:"frames"`  // of the untrained encoder and after each epoch
	// Accuracies in percent without training and without a network.
	Untrained float64 `json:"untrained"`
	Labels    float64 `json:"labels"`
	Command   string  `json:"command"` // that trains so on a desktop
}

// Frame is the set's embeddings in the plane [n×2], scaled to 0 … 1000 in each direction, and the accuracy of a
// classifier on the embeddings in percent.
type Frame struct {
	Accuracy float64 `json:"accuracy"`
	Points   []int   `json:"points"`
}

// RecordOpening trains SpecMatch-CL on the embedded set for some epochs, and returns the opening.
func RecordOpening(epochs int) (*Opening, error) {
	o := new(Opening)
	for k, policy := range []string{"dropN", "permE"} {
		view, err := Picture{Index: openingGraph, Policy: policy, Ratio: 0.2, Seed: 1}.Draw()
		if err != nil {
			return nil, err
		}
		o.Views[k] = view
		o.Graph = view
	}
	t, err := NewTraining(Settings{
		Batch:     60,
		Beta:      0.05,
		Kappa:     10,
		P:         80,
		Tau:       0.2,
		Adjacency: "sigmoid",
	})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	b, err := t.Baselines()
	if err != nil {
		return nil, err
	}
	o.Classes = b.Untrained.Classes
	o.Untrained = b.Untrained.Accuracy
	o.Labels = b.Labels
	o.add(b.Untrained)
	for t.epoch < epochs {
		r, err := t.Step()
		if err != nil {
			return nil, err
		}
		if r.Eval != nil {
			o.add(r.Eval)
		}
	}
	o.Command, _ = t.Command()
	return o, nil
}

// openingGraph is a graph of the embedded set with a house.
const openingGraph = 0

// add appends a frame. A point beyond the middle 99 % of its direction is at the edge.
func (o *Opening) add(e *Evaluation) {
	f := Frame{Accuracy: e.Accuracy, Points: make([]int, len(e.Points))}
	for k := range 2 {
		var values []float64
		for i := k; i < len(e.Points); i += 2 {
			values = append(values, e.Points[i])
		}
		slices.Sort(values)
		low := values[len(values)/200]
		high := values[len(values)-1-len(values)/200]
		for i := k; i < len(e.Points); i += 2 {
			share := (e.Points[i] - low) / max(high-low, math.SmallestNonzeroFloat64)
			f.Points[i] = int(math.Round(1000 * min(max(share, 0), 1)))
		}
	}
	o.Frames = append(o.Frames, f)
}

// String says what the opening ends with.
func (o *Opening) String() string {
	return fmt.Sprintf("%.1f %% after %d epochs, %.1f %% untrained, %.1f %% counted labels",
		o.Frames[len(o.Frames)-1].Accuracy, len(o.Frames)-1, o.Untrained, o.Labels)
}
