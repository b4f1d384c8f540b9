package paper_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/tensor"
)

// A score has its folds, whose mean it is, and what could be seen of them without
// their test parts.
func TestScore(t *testing.T) {
	r, be, dir := newRun(t, method.Untrained), cpu.New(tensor.Float32), t.TempDir()
	if err := r.Save(dir, learner(t, r, be), 0); err != nil {
		t.Fatal(err)
	}
	s, err := paper.ScoreFile(t.Context(), be, r, dir, "linear", 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Folds) != 3 || len(s.Inner) != 3 || math.Abs(stat.Mean(s.Folds, nil)-s.Accuracy) > 1e-9 {
		t.Errorf("%+v: want three folds with the mean %v", s, s.Accuracy)
	}
	for _, v := range s.Inner {
		if !(v > 100.0/3 && v <= 100) {
			t.Errorf("an accuracy of %v %% on validation parts", v)
		}
	}
}

// TestScoreTwins: graphs that differ in labels of edges alone are twins, and the others are scored
// without them.
func TestScoreTwins(t *testing.T) {
	r, be, dir := newRun(t, method.Untrained), cpu.New(tensor.Float32), t.TempDir()
	copies := *r.Dataset
	for _, g := range r.Dataset.Graphs[:8] {
		twin := *g
		twin.EdgeLabel = make([]int32, len(g.Adj))
		copies.Graphs = append(copies.Graphs, &twin)
	}
	r.Dataset = &copies
	if err := r.Save(dir, learner(t, r, be), 0); err != nil {
		t.Fatal(err)
	}
	s, err := paper.ScoreFile(t.Context(), be, r, dir, "linear", 3)
	if err != nil {
		t.Fatal(err)
	}
	n := len(copies.Graphs)
	if s.Twins == nil || s.Twins.Graphs == 0 || s.Twins.Graphs > 16 || s.Twins.Graphs+s.Twins.Others != n {
		t.Fatalf("twins %+v of %d graphs", s.Twins, n)
	}
}
