package model

import (
	"fmt"
	"math"
	"slices"
)

// Calibration holds a model's errors on records that it was not trained on, and embeddings of those
// that it was trained on. Package finetune makes it.
//
// Split conformal prediction (Vovk et al. 2005; Lei et al. 2018) scores how far an answer is from
// its prediction: |y − prediction| on the scale of a number, and one minus the probability of the answer
// otherwise. The interval or set of answers that score at most the ⌈(n+1)·level⌉-th of n scores holds the
// true answer with at least the probability level, for records like those that were scored.
type Calibration struct {
	// Scores are the scores of each task, ascending; classes are one task. At most a thousand represent
	// the Count scores of a task: the next larger one stands for each that was dropped.
	Scores [][]float32 `json:"scores"`
	Count  []int       `json:"of"`
	// Residuals are those of scored records of a regression; nil for other kinds and in files of earlier
	// versions.
	Residuals *Residuals `json:"residuals,omitempty"`
	// Cuts are the probabilities from which the answers of binary tasks are 1, chosen on the scored records;
	// nil for other kinds and in files of earlier versions.
	Cuts []float64 `json:"cuts,omitempty"`
	// Near are embeddings of training records, [n×width]: byte b in column k stands for
	// Low[k] + Step[k]·b. Unit is the median distance of the other records to the nearest of them.
	Near []byte    `json:"near,omitempty"`
	Low  []float32 `json:"low,omitempty"`
	Step []float32 `json:"step,omitempty"`
	Unit float64   `json:"unit,omitempty"`
}

const (
	maxScores = 1000 // of a task
	maxNear   = 512  // embeddings
)

// NewCalibration returns the calibration for scores by task, and for embeddings [n×width] of
// training records and of others.
func NewCalibration(scores [][]float64, trained, validation []float64, width int) *Calibration {
	c := new(Calibration)
	for _, s := range scores {
		s = slices.Sorted(slices.Values(s))
		m := min(len(s), maxScores)
		sample := make([]float32, m)
		for j := range sample {
			v := s[((j+1)*len(s)+m-1)/m-1]
			sample[j] = float32(v)
			if float64(sample[j]) < v {
				sample[j] = math.Nextafter32(sample[j], math.MaxFloat32)
			}
		}
		c.Scores = append(c.Scores, sample)
		c.Count = append(c.Count, len(s))
	}
	c.compress(trained, width)
	c.Unit = 1
	if d := slices.Sorted(slices.Values(c.Distances(validation))); len(d) > 0 && d[len(d)/2] > 0 {
		c.Unit = d[len(d)/2]
	}
	return c
}

// compress notes some of the embeddings [n×width], evenly chosen, in a byte for each value.
func (c *Calibration) compress(embeddings []float64, width int) {
	n := len(embeddings) / width
	rows := min(n, maxNear)
	value := func(row, k int) float64 { return embeddings[row*n/rows*width+k] }
	c.Low = make([]float32, width)
	c.Step = make([]float32, width)
	c.Near = make([]byte, rows*width)
	for k := range width {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range rows {
			low = min(low, value(i, k))
			high = max(high, value(i, k))
		}
		c.Low[k] = float32(low)
		c.Step[k] = float32((high - low) / 255)
		if !(c.Step[k] > 0) {
			continue
		}
		for i := range rows {
			steps := math.Round(min(255, (value(i, k)-low)/float64(c.Step[k])))
			c.Near[i*width+k] = byte(steps)
		}
	}
}

// Distances returns the distance of each embedding [n×width] to the nearest one of a training
// record. 1 is the median distance of the validation records.
func (c *Calibration) Distances(h []float64) []float64 {
	width := len(c.Low)
	near := make([]float64, len(c.Near))
	for i, b := range c.Near {
		near[i] = float64(c.Low[i%width]) + float64(c.Step[i%width])*float64(b)
	}
	distances := make([]float64, len(h)/width)
	for i := range distances {
		least := math.Inf(1) // of the squares
		for start := 0; start < len(near); start += width {
			sum := 0.0
			for k, v := range h[i*width : (i+1)*width] {
				sum += (v - near[start+k]) * (v - near[start+k])
				if sum >= least { // it only grows
					break
				}
			}
			least = min(least, sum)
		}
		distances[i] = math.Sqrt(least) / c.Unit
	}
	return distances
}

// Quantile returns the largest score that an answer may have at a level between 0 and 1. It is an
// error if there are too few scores for the level.
func (c *Calibration) Quantile(task int, level float64) (float64, error) {
	n := c.Count[task]
	m := len(c.Scores[task])
	k := int(math.Ceil(float64(n+1)*level - 1e-9))
	if !(level > 0 && level < 1) || k > n {
		return 0, fmt.Errorf("specmatch: the level %g needs %.0f validation records, and there are %d",
			level, math.Ceil(level/(1-level)-1e-9), n)
	}
	return float64(c.Scores[task][max((k*m+n-1)/n, 1)-1]), nil
}

// Sets returns, for predictions [n×Outputs], the answers that the model cannot rule out at a level,
// row-major with the names of the columns: the ends of an interval, NAME_low and NAME_high, in the
// unit of the targets; or 1 for each class, or answer of a binary task, that is in the set, and 0
// for the others.
//
// Predictions may be the mean of several models. A score may then be as large as the mean of what their
// calibrations allow. For numbers, that is multiplied by how much smaller the errors of the mean are than those
// of one model, as far as [Residuals] of the same records tell; for other kinds, it is more than enough.
func (h Head) Sets(
	level float64, predicted []float64, calibrations ...*Calibration,
) (columns []string, rows []float64, err error) {
	tasks := h.Outputs
	if h.Kind == Classes {
		tasks = 1
	}
	limits := make([]float64, tasks)
	for t := range limits {
		for _, c := range calibrations {
			limit, err := c.Quantile(t, level)
			if err != nil {
				return nil, nil, err
			}
			limits[t] += limit / float64(len(calibrations))
		}
		if h.Kind == Regression && len(calibrations) > 1 {
			limits[t] *= meanFactor(t, calibrations)
		}
	}
	endings := map[Kind][]string{
		Classes:    {"_in"},
		Binary:     {"_no_in", "_yes_in"},
		Regression: {"_low", "_high"},
	}
	for _, name := range h.Columns() {
		for _, ending := range endings[h.Kind] {
			columns = append(columns, name+ending)
		}
	}
	member := func(p, limit float64) float64 {
		if 1-p <= limit {
			return 1
		}
		return 0
	}
	for i, p := range predicted {
		switch limit := limits[i%h.Outputs%tasks]; h.Kind {
		case Classes:
			rows = append(rows, member(p, limit))
		case Binary:
			rows = append(rows, member(1-p, limit), member(p, limit))
		default:
			scale := h.Scale(i % h.Outputs)
			place := scale.Of(p)
			rows = append(rows, scale.Value(place-limit), scale.Value(place+limit))
		}
	}
	return columns, rows, nil
}

// check returns an error unless the calibration fits a head and embeddings of a width.
func (c *Calibration) check(h Head, width int) error {
	tasks := h.Outputs
	if h.Kind == Classes {
		tasks = 1
	}
	ok := len(c.Scores) == tasks && len(c.Count) == tasks && len(c.Low) == width &&
		len(c.Step) == width && len(c.Near)%max(width, 1) == 0 && c.Unit > 0
	if c.Cuts != nil {
		ok = ok && h.Kind == Binary && len(c.Cuts) == tasks
	}
	for t := range c.Scores {
		ok = ok && len(c.Scores[t]) == min(c.Count[t], maxScores) && slices.IsSorted(c.Scores[t])
	}
	if r := c.Residuals; r != nil {
		ok = ok && len(r.Keys) > 0 && len(r.Errors) == 4*tasks*len(r.Keys)
	}
	if !ok {
		return fmt.Errorf("specmatch: the calibration does not fit a head of kind %s with %d outputs "+
			"and embeddings of width %d", h.Kind, h.Outputs, width)
	}
	return nil
}
