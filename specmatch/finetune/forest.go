package finetune

import (
	"context"
	"math"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval/forest"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Forest returns the predictions of a random forest for the test set, from some of the global numbers of the
// graphs; columns are the ranges of these, from the first of a range to before its last. It is fitted to
// the training set, of which it sees 16,384 records. Each target of several has a forest of its own.
//
// A third of the columns is tried at each split for regression, and their square root otherwise.
func (x *Examples) Forest(
	ctx context.Context, h model.Head, s dataset.Split, columns [][2]int, seed uint64,
) (Predictions, error) {
	p := Predictions{x: x, head: h, samples: s.Test, values: make([]float64, len(s.Test)*h.Outputs)}
	width := 0
	for _, c := range columns {
		width += c[1] - c[0]
	}
	outputs := 1 // of a forest
	share := 0.0
	if h.Kind != model.Regression {
		share = 1 / math.Sqrt(float64(width))
	}
	if h.Kind == model.Classes {
		outputs = h.Outputs
	}
	data := x.Data(s)
	for task := range h.Outputs / outputs {
		var labelled []int
		var y []float64
		for _, i := range thin(s.Train, maxRows) {
			v := data.exact(i, taskCount(h))[task]
			if math.IsNaN(v) {
				continue
			}
			labelled = append(labelled, i)
			switch h.Kind {
			case model.Classes:
				y = append(y, make([]float64, outputs)...)
				y[len(y)-outputs+int(v)] = 1
			case model.Regression:
				y = append(y, h.Scale(task).Of(v))
			default:
				y = append(y, v)
			}
		}
		o := forest.Options{Share: share, Seed: seed}
		f, err := forest.Fit(ctx, x.numbers(labelled, columns), width, y, outputs, o)
		if err != nil {
			return p, err
		}
		for i, v := range f.Predict(x.numbers(s.Test, columns)) {
			if h.Kind == model.Regression {
				v = h.Scale(task).Value(v)
			}
			p.values[i/outputs*h.Outputs+task*outputs+i%outputs] = v
		}
	}
	return p, nil
}

// numbers returns ranges of the global numbers of some records, row by row.
func (x *Examples) numbers(samples []int, columns [][2]int) (numbers []float32) {
	for _, i := range samples {
		for _, c := range columns {
			numbers = append(numbers, x.Set.Graphs[i].Globals[c[0]:c[1]]...)
		}
	}
	return numbers
}
