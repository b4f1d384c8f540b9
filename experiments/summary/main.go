// Command summary prints the tables that gather the unsupervised methods of the
// repository, as Markdown: accuracy on the paper's eight sets beside the published
// figures, the seeds of each figure, mean ranks, accuracy with linear machines, and what
// L_G adds; then the preregistered analysis of what a graph of similarities adds.
//
//	go run ./experiments/summary
//	go run ./experiments/summary -in RUN,OTHER
//
// It reads nothing but results.json files.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/grid"
	"github.com/specmatch/specmatch/experiments/internal/published"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/method"
)

func main() { cli.Main(run) }

const synopsis = `Tables of all unsupervised methods on the paper's eight sets, as Markdown, from the results of
experiments/unsupervised and experiments/kernels.`

func run(_ context.Context, args []string, stdout, _ io.Writer) error {
	in := []string{"experiments/kernels/results", "experiments/unsupervised/results"}
	flags := cli.NewFlagSet("summary", synopsis, "-in RUN,OTHER")
	cli.Var(flags, &in, "in", cli.List(cli.Text), "`folders` with results.json files, at any depth and by any name that ends in .json;\nthose of -smaller.json are marked as a smaller form of their method")
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	r, err := read(in)
	if err != nil {
		return err
	}
	tables := []*table.Table{r.accuracy(protocol), r.seeds(), r.ranks(), r.accuracy(linear), r.differences(protocol), r.differences(linear), r.graph()}
	for _, t := range slices.DeleteFunc(tables, func(t *table.Table) bool { return t == nil || t.Rows() == 0 }) {
		if err := t.WriteMarkdown(stdout); err != nil {
			return err
		}
		fmt.Fprintln(stdout)
	}
	return nil
}

// sets are the columns, in the order of the paper's table but for MUTAG, which comes first.
var sets = []string{"MUTAG", "NCI1", "PROTEINS", "DD", "COLLAB", "IMDB-BINARY", "REDDIT-BINARY", "REDDIT-MULTI-5K"}

type row struct{ method, title, published string }

// rows are the methods in the order of the table: without training, with it, with labels.
var rows = []row{
	{"majority", "majority class", ""},
	{"size", "(log nodes, log edges)", ""},
	{"labels", "labels or degrees, counted", ""},
	{"pairs", "labels along edges, counted", ""},
	{"untrained", "untrained GIN", ""},
	{"wl", "WL subtree", "WL, in the paper's Table 1"},
	{"wloa", "WL optimal assignment", ""},
	{"dgk", "deep WL kernel (DGK)", "DGK, in the paper's Table 1"},
	{"node2vec", "node2vec", "node2vec, in the paper's Table 1"},
	{"sub2vec", "sub2vec", "sub2vec, in the paper's Table 1"},
	{"graph2vec", "graph2vec", "graph2vec, in the paper's Table 1"},
	{"infograph", "InfoGraph", "InfoGraph, published"},
	{"graphcl", "GraphCL", "GraphCL, published"},
	{"joao", "JOAO", "JOAO, published"},
	{"joaov2", "JOAOv2", "JOAOv2, published"},
	{"simgrace", "SimGRACE", "SimGRACE, published"},
	{"mssgcl", "MSSGCL", "MSSGCL, published"},
	{"cuco", "CuCo", "CuCo, published"},
	{method.InfoNCE, "InfoNCE (β = 0)", ""},
	{method.SpecMatch, "SpecMatch-CL", "SpecMatch-CL, published"},
	{"gin", "GIN, with labels", ""},
}

// The protocols: that of the table of all methods, and one that fewer have run under.
const (
	protocol = string(eval.GraphCL)
	linear   = string(eval.Linear)
)

// cell is the results of a method on a set under a protocol.
type cell struct{ set, method, protocol string }

type result struct {
	rundir.Row
	file    string
	smaller bool // a smaller form of the method
}

type results map[cell]result

// read gathers the results in all files. A figure in two files is an error, unless one
// of them is of a smaller form of the method, which gives way.
func read(folders []string) (results, error) {
	all := results{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".json" || e.Name() == "config.json" {
				return err
			}
			return all.add(path)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no results in %s", strings.Join(folders, ", "))
	}
	return all, nil
}

func (all results) add(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var list []rundir.Row
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%s: not a results.json: %w", path, err)
	}
	for _, x := range list {
		if x.Metric != "accuracy" || len(x.PerSeed) == 0 {
			return fmt.Errorf("%s: %s on %s has %d seeds of %q, want accuracies", path, x.Method, x.Dataset, len(x.PerSeed), x.Metric)
		}
		at, r := cell{x.Dataset, x.Method, x.Protocol}, result{x, path, strings.HasSuffix(path, "-smaller.json")}
		old, known := all[at]
		switch {
		case known && old.smaller == r.smaller:
			return fmt.Errorf("%s and %s both have %s on %s under %s", old.file, path, at.method, at.set, at.protocol)
		case !known || old.smaller:
			all[at] = r
		}
	}
	return nil
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

// bySet returns a table of the rows with a cell for each set, without empty rows.
func bySet(value func(set, method string) (table.Cell, bool)) *table.Table {
	t := table.New("method", table.Names(sets...)...)
	for _, row := range rows {
		var cells []table.Cell
		some := false
		for _, set := range sets {
			c, ok := value(set, row.method)
			cells, some = append(cells, c), some || ok
		}
		if some {
			t.Add(row.title, cells...)
		}
	}
	return t
}

// accuracy has the figures, and in parentheses the published ones.
func (all results) accuracy(protocol string) *table.Table {
	quoted := map[string]map[string][2]float64{}
	for _, row := range rows {
		if row.published != "" {
			if p := published.Rows(row.published)[0]; p.Protocols == nil || slices.Contains(p.Protocols, protocol) {
				quoted[row.method] = p.Values
			}
		}
	}
	return bySet(func(set, method string) (table.Cell, bool) {
		r, ok := all[cell{set, method, protocol}]
		c := table.Text("")
		if ok {
			mean, std := stat.MeanStdDev(r.PerSeed, nil)
			c = table.MeanStd(mean, std, 2)
			if r.smaller {
				c.Mark = "†"
			}
		}
		if v, known := quoted[method][set]; known {
			quote := fmt.Sprintf("(%.2f)", v[0])
			if ok {
				c.Mark += " " + quote
			} else {
				c = table.Text(quote)
			}
		}
		return c, ok
	})
}

func (all results) seeds() *table.Table {
	return bySet(func(set, method string) (table.Cell, bool) {
		r, ok := all[cell{set, method, protocol}]
		if !ok {
			return table.Text(""), false
		}
		return table.Number(float64(len(r.PerSeed)), 0), true
	})
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
					switch cmp.Compare(other[s].PerSeed[seed], mine[s].PerSeed[seed]) {
					case 1:
						rank++
					case 0:
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

// differences are SpecMatch-CL minus InfoNCE on the sets where both have seeds; nil if
// there are none.
func (all results) differences(protocol string) *table.Table {
	both := []string{method.InfoNCE, method.SpecMatch}
	of := slices.DeleteFunc(slices.Clone(sets), func(set string) bool {
		a, b := all[cell{set, both[0], protocol}], all[cell{set, both[1], protocol}]
		return len(a.PerSeed) < 2 || len(a.PerSeed) != len(b.PerSeed)
	})
	g := grid.New(rundir.Row{}, of, both, []string{protocol}, method.Title)
	for _, set := range of {
		for _, name := range both {
			for _, v := range all[cell{set, name, protocol}].PerSeed {
				g.Add(set, name, protocol, grid.Result{Value: v})
			}
		}
	}
	return g.Differences(both[0], both[1])
}

// graph is the analysis of unsupervised/results/graph.md: graphs of similarities minus
// the teacher without one, then all arms minus InfoNCE, each group corrected by Holm
// within its set. It is nil unless all arms have run on both sets.
func (all results) graph() *table.Table {
	sets := []string{"NCI1", "lipo"}
	groups := [][][2]string{
		{{method.EMABatch, method.EMA}, {method.EMAMemory, method.EMA}},
		{{method.EMA, method.InfoNCE}, {method.EMABatch, method.InfoNCE}, {method.EMAMemory, method.InfoNCE}},
	}
	var columns []table.Column
	for _, set := range sets {
		columns = append(columns, table.Column{Name: set}, table.Column{Name: "95 %"}, table.Column{Name: "p, Holm"})
	}
	t := table.New("difference", columns...)
	for _, group := range groups {
		cells := make([][]table.Cell, len(group))
		for _, set := range sets {
			var of []compare.Difference
			var p []float64
			for _, pair := range group {
				a, b := all[cell{set, pair[0], string(eval.GraphCLC10)}], all[cell{set, pair[1], string(eval.GraphCLC10)}]
				if len(a.PerSeed) < 2 || len(a.PerSeed) != len(b.PerSeed) {
					return nil
				}
				d := compare.Seeds(a.PerSeed, b.PerSeed)
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
