package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/method"
)

// Compare returns the report of two runs side by side: settings that differ, what the
// second is above the first, and units whose results are not equal.
func Compare(a, b *rundir.Run) *Page {
	pair := []*rundir.Run{a, b}
	return &Page{Title: fmt.Sprintf("%s and %s", a.Path, b.Path), sections: []section{
		{title: "Settings", note: "What differs between the runs.", blocks: unequal(pair)},
		{title: "Differences", note: "Second minus first run over the n seeds that both have, with the standard error and the p value of Student's paired test, as it is and by Holm's correction for all rows of the table.", blocks: paired(a, b)},
		{title: "Units", note: "Timings aside.", blocks: changed(a, b)},
	}}
}

// unequal is a table of the settings in which two runs differ.
func unequal(pair []*rundir.Run) []block {
	t := table.New("setting", table.Column{Name: "first"}, table.Column{Name: "second"})
	add := func(name, first, second string) {
		if first != second {
			t.Add(name, table.Text(first), table.Text(second))
		}
	}
	a, b := pair[0], pair[1]
	add("experiment", a.Experiment, b.Experiment)
	add("program", a.Program, b.Program)
	add("engine", a.Engine, b.Engine)
	add("machine", a.Machine, b.Machine)
	for _, flag := range flags(pair) {
		if flag == "out" {
			continue
		}
		add("-"+flag, show(a.Flags[flag]), show(b.Flags[flag]))
	}
	for _, file := range inputs(pair) {
		add("SHA-256 of "+file, short(a.Inputs[file]), short(b.Inputs[file]))
	}
	return []block{{table: t}}
}

// short is the beginning of a file's SHA-256, "–" for a file that was not read.
func short(sum string) string {
	if sum == "" {
		return "–"
	}
	return sum[:min(12, len(sum))]
}

// paired is a table of the rows that both runs have.
func paired(a, b *rundir.Run) []block {
	t := table.New("method", table.Column{Name: "data set"}, table.Column{Name: "of"}, table.Column{Name: "first"}, table.Column{Name: "second"}, table.Column{Name: "n"}, table.Column{Name: "difference"}, table.Column{Name: "std. error"}, table.Column{Name: "p"}, table.Column{Name: "p, Holm"})
	type both struct {
		panel
		a, b result
	}
	var all []both
	var tests []compare.Difference
	for _, x := range a.Rows {
		for _, y := range b.Rows {
			if x.Dataset == y.Dataset && x.Method == y.Method && x.Protocol == y.Protocol && x.Metric == y.Metric {
				row := both{panel{protocol: x.Protocol, metric: x.Metric}, result{Row: x}, result{Row: y}}
				all, tests = append(all, row), append(tests, minus(row.b, row.a))
			}
		}
	}
	if all == nil {
		return nil
	}
	corrected := holm(tests)
	for i, r := range all {
		d, test := r.decimals(), tests[i]
		t.Add(method.Title(r.a.Method), table.Text(r.a.Dataset), table.Text(r.caption()), table.MeanStd(r.a.Mean, r.a.Std, d), table.MeanStd(r.b.Mean, r.b.Std, d),
			table.Number(float64(test.N), 0), table.Number(test.Mean, d), table.Number(test.Err, d), table.P(test.P), table.P(corrected[i]))
	}
	return []block{{table: t}}
}

// changed is a table of the units that one of the runs lacks, or whose results differ.
func changed(a, b *rundir.Run) []block {
	t := table.New("unit", table.Column{Name: "what"}, table.Column{Name: "first"}, table.Column{Name: "second"})
	units := map[string][2]*rundir.Unit{}
	for i, r := range []*rundir.Run{a, b} {
		for k := range r.Units {
			pair := units[r.Units[k].Name]
			pair[i] = &r.Units[k]
			units[r.Units[k].Name] = pair
		}
	}
	equal := 0
	for _, name := range slices.Sorted(maps.Keys(units)) {
		x, y := units[name][0], units[name][1]
		switch {
		case y == nil:
			t.Add(name, table.Text("finished"), table.Text("yes"), table.Text("no"))
		case x == nil:
			t.Add(name, table.Text("finished"), table.Text("no"), table.Text("yes"))
		default:
			at, first, second, differ := unlike(decode(x.Result), decode(y.Result))
			if differ {
				t.Add(name, table.Text(at), table.Text(first), table.Text(second))
			} else {
				equal++
			}
		}
	}
	t.Footnotes = []string{fmt.Sprintf("%d of %d units are equal. Of a unit that is not, the first difference is shown.", equal, len(units))}
	return []block{{table: t}}
}

// decode reads a result; numbers stay as they are written.
func decode(data json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	d.Decode(&v) // the journal has read it
	return v
}

// timing reports whether a field of a result is how long something took.
func timing(field string) bool {
	return strings.HasSuffix(field, "Seconds") || strings.HasSuffix(field, "PerSecond")
}

// unlike returns the first place at which two results differ, apart from timings.
func unlike(x, y any) (at, first, second string, differ bool) {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok {
			break
		}
		names := slices.Concat(slices.Collect(maps.Keys(x)), slices.Collect(maps.Keys(y)))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if timing(name) {
				continue
			}
			if at, first, second, differ := unlike(x[name], y[name]); differ {
				return strings.TrimSuffix(name+"."+at, "."), first, second, true
			}
		}
		return "", "", "", false
	case []any:
		y, ok := y.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			if at, first, second, differ := unlike(x[i], y[i]); differ {
				return strings.TrimSuffix(fmt.Sprintf("%d.%s", i+1, at), "."), first, second, true
			}
		}
		return "", "", "", false
	default:
		if x == y {
			return "", "", "", false
		}
	}
	return "", brief(x), brief(y), true
}

// brief is a part of a result for a table.
func brief(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case []any:
		return fmt.Sprintf("%d entries", len(v))
	case json.Number:
		if x, err := v.Float64(); err == nil && x != math.Trunc(x) {
			return fmt.Sprintf("%.6g", x)
		}
	}
	return fmt.Sprint(v)
}
