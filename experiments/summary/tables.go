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

// add adds a row of n cells unless all of them are empty: value returns false for one
// that is, with what stands there all the same.
func add(t *table.Table, title string, n int, value func(i int) (table.Cell, bool)) {
	cells, some := make([]table.Cell, n), false
	for i := range cells {
		c, ok := value(i)
		cells[i], some = c, some || ok
	}
	if some {
		t.Add(title, cells...)
	}
}

// bySet returns a table of the rows with a cell for each set, without empty rows.
func (s sheet) bySet(value func(set string, r row) (table.Cell, bool)) *table.Table {
	t := table.New("method", table.Names(s.sets...)...)
	for _, row := range s.rows {
		add(t, row.title, len(s.sets), func(i int) (table.Cell, bool) { return value(s.sets[i], row) })
	}
	return t
}

// accuracy has the figures, and in parentheses the published ones.
func (all results) accuracy(s sheet, protocol string) *table.Table {
	return s.bySet(func(set string, row row) (table.Cell, bool) {
		r, ok := all.get(set, row.method, protocol)
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
		r, ok := all.get(set, row.method, protocol)
		if !ok {
			return table.Text(""), false
		}
		return table.Number(float64(len(r.PerSeed)), 0), true
	})
}

// gains are the differences of the other rows to the first, under every protocol, over the
// seeds that both have; there must be two.
func (all results) gains(s sheet, protocols ...string) *table.Table {
	base := s.rows[0]
	var differences []compare.Difference
	var p []float64
	for _, protocol := range protocols {
		for _, row := range s.rows[1:] {
			for _, set := range s.sets {
				d := compare.Seeds(all.paired(set, row.method, base.method, protocol))
				if differences = append(differences, d); d.N > 1 {
					p = append(p, d.P)
				}
			}
		}
	}
	t := table.New("minus "+base.title, table.Names(s.sets...)...)
	t.Caption = fmt.Sprintf("Difference to %s: mean in points ± its standard error, over the seeds that both have. %s", base.title, grid.Corrected(len(p)))
	corrected := compare.Holm(p)
	for _, protocol := range protocols {
		for _, row := range s.rows[1:] {
			add(t, row.title+", "+protocol, len(s.sets), func(int) (table.Cell, bool) {
				d := differences[0]
				if differences = differences[1:]; d.N < 2 {
					return table.Text(""), false
				}
				c := table.MeanStd(d.Mean, d.Err, s.decimals)
				if corrected[0] < 0.05 {
					c.Mark = "†"
				}
				corrected = corrected[1:]
				return c, true
			})
		}
	}
	return t
}

// ranks has the mean rank over sets of the methods that have results on all of them:
// over all sets, and without the two largest, where fewer methods have run.
func (all results) ranks() *table.Table {
	sets := table1.sets
	groups := [][]string{sets, slices.DeleteFunc(slices.Clone(sets), func(set string) bool { return set == "COLLAB" || set == "REDDIT-MULTI-5K" })}
	var columns []string
	var ranked []map[string][]float64
	for _, group := range groups {
		ranks, seeds := all.rank(group)
		columns = append(columns, fmt.Sprintf("%d sets, %d methods, n = %d", len(group), len(ranks), seeds))
		ranked = append(ranked, ranks)
	}
	t := table.New("mean rank", table.Names(columns...)...)
	mean := func(r row, group int) float64 {
		if ranks, ok := ranked[group][r.method]; ok {
			return stat.Mean(ranks, nil)
		}
		return float64(len(table1.rows)) + 1
	}
	order := slices.Clone(table1.rows)
	slices.SortStableFunc(order, func(a, b row) int {
		return cmp.Or(cmp.Compare(mean(a, 1), mean(b, 1)), cmp.Compare(mean(a, 0), mean(b, 0)))
	})
	for _, row := range order {
		add(t, row.title, len(ranked), func(i int) (table.Cell, bool) {
			r, ok := ranked[i][row.method]
			if !ok {
				return table.Text(""), false
			}
			m, s := stat.MeanStdDev(r, nil)
			return table.MeanStd(m, s, 1), true
		})
	}
	return t
}

// rounding is by how much accuracies may differ that are equal but for the order of sums.
const rounding = 1e-9

// rank returns the mean rank over the sets of every method that has at least two seeds
// of each in its full form, once for each of the seeds that all of them have. 1 is the
// best; of equal ones each gets the mean of their places.
func (all results) rank(sets []string) (ranks map[string][]float64, seeds int) {
	measured := map[string][]result{} // by method, set by set
	for _, row := range table1.rows {
		var list []result
		n := 0 // the least number of seeds on a set
		for _, set := range sets {
			r, _ := all.get(set, row.method, protocol)
			if k := len(r.PerSeed); r.smaller || k < 2 {
				break
			} else if n == 0 || k < n {
				n = k
			}
			list = append(list, r)
		}
		if len(list) < len(sets) {
			continue
		}
		measured[row.method] = list
		if seeds == 0 || n < seeds {
			seeds = n
		}
	}
	ranks = map[string][]float64{}
	for method, mine := range measured {
		for seed := range seeds {
			sum := 0.0
			for s := range sets {
				rank := 0.5
				for _, other := range measured {
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
	sets := slices.DeleteFunc(slices.Clone(s.sets), func(set string) bool {
		return slices.ContainsFunc(protocols, func(protocol string) bool {
			seeds, _ := all.paired(set, both[0], both[1], protocol)
			return len(seeds) < 2
		})
	})
	g := grid.New(rundir.Row{}, sets, both, protocols, method.Title)
	for _, protocol := range protocols {
		for _, set := range sets {
			a, b := all.paired(set, both[0], both[1], protocol)
			for i := range a {
				g.Add(set, both[0], protocol, grid.Result{Value: a[i]})
				g.Add(set, both[1], protocol, grid.Result{Value: b[i]})
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
	var columns []string
	for _, set := range graphSets {
		columns = append(columns, set, "95 %", "p, Holm")
	}
	t := table.New("difference", table.Names(columns...)...)
	for _, group := range groups {
		cells := make([][]table.Cell, len(group))
		for _, set := range graphSets {
			var differences []compare.Difference
			var p []float64
			for _, pair := range group {
				d := compare.Seeds(all.paired(set, pair[0], pair[1], graphProtocol))
				if d.N < 2 {
					return nil
				}
				differences, p = append(differences, d), append(p, d.P)
			}
			for i, corrected := range compare.Holm(p) {
				d := differences[i]
				lo, hi := d.Interval(0.95)
				interval := strings.ReplaceAll(fmt.Sprintf("%.2f to %.2f", lo, hi), "-", "−")
				cells[i] = append(cells[i], table.MeanStd(d.Mean, d.Err, 2), table.Text(interval), table.P(corrected))
			}
		}
		for i, pair := range group {
			t.Add(pair[0]+" minus "+pair[1], cells[i]...)
		}
	}
	return t
}
