package finetune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/eval/forest"
	"github.com/specmatch/specmatch/specmatch/model"
)

// FeatureSets are the sets of features among which [Examples.ChooseFeatures] may pick, by their names in package
// apply. The first is the default.
var FeatureSets = [][]string{
	Molecules.Features,
	{"rdkit", "morgan", "pretrained"},
	{"rdkit", "pretrained"},
}

const (
	// preferred is the share of the error of the first set below which another one is taken.
	preferred = 0.99
	// chooserTrees is the number of trees of a forest that compares sets.
	chooserTrees = 50
)

// EveryFeature returns the features of all sets, each once.
func EveryFeature(sets [][]string) (features []string) {
	for _, set := range sets {
		for _, f := range set {
			if !slices.Contains(features, f) {
				features = append(features, f)
			}
		}
	}
	return features
}

// ChooseFeatures keeps the features of one of several sets, and drops the others from the records: of the set whose
// random forests err least on the validation sets of some splits. Their error is the mean absolute one of
// standardised targets, or the cross-entropy. The first set stays unless another one errs at least 1 % less. The
// records must have the features of all sets; learned ones do not take part in the comparison. It returns a line
// that says what was chosen.
func (x *Examples) ChooseFeatures(ctx context.Context, sets [][]string, splits ...dataset.Split) (string, error) {
	if x.Beside == nil || len(sets) == 0 {
		return "", nil
	}
	errs := make([]float64, len(sets))
	ranges := make([][][2]int, len(sets))
	names := make([][]string, len(sets))
	best := 0
	for k, set := range sets {
		var err error
		var columns [][2]int
		names[k], ranges[k], columns, err = besideColumns(x.Beside, set)
		if err != nil {
			return "", err
		}
		for _, s := range splits {
			e, err := forestError(ctx, x.Data(s), x.Head, columns)
			if err != nil {
				return "", err
			}
			errs[k] += e / float64(len(splits))
		}
		if errs[k] < errs[best] {
			best = k
		}
	}
	if !(errs[best] < preferred*errs[0]) {
		best = 0
	}
	x.keepFeatures(names[best], ranges[best])
	line := fmt.Sprintf("features %s: on the validation sets, forests err by %.4g",
		strings.Join(sets[best], ","), errs[best])
	for k, set := range sets {
		if k != best {
			line += fmt.Sprintf(", with %s by %.4g", strings.Join(set, ","), errs[k])
		}
	}
	return line, nil
}

// besideColumns returns the full names of some features of n and the ranges of their numbers, all and those that are
// not learned.
func besideColumns(n *model.Numbers, set []string) (names []string, all, fixed [][2]int, err error) {
	features, err := apply.ParseFeatures(set)
	if err != nil {
		return nil, nil, nil, err
	}
	present, err := apply.ParseFeatures(n.Features)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, f := range features {
		start := 0
		place := -1
		for k, p := range present {
			if p.String() == f.String() {
				place = k
				break
			}
			start += p.Size()
		}
		if place < 0 {
			return nil, nil, nil, fmt.Errorf("finetune: the records have no feature %v", f)
		}
		columns := [2]int{start, start + f.Size()}
		names = append(names, f.String())
		all = append(all, columns)
		if !f.Learned() {
			fixed = append(fixed, columns)
		}
	}
	return names, all, fixed, nil
}

// forestError returns the error of a forest of some columns on the validation set.
func forestError(ctx context.Context, d Data, h model.Head, columns [][2]int) (float64, error) {
	if h.Kind == model.Regression {
		h.Mean, h.Std = d.moments(h, d.Train)
	}
	f, err := fitForest(ctx, d, h, columns, forest.Options{Trees: chooserTrees})
	if f == nil || err != nil {
		return 0, err
	}
	outputs := f.Outputs(h, pick(d.Graphs, d.Valid))
	total := 0.0
	count := 0
	for k, i := range d.Valid {
		for output, y := range d.numbers(h, i) {
			v := outputs[k*h.Outputs+output]
			switch {
			case math.IsNaN(y):
				continue
			case h.Kind == model.Regression:
				total += math.Abs(v - y)
			default: // the cross-entropy of log-odds v
				total += math.Log1p(math.Exp(-math.Abs(v))) + max(v, 0) - y*v
			}
			count++
		}
	}
	return total / max(float64(count), 1), nil
}

// keepFeatures drops all numbers of the records but those of some features.
func (x *Examples) keepFeatures(names []string, ranges [][2]int) {
	numbers := *x.Beside
	numbers.Features = names
	numbers.Size = 0
	for _, c := range ranges {
		numbers.Size += c[1] - c[0]
	}
	for _, g := range x.Set.Graphs {
		kept := make([]float32, 0, numbers.Size)
		for _, c := range ranges {
			kept = append(kept, g.Globals[c[0]:c[1]]...)
		}
		g.Globals = kept
	}
	x.Beside = &numbers
}
