package finetune

import (
	"context"
	"math"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Calibrate notes in the model's card what it errs by on the validation part, and where the
// records lie that it was trained on; see [model.Calibration]. The epoch whose weights
// are kept was chosen on the same part: what is promised of it holds nearly, and reports
// measure it on the test part.
func (x *Examples) Calibrate(ctx context.Context, m *model.Trained, s dataset.Split) error {
	h := *m.Card.Head
	others, err := m.Embed(ctx, x.graphs(s.Valid))
	if err != nil {
		return err
	}
	trained, err := m.Embed(ctx, x.graphs(few(s.Train, 4096)))
	if err != nil {
		return err
	}
	p, err := m.Apply(others, x.graphs(s.Valid))
	if err != nil {
		return err
	}
	tasks := columns(h)
	scores := make([][]float64, tasks)
	d := Data{Y: x.Y, Bounds: x.Bounds}
	for k, i := range s.Valid {
		for t, y := range d.exact(i, tasks) {
			if math.IsNaN(y) {
				continue
			}
			row := p[k*h.Outputs : (k+1)*h.Outputs]
			score := math.Abs(row[t] - y)
			if h.Kind == model.Classes {
				score = 1 - row[int(y)]
			}
			scores[t] = append(scores[t], score)
		}
	}
	m.Card.Calibration = model.NewCalibration(scores, trained, others, m.Width())
	return nil
}

// graphs returns those of some records.
func (x *Examples) graphs(samples []int) []*graph.Graph { return some(x.Set.Graphs, samples) }

func some(graphs []*graph.Graph, samples []int) []*graph.Graph {
	all := make([]*graph.Graph, len(samples))
	for k, i := range samples {
		all[k] = graphs[i]
	}
	return all
}

// few returns at most n of the samples, from all of their range.
func few(samples []int, n int) []int {
	if len(samples) <= n {
		return samples
	}
	all := make([]int, n)
	for i := range all {
		all[i] = samples[i*len(samples)/n]
	}
	return all
}

// Coverage is how often the sets of a level have the answer, in per cent, and how large they
// are in the mean: the width of an interval in the unit of the targets, or the number of
// answers.
type Coverage struct{ Percent, Size float64 }

// Coverage returns that of each task at a level; of a task without targets it is zero. It is
// an error if the model is not calibrated for the level.
func (p Predictions) Coverage(c *model.Calibration, level float64) (all []Coverage, err error) {
	_, rows, err := p.head.Sets(c, level, p.values)
	if err != nil {
		return nil, err
	}
	tasks := columns(p.head)
	d := Data{Y: p.x.Y, Bounds: p.x.Bounds}
	n := make([]float64, tasks)
	all = make([]Coverage, tasks)
	width := len(rows) / max(len(p.samples), 1) / tasks // of a task's columns
	for k, i := range p.samples {
		for t, y := range d.exact(i, tasks) {
			if math.IsNaN(y) {
				continue
			}
			set := rows[(k*tasks+t)*width : (k*tasks+t+1)*width]
			n[t]++
			if p.head.Kind == model.Regression {
				all[t].Size += set[1] - set[0]
				if set[0] <= y && y <= set[1] {
					all[t].Percent++
				}
				continue
			}
			all[t].Percent += set[int(y)]
			for _, in := range set {
				all[t].Size += in
			}
		}
	}
	for t := range all {
		all[t].Percent = 100 * all[t].Percent / max(n[t], 1)
		all[t].Size /= max(n[t], 1)
	}
	return all, nil
}
