package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/grid"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

// bySet returns a table of the rows with a cell for each set, without rows that have neither
// results nor published figures.
func (s sheet) bySet(value func(set string, r row) (table.Cell, bool)) *table.Table {
	t := table.New("method", table.Names(s.sets...)...)
	for _, row := range s.rows {
		t.AddSome(row.title, func(i int) (table.Cell, bool) {
			return value(s.sets[i], row)
		})
	}
	return t
}

// accuracy has the figures, and in parentheses the published ones.
func (outcomes results) accuracy(s sheet, protocol string) *table.Table {
	return s.bySet(func(set string, row row) (table.Cell, bool) {
		r, ok := outcomes.get(set, row.method, protocol)
		c := table.Text("")
		if !row.quoted {
			c = table.Text("–")
		}
		if ok {
			mean, std := stat.MeanStdDev(r.PerSeed, nil)
			c = table.MeanStd(mean, std, s.decimals)
			if r.smaller {
				c.Mark = "†"
			}
			// Far below the best seed the classifier has found little but the most frequent class.
			n := floats.Count(func(a float64) bool { return slices.Max(r.PerSeed)-a > 8 }, r.PerSeed)
			if n > 0 && r.Metric == "accuracy" {
				c.Mark += fmt.Sprintf("‡%d", n)
			}
		}
		if p := s.published[protocol].Find(row.published); p != nil && p.Values[set][0] > 0 {
			quote := fmt.Sprintf("(%.*f)", s.decimals, p.Values[set][0])
			c.Mark += " " + quote
			if row.quoted {
				c = table.Text(quote)
				ok = true
			}
		}
		return c, ok
	})
}

// distance has ours minus the published figures.
func (outcomes results) distance(s sheet, protocol string) *table.Table {
	t := s.bySet(func(set string, row row) (table.Cell, bool) {
		r, ok := outcomes.get(set, row.method, protocol)
		p := s.published[protocol].Find(row.published)
		if !ok || p == nil || p.Values[set][0] == 0 {
			return table.Text(""), false
		}
		mean, std := stat.MeanStdDev(r.PerSeed, nil)
		standardError := stat.StdErr(std, float64(len(r.PerSeed)))
		return table.MeanStd(mean-p.Values[set][0], standardError, s.decimals), true
	})
	t.Caption = "Ours minus the published figure, in points ± the standard error of ours. " +
		"A cell without ± has one seed."
	return t
}

// clock has the seconds that one seed of a cell took under each of the protocols; nothing
// where a GPU took part or other work ran at a higher priority.
func (outcomes results) clock(s sheet, protocols ...string) *table.Table {
	t := s.bySet(func(set string, row row) (table.Cell, bool) {
		var figures []string
		for _, p := range protocols {
			seconds := math.Ceil(outcomes.seconds(set, row.method, p))
			if seconds > 0 {
				figures = append(figures, strconv.Itoa(int(seconds)))
			}
		}
		return table.Text(strings.Join(figures, ", ")), len(figures) > 0
	})
	t.Caption = "Seconds by the clock for one seed of each cell, on one or two cores"
	if len(protocols) > 1 {
		t.Caption += ": " + strings.Join(protocols, ", ") + ", each with the pre-training that both share"
	}
	return t
}

// seconds returns those of one seed, 0 if nobody measured them.
func (outcomes results) seconds(set, method, protocol string) float64 {
	r := outcomes[cell{set, method, protocol}]
	if r == nil || r.smaller || r.Backend != "cpu" {
		return 0
	}
	return r.Seconds / float64(len(r.PerSeed))
}

func (outcomes results) seeds(s sheet, protocol string) *table.Table {
	return s.bySet(func(set string, row row) (table.Cell, bool) {
		r, ok := outcomes.get(set, row.method, protocol)
		if !ok {
			return table.Text(""), false
		}
		return table.Number(float64(len(r.PerSeed)), 0), true
	})
}

// gains are the differences of the other rows to the first, under every protocol, over the
// seeds that both have. Those over one seed have no standard error.
func (outcomes results) gains(s sheet, protocols ...string) *table.Table {
	base := s.rows[0]
	var differences []compare.Difference
	for _, protocol := range protocols {
		for _, row := range s.rows[1:] {
			for _, set := range s.sets {
				differences = append(differences, compare.Seeds(outcomes.paired(
					set, row.method, base.method, protocol,
				)))
			}
		}
	}
	t := table.New("minus "+base.title, table.Names(s.sets...)...)
	cells, n := grid.Differences(differences, s.decimals)
	t.Caption = fmt.Sprintf(
		"Difference to %s: mean in points ± its standard error, over the seeds that both have. "+
			"A cell without ± has one seed and may be chance. %s",
		base.title, grid.Corrected(n),
	)
	for _, protocol := range protocols {
		for _, row := range s.rows[1:] {
			t.AddSome(row.title+", "+protocol, func(i int) (table.Cell, bool) {
				if differences[i].N == 1 { // grid.Differences, whose cells all have errors, leaves it empty
					cells[i] = table.Number(differences[i].Mean, s.decimals)
				}
				return cells[i], differences[i].N > 0
			})
			cells = cells[len(s.sets):]
			differences = differences[len(s.sets):]
		}
	}
	return t
}

// ranks has the mean rank over sets of the methods that have results on all of them:
// over all sets, and without the two largest.
func (outcomes results) ranks() *table.Table {
	sets := table1.sets
	groups := [][]string{sets, slices.DeleteFunc(slices.Clone(sets), func(set string) bool {
		return set == "COLLAB" || set == "REDDIT-MULTI-5K"
	})}
	var columns []string
	var ranked []map[string][]float64
	for _, group := range groups {
		ranks, seeds := outcomes.rank(group)
		columns = append(columns, fmt.Sprintf("%d sets, %d methods, n = %d",
			len(group), len(ranks), seeds))
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
func (outcomes results) rank(sets []string) (ranks map[string][]float64, seeds int) {
	var methods []string
	var found [][]result // by method and set
	var common []int     // seeds
	for _, row := range table1.rows {
		var list []result
		for _, set := range sets {
			if r, _ := outcomes.get(set, row.method, protocol); !r.smaller && len(r.PerSeed) > 1 {
				list = append(list, r)
			}
		}
		if len(list) < len(sets) {
			continue
		}
		if methods == nil {
			common = slices.Clone(list[0].Seeds)
		}
		methods = append(methods, row.method)
		found = append(found, list)
		for _, r := range list {
			common = slices.DeleteFunc(common, func(seed int) bool { return !slices.Contains(r.Seeds, seed) })
		}
	}
	measured := make([][][]float64, len(found)) // by method, set and seed
	for m, list := range found {
		for _, r := range list {
			var values []float64
			for _, seed := range common {
				values = append(values, r.PerSeed[slices.Index(r.Seeds, seed)])
			}
			measured[m] = append(measured[m], values)
		}
	}
	ranks = map[string][]float64{}
	for i, r := range compare.MeanRanks(measured) {
		ranks[methods[i]] = r
	}
	return ranks, len(common)
}

// draw writes the diagram of critical differences of J. Demšar (2006), on its side: the mean
// ranks over all sets with the ranks of the seeds, and bars that join the methods whose ranks
// are nearer than the critical difference of Nemenyi's test.
func (outcomes results) draw(base string) error {
	ranks, _ := outcomes.rank(table1.sets)
	if len(ranks) < 2 {
		return nil
	}
	d := plot.Dots{Axes: plot.Axes{XLabel: "mean rank over eight sets (1 is best)"}}
	for _, row := range table1.rows {
		if r, ok := ranks[row.method]; ok {
			d.Rows = append(d.Rows, plot.DotRow{
				Name:   row.title,
				Points: r,
				Mean:   stat.Mean(r, nil),
				Half:   math.NaN(),
			})
		}
	}
	slices.SortStableFunc(d.Rows, func(a, b plot.DotRow) int {
		return cmp.Compare(a.Mean, b.Mean)
	})
	critical := compare.CriticalDifference(len(d.Rows), len(table1.sets), 0.05)
	final := 0
	d.Title = fmt.Sprintf("what a bar joins differs by less than %.1f ranks", critical)
	for i, r := range d.Rows {
		end := i
		for end+1 < len(d.Rows) && d.Rows[end+1].Mean-r.Mean < critical {
			end++
		}
		if end > max(i, final) {
			d.Bars = append(d.Bars, [2]int{i, end})
			final = end
		}
	}
	return plot.Save(base, 1, d)
}

// pairs says which of the ranked methods differ in their mean over the sets, for all pairs.
func (outcomes results) pairs() *table.Table {
	ranks, _ := outcomes.rank(table1.sets)
	type scored struct {
		row
		mean float64
	}
	var list []scored
	for _, r := range table1.rows {
		if _, ok := ranks[r.method]; ok {
			x := scored{row: r}
			for _, set := range table1.sets {
				x.mean += stat.Mean(
					outcomes[cell{set, r.method, protocol}].PerSeed, nil,
				) / float64(len(table1.sets))
			}
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int {
		return cmp.Compare(b.mean, a.mean)
	})
	var differences []compare.Difference
	for i, a := range list {
		for _, b := range list[:i] {
			var bySet []compare.Difference
			for _, set := range table1.sets {
				bySet = append(bySet, compare.Seeds(outcomes.paired(set, b.method, a.method, protocol)))
			}
			differences = append(differences, compare.Mean(bySet))
		}
	}
	p := compare.Corrected(differences)
	t := table.New("method", table.Names("no.", "mean of sets", "no difference from")...)
	t.Caption = fmt.Sprintf(
		"Methods by their mean over the eight sets, and those whose means do not differ from it significantly. "+
			"Student's t-test over the common seeds takes the mean of the differences by set; p ≥ 0.05 after "+
			"Holm's correction for all %d pairs.",
		len(p),
	)
	for i, a := range list {
		var alike []string
		for j := range list {
			lo, hi := min(i, j), max(i, j)
			if lo < hi && !(p[hi*(hi-1)/2+lo] < 0.05) {
				alike = append(alike, fmt.Sprint(j+1))
			}
		}
		t.Add(
			a.title,
			table.Text(fmt.Sprint(i+1)),
			table.Number(a.mean, 2),
			table.Text(strings.Join(alike, ", ")),
		)
	}
	return t
}

// differences are SpecMatch-CL minus InfoNCE on the sets where both have two seeds in
// common under all protocols; nil if there are none.
func (outcomes results) differences(s sheet, protocols ...string) *table.Table {
	methods := []string{method.InfoNCE, method.SpecMatch}
	sets := slices.DeleteFunc(slices.Clone(s.sets), func(set string) bool {
		return slices.ContainsFunc(protocols, func(protocol string) bool {
			seeds, _ := outcomes.paired(set, methods[0], methods[1], protocol)
			return len(seeds) < 2
		})
	})
	g := grid.New(run.Row{}, sets, methods, protocols, method.Title)
	for _, protocol := range protocols {
		for _, set := range sets {
			a, b := outcomes.paired(set, methods[0], methods[1], protocol)
			for i := range a {
				g.Add(set, methods[0], protocol, grid.Result{Value: a[i]})
				g.Add(set, methods[1], protocol, grid.Result{Value: b[i]})
			}
		}
	}
	return g.Differences(methods[0], methods[1])
}

// graph is the analysis of unsupervised/results/graph.md: graphs of similarities minus
// the teacher without one, then all arms minus InfoNCE, each group corrected by Holm
// within its set. It is nil unless the arms have run on both sets.
func (outcomes results) graph() *table.Table {
	groups := [][][2]string{
		{{method.EMABatch, method.EMA}, {method.EMAMemory, method.EMA}},
		{
			{method.EMA, method.InfoNCE},
			{method.EMABatch, method.InfoNCE},
			{method.EMAMemory, method.InfoNCE},
		},
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
				d := compare.Seeds(outcomes.paired(set, pair[0], pair[1], graphProtocol))
				if d.N < 2 {
					return nil
				}
				differences = append(differences, d)
			}
			for i, corrected := range compare.Corrected(differences) {
				d := differences[i]
				lo, hi := d.Interval(0.95)
				interval := strings.ReplaceAll(fmt.Sprintf("%.2f to %.2f", lo, hi), "-", "−")
				cells[i] = append(
					cells[i], table.MeanStd(d.Mean, d.Err, 2), table.Text(interval), table.P(corrected),
				)
			}
		}
		for i, pair := range group {
			t.Add(pair[0]+" minus "+pair[1], cells[i]...)
		}
	}
	return t
}
