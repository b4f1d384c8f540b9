package finetune

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// Predictions are a model's predictions for some of the records.
type Predictions struct {
	x         *Examples
	head      model.Head
	samples   []int
	values    []float64 // [n×Outputs]
	distances []float64 // to the training records; nil if the model is not calibrated
}

// Predict returns a model's predictions for some of the records, as [model.Trained.Predict] makes
// them. Numbers and probabilities that differ by the rounding of float32 only are made equal.
func (x *Examples) Predict(ctx context.Context, m *model.Trained, samples []int) (Predictions, error) {
	p := Predictions{x: x, head: *m.Card.Head, samples: samples}
	graphs := x.graphs(samples)
	embeddings, err := m.Embed(ctx, graphs)
	if err != nil {
		return p, err
	}
	p.values, err = m.Apply(embeddings, graphs)
	if err != nil {
		return p, err
	}
	Settle(p.head, p.values)
	if c := m.Card.Calibration; c != nil {
		p.distances = c.Distances(embeddings)
	}
	return p, nil
}

// row returns the predictions [Outputs] for the k-th record.
func (p Predictions) row(k int) []float64 {
	return p.values[k*p.head.Outputs : (k+1)*p.head.Outputs]
}

// targets returns the targets of the k-th record, NaN where one is missing or a bound.
func (p Predictions) targets(k int) []float64 {
	return p.x.Data(dataset.Split{}).exact(p.samples[k], taskCount(p.head))
}

// Errors returns the error of each record, a mean over its targets: |y − prediction| on the
// target's scale, in standard deviations of the training set, or one minus the probability of the observed
// answer. It is NaN without a target that is no bound.
func (p Predictions) Errors() []float64 {
	errs := make([]float64, len(p.samples))
	for k := range errs {
		sum := 0.0
		n := 0.0
		for task, y := range p.targets(k) {
			if !math.IsNaN(y) {
				sum += p.error(k, task, y)
				n++
			}
		}
		errs[k] = sum / n
	}
	return errs
}

// error returns the error of one target.
func (p Predictions) error(k, task int, y float64) float64 {
	row := p.row(k)
	switch p.head.Kind {
	case model.Classes:
		return 1 - row[int(y)]
	case model.Binary:
		return math.Abs(y - row[task])
	}
	scale := p.head.Scale(task)
	return math.Abs(scale.Of(y)-scale.Of(row[task])) / p.head.Std[task]
}

// Row returns the position in Records of the k-th record, its predictions, and the output with the
// largest error; for classes, the most probable one.
func (p Predictions) Row(k int) (record int, values []float64, output int) {
	values = p.row(k)
	if p.head.Kind == model.Classes {
		return p.samples[k], values, argmax(values)
	}
	largest := -1.0
	for task, y := range p.targets(k) {
		if e := p.error(k, task, y); e > largest {
			largest = e
			output = task
		}
	}
	return p.samples[k], values, output
}

// Score returns the metrics of each task, those of the baseline of the training records, and the confusion
// matrices; see [Score], [Data.Baseline] and [Confusion]. A target that is a bound counts as missing.
func (p Predictions) Score(trained []int) (metrics, baseline []train.Metrics, confusion [][][]float64) {
	var constant, y []float64
	row := p.x.Data(dataset.Split{}).Baseline(p.head, trained)
	for k := range p.samples {
		y = append(y, p.targets(k)...)
		constant = append(constant, row...)
	}
	return Score(p.head, p.values, y), Score(p.head, constant, y), Confusion(p.head, p.values, y)
}

// ReadMean returns the mean of predictions for the same records, from tables that [Predictions.Write] wrote.
func (x *Examples) ReadMean(samples []int, tables ...io.Reader) (Predictions, error) {
	outputs := x.Head.Outputs
	p := Predictions{
		x:       x,
		head:    x.Head,
		samples: samples,
		values:  make([]float64, len(samples)*outputs),
	}
	for _, t := range tables {
		rows, err := csv.NewReader(t).ReadAll()
		if err != nil {
			return p, fmt.Errorf("finetune: a table of predictions: %w", err)
		}
		if len(rows) != 1+len(samples) || len(rows[0]) <= outputs {
			return p, fmt.Errorf("finetune: a table of predictions has %d rows for %d records",
				len(rows)-1, len(samples))
		}
		for k := range p.values {
			text := rows[1+k/outputs][1+k%outputs]
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return p, fmt.Errorf("finetune: prediction %q: %w", text, err)
			}
			p.values[k] += v / float64(len(tables))
		}
	}
	if x.Kind == model.Regression { // Settle measures rounding in this unit
		p.head.Mean, p.head.Std = x.Data(dataset.Split{}).moments(x.Head, samples)
	}
	Settle(p.head, p.values)
	return p, nil
}

// Write writes a table: the records' ids, the predictions as package apply writes them, the targets
// as they stand in the file, as TARGET_observed, and the distance to the training records, if the
// model is calibrated. It keeps the bits that [Predictions.Score] evaluates.
func (p Predictions) Write(out io.Writer) error {
	w := csv.NewWriter(out)
	header := p.head.Columns()
	for _, target := range p.x.Targets {
		header = append(header, target+"_observed")
	}
	if p.distances != nil {
		header = append(header, "distance")
	}
	w.Write(files.Distinct("id", header...)) // w.Error returns the first error
	for k, i := range p.samples {
		record := p.x.Records[i]
		line := []string{record.ID}
		for _, v := range p.row(k) {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 32))
		}
		line = append(line, record.Fields[:len(p.x.Targets)]...)
		if p.distances != nil {
			line = append(line, strconv.FormatFloat(p.distances[k], 'g', 4, 64))
		}
		w.Write(files.Cells(nil, line))
	}
	w.Flush()
	return w.Error()
}
