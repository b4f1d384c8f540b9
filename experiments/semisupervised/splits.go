package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/specmatch/specmatch/autodiff/nn/files"
	"github.com/specmatch/specmatch/gnn/dataset"
)

// The protocols. Both fine-tune on a few labels and test on a fold that has no
// part in fine-tuning, but they choose the epoch differently.
const (
	// protocolVal takes, in every fold, the epoch with the least loss on another
	// fold: the honest number.
	protocolVal = "val"
	// protocolTestMax takes the one epoch with the best test accuracy, averaged
	// over the folds: what GraphCL's script prints by default, and the literature
	// with it. It is an upper bound, not an estimate.
	protocolTestMax = "test-max"
)

// splitSeed is the seed of all folds and of the choice of labels, as in GraphCL's
// code: all runs share them.
const splitSeed = 12345

// split says which graphs of a data set have which part in one fold; indices
// into Dataset.Graphs, ascending.
type split struct {
	Labelled   []int // to fine-tune on
	Validation []int // to choose the epoch on; none for protocolTestMax
	Test       []int
}

// The least that a run needs for its result to mean anything.
const (
	minLabelled = 15
	minPerClass = 2
)

// splits divides a data set into folds, as GraphCL's code does: fold k is the
// test set, for protocolVal the fold before it the validation set, and the
// labelled graphs are the first of 1/rate stratified parts of all others. It is
// an error if rate is not one over a whole number, if that leaves fewer than
// 15 labelled graphs or fewer than 2 of a class, or if there are too few or too
// many folds; it names the flag.
func splits(ds *dataset.Dataset, folds int, rate float64, protocol string) ([]split, error) {
	parts := int(math.Round(1 / rate))
	if parts < 2 || math.Abs(1/rate-float64(parts)) > 1e-6 {
		return nil, fmt.Errorf("-label-rate %v: want one over a whole number of at least 2, as 0.1 and 0.01", rate)
	}
	if protocol == protocolVal && folds < 3 {
		return nil, fmt.Errorf("-folds %d: protocol %s tests on one fold, validates on another and trains on the rest; want at least 3", folds, protocol)
	}
	labels := ds.Labels()
	outer, err := dataset.StratifiedKFold(labels, folds, true, splitSeed)
	if err != nil {
		return nil, fmt.Errorf("-folds %d: %s: %w", folds, ds.Name, err)
	}
	all := make([]split, folds)
	for k := range outer {
		s := split{Test: outer[k].Test}
		if protocol == protocolVal {
			s.Validation = outer[(k+folds-1)%folds].Test
		}
		var pool, poolLabels []int
		for _, i := range outer[k].Train {
			if !slices.Contains(s.Validation, i) {
				pool, poolLabels = append(pool, i), append(poolLabels, labels[i])
			}
		}
		if err := enough(ds, poolLabels, parts); err != nil {
			return nil, err
		}
		inner, err := dataset.StratifiedKFold(poolLabels, parts, true, splitSeed)
		if err != nil {
			return nil, fmt.Errorf("-label-rate %v: %s: %w", rate, ds.Name, err)
		}
		for _, i := range inner[0].Test {
			s.Labelled = append(s.Labelled, pool[i])
		}
		all[k] = s
	}
	return all, nil
}

// enough refuses a label rate that is too low for the set.
func enough(ds *dataset.Dataset, pool []int, parts int) error {
	class, members := dataset.SmallestClass(pool)
	if n := len(pool) / parts; n < minLabelled || members/parts < minPerClass {
		return fmt.Errorf("-label-rate: %s is too small for a label rate of 1/%d: of %d graphs to choose from, %d would have a label, and %d of class %d; want at least %d, and %d of every class",
			ds.Name, parts, len(pool), n, members/parts, ds.ClassValues[class], minLabelled, minPerClass)
	}
	return nil
}

// writeSplits writes splits.json: by data set and protocol, the parts of every
// fold; nothing if the sets have not been read.
func (x *experiment) writeSplits() error {
	if x.sets[0].splits == nil {
		return nil
	}
	return files.Write(x.dir.Join("splits.json"), func(w io.Writer) error {
		all := map[string]map[string][]split{}
		for _, s := range x.sets {
			all[s.data.Name] = s.splits
		}
		return json.NewEncoder(w).Encode(all)
	})
}
