package eval

import "fmt"

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
}

// Check returns an error unless the accuracy is above 0 and at most 100.
func (s *Score) Check() error {
	if !(s.Accuracy > 0 && s.Accuracy <= 100) {
		return fmt.Errorf("an accuracy of %v %%", s.Accuracy)
	}
	return nil
}
