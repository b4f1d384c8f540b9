package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

// choose adds a row for every method with several settings in a panel: the result of selecting the
// setting in each outer fold, by the accuracy on validation data from its training set. This needs the
// inner folds of the unsupervised experiment. With oracle it also adds the setting with the best mean:
// that is selection on the test data, and no estimate of a user's result.
func (c *collection) choose(p *panel, oracle bool) {
	for i, first := range p.results {
		m := first.Method
		cells := slices.DeleteFunc(p.distinct(), func(r result) bool {
			return r.Method != m
		})
		if len(cells) < 2 ||
			slices.ContainsFunc(p.results[:i], func(r result) bool { return r.Method == m }) {
			continue
		}
		if r, ok := c.nested(cells); ok {
			r.label = method.Title(m) + ", chosen per fold"
			p.results = append(p.results, r)
		}
		if best, ok := p.bestOf(cells); ok && oracle {
			best.label = fmt.Sprintf("%s, oracle: best of %d on the test folds",
				method.Title(m), len(cells))
			best.run = chosen
			p.results = append(p.results, best)
		}
	}
}

// bestOf returns the result with the best mean. It returns false if no mean is defined, or if the metric
// is neither good nor bad.
func (p *panel) bestOf(cells []result) (best result, ok bool) {
	defined := slices.DeleteFunc(slices.Clone(cells), func(r result) bool { return math.IsNaN(r.Mean) })
	compare := func(a, b result) int { return cmp.Compare(a.Mean, b.Mean) }
	switch {
	case len(defined) == 0:
		return best, false
	case p.best() == table.Max:
		return slices.MaxFunc(defined, compare), true
	case p.best() == table.Min:
		return slices.MinFunc(defined, compare), true
	}
	return best, false
}

// chosen is the run number of a result that combines several runs.
const chosen = -1

// nested selects a cell in every fold of every seed. It returns false unless all cells have the folds
// of the same seeds.
func (c *collection) nested(cells []result) (r result, ok bool) {
	r = cells[0]
	r.run = chosen
	r.PerSeed = nil
	r.Seconds = 0
	for _, seed := range cells[0].Seeds {
		var inner, folds [][]float64 // by cell
		for _, cell := range cells {
			s, ok := score(c.runs[cell.run], fmt.Sprintf("%s/%s/seed=%d/%s",
				cell.Dataset, cell.Method, seed, cell.Protocol))
			if !ok || len(folds) > 0 && len(s.Folds) != len(folds[0]) {
				return r, false
			}
			inner = append(inner, s.Inner)
			folds = append(folds, s.Folds)
		}
		sum := 0.0
		for f := range folds[0] {
			best := 0
			for k := range cells {
				if inner[k][f] > inner[best][f] {
					best = k
				}
			}
			sum += folds[best][f]
		}
		r.PerSeed = append(r.PerSeed, sum/float64(len(folds[0])))
	}
	r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
	return r, len(r.PerSeed) > 0
}

// score reads the result of a unit. It returns false unless the result has folds.
func score(r *run.Run, unit string) (s eval.Score, ok bool) {
	i := slices.IndexFunc(r.Units, func(u run.Record) bool { return u.Name == unit })
	if i < 0 || json.Unmarshal(r.Units[i].Result, &s) != nil {
		return s, false
	}
	return s, len(s.Folds) > 0 && len(s.Inner) == len(s.Folds)
}
