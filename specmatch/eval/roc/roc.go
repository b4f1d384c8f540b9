// Package roc is the area under the receiver operating characteristic, of one task or
// of several of which some labels are missing.
package roc

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrOneClass is wrapped by [AUC] if all labels are equal: the area is then
// undefined.
var ErrOneClass = errors.New("only one class is present")

// AUC returns the area under the receiver operating characteristic of scores
// for labels 0 and 1: the share of pairs of a positive and a negative in which the
// positive has the higher score, an equal score counting one half. This is the
// trapezoid rule with ties, and the statistic of Mann and Whitney with midranks.
func AUC(scores, labels []float64) (float64, error) {
	if len(scores) != len(labels) {
		return 0, fmt.Errorf("roc: AUC: %d scores but %d labels", len(scores), len(labels))
	}
	pairs := make([]scored, len(scores))
	for i, s := range scores {
		p, err := newScored(s, labels[i])
		if err != nil {
			return 0, fmt.Errorf("roc: AUC: sample %d: %w", i, err)
		}
		pairs[i] = p
	}
	return area(pairs)
}

// MeanAUC returns the unweighted mean of [AUC] over the tasks of a data set
// with several labels per sample. scores and labels are row-major [n×tasks]; the
// label NaN means missing, and such samples do not count for that task. Tasks that
// lack one of the classes are left out, and their number is returned. If that
// leaves none, it is an error that wraps [ErrOneClass].
func MeanAUC(scores, labels []float64, tasks int) (mean float64, skipped int, err error) {
	if tasks < 1 {
		return 0, 0, fmt.Errorf("roc: AUC: %d tasks, want at least 1", tasks)
	}
	if len(scores) != len(labels) {
		return 0, 0, fmt.Errorf("roc: AUC: %d scores but %d labels", len(scores), len(labels))
	}
	if len(scores)%tasks != 0 {
		return 0, 0, fmt.Errorf("roc: AUC: %d scores are not rows of %d tasks", len(scores), tasks)
	}
	pairs := make([]scored, 0, len(scores)/tasks)
	for t := range tasks {
		pairs = pairs[:0]
		for i := t; i < len(scores); i += tasks {
			if math.IsNaN(labels[i]) {
				continue
			}
			p, err := newScored(scores[i], labels[i])
			if err != nil {
				return 0, 0, fmt.Errorf("roc: AUC: sample %d, task %d: %w", i/tasks, t, err)
			}
			pairs = append(pairs, p)
		}
		auc, err := area(pairs)
		switch {
		case errors.Is(err, ErrOneClass):
			skipped++
		case err != nil:
			return 0, 0, err
		default:
			mean += auc
		}
	}
	if skipped == tasks {
		return 0, skipped, fmt.Errorf("roc: AUC: none of %d tasks is defined: %w", tasks, ErrOneClass)
	}
	return mean / float64(tasks-skipped), skipped, nil
}

type scored struct {
	score    float64
	positive bool
}

func newScored(score, label float64) (scored, error) {
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return scored{}, fmt.Errorf("score is %v", score)
	}
	if label != 0 && label != 1 {
		return scored{}, fmt.Errorf("label is %v, want 0 or 1", label)
	}
	return scored{score, label == 1}, nil
}

// area sorts pairs and counts in halves, in integers, so that nothing is rounded
// before the one division.
func area(pairs []scored) (float64, error) {
	slices.SortFunc(pairs, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	var halves, positives, negatives int64 // so far; halves of pairs in order
	for i := 0; i < len(pairs); {
		j := i
		var p, n int64 // in the group of equal scores
		for ; j < len(pairs) && pairs[j].score == pairs[i].score; j++ {
			if pairs[j].positive {
				p++
			} else {
				n++
			}
		}
		halves += p * (2*negatives + n)
		positives += p
		negatives += n
		i = j
	}
	if positives == 0 || negatives == 0 {
		return 0, fmt.Errorf("roc: AUC of %d positives and %d negatives: %w",
			positives, negatives, ErrOneClass)
	}
	return float64(halves) / (2 * float64(positives) * float64(negatives)), nil
}
