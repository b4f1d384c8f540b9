// Package selection measures how much the choice of an epoch or a setting adds to an accuracy, if
// it is made on the test folds or inside the training sets.
//
// The mental model: a setting after an epoch is a [Candidate], with an accuracy for each seed and
// test fold. [Rows] lists the figures that could be reported of a grid of them: the plain figure,
// fixed beforehand; honest choices, by accuracies inside the training set of each fold; and
// oracles, which look at the test folds. The lead of an oracle over the plain figure is what tuning
// on the test folds gains; it is above 0 by chance even if all candidates are equally good.
package selection

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Candidate is a result that could be reported: a setting after an epoch, or the choice of a rule.
type Candidate struct {
	Name string
	Test [][]float64 // accuracy on the test folds in per cent, by seed and fold
	// Inner is the best accuracy in the search inside the training part of the same
	// folds, which no test graph takes part in; nil without a search.
	Inner [][]float64
}

// PerSeed returns the accuracy of each seed, a mean over the folds.
func (c Candidate) PerSeed() []float64 {
	var means []float64
	for _, folds := range c.Test {
		means = append(means, stat.Mean(folds, nil))
	}
	return means
}

// Mean returns the mean accuracy over seeds and folds.
func (c Candidate) Mean() float64 { return stat.Mean(c.PerSeed(), nil) }

// Level says how often a choice is made.
type Level int

// The levels: one choice for all seeds, one for each, one for each test fold.
const (
	ByMean Level = iota
	BySeed
	ByFold
)

// Oracle returns the result of choosing the best candidate on the test folds at a level, the first
// of equals. To publish it is to tune on the test folds.
func Oracle(candidates []Candidate, l Level) Candidate {
	if l == ByMean {
		return slices.MaxFunc(candidates, func(a, b Candidate) int {
			return cmp.Compare(a.Mean(), b.Mean())
		})
	}
	return choose(candidates, func(c Candidate, seed, fold int) float64 {
		if l == BySeed {
			return stat.Mean(c.Test[seed], nil)
		}
		return c.Test[seed][fold]
	})
}

// Validated returns the result of choosing, for each fold, the best candidate inside its training
// set. It looks at no accuracy on a test fold.
func Validated(candidates []Candidate) Candidate {
	return choose(candidates, func(c Candidate, seed, fold int) float64 {
		return c.Inner[seed][fold]
	})
}

// choose returns the result of the candidate with the highest value in each fold, the first of equals.
func choose(candidates []Candidate, value func(c Candidate, seed, fold int) float64) Candidate {
	var chosen Candidate
	for seed, folds := range candidates[0].Test {
		row := make([]float64, len(folds))
		for fold := range folds {
			best := slices.MaxFunc(candidates, func(a, b Candidate) int {
				return cmp.Compare(value(a, seed, fold), value(b, seed, fold))
			})
			row[fold] = best.Test[seed][fold]
		}
		chosen.Test = append(chosen.Test, row)
	}
	return chosen
}

// Row is a line of the table of choices.
type Row struct {
	Label  string
	Oracle bool // the test folds had a say in it
	Candidate
}

// Rows lists what could be reported of settings after epochs, by setting and epoch:
// first the plain figure, the first setting after the last epoch, which is fixed
// beforehand; then honest choices; then, marked as oracles, choices on the test folds.
func Rows(grid [][]Candidate) []Row {
	final := len(grid[0]) - 1
	var ends, candidates []Candidate
	for _, epochs := range grid {
		ends = append(ends, epochs[final])
		candidates = append(candidates, epochs...)
	}
	plain := grid[0][final]
	list := []Row{{Label: plain.Name + ", last epoch", Candidate: plain}}
	honest := func(label string, candidates []Candidate) {
		if len(candidates) > 1 && plain.Inner != nil {
			list = append(list, Row{Label: label + " by validation", Candidate: Validated(candidates)})
		}
	}
	greedy := func(label string, c Candidate) {
		list = append(list, Row{"oracle: " + label, true, c})
	}
	if final > 0 {
		honest("epoch", grid[0])
	}
	if len(grid) > 1 {
		honest("setting", ends)
		if final > 0 {
			honest("setting and epoch", candidates)
		}
	}
	if final > 0 {
		greedy("best epoch of the mean", Oracle(grid[0], ByMean))
		greedy("best epoch of each seed", Oracle(grid[0], BySeed))
		greedy("best epoch of each fold", Oracle(grid[0], ByFold))
	}
	if len(grid) > 1 {
		greedy("best setting, last epoch", Oracle(ends, ByMean))
		if final > 0 {
			greedy("best setting and epoch of the mean", Oracle(candidates, ByMean))
			for _, l := range []Level{BySeed, ByFold} {
				var bests []Candidate
				for i, epochs := range grid {
					c := Oracle(epochs, l)
					c.Name = ends[i].Name
					bests = append(bests, c)
				}
				unit := map[Level]string{BySeed: "seed", ByFold: "fold"}[l]
				greedy("best setting, with the best epoch of each "+unit, Oracle(bests, ByMean))
				greedy("best setting and epoch of each "+unit, Oracle(candidates, l))
			}
		}
	}
	return list
}
