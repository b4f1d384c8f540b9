package model

import (
	"fmt"
	"math"
	"slices"
)

// Calibration is what a model knows of its errors on records that it was not trained on, and
// where those lie that it was trained on. Package finetune makes it.
//
// Split conformal prediction (Vovk et al. 2005; Lei et al. 2018) needs scores of such records,
// of how strange an answer is beside its prediction: |y − prediction| for a number, and one
// less the probability of the answer otherwise. The interval, or the set of answers, that
// scores at most the ⌈(n+1)·level⌉-th of n scores then has the answer with at least the
// probability level, over records like these; it says nothing of others.
type Calibration struct {
	// Scores are ascending, for each task; classes are one. At most a thousand stand for Of
	// scores: those that are dropped have the next larger one in their place.
	Scores [][]float32 `json:"scores"`
	Of     []int       `json:"of"`
	// Near are embeddings of records that were trained on, [n×width]: byte b in column k is
	// Low[k] + Step[k]·b. Unit is the median, over the other records, of the distance to the
	// nearest.
	Near []byte    `json:"near,omitempty"`
	Low  []float32 `json:"low,omitempty"`
	Step []float32 `json:"step,omitempty"`
	Unit float64   `json:"unit,omitempty"`
}

// The most scores of a task, and embeddings.
const (
	mostScores = 1000
	mostNear   = 512
)

// NewCalibration returns the calibration of scores by task, of some embeddings that were
// trained on, and of others, both [n×width].
func NewCalibration(scores [][]float64, trained, others []float64, width int) *Calibration {
	c := new(Calibration)
	for _, s := range scores {
		s = slices.Sorted(slices.Values(s))
		m := min(len(s), mostScores)
		kept := make([]float32, m)
		for j := range kept {
			v := s[((j+1)*len(s)+m-1)/m-1]
			kept[j] = float32(v)
			if float64(kept[j]) < v {
				kept[j] = math.Nextafter32(kept[j], math.MaxFloat32)
			}
		}
		c.Scores = append(c.Scores, kept)
		c.Of = append(c.Of, len(s))
	}
	n := len(trained) / width
	some := min(n, mostNear)
	c.Low = make([]float32, width)
	c.Step = make([]float32, width)
	c.Near = make([]byte, some*width)
	for k := range width {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range some {
			v := trained[i*n/some*width+k]
			low, high = min(low, v), max(high, v)
		}
		c.Low[k], c.Step[k] = float32(low), float32((high-low)/255)
		for i := range some {
			if c.Step[k] > 0 {
				c.Near[i*width+k] = byte(math.Round(min(
					255, (trained[i*n/some*width+k]-low)/float64(c.Step[k]),
				)))
			}
		}
	}
	c.Unit = 1
	if d := slices.Sorted(slices.Values(c.Distances(others))); len(d) > 0 && d[len(d)/2] > 0 {
		c.Unit = d[len(d)/2]
	}
	return c
}

// Distances returns how far embeddings [n×width] are from the nearest that was trained on, in
// units of what is usual: 1 is the median of the records that were validated on.
func (c *Calibration) Distances(h []float64) []float64 {
	width := len(c.Low)
	near := make([]float64, len(c.Near))
	all := make([]float64, len(h)/width)
	for i, b := range c.Near {
		near[i] = float64(c.Low[i%width]) + float64(c.Step[i%width])*float64(b)
	}
	for i := range all {
		all[i] = math.Inf(1)
		for at := 0; at < len(near); at += width {
			sum := 0.0
			for k, v := range h[i*width : (i+1)*width] {
				sum += (v - near[at+k]) * (v - near[at+k])
			}
			all[i] = min(all[i], sum)
		}
		all[i] = math.Sqrt(all[i]) / c.Unit
	}
	return all
}

// Quantile returns the score of a task that answers may have at a level between 0 and 1. It
// is an error if there are too few scores for the level.
func (c *Calibration) Quantile(task int, level float64) (float64, error) {
	n := c.Of[task]
	m := len(c.Scores[task])
	k := int(math.Ceil(float64(n+1)*level - 1e-9))
	if !(level > 0 && level < 1) || k > n {
		return 0, fmt.Errorf("specmatch: the level %g needs %.0f records that were validated "+
			"on, and there are %d",
			level, math.Ceil(level/(1-level)-1e-9), n)
	}
	return float64(c.Scores[task][max((k*m+n-1)/n, 1)-1]), nil
}

// Sets returns for predictions [n×Outputs] the answers that the model cannot rule out at a
// level, row-major under the names of columns: the ends of an interval, NAME_low and
// NAME_high, in the unit of the targets, or 1 for the classes, or for no and yes, that are in
// the set, and 0 for the others.
func (h Head) Sets(
	c *Calibration, level float64, predicted []float64,
) (columns []string, rows []float64, err error) {
	tasks := h.Outputs
	if h.Kind == Classes {
		tasks = 1
	}
	most := make([]float64, tasks)
	for t := range most {
		most[t], err = c.Quantile(t, level)
		if err != nil {
			return nil, nil, err
		}
	}
	ends := map[Kind][]string{
		Classes:    {"_in"},
		Binary:     {"_no_in", "_yes_in"},
		Regression: {"_low", "_high"},
	}[h.Kind]
	for _, name := range h.Columns() {
		for _, end := range ends {
			columns = append(columns, name+end)
		}
	}
	in := func(p, most float64) float64 {
		if 1-p <= most {
			return 1
		}
		return 0
	}
	for i, p := range predicted {
		switch most := most[i%h.Outputs%tasks]; h.Kind {
		case Classes:
			rows = append(rows, in(p, most))
		case Binary:
			rows = append(rows, in(1-p, most), in(p, most))
		default:
			rows = append(rows, p-most, p+most)
		}
	}
	return columns, rows, nil
}

// check returns an error unless the calibration is one of a head, and of embeddings of a width.
func (c *Calibration) check(h Head, width int) error {
	tasks := h.Outputs
	if h.Kind == Classes {
		tasks = 1
	}
	ok := len(c.Scores) == tasks && len(c.Of) == tasks && len(c.Low) == width && len(c.Step) == width &&
		len(c.Near)%max(width, 1) == 0 && c.Unit > 0
	for t := range c.Scores {
		ok = ok && len(c.Scores[t]) == min(c.Of[t], mostScores) && slices.IsSorted(c.Scores[t])
	}
	if !ok {
		return fmt.Errorf(
			"specmatch: the calibration is not one of a head of kind %s with %d outputs and embeddings of "+
				"width %d",
			h.Kind,
			h.Outputs,
			width,
		)
	}
	return nil
}
