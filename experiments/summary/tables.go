package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/grid"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/table"
)

// bySet returns a table of the rows with a cell for each set, without rows that have neither
// results nor published figures.
func (s sheet) bySet(value func(set string, r row) (table.Cell, bool)) *table.Table {
	t := table.New("method", table.Names(s.sets...)...)
	for _, row := range s.rows {
		t.AddSome(row.title, func(i int) (table.Cell, bool) { return value(s.sets[i], row) })
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
			if n := collapsed(r.PerSeed); n > 0 && r.Metric == "accuracy" {
				c.Mark += fmt.Sprintf("‡%d", n)
			}
		}
		if p := s.published[protocol].Find(row.published); p != nil && p.Values[set][0] > 0 {
			quote := fmt.Sprintf("(%.*f)", s.decimals, p.Values[set][0])
			if ok {
				c.Mark += " " + quote
			} else {
				c, ok = table.Text(quote), published.Since.Find(row.published) != nil
			}
		}
		return c, ok
	})
}

// collapsed counts the seeds that lie more than 8 points below the best of them: the classifier
// has found little but the most frequent class then.
func collapsed(perSeed []float64) (n int) {
	for _, a := range perSeed {
		if slices.Max(perSeed)-a > 8 {
			n++
		}
	}
	return n
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
	for _, protocol := range protocols {
		for _, row := range s.rows[1:] {
			for _, set := range s.sets {
				differences = append(differences, compare.Seeds(all.paired(set, row.method, base.method, protocol)))
			}
		}
	}
	t := table.New("minus "+base.title, table.Names(s.sets...)...)
	cells, n := grid.Differences(differences, s.decimals)
	t.Caption = fmt.Sprintf("Difference to %s: mean in points ± its standard error, over the seeds that both have. %s", base.title, grid.Corrected(n))
	for _, protocol := range protocols {
		for _, row := range s.rows[1:] {
			t.AddSome(row.title+", "+protocol, func(i int) (table.Cell, bool) { return cells[i], differences[i].N > 1 })
			cells, differences = cells[len(s.sets):], differences[len(s.sets):]
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
		t.AddSome(row.title, func(i int) (table.Cell, bool) {
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

// rank returns the mean rank over the sets of every method that has at least two seeds
// of each in its full form, once for each of the seeds that all of them have. 1 is the
// best; of equal ones each gets the mean of their places.
func (all results) rank(sets []string) (ranks map[string][]float64, seeds int) {
	var methods []string
	var measured [][][]float64 // by method, set and seed
	for _, row := range table1.rows {
		var list [][]float64
		n := 0 // the least number of seeds on a set
		for _, set := range sets {
			r, _ := all.get(set, row.method, protocol)
			if k := len(r.PerSeed); r.smaller || k < 2 {
				break
			} else if n == 0 || k < n {
				n = k
			}
			list = append(list, r.PerSeed)
		}
		if len(list) < len(sets) {
			continue
		}
		methods, measured = append(methods, row.method), append(measured, list)
		if seeds == 0 || n < seeds {
			seeds = n
		}
	}
	for _, list := range measured {
		for s := range list {
			list[s] = list[s][:seeds]
		}
	}
	ranks = map[string][]float64{}
	for i, r := range compare.MeanRanks(measured) {
		ranks[methods[i]] = r
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
			for _, pair := range group {
				d := compare.Seeds(all.paired(set, pair[0], pair[1], graphProtocol))
				if d.N < 2 {
					return nil
				}
				differences = append(differences, d)
			}
			for i, corrected := range compare.Corrected(differences) {
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
