package finetune

import (
	"cmp"
	"math"
	"slices"

	"github.com/specmatch/specmatch/specmatch/model"
)

// Cut is a probability from which the answer of a binary task is 1, and what it does on a test set.
type Cut struct {
	Probability float64
	// Sensitivity is the share of the records of 1 that are answered with 1, in per cent, and Specificity
	// that of the records of 0 with 0. They are 0 if there are no such records.
	Sensitivity, Specificity float64
}

// Cuts returns the cuts of a model's calibration with their rates for the predictions, one for each binary task.
func (p Predictions) Cuts(c *model.Calibration) (cuts []Cut) {
	for task, probability := range c.Cuts {
		var count, correct [2]float64
		for k := range p.samples {
			y := p.targets(k)[task]
			if math.IsNaN(y) {
				continue
			}
			count[int(y)]++
			if (p.row(k)[task] >= probability) == (y == 1) {
				correct[int(y)]++
			}
		}
		cuts = append(cuts, Cut{
			Probability: probability,
			Sensitivity: 100 * correct[1] / max(count[1], 1),
			Specificity: 100 * correct[0] / max(count[0], 1),
		})
	}
	return cuts
}

// cuts returns the cut of each binary task that has the largest balanced accuracy for predictions.
func (p Predictions) cuts() (cuts []float64) {
	if p.head.Kind != model.Binary {
		return nil
	}
	for task := range p.head.Outputs {
		var probabilities, y []float64
		for k := range p.samples {
			if target := p.targets(k)[task]; !math.IsNaN(target) {
				probabilities = append(probabilities, p.row(k)[task])
				y = append(y, target)
			}
		}
		cuts = append(cuts, bestCut(probabilities, y))
	}
	return cuts
}

// bestCut returns the probability that has the largest balanced accuracy, in the middle between two predictions or
// between one and an end, 0 or 1; of several, the one nearest to a half. Without records of both answers it is a half.
func bestCut(probabilities, y []float64) float64 {
	order := make([]int, len(y))
	var count [2]float64
	for i := range order {
		order[i] = i
		count[int(y[i])]++
	}
	best := 0.5
	if count[0] == 0 || count[1] == 0 {
		return best
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(probabilities[i], probabilities[j]) })
	accuracy := math.Inf(-1)
	var below [2]float64 // records with less than the cut, by their answer
	for k := range len(order) + 1 {
		lower := 0.0
		upper := 1.0
		if k > 0 {
			lower = probabilities[order[k-1]]
			below[int(y[order[k-1]])]++
		}
		if k < len(order) {
			upper = probabilities[order[k]]
		}
		cut := (lower + upper) / 2
		balanced := below[0]/count[0] + (count[1]-below[1])/count[1]
		tied := lower == upper && k > 0 && k < len(order)
		nearer := math.Abs(cut-0.5) < math.Abs(best-0.5)
		if !tied && (balanced > accuracy || balanced == accuracy && nearer) {
			best = cut
			accuracy = balanced
		}
	}
	return best
}
