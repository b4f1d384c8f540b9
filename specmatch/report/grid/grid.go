// Package grid gathers what methods have measured on data sets with several seeds, and
// writes it as rows of results.json and as tables: methods by sets, with published
// figures below ours, and differences.
//
//	g := grid.New(run.Row{Experiment: "unsupervised", Metric: "accuracy"}, sets, methods, protocols, method.Title)
//	g.Add("MUTAG", "infonce", "graphcl", grid.Result{Value: 87.3})
//	…
//	err := dir.Report(stdout, g.Rows(), g.Table("graphcl", caption, published), g.Differences("infonce", "specmatch"))
package grid

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Grid is results by data set, method and protocol.
type Grid struct {
	common                   run.Row
	sets, methods, protocols []string
	title                    func(method string) string
	rows                     map[[3]string]*run.Row // by set, method and protocol
	speeds                   map[*run.Row][]float64
}

// New returns an empty grid. The row has what all rows share; title names methods in
// tables.
func New(common run.Row, sets, methods, protocols []string, title func(method string) string) *Grid {
	return &Grid{
		common,
		sets,
		methods,
		protocols,
		title,
		map[[3]string]*run.Row{},
		map[*run.Row][]float64{},
	}
}

// Common is what the rows of an experiment share, and what those of SpecMatch-CL have.
func Common(experiment, metric string, e cli.Engine, o method.Options) run.Row {
	return run.Row{
		Experiment: experiment,
		Metric:     metric,
		Backend:    e.Name(),
		Precision:  e.Precision.String(),
		Beta:       method.Beta.Of(o),
		Percentile: method.Percentile.Of(o),
	}
}

// Result is what one seed has measured.
type Result struct {
	Value           float64
	Seconds         float64
	GraphsPerSecond float64 // 0 or NaN if nothing was trained
	Epochs          int
	Twins           *eval.Twins // nil if no test graph has a twin in the training part
}

// Add adds the result of the next seed.
func (g *Grid) Add(set, name, protocol string, r Result) {
	key := [3]string{set, name, protocol}
	row := g.rows[key]
	if row == nil {
		row = new(g.common)
		row.Dataset, row.Method, row.Protocol = set, name, protocol
		if name != method.SpecMatch { // the only method with L_G
			row.Beta, row.Percentile = train.Beta{}, math.NaN()
		}
		g.rows[key] = row
	}
	row.PerSeed = append(row.PerSeed, r.Value)
	g.addTwins(row, r)
	row.Seconds += r.Seconds
	row.Epochs = max(row.Epochs, r.Epochs)
	if r.GraphsPerSecond > 0 {
		g.speeds[row] = append(g.speeds[row], r.GraphsPerSecond)
	}
}

// addTwins adds the twins of a seed. Where some seeds have none, their value is that of all graphs.
func (g *Grid) addTwins(row *run.Row, r Result) {
	if r.Twins == nil && row.Twins == nil {
		return
	}
	for len(row.Twins) < len(row.PerSeed)-1 {
		row.WithoutTwins = append(row.WithoutTwins, row.PerSeed[len(row.Twins)])
		row.Twins = append(row.Twins, 0)
	}
	share, value := 0.0, r.Value
	if r.Twins != nil {
		share = r.Twins.Share()
		value = r.Twins.Accuracy()
	}
	row.Twins = append(row.Twins, share)
	row.WithoutTwins = append(row.WithoutTwins, value)
}

// Rows are the rows of results.json: protocol by protocol, set by set.
func (g *Grid) Rows() []run.Row {
	var rows []run.Row
	for _, protocol := range g.protocols {
		for _, set := range g.sets {
			for _, name := range g.methods {
				if row, ok := g.Row(set, name, protocol); ok {
					rows = append(rows, row)
				}
			}
		}
	}
	return rows
}

// Row is the results of a method on a data set under a protocol, if there are any.
func (g *Grid) Row(set, method, protocol string) (r run.Row, ok bool) {
	row := g.rows[[3]string{set, method, protocol}]
	if row == nil {
		return r, false
	}
	row.Mean, row.Std = stat.MeanStdDev(row.PerSeed, nil)
	row.GraphsPerSecond = stat.Mean(g.speeds[row], nil)
	return *row, true
}

// Table returns a table of methods by data sets under a protocol, followed by published results for
// the same sets.
func (g *Grid) Table(protocol, caption string, literature published.Table) *table.Table {
	t := table.New("method", table.Names(g.sets...)...)
	t.Caption = caption
	for _, name := range g.methods {
		t.AddSome(g.title(name), func(i int) (table.Cell, bool) {
			row, ok := g.Row(g.sets[i], name, protocol)
			if !ok {
				return table.Text(""), false
			}
			return table.MeanStd(row.Mean, row.Std, 2), true
		})
	}
	for _, p := range literature.Under(protocol) {
		published := t.AddSome(p.Name, func(i int) (table.Cell, bool) {
			v, ok := p.Values[g.sets[i]]
			if !ok {
				return table.Text(""), false
			}
			return table.Text(fmt.Sprintf("%.2f ± %.2f", v[0], v[1])), true
		})
		if published && p.Note != "" {
			t.Footnotes = append(t.Footnotes, p.Name+": "+p.Note+".")
		}
	}
	return t
}

// Twins returns a table of methods by data sets under a protocol: the value of all test graphs, that of
// those without a twin in the training part, and the difference. It returns nil if no test graph has one.
func (g *Grid) Twins(protocol string) *table.Table {
	var sets, shares, columns []string
	for _, set := range g.sets {
		for _, name := range g.methods {
			if row, ok := g.Row(set, name, protocol); ok && row.Twins != nil {
				sets = append(sets, set)
				shares = append(shares, fmt.Sprintf("%s: %.1f %%", set, stat.Mean(row.Twins, nil)))
				columns = append(columns, set, "without twins", "difference")
				break
			}
		}
	}
	if sets == nil {
		return nil
	}
	t := table.New("method", table.Names(columns...)...)
	seeds := 0
	for _, name := range g.methods {
		t.AddSome(g.title(name), func(i int) (table.Cell, bool) {
			row, ok := g.Row(sets[i/3], name, protocol)
			if !ok || row.Twins == nil {
				return table.Text(""), false
			}
			seeds = max(seeds, len(row.PerSeed))
			difference := compare.Seeds(row.WithoutTwins, row.PerSeed)
			switch i % 3 {
			case 0:
				return meanErr(row.PerSeed), true
			case 1:
				return meanErr(row.WithoutTwins), true
			}
			return table.MeanStd(difference.Mean, difference.Err, 2), true
		})
	}
	t.Caption = fmt.Sprintf("Protocol %s without twins. A twin is an isomorphic graph, node labels included, in the "+
		"training part; test graphs that have one: %s. Next to the %s of all test graphs is that of the others, all "+
		"folds together. Mean ± standard error, n = %d.",
		protocol, strings.Join(shares, ", "), g.common.Metric, seeds)
	return t
}

// meanErr returns a cell with the mean and its standard error.
func meanErr(values []float64) table.Cell {
	mean, std := stat.MeanStdDev(values, nil)
	return table.MeanStd(mean, std/math.Sqrt(float64(len(values))), 2)
}

// Differences compares methods with a base method, seed by seed, under every protocol, and adds the
// differences that chance alone would make. It returns nil for fewer than two seeds, or if one of
// the methods has no results.
func (g *Grid) Differences(base string, methods ...string) *table.Table {
	var lines []string
	var differences []compare.Difference
	for _, protocol := range g.protocols {
		for _, name := range methods {
			if ds := g.differences(base, name, protocol); ds != nil {
				lines = append(lines, g.title(name)+", "+protocol)
				differences = append(differences, ds...)
			}
		}
	}
	if lines == nil {
		return nil
	}
	columns := slices.Clone(g.sets)
	if len(columns) > 1 {
		columns = append(columns, "mean of sets")
	}
	t := table.New("minus "+g.title(base), table.Names(columns...)...)
	cells, n := Differences(differences, 2)
	for i, name := range lines {
		t.Add(name, cells[i*len(columns):(i+1)*len(columns)]...)
	}
	for _, protocol := range g.protocols {
		g.addChance(t, base, protocol)
	}
	t.Caption = fmt.Sprintf("Difference to %s: mean in points ± its standard error over %s. %s For each seed both "+
		"rows have the same folds, which is fair but hardly makes their difference more precise. The last rows: the "+
		"standard deviation that chance alone gives the difference of two single runs, and the number of seeds at "+
		"which 0.3 points would be two standard errors.",
		g.title(base), seedCount(differences[:len(columns)]), Corrected(n))
	return t
}

// seedCount describes the numbers of seeds of the differences.
func seedCount(differences []compare.Difference) string {
	fewest := math.MaxInt
	largest := 0
	for _, d := range differences {
		fewest = min(fewest, d.N)
		largest = max(largest, d.N)
	}
	if fewest == largest {
		return fmt.Sprintf("n = %d seeds", largest)
	}
	return fmt.Sprintf("n = %d to %d seeds, by data set", fewest, largest)
}

// Corrected returns the sentence of a caption that explains the mark † in a table of n differences.
func Corrected(n int) string {
	if n == 1 {
		return "†: p < 0.05 by Student's t-test; without it the difference may be chance."
	}
	return fmt.Sprintf("†: p < 0.05 by Student's t-test, corrected by Holm for the %d differences of "+
		"the table; without it a difference may be chance.", n)
}

// Differences returns cells of mean differences ± standard errors. A cell has the mark † if p < 0.05
// by Student's t-test, with Holm's correction for all n differences over two or more seeds. The cells
// of differences over fewer seeds are empty.
func Differences(all []compare.Difference, decimals int) (cells []table.Cell, n int) {
	corrected := compare.Corrected(all)
	for i, d := range all {
		c := table.Text("")
		if d.N > 1 {
			n++
			c = table.MeanStd(d.Mean, d.Err, decimals)
		}
		if corrected[i] < 0.05 {
			c.Mark = "†"
		}
		cells = append(cells, c)
	}
	return cells, n
}

// Minus compares values by seed with those of a base.
func Minus(base []float64, rows ...[]float64) (all []compare.Difference) {
	for _, values := range rows {
		all = append(all, compare.Seeds(values, base))
	}
	return all
}

// differences returns those of a method to the base, set by set, and their mean if there
// are several sets; nil unless all sets have two seeds of both.
func (g *Grid) differences(base, name, protocol string) (ds []compare.Difference) {
	for _, set := range g.sets {
		a, _ := g.Row(set, name, protocol)
		b, ok := g.Row(set, base, protocol)
		if !ok || name == base || len(a.PerSeed) < 2 || len(a.PerSeed) != len(b.PerSeed) {
			return nil
		}
		ds = append(ds, compare.Seeds(a.PerSeed, b.PerSeed))
	}
	if len(ds) > 1 {
		ds = append(ds, compare.Mean(ds))
	}
	return ds
}

// addChance adds the rows of what chance does to differences under a protocol: measured,
// if there is the same method with jitter, and otherwise √2 times the base's deviation.
func (g *Grid) addChance(t *table.Table, base, protocol string) {
	var deviations, seeds []table.Cell
	for _, set := range g.sets {
		b, ok := g.Row(set, base, protocol)
		if !ok {
			return
		}
		deviation := compare.Null(b.PerSeed)
		if j, ok := g.Row(set, method.Jitter, protocol); ok && base == method.InfoNCE &&
			len(j.PerSeed) == len(b.PerSeed) {
			d := compare.Seeds(j.PerSeed, b.PerSeed)
			deviation = d.Err * math.Sqrt(float64(d.N))
		}
		deviations = append(deviations, table.Number(deviation, 2))
		seeds = append(seeds, table.Text(fmt.Sprint(compare.SeedsFor(0.3, deviation))))
	}
	t.Add("deviation by chance, "+protocol, deviations...)
	t.Add("seeds for 0.3 points, "+protocol, seeds...)
}
