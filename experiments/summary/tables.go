package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/grid"
	"github.com/specmatch/specmatch/experiments/internal/published"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/method"
)

// bySet returns a table of the rows with a cell for each set, without empty rows.
func (s sheet) bySet(value func(set string, r row) (table.Cell, bool)) *table.Table {
	t := table.New("method", table.Names(s.sets...)...)
	for _, row := range s.rows {
		var cells []table.Cell
		some := false
		for _, set := range s.sets {
			c, ok := value(set, row)
			cells, some = append(cells, c), some || ok
		}
		if some {
			t.Add(row.title, cells...)
		}
	}
	return t
}

// accuracy has the figures, and in parentheses the published ones.
func (all results) accuracy(s sheet, protocol string) *table.Table {
	return s.bySet(func(set string, row row) (table.Cell, bool) {
		r, ok := all[cell{set, row.method, protocol}]
		c := table.Text("")
		if ok {
			mean, std := stat.MeanStdDev(r.PerSeed, nil)
			c = table.MeanStd(mean, std, s.decimals)
			if r.smaller {
				c.Mark = "†"
			}
		}
		if p := published.Find(s.published[protocol], row.published); p != nil && p.Values[set][0] > 0 {
			quote := fmt.Sprintf("(%.*f)", s.decimals, p.Values[set][0])
			if ok {
				c.Mark += " " + quote
			} else {
				c = table.Text(quote)
			}
		}
		return c, ok
	})
}

func (all results) seeds(s sheet, protocol string) *table.Table {
	return s.bySet(func(set string, row row) (table.Cell, bool) {
		r, ok := all[cell{set, row.method, protocol}]
		if !ok {
			return table.Text(""), false
		}
		return table.Number(float64(len(r.PerSeed)), 0), true
	})
}

// gains are what the first row lacks of the others, under every protocol, where both
// have at least two seeds: those seeds are compared that both have.
func (all results) gains(s sheet, protocols ...string) *table.Table {
	t := table.New("minus "+s.rows[0].title, table.Names(s.sets...)...)
	var lines [][]*compare.Difference
	var p []float64
	for _, protocol := range protocols {
		for _, row := range s.rows[1:] {
			line := make([]*compare.Difference, len(s.sets))
			for k, set := range s.sets {
				d := compare.Seeds(rundir.Paired(all[cell{set, row.method, protocol}].Row, all[cell{set, s.rows[0].method, protocol}].Row))
				if d.N > 1 {
					line[k], p = &d, append(p, d.P)
				}
			}
			lines = append(lines, line)
		}
	}
	corrected := compare.Holm(p)
	for i, line := range lines {
		var cells []table.Cell
		some := false
		for _, d := range line {
			c := table.Text("")
			if d != nil {
				c, some = table.MeanStd(d.Mean, d.Err, s.decimals), true
				if corrected[0] < 0.05 {
					c.Mark = "†"
				}
				corrected = corrected[1:]
			}
			cells = append(cells, c)
		}
		if some {
			t.Add(s.rows[1+i%(len(s.rows)-1)].title+", "+protocols[i/(len(s.rows)-1)], cells...)
		}
	}
	t.Caption = fmt.Sprintf("Difference to %s: mean in points ± its standard error, over the seeds that both have. %s", s.rows[0].title, grid.Corrected(len(p)))
	return t
}

// full returns the results of a method, by set; false if a set has none, or only those
// of a smaller form.
func (all results) full(method string, sets []string) (of []result, ok bool) {
	for _, set := range sets {
		r, known := all[cell{set, method, protocol}]
		if !known || r.smaller {
			return nil, false
		}
		of = append(of, r)
	}
	return of, true
}

// ranks has the mean rank over sets of the methods that have results on all of them:
// over all sets, and without the two largest, where fewer methods have run.
func (all results) ranks() *table.Table {
	groups := [][]string{sets, slices.DeleteFunc(slices.Clone(sets), func(set string) bool { return set == "COLLAB" || set == "REDDIT-MULTI-5K" })}
	var columns []string
	var ranked []map[string][]float64
	for _, group := range groups {
		ranks, seeds := all.rank(group)
		columns = append(columns, fmt.Sprintf("%d sets, %d methods, n = %d", len(group), len(ranks), seeds))
		ranked = append(ranked, ranks)
	}
	t := table.New("mean rank", table.Names(columns...)...)
	order := slices.Clone(rows)
	mean := func(method string, group int) float64 {
		if r, ok := ranked[group][method]; ok {
			return stat.Mean(r, nil)
		}
		return float64(len(rows)) + 1
	}
	slices.SortStableFunc(order, func(a, b row) int {
		return cmp.Or(cmp.Compare(mean(a.method, 1), mean(b.method, 1)), cmp.Compare(mean(a.method, 0), mean(b.method, 0)))
	})
	for _, row := range order {
		var cells []table.Cell
		some := false
		for _, ranks := range ranked {
			c := table.Text("")
			if r, ok := ranks[row.method]; ok {
				m, s := stat.MeanStdDev(r, nil)
				c, some = table.MeanStd(m, s, 1), true
			}
			cells = append(cells, c)
		}
		if some {
			t.Add(row.title, cells...)
		}
	}
	return t
}

// rounding is by how much accuracies may differ that are equal but for the order of sums.
const rounding = 1e-9

// rank returns the mean rank over the sets of every method that has at least two seeds
// of each, once for each of the seeds that all of them have. 1 is the best; of equal
// ones each gets the mean of their places.
func (all results) rank(sets []string) (ranks map[string][]float64, seeds int) {
	ranks, seeds = map[string][]float64{}, 0
	of := map[string][]result{}
	for _, row := range rows {
		r, ok := all.full(row.method, sets)
		if !ok {
			continue
		}
		n := len(slices.MinFunc(r, func(a, b result) int { return cmp.Compare(len(a.PerSeed), len(b.PerSeed)) }).PerSeed)
		if n < 2 {
			continue
		}
		of[row.method] = r
		if seeds == 0 || n < seeds {
			seeds = n
		}
	}
	for method, mine := range of {
		for seed := range seeds {
			sum := 0.0
			for s := range sets {
				rank := 0.5
				for _, other := range of {
					switch d := other[s].PerSeed[seed] - mine[s].PerSeed[seed]; {
					case d > rounding:
						rank++
					case d >= -rounding:
						rank += 0.5 // with itself that makes the best 1
					}
				}
				sum += rank
			}
			ranks[method] = append(ranks[method], sum/float64(len(sets)))
		}
	}
	return ranks, seeds
}

// differences are SpecMatch-CL minus InfoNCE on the sets where both have two seeds in
// common under all protocols; nil if there are none.
func (all results) differences(s sheet, protocols ...string) *table.Table {
	both := []string{method.InfoNCE, method.SpecMatch}
	paired := func(set, protocol string) [2][]float64 {
		a, b := rundir.Paired(all[cell{set, both[0], protocol}].Row, all[cell{set, both[1], protocol}].Row)
		return [2][]float64{a, b}
	}
	of := slices.DeleteFunc(slices.Clone(s.sets), func(set string) bool {
		return slices.ContainsFunc(protocols, func(protocol string) bool { return len(paired(set, protocol)[0]) < 2 })
	})
	g := grid.New(rundir.Row{}, of, both, protocols, method.Title)
	for _, protocol := range protocols {
		for _, set := range of {
			for k, values := range paired(set, protocol) {
				for _, v := range values {
					g.Add(set, both[k], protocol, grid.Result{Value: v})
				}
			}
		}
	}
	return g.Differences(both[0], both[1])
}

// graph is the analysis of unsupervised/results/graph.md: graphs of similarities minus
// the teacher without one, then all arms minus InfoNCE, each group corrected by Holm
// within its set. It is nil unless the arms have run on both sets.
func (all results) graph() *table.Table {
	groups := [][][2]string{
		{{method.EMABatch, method.EMA}, {method.EMAMemory, method.EMA}},
		{{method.EMA, method.InfoNCE}, {method.EMABatch, method.InfoNCE}, {method.EMAMemory, method.InfoNCE}},
	}
	var columns []table.Column
	for _, set := range graphSets {
		columns = append(columns, table.Column{Name: set}, table.Column{Name: "95 %"}, table.Column{Name: "p, Holm"})
	}
	t := table.New("difference", columns...)
	for _, group := range groups {
		cells := make([][]table.Cell, len(group))
		for _, set := range graphSets {
			var of []compare.Difference
			var p []float64
			for _, pair := range group {
				d := compare.Seeds(rundir.Paired(all[cell{set, pair[0], graphProtocol}].Row, all[cell{set, pair[1], graphProtocol}].Row))
				if d.N < 2 {
					return nil
				}
				of, p = append(of, d), append(p, d.P)
			}
			for i, corrected := range compare.Holm(p) {
				lo, hi := of[i].Interval(0.95)
				cells[i] = append(cells[i], table.MeanStd(of[i].Mean, of[i].Err, 2), table.Text(strings.ReplaceAll(fmt.Sprintf("%.2f to %.2f", lo, hi), "-", "−")), table.P(corrected))
			}
		}
		for i, pair := range group {
			t.Add(pair[0]+" minus "+pair[1], cells[i]...)
		}
	}
	return t
}
