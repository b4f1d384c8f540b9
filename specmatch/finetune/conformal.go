package finetune

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/model"
)

// mostCalibrated bounds the training records that a calibration looks at.
const mostCalibrated = 4096

// mostCompared bounds the records whose errors ensembles compare, in all parts of a data set.
const mostCompared = 20000

// Calibrate notes in the model's card its errors on the validation set, and the embeddings of
// training records; see [model.Calibration]. The kept epoch was chosen on the same set, so the
// promised coverage holds only nearly; reports measure it on the test set.
func (x *Examples) Calibrate(ctx context.Context, m *model.Trained, s dataset.Split) error {
	valid, err := m.Embed(ctx, x.graphs(s.Valid))
	if err != nil {
		return err
	}
	trained, err := m.Embed(ctx, x.graphs(thin(s.Train, mostCalibrated)))
	if err != nil {
		return err
	}
	values, err := m.Apply(valid, x.graphs(s.Valid))
	if err != nil {
		return err
	}
	p := Predictions{
		x:       x,
		head:    *m.Card.Head,
		samples: s.Valid,
		values:  values,
	}
	scores := make([][]float64, taskCount(p.head))
	var keys []uint32
	var residuals []float64
	for k, i := range p.samples {
		if p.head.Kind == model.Regression && i%(1+len(x.Records)/mostCompared) == 0 {
			keys = append(keys, x.key(i))
			residuals = append(residuals, p.residuals(k)...)
		}
		for task, y := range p.targets(k) {
			if math.IsNaN(y) {
				continue
			}
			score := 0.0
			if p.head.Kind == model.Classes {
				score = 1 - p.row(k)[int(y)]
			} else {
				scale := p.head.Scale(task)
				score = math.Abs(scale.Of(p.row(k)[task]) - scale.Of(y))
			}
			scores[task] = append(scores[task], score)
		}
	}
	m.Card.Calibration = model.NewCalibration(scores, trained, valid, m.Width())
	m.Card.Calibration.Cuts = p.cuts()
	if keys != nil {
		m.Card.Calibration.Residuals = model.NewResiduals(keys, residuals)
	}
	return nil
}

// key identifies a record among those of the models of an ensemble: by its molecule or, for graphs, by its
// position in the file.
func (x *Examples) key(i int) uint32 {
	identity := x.Records[i].Identity
	if x.Content == records.Graphs {
		return uint32(i)
	}
	return binary.LittleEndian.Uint32(identity[:])
}

// residuals returns by how much the predictions for the k-th record exceed its targets, on their scales.
func (p Predictions) residuals(k int) []float64 {
	errs := make([]float64, len(p.row(k)))
	for task, y := range p.targets(k) {
		scale := p.head.Scale(task)
		errs[task] = scale.Of(p.row(k)[task]) - scale.Of(y)
	}
	return errs
}

// Coverage is how often prediction intervals or sets hold the observed value, in per cent, and
// their mean size: the width of an interval in the unit of the targets, or the number of answers in
// a set.
type Coverage struct{ Percent, Size float64 }

// Coverage returns the coverage of each task at a level; it is zero for a task without targets. It
// is an error if the model is not calibrated for the level.
func (p Predictions) Coverage(c *model.Calibration, level float64) ([]Coverage, error) {
	_, rows, err := p.head.Sets(level, p.values, c)
	if err != nil {
		return nil, err
	}
	tasks := taskCount(p.head)
	counts := make([]float64, tasks)
	coverage := make([]Coverage, tasks)
	width := len(rows) / max(len(p.samples), 1) / tasks // of a task's columns
	for k := range p.samples {
		for task, y := range p.targets(k) {
			if math.IsNaN(y) {
				continue
			}
			set := rows[(k*tasks+task)*width : (k*tasks+task+1)*width]
			counts[task]++
			c := &coverage[task]
			if p.head.Kind == model.Regression {
				c.Size += set[1] - set[0]
				if set[0] <= y && y <= set[1] {
					c.Percent++
				}
				continue
			}
			c.Percent += set[int(y)]
			for _, member := range set {
				c.Size += member
			}
		}
	}
	for task := range coverage {
		n := max(counts[task], 1)
		coverage[task].Percent = 100 * coverage[task].Percent / n
		coverage[task].Size /= n
	}
	return coverage, nil
}
