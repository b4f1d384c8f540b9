package roc

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestAUCByHand(t *testing.T) {
	for _, tc := range []struct {
		name           string
		scores, labels []float64
		want           float64
	}{
		{"perfect", []float64{1, 2, 3, 4}, []float64{0, 0, 1, 1}, 1},
		{"reversed", []float64{4, 3, 2, 1}, []float64{0, 0, 1, 1}, 0},
		{"all scores equal", []float64{7, 7, 7}, []float64{0, 1, 0}, 0.5},
		{"scikit-learn's example", []float64{0.1, 0.4, 0.35, 0.8}, []float64{0, 0, 1, 1}, 0.75},
		// Pairs of positive and negative: 2>1, 2=2, 3>1, 3>2.
		{"a tie across the classes", []float64{1, 2, 2, 3}, []float64{0, 0, 1, 1}, 3.5 / 4},
	} {
		got, err := AUC(tc.scores, tc.labels)
		if err != nil || got != tc.want {
			t.Errorf("%s: %v, %v, want %v", tc.name, got, err, tc.want)
		}
	}
}

// The definition, pair by pair; and what must not matter makes no difference.
func TestAUCProperties(t *testing.T) {
	for seed := range uint64(20) {
		n, rng := 20+int(seed), rand.New(rand.NewPCG(seed, 0))
		scores, labels := make([]float64, n), make([]float64, n)
		for i := range scores {
			scores[i] = float64(rng.IntN(8))
			labels[i] = float64((i + int(seed)) % 3 % 2)
		}
		var wins, pairs float64
		for i := range n {
			for j := range n {
				if labels[i] == 1 && labels[j] == 0 {
					pairs++
					if scores[i] > scores[j] {
						wins++
					} else if scores[i] == scores[j] {
						wins += 0.5
					}
				}
			}
		}
		got, err := AUC(scores, labels)
		if err != nil || !(math.Abs(got-wins/pairs) <= 1e-15) {
			t.Errorf("seed %d: %v, %v, want %v", seed, got, err, wins/pairs)
		}
		before := slices.Clone(scores)
		rising, flipped := make([]float64, n), make([]float64, n)
		for i, s := range scores {
			rising[i] = math.Exp(s)
			flipped[i] = 1 - labels[i]
		}
		if v, _ := AUC(rising, labels); v != got {
			t.Errorf("seed %d: a rising function of the scores changes %v to %v", seed, got, v)
		}
		if v, _ := AUC(scores, flipped); !(math.Abs(v-(1-got)) <= 1e-15) {
			t.Errorf("seed %d: exchanged classes give %v, want %v", seed, v, 1-got)
		}
		if !slices.Equal(scores, before) {
			t.Fatalf("seed %d: the scores were changed", seed)
		}
	}
}

func TestMeanAUC(t *testing.T) {
	na := math.NaN()
	// Task 0: labels 0,1,missing,1. Task 1: only positives. Task 2: a tie.
	scores := []float64{
		1, 5, 2,
		2, 5, 2,
		0, 5, 1,
		3, 5, 3,
	}
	labels := []float64{
		0, 1, 0,
		1, na, 1,
		na, 1, na,
		1, 1, na,
	}
	got, skipped, err := MeanAUC(scores, labels, 3)
	if err != nil || got != (1+0.5)/2 || skipped != 1 {
		t.Errorf("mean %v, skipped %d, error %v, want 0.75, 1", got, skipped, err)
	}
	_, skipped, err = MeanAUC([]float64{1, 2}, []float64{1, na}, 2)
	if !errors.Is(err, ErrOneClass) || skipped != 2 {
		t.Errorf("no defined task: skipped %d, error %v", skipped, err)
	}
}

func TestAUCErrors(t *testing.T) {
	for _, tc := range []struct {
		name           string
		scores, labels []float64
		want           string
	}{
		{"lengths", []float64{1}, []float64{1, 0}, "1 scores but 2 labels"},
		{"NaN score", []float64{1, math.NaN()}, []float64{1, 0}, "sample 1: score is NaN"},
		{"infinite score", []float64{math.Inf(1), 1}, []float64{1, 0}, "sample 0: score is +Inf"},
		{"infinite below", []float64{1, math.Inf(-1)}, []float64{1, 0}, "sample 1: score is -Inf"},
		{"label", []float64{1, 2, 3}, []float64{1, 0, -1}, "sample 2: label is -1"},
		{"missing label", []float64{1, 2}, []float64{1, math.NaN()}, "label is NaN"},
		{"nothing", nil, nil, "only one class"},
		{"one class", []float64{1, 2}, []float64{1, 1}, "only one class"},
		{"the other class", []float64{1, 2}, []float64{0, 0}, "only one class"},
	} {
		if v, err := AUC(tc.scores, tc.labels); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v, want an error with %q", tc.name, v, err, tc.want)
		}
	}
	for _, tc := range []struct {
		n, labels, tasks int
		want             string
	}{{4, 4, 0, "0 tasks"}, {4, 4, 3, "not rows of 3"}, {4, 3, 2, "4 scores but 3 labels"}} {
		if _, _, err := MeanAUC(make([]float64, tc.n), make([]float64, tc.labels), tc.tasks); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: error %v", tc, err)
		}
	}
	if _, _, err := MeanAUC([]float64{0, 1, 2, math.NaN()}, make([]float64, 4), 2); err == nil || !strings.Contains(err.Error(), "sample 1, task 1") {
		t.Errorf("error %v does not say where", err)
	}
}
