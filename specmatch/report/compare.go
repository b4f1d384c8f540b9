package report

import (
	"math"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

// minus compares a with b over the seeds that both have. N is 0 if there are none, or if
// one does not say which they are.
func minus(a, b result) compare.Difference {
	return compare.Seeds(run.Paired(a.Row, b.Row))
}

// minus compares two results, as the function does, with N = 0 if their data sets have other contents.
func (c *collection) minus(a, b result) compare.Difference {
	if a.run != chosen && b.run != chosen && !sameData(c.runs[a.run], c.runs[b.run], a.Dataset) {
		return minus(result{}, result{})
	}
	return minus(a, b)
}

// sameData reports whether no file of a data set has another content in b than in a, as far as they have it. Runs with
// a test set of their own are compared by it: what they learn from may differ.
func sameData(a, b *run.Run, set string) bool {
	differs := func(name string) bool {
		first := a.Inputs[name]
		second := b.Inputs[name]
		return first != "" && second != "" && first != second
	}
	if a.Inputs["test"] != "" && b.Inputs["test"] != "" {
		return !differs("test")
	}
	for name := range a.Inputs {
		ofSet := name == "in" || name == set || strings.HasPrefix(name, set+"_") || strings.HasPrefix(name, set+".")
		if ofSet && differs(name) {
			return false
		}
	}
	return true
}

// half is half of the 95 % interval of a difference; NaN for fewer than two seeds.
func half(d compare.Difference) float64 {
	if d.N < 2 {
		return math.NaN()
	}
	lo, hi := d.Interval(0.95)
	return (hi - lo) / 2
}

type comparison struct {
	name     string
	before   []table.Cell
	decimals int
	compare.Difference
	after []table.Cell
}

// compared is a table of differences, between columns of these names, with their p
// values as they are and after Holm's correction for their number.
func compared(before []string, all []comparison, after ...string) *table.Table {
	columns := slices.Concat(before, []string{"n", "difference", "std. error", "p", "p, Holm"}, after)
	t := table.New("method", table.Names(columns...)...)
	var tests []compare.Difference
	for _, d := range all {
		tests = append(tests, d.Difference)
	}
	corrected := compare.Corrected(tests)
	for i, d := range all {
		t.Add(d.name, slices.Concat(d.before, []table.Cell{
			table.Number(float64(d.N), 0), table.Number(d.Mean, d.decimals),
			table.Number(d.Err, d.decimals), table.P(d.P), table.P(corrected[i]),
		}, d.after)...)
	}
	return t
}
