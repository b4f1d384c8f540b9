package finetune

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Loss is the loss of a target that is a number, of its standardised error.
type Loss string

// The losses. Outliers count less in the absolute error.
const (
	Squared  Loss = "squared"
	Absolute Loss = "absolute"
)

// of returns the losses of errors d.
func (l Loss) of(d *autodiff.Var) *autodiff.Var {
	if l == Absolute {
		return d.Abs()
	}
	return d.Square()
}

// value returns the loss of an error d.
func (l Loss) value(d float64) float64 {
	if l == Absolute {
		return math.Abs(d)
	}
	return d * d
}

// losses returns the loss of each task of a regression.
func (o Options) losses(h model.Head) []Loss {
	switch len(o.Losses) {
	case 0:
		return slices.Repeat([]Loss{Squared}, h.Outputs)
	case 1:
		return slices.Repeat(o.Losses, h.Outputs)
	}
	return o.Losses
}

// only returns weights [n×tasks] with 0 for the tasks of other losses.
func (l *Learner) only(loss Loss, weights []float64) []float64 {
	isOther := func(task Loss) bool { return task != loss }
	if !slices.ContainsFunc(l.losses, isOther) {
		return weights
	}
	weights = slices.Clone(weights)
	for i := range weights {
		if isOther(l.losses[i%len(l.losses)]) {
			weights[i] = 0
		}
	}
	return weights
}

// factors returns the weight of each task in the loss, nil if all are equal. Their mean over the labels of the
// training set is 1. A task without labels there has the weight 0, in validation as well: nothing is learned of it.
func (d Data) factors(h model.Head, o Options) []float64 {
	tasks := taskCount(h)
	counts := d.labelCounts(h)
	if tasks == 1 || o.TargetWeights == nil && !o.Alike && !slices.Contains(counts, 0) {
		return nil
	}
	factors := make([]float64, tasks)
	sum := 0.0
	labels := 0.0
	for task, n := range counts {
		if n == 0 {
			continue
		}
		factors[task] = 1
		if o.TargetWeights != nil {
			factors[task] = o.TargetWeights[task]
		}
		if o.Alike {
			factors[task] /= n
		}
		sum += n * factors[task]
		labels += n
	}
	for task := range factors {
		factors[task] *= labels / sum
	}
	return factors
}

// checkTargets returns an error unless the losses and weights of targets suit the head.
func (o Options) checkTargets(h model.Head) error {
	if n := len(o.Losses); n > 0 && h.Kind != model.Regression || n > 1 && n != h.Outputs {
		return fmt.Errorf("finetune: %d losses for %d targets of kind %s; want one for all or one for each number",
			n, taskCount(h), h.Kind)
	}
	for _, loss := range o.Losses {
		if loss != Squared && loss != Absolute {
			return fmt.Errorf("finetune: no loss %q; want %s or %s", loss, Squared, Absolute)
		}
	}
	if n := len(o.TargetWeights); n > 0 && n != taskCount(h) {
		return fmt.Errorf("finetune: %d weights for %d targets", n, taskCount(h))
	}
	for task, w := range o.TargetWeights {
		if !(w > 0) || math.IsInf(w, 0) {
			return fmt.Errorf("finetune: target %d has the weight %v; want a number above 0", task, w)
		}
	}
	return nil
}

// describeLosses returns the losses as a text: one if all are equal.
func (o Options) describeLosses(h model.Head) string {
	losses := o.losses(h)
	isOther := func(loss Loss) bool { return loss != losses[0] }
	if !slices.ContainsFunc(losses, isOther) {
		return string(losses[0])
	}
	var texts []string
	for task, name := range h.Columns() {
		texts = append(texts, fmt.Sprintf("%s=%s", name, losses[task]))
	}
	return strings.Join(texts, ",")
}

// describeWeights returns the weights of targets as a text, "" if all are equal.
func (o Options) describeWeights(h model.Head) string {
	var texts []string
	if o.Alike {
		texts = append(texts, "alike")
	}
	for task, w := range o.TargetWeights {
		if w != 1 {
			texts = append(texts, fmt.Sprintf("%s=%g", h.Columns()[task], w))
		}
	}
	return strings.Join(texts, ",")
}
