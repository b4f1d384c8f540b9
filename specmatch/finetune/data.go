package finetune

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Data is what a [Learner] learns from.
type Data struct {
	Graphs []*graph.Graph
	// Y are the targets, row-major: for classes [n×1], the index of the class; for binary tasks
	// [n×tasks], 1, 0, or NaN for a missing label; for regression [n×tasks], NaN for a missing one.
	Y []float64
	// Bounds says which targets of a regression are bounds, if there are any: +1 where the number is
	// above Y, -1 where it is below, 0 where it is Y. A prediction beyond a bound has no loss, and
	// metrics skip bounds.
	Bounds []int8
	// Weights are positive weights of the graphs in the losses, in means and frequencies, and in the linear
	// model; nil for equal ones. Scores of predictions do not have them.
	Weights []float64
	// Train, Valid and Test are indices into Graphs; Valid and Test may be empty.
	Train, Valid, Test []int
}

// taskCount returns the number of targets of a graph.
func taskCount(h model.Head) int {
	if h.Kind == model.Classes {
		return 1
	}
	return h.Outputs
}

// weight returns the weight of sample i.
func (d Data) weight(i int) float64 {
	if d.Weights == nil {
		return 1
	}
	return d.Weights[i]
}

// normalised returns the weights, scaled so that their mean over the training set is 1; nil if all are equal.
func (d Data) normalised() []float64 {
	isOther := func(w float64) bool { return w != d.Weights[0] }
	if !slices.ContainsFunc(d.Weights, isOther) {
		return nil
	}
	sum := 0.0
	for _, i := range d.Train {
		sum += d.Weights[i]
	}
	scaled := make([]float64, len(d.Weights))
	for i, w := range d.Weights {
		scaled[i] = w * float64(len(d.Train)) / sum
	}
	return scaled
}

// check returns an error unless the targets suit the head.
func (d Data) check(h model.Head) error {
	n := len(d.Graphs)
	tasks := taskCount(h)
	if len(d.Y) != n*tasks {
		return fmt.Errorf("finetune: %d targets for %d graphs, want %d for each", len(d.Y), n, tasks)
	}
	if d.Bounds != nil && (len(d.Bounds) != n*tasks || h.Kind != model.Regression) {
		return fmt.Errorf("finetune: %d bounds for %d targets of kind %s; want one for each number",
			len(d.Bounds), n*tasks, h.Kind)
	}
	if d.Weights != nil && len(d.Weights) != n {
		return fmt.Errorf("finetune: %d weights for %d graphs", len(d.Weights), n)
	}
	for i, w := range d.Weights {
		if !(w > 0) || math.IsInf(w, 0) {
			return fmt.Errorf("finetune: graph %d has the weight %v; want a number above 0", i, w)
		}
	}
	for _, samples := range [][]int{d.Train, d.Valid, d.Test} {
		for _, i := range samples {
			if i < 0 || i >= n {
				return fmt.Errorf("finetune: sample %d is not one of %d graphs", i, n)
			}
			for task, y := range d.Y[i*tasks : (i+1)*tasks] {
				if !isTarget(h, task, y) {
					return fmt.Errorf("finetune: graph %d, task %d: %v cannot be a target of kind %s "+
						"with %d outputs",
						i, task, y, h.Kind, h.Outputs)
				}
			}
		}
	}
	if !d.hasLabel(d.Train, tasks) {
		return errors.New("finetune: no graph to train on has a label")
	}
	return nil
}

// isTarget reports whether y can be a target of a task of the head.
func isTarget(h model.Head, task int, y float64) bool {
	switch h.Kind {
	case model.Classes:
		return y >= 0 && int(y) < h.Outputs && y == math.Trunc(y)
	case model.Binary:
		return y == 0 || y == 1 || math.IsNaN(y)
	}
	return !math.IsInf(y, 0) && h.Scale(task).Holds(y)
}

// hasLabel reports whether one of the samples has a target.
func (d Data) hasLabel(samples []int, tasks int) bool {
	return slices.ContainsFunc(samples, func(i int) bool {
		return slices.ContainsFunc(d.Y[i*tasks:(i+1)*tasks], func(y float64) bool {
			return !math.IsNaN(y)
		})
	})
}

// exact returns the targets of sample i, with NaN in place of bounds.
func (d Data) exact(i, tasks int) []float64 {
	y := slices.Clone(d.Y[i*tasks : (i+1)*tasks])
	for task := range y {
		if d.Bounds != nil && d.Bounds[i*tasks+task] != 0 {
			y[task] = math.NaN()
		}
	}
	return y
}

// numbers returns what the outputs of the linear model and of the forest are fitted to for sample i; NaN is a
// missing target.
func (d Data) numbers(h model.Head, i int) []float64 {
	y := d.exact(i, taskCount(h))
	switch h.Kind {
	case model.Classes:
		oneHot := make([]float64, h.Outputs)
		oneHot[int(y[0])] = 1
		return oneHot
	case model.Regression:
		for task := range y {
			y[task] = h.Standardise(task, y[task])
		}
	}
	return y
}

// targets returns the targets of some samples, with and without bounds, and which of them are bounds.
func (d Data) targets(h model.Head, samples []int) (y, exact []float64, bounds []int8) {
	tasks := taskCount(h)
	for _, i := range samples {
		y = append(y, d.Y[i*tasks:(i+1)*tasks]...)
		exact = append(exact, d.exact(i, tasks)...)
		if d.Bounds != nil {
			bounds = append(bounds, d.Bounds[i*tasks:(i+1)*tasks]...)
		}
	}
	return y, exact, bounds
}

// moments returns the mean and the standard deviation of each task's targets over some samples, on
// the task's scale. The deviation of targets that are equal up to rounding is 1.
func (d Data) moments(h model.Head, samples []int) (mean, std []float64) {
	tasks := taskCount(h)
	mean = make([]float64, tasks)
	std = make([]float64, tasks)
	for task := range tasks {
		var places, weights []float64
		total := 0.0
		for _, i := range samples {
			if y := d.Y[i*tasks+task]; !math.IsNaN(y) {
				places = append(places, h.Scale(task).Of(y))
				weights = append(weights, d.weight(i))
				total += d.weight(i)
			}
		}
		if total == 0 {
			total = 1
		}
		sum := 0.0
		for k, v := range places {
			sum += weights[k] * v
		}
		mean[task] = sum / total
		squares := 0.0
		for k, v := range places {
			squares += weights[k] * (v - mean[task]) * (v - mean[task])
		}
		std[task] = math.Sqrt(squares / total)
		if std[task] <= rounding*math.Abs(mean[task]) {
			std[task] = 1
		}
	}
	return mean, std
}

// rounding bounds the deviation of equal targets that a computed mean leaves, as a part of this mean.
const rounding = 1e-9

// labelCounts returns the number of labels of each task in the training set.
func (d Data) labelCounts(h model.Head) []float64 {
	tasks := taskCount(h)
	counts := make([]float64, tasks)
	for _, i := range d.Train {
		for task, y := range d.Y[i*tasks : (i+1)*tasks] {
			if !math.IsNaN(y) {
				counts[task]++
			}
		}
	}
	return counts
}

// describe gives a head the moments of the targets in the training set, or their frequencies.
func (d Data) describe(h *model.Head, balanced bool) {
	if h.Kind == model.Regression {
		h.Mean, h.Std = d.moments(*h, d.Train)
		return
	}
	h.Prior = d.prior(*h, balanced)
}

// balance returns the weights n/(C·n_c) of the C classes c of each task, where the training set has
// n targets, n_c of them of class c; with weights, these are sums of weights. Of a class without one nothing is
// learned: its weight is 0, in validation as well.
func (d Data) balance(h model.Head) (weights [][]float64) {
	tasks := taskCount(h)
	classes := 2
	if h.Kind == model.Classes {
		classes = h.Outputs
	}
	for task := range tasks {
		w := make([]float64, classes)
		n := 0.0
		for _, i := range d.Train {
			if y := d.Y[i*tasks+task]; !math.IsNaN(y) {
				w[int(y)] += d.weight(i)
				n += d.weight(i)
			}
		}
		for c, count := range w {
			if count > 0 {
				w[c] = n / float64(classes) / count
			}
		}
		weights = append(weights, w)
	}
	return weights
}

// pick returns the graphs of some samples.
func pick(graphs []*graph.Graph, samples []int) []*graph.Graph {
	picked := make([]*graph.Graph, len(samples))
	for k, i := range samples {
		picked[k] = graphs[i]
	}
	return picked
}

// thin returns at most n of the samples, evenly over their range.
func thin(samples []int, n int) []int {
	if len(samples) <= n {
		return samples
	}
	thinned := make([]int, n)
	for i := range thinned {
		thinned[i] = samples[i*len(samples)/n]
	}
	return thinned
}
