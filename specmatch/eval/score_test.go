package eval

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// TestCountTwins: graphs 0 and 1 are equal, and so are 2, 3 and 4. Of the folds, the first tests 0, whose
// twin is in training, and 5; the second 3 and 4, whose twin is; the third 1 and 2.
func TestCountTwins(t *testing.T) {
	c := &dataset.Copies{Groups: [][]int{{0, 1}, {2, 3, 4}}}
	outer := []dataset.Fold{
		{Train: []int{1, 2, 3, 4, 6}, Test: []int{0, 5}},
		{Train: []int{0, 1, 2, 5}, Test: []int{3, 4, 6}},
		{Train: []int{5, 6}, Test: []int{1, 2}},
	}
	r := &Result{Correct: [][]bool{{true, false}, {true, true, true}, {false, true}}}
	got := CountTwins(c, outer, r)
	if d := cmp.Diff(&Twins{Graphs: 3, Others: 4, Correct: 2}, got); d != "" {
		t.Fatal(d)
	}
	if got.Share() != 300.0/7 || got.Accuracy() != 50 {
		t.Errorf("share %v, accuracy %v", got.Share(), got.Accuracy())
	}
	if got := CountTwins(c, outer[2:], &Result{Correct: r.Correct[2:]}); got != nil {
		t.Errorf("without twins: %+v", got)
	}
	if v := (&Twins{Graphs: 3}).Accuracy(); !math.IsNaN(v) {
		t.Errorf("nothing but twins: %v", v)
	}
}

// TestScoreCheck: an accuracy of 0 is one, if its folds are there.
func TestScoreCheck(t *testing.T) {
	for _, s := range []Score{{Accuracy: 0, Folds: []float64{0, 0}}, {Accuracy: 100}, {Accuracy: 0.5}} {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, s := range []Score{{}, {Accuracy: math.NaN(), Folds: []float64{1}}, {Accuracy: 101}, {Accuracy: -1}} {
		if s.Check() == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}
