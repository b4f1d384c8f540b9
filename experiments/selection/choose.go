package main

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// candidate is something that could be reported: a setting after an epoch, or what a
// rule has chosen from such.
type candidate struct {
	name string
	test [][]float64 // accuracy on the test folds in per cent, by seed and fold
	// inner is the best accuracy in the search inside the training part of the same
	// folds, which no test graph takes part in; nil without a search.
	inner [][]float64
}

// perSeed are the accuracies of the seeds: means over the folds.
func (c candidate) perSeed() []float64 {
	var all []float64
	for _, folds := range c.test {
		all = append(all, stat.Mean(folds, nil))
	}
	return all
}

func (c candidate) mean() float64 { return stat.Mean(c.perSeed(), nil) }

// A level is what a choice is made for, once.
type level int

// The levels: one choice for all seeds, one for each, one for each test fold.
const (
	byMean level = iota
	bySeed
	byFold
)

// oracle returns what is reported if the best of the candidates on the test folds is
// chosen at a level, the first of equals. Whoever publishes that has tuned on the test.
func oracle(from []candidate, l level) candidate {
	if l == byMean {
		return slices.MaxFunc(from, func(a, b candidate) int {
			return cmp.Compare(a.mean(), b.mean())
		})
	}
	return choose(from, func(c candidate, seed, fold int) float64 {
		if l == bySeed {
			return stat.Mean(c.test[seed], nil)
		}
		return c.test[seed][fold]
	})
}

// validated returns what is reported if the best of the candidates inside the training
// part of each fold is chosen for it. It looks at no accuracy on a test fold.
func validated(from []candidate) candidate {
	return choose(from, func(c candidate, seed, fold int) float64 { return c.inner[seed][fold] })
}

// choose takes for every fold the candidate of the highest value, the first of equals.
func choose(from []candidate, value func(c candidate, seed, fold int) float64) candidate {
	var chosen candidate
	for seed, folds := range from[0].test {
		row := make([]float64, len(folds))
		for fold := range folds {
			best := slices.MaxFunc(from, func(a, b candidate) int {
				return cmp.Compare(value(a, seed, fold), value(b, seed, fold))
			})
			row[fold] = best.test[seed][fold]
		}
		chosen.test = append(chosen.test, row)
	}
	return chosen
}

// row is a line of the table of what selection is worth.
type row struct {
	label  string
	oracle bool // the test folds had a say in it
	candidate
}

// rows lists what could be reported of settings after epochs, by setting and epoch:
// first the plain figure, the first setting after the last epoch, which is fixed
// beforehand; then honest choices; then, marked as oracles, choices on the test folds.
func rows(grid [][]candidate) []row {
	last := len(grid[0]) - 1
	var ends, all []candidate
	for _, epochs := range grid {
		ends = append(ends, epochs[last])
		all = append(all, epochs...)
	}
	plain := grid[0][last]
	list := []row{{label: plain.name + ", last epoch", candidate: plain}}
	honest := func(label string, from []candidate) {
		if len(from) > 1 && plain.inner != nil {
			list = append(list, row{label: label + " by validation", candidate: validated(from)})
		}
	}
	greedy := func(label string, c candidate) { list = append(list, row{"oracle: " + label, true, c}) }
	if last > 0 {
		honest("epoch", grid[0])
	}
	if len(grid) > 1 {
		honest("setting", ends)
		if last > 0 {
			honest("setting and epoch", all)
		}
	}
	if last > 0 {
		greedy("best epoch of the mean", oracle(grid[0], byMean))
		greedy("best epoch of each seed", oracle(grid[0], bySeed))
		greedy("best epoch of each fold", oracle(grid[0], byFold))
	}
	if len(grid) > 1 {
		greedy("best setting, last epoch", oracle(ends, byMean))
		if last > 0 {
			greedy("best setting and epoch of the mean", oracle(all, byMean))
			for _, l := range []level{bySeed, byFold} {
				var bests []candidate
				for i, epochs := range grid {
					c := oracle(epochs, l)
					c.name = ends[i].name
					bests = append(bests, c)
				}
				each := map[level]string{bySeed: "seed", byFold: "fold"}[l]
				greedy("best setting, with the best epoch of each "+each, oracle(bests, byMean))
				greedy("best setting and epoch of each "+each, oracle(all, l))
			}
		}
	}
	return list
}
