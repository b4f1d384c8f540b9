package finetune

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/model"
)

// ScaleChoice says how the scale of a task was chosen: the mean absolute errors of linear models on validation
// sets, in the unit of the targets.
type ScaleChoice struct {
	Task       int
	Low, High  float64 // of the targets
	Plain, Log float64 // errors of fits in the unit and of logarithms
}

// String describes the choice, without the name of the task.
func (c ScaleChoice) String() string {
	text := fmt.Sprintf("%.4g to %.4g, %.1f decades: fitted ", c.Low, c.High, math.Log10(c.High/c.Low))
	if c.Log < c.Plain {
		return text + fmt.Sprintf("by their logarithm, since a linear model then errs by %.4g on the validation "+
			"sets, not by %.4g (-target-scale plain)", c.Log, c.Plain)
	}
	return text + fmt.Sprintf("as they are, since a linear model errs by %.4g on the validation sets, and by "+
		"%.4g on logarithms (-target-scale log)", c.Plain, c.Log)
}

// ChooseScales decides which tasks of a regression are learned by their logarithm: those that span decades with
// a long tail, if a linear model of logarithms has the smaller mean absolute error on the validation sets. It
// returns the scales, nil if all stay as they are. newModel returns an untrained model with a head whose
// [model.Beside] has a linear model. All parts are of the same data; an error is a mean over them.
func ChooseScales(
	ctx context.Context, h model.Head, newModel func(model.Head) (*model.Trained, error), parts ...Data,
) (scales []model.Scale, choices []ScaleChoice, err error) {
	if h.Kind != model.Regression || len(h.Scales) > 0 || len(parts) == 0 {
		return nil, nil, nil
	}
	logs := h
	logs.Scales = make([]model.Scale, h.Outputs)
	for task := range h.Outputs {
		y := parts[0].column(parts[0].Train, task, h.Outputs)
		if !check.SpansDecades(y) || !parts[0].isPositive(task, h.Outputs) {
			continue
		}
		logs.Scales[task].Log = true
		choices = append(choices, ScaleChoice{Task: task, Low: slices.Min(y), High: slices.Max(y)})
	}
	if choices == nil {
		return nil, nil, nil
	}
	for _, d := range parts {
		d.Test = nil
		plainErrors, err := linearErrors(ctx, h, newModel, d)
		if err != nil {
			return nil, nil, err
		}
		logErrors, err := linearErrors(ctx, logs, newModel, d)
		if err != nil {
			return nil, nil, err
		}
		for k, c := range choices {
			choices[k].Plain += plainErrors[c.Task] / float64(len(parts))
			choices[k].Log += logErrors[c.Task] / float64(len(parts))
		}
	}
	chosen := false
	for _, c := range choices {
		isLog := c.Log < c.Plain
		logs.Scales[c.Task].Log = isLog
		chosen = chosen || isLog
	}
	if !chosen {
		logs.Scales = nil
	}
	return logs.Scales, choices, nil
}

// linearErrors returns the mean absolute error of each task on the validation set, of a linear model.
func linearErrors(
	ctx context.Context, h model.Head, newModel func(model.Head) (*model.Trained, error), d Data,
) (errs []float64, err error) {
	m, err := newModel(h)
	if err != nil {
		return nil, err
	}
	defer backend.Recover(&err)
	l, err := New(m, d, Options{})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	h = *m.Card.Head
	y, exact, bounds := d.targets(h, d.Valid)
	if err := l.fitLinear(ctx, y, bounds); err != nil {
		return nil, err
	}
	t := autodiff.NewInference(l.be)
	defer t.Reset()
	graphs := pick(d.Graphs, d.Valid)
	z := t.Matrix(len(graphs), m.Card.Beside.Size, m.Beside.Standardise(graphs))
	predicted := h.InUnits(m.Beside.Linear.Forward(z).Data())
	errs = make([]float64, h.Outputs)
	counts := make([]float64, h.Outputs)
	for i, v := range exact {
		if !math.IsNaN(v) {
			errs[i%h.Outputs] += math.Abs(predicted[i] - v)
			counts[i%h.Outputs]++
		}
	}
	for task := range errs {
		errs[task] /= max(counts[task], 1)
	}
	return errs, nil
}

// column returns the targets of a task over some samples, without missing ones.
func (d Data) column(samples []int, task, tasks int) (y []float64) {
	for _, i := range samples {
		if v := d.Y[i*tasks+task]; !math.IsNaN(v) {
			y = append(y, v)
		}
	}
	return y
}

// isPositive reports whether all targets of a task have a logarithm.
func (d Data) isPositive(task, tasks int) bool {
	for i := task; i < len(d.Y); i += tasks {
		if d.Y[i] <= 0 { // false for NaN
			return false
		}
	}
	return true
}

// ChooseScales chooses the scales of the targets for some splits; see the function of this name. a is the
// encoder, which says what features the records have. Without a linear model of numbers, and where Task.Scale
// says what the scale is, there is nothing to choose. It returns a line for each target that might have another
// scale.
func (x *Examples) ChooseScales(
	ctx context.Context, be backend.Backend, a gnn.Architecture, splits ...dataset.Split,
) (lines []string, err error) {
	if x.Beside == nil || !x.Beside.Linear || len(x.Head.Scales) > 0 {
		return nil, nil
	}
	a.Hidden = 2 // the encoder is not used
	a.Layers = 1
	var parts []Data
	for _, s := range splits {
		parts = append(parts, x.Data(s))
	}
	newModel := func(h model.Head) (*model.Trained, error) {
		y := *x
		y.Head = h
		return y.NewModel(be, a, nil, 0)
	}
	scales, choices, err := ChooseScales(ctx, x.Head, newModel, parts...)
	if err != nil {
		return nil, x.Locate(err)
	}
	x.Head.Scales = scales
	x.decided = map[int]bool{}
	for _, c := range choices {
		x.decided[c.Task] = true
		lines = append(lines, fmt.Sprintf("targets %s: %v", x.Targets[c.Task], c))
	}
	return lines, nil
}
