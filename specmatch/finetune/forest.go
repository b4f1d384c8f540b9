package finetune

import (
	"context"
	"math"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/eval/forest"
	"github.com/specmatch/specmatch/specmatch/model"
)

const (
	// mostForests bounds the tasks of a model with a forest, which has one for each.
	mostForests = 32
	// mostLeaves bounds the leaves of a tree, times the tasks, so that a model file stays within some MB.
	mostLeaves = 1 << 13
)

// forestColumns returns the ranges of the numbers beside a model that are not learned.
func forestColumns(n *model.Numbers) (columns [][2]int, err error) {
	features, err := apply.ParseFeatures(n.Features)
	start := 0
	for _, f := range features {
		end := start + f.Size()
		if !f.Learned() {
			columns = append(columns, [2]int{start, end})
		}
		start = end
	}
	return columns, err
}

// fitForest fits the forest of the model to the training set, of which it sees 16,384 records; nil if the model
// has none.
func (l *Learner) fitForest(ctx context.Context) (*model.Forest, error) {
	h := *l.m.Card.Head
	n := l.m.Card.Beside
	if n == nil || n.Trees == 0 || taskCount(h) > mostForests {
		return nil, nil
	}
	columns, err := forestColumns(n)
	if columns == nil || err != nil {
		return nil, err
	}
	f, err := fitForest(ctx, l.data, h, columns, forest.Options{Trees: n.Trees, Seed: l.seed})
	if f != nil && l.weights != nil {
		var y []float64
		for _, i := range thin(l.data.Train, maxRows) {
			y = append(y, l.data.numbers(h, i)...)
		}
		f.Shift = l.shift(y, nil)
	}
	return f, err
}

// fitForest fits a forest of some columns of the global numbers. Of those that vary, a third is tried at each split
// for regression, and otherwise one in the square root of all. It is nil if a task has no target.
func fitForest(
	ctx context.Context, d Data, h model.Head, columns [][2]int, o forest.Options,
) (*model.Forest, error) {
	width := 0
	for _, c := range columns {
		width += c[1] - c[0]
	}
	if h.Kind != model.Regression {
		o.Share = 1 / math.Sqrt(float64(width))
	}
	outputs := h.Outputs / taskCount(h) // of a forest
	f := &model.Forest{Columns: columns}
	trained := thin(d.Train, maxRows)
	o.Leaf = 1 + len(trained)*taskCount(h)/mostLeaves
	for task := range taskCount(h) {
		var labelled []int
		var y []float64
		for _, i := range trained {
			targets := d.numbers(h, i)[task*outputs : (task+1)*outputs]
			if math.IsNaN(targets[0]) {
				continue
			}
			labelled = append(labelled, i)
			y = append(y, targets...)
		}
		if labelled == nil {
			return nil, nil
		}
		x := f.Numbers(pick(d.Graphs, labelled))
		fitted, err := forest.Fit(ctx, x, width, y, outputs, o)
		if err != nil {
			return nil, err
		}
		f.Tasks = append(f.Tasks, fitted)
	}
	return f, nil
}

// Forest returns the predictions of a random forest alone for the test set: of the one in the model or, if
// there is none, of one fitted to the training set. ok is false if the head of the model sees no numbers that a
// forest could.
func (x *Examples) Forest(
	ctx context.Context, m *model.Trained, s dataset.Split, seed uint64,
) (p Predictions, ok bool, err error) {
	if m.Card.Beside == nil || len(s.Test) == 0 {
		return p, false, nil
	}
	h := *m.Card.Head
	p = Predictions{x: x, head: h, samples: s.Test}
	f := m.Card.Forest
	if f == nil {
		columns, err := forestColumns(m.Card.Beside)
		if columns == nil || err != nil {
			return p, false, err
		}
		f, err = fitForest(ctx, x.Data(s), h, columns, forest.Options{Seed: seed})
		if f == nil || err != nil {
			return p, false, err
		}
	}
	outputs := f.Outputs(h, x.graphs(s.Test))
	p.values = h.Mix([]float64{1}, outputs, outputs)
	switch h.Kind {
	case model.Regression:
		h.InUnits(p.values)
	case model.Binary:
		for i, v := range p.values {
			p.values[i] = 1 / (1 + math.Exp(-v))
		}
	default:
		for i, v := range p.values {
			p.values[i] = math.Exp(v)
		}
	}
	return p, true, nil
}
