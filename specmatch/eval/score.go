package eval

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// Score is the accuracy of a classifier in the journal of a run, in per cent.
type Score struct {
	Accuracy float64
	Seconds  float64
	// Folds holds the accuracy on the test part of each outer fold; its mean is Accuracy. Inner
	// holds the accuracy of the best C on validation parts of each training part, by which settings
	// can be chosen without looking at the test part. Inner is empty where there was nothing to
	// choose; runs of version 0.1 have neither.
	Folds []float64 `json:",omitempty"`
	Inner []float64 `json:",omitempty"`
	// Twins counts the test graphs that have a copy in the training part; nil where none has, and in
	// runs that did not count them.
	Twins *Twins `json:",omitempty"`
}

// Twins divides the test graphs of all folds into those with a twin, an isomorphic graph in the training
// part of their fold, and the others.
type Twins struct {
	Graphs int // that have a twin
	Others int
	// Correct counts the others whose class was predicted.
	Correct int
}

// CountTwins returns the twins among the graphs of an evaluation on some folds, nil if there are none.
func CountTwins(c *dataset.Copies, outer []dataset.Fold, r *Result) *Twins {
	t := new(Twins)
	for o, fold := range outer {
		shared := map[int]bool{}
		for _, i := range c.Shared(fold.Train, fold.Test) {
			shared[i] = true
		}
		for k, i := range fold.Test {
			switch {
			case shared[i]:
				t.Graphs++
			case r.Correct[o][k]:
				t.Others++
				t.Correct++
			default:
				t.Others++
			}
		}
	}
	if t.Graphs == 0 {
		return nil
	}
	return t
}

// Share returns the part of the test graphs that have a twin, in per cent.
func (t *Twins) Share() float64 {
	return 100 * float64(t.Graphs) / float64(t.Graphs+t.Others)
}

// Accuracy returns the accuracy on the test graphs without a twin, of all folds together, in per cent; NaN
// if all have one.
func (t *Twins) Accuracy() float64 {
	if t.Others == 0 {
		return math.NaN()
	}
	return 100 * float64(t.Correct) / float64(t.Others)
}

// Check returns an error unless the accuracy is from 0 to 100. A score without folds must be above 0, as one that was
// not written has 0.
func (s *Score) Check() error {
	if !(s.Accuracy >= 0 && s.Accuracy <= 100) || s.Accuracy == 0 && len(s.Folds) == 0 {
		return fmt.Errorf("an accuracy of %v %%", s.Accuracy)
	}
	return nil
}
