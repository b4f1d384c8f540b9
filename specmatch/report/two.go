package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

// Compare returns a comparison of two runs: settings that differ, differences of the second run from
// the first, and units with different results.
func Compare(a, b *run.Run) *Page {
	return &Page{Title: fmt.Sprintf("%s and %s", a.Path, b.Path), sections: []section{
		{title: "Settings", note: "Settings that differ between the runs.", blocks: unequal(a, b)},
		{
			title: "Differences",
			note: "Second minus first run over their n common seeds, with the standard error and the p value " +
				"of Student's paired t-test, without and with Holm's correction for all rows of the table. " +
				"n is 0 where a data set has other contents in the second run.",
			blocks: paired(a, b),
		},
		{title: "Units", note: "Results of units, without timings.", blocks: changed(a, b)},
	}}
}

func unequal(a, b *run.Run) []block {
	t := table.New("setting", table.Names("first", "second")...)
	for _, s := range settingsOf([]*run.Run{a, b}) {
		if s.differs() && !slices.Contains([]string{"started", "finished units", "-out"}, s.name) {
			t.Add(s.name, s.cells()...)
		}
	}
	return []block{{table: t}}
}

func paired(a, b *run.Run) []block {
	var comparisons []comparison
	for _, x := range a.Rows {
		for _, y := range b.Rows {
			if x.Dataset == y.Dataset && x.Method == y.Method && x.Protocol == y.Protocol &&
				x.Metric == y.Metric {
				p := panel{protocol: x.Protocol, metric: x.Metric}
				d := p.decimals()
				difference := minus(result{}, result{})
				if sameData(a, b, x.Dataset) {
					difference = minus(result{Row: y}, result{Row: x})
				}
				before := append(
					texts(x.Dataset, p.caption()),
					table.MeanStd(x.Mean, x.Std, d),
					table.MeanStd(y.Mean, y.Std, d),
				)
				comparisons = append(comparisons, comparison{
					method.Title(x.Method), before, d, difference, nil,
				})
			}
		}
	}
	if comparisons == nil {
		return nil
	}
	return []block{{table: compared([]string{"data set", "of", "first", "second"}, comparisons)}}
}

// changed returns a table of the units that one of the runs lacks, or whose results differ.
func changed(a, b *run.Run) []block {
	t := table.New("unit", table.Names("what", "first", "second")...)
	units := map[string]*[2]json.RawMessage{} // results in the first and the second run, nil for none
	for i, r := range []*run.Run{a, b} {
		for _, u := range r.Units {
			if units[u.Name] == nil {
				units[u.Name] = &[2]json.RawMessage{}
			}
			units[u.Name][i] = u.Result
		}
	}
	equal := 0
	for _, name := range slices.Sorted(maps.Keys(units)) {
		x, y := units[name][0], units[name][1]
		index, first, second, differ := unlike(x, y)
		switch {
		case y == nil:
			t.Add(name, texts("finished", "yes", "no")...)
		case x == nil:
			t.Add(name, texts("finished", "no", "yes")...)
		case differ:
			t.Add(name, texts(index, first, second)...)
		default:
			equal++
		}
	}
	t.Footnotes = []string{fmt.Sprintf(
		"%d of %d units are equal. For the others, the first difference is shown.",
		equal, len(units),
	)}
	return []block{{table: t}}
}

// figures returns the numbers and texts of a result by their paths, such as "Folds.3", and the lengths
// of lists. It skips timings, and keeps numbers as they are written.
func figures(result json.RawMessage) map[string]string {
	values := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, x := range v {
				if !strings.HasSuffix(name, "Seconds") && !strings.HasSuffix(name, "PerSecond") {
					walk(strings.TrimPrefix(path+"."+name, "."), x)
				}
			}
		case []any:
			values[path] = fmt.Sprintf("%d entries", len(v))
			for i, x := range v {
				walk(strings.TrimPrefix(fmt.Sprintf("%s.%d", path, i+1), "."), x)
			}
		case nil:
			values[path] = "–"
		default:
			values[path] = fmt.Sprint(v)
		}
	}
	d := json.NewDecoder(bytes.NewReader(result))
	d.UseNumber()
	var v any
	d.Decode(&v) // the journal has read it
	walk("", v)
	return values
}

// unlike returns the first path at which two results differ, and the values there.
func unlike(first, second json.RawMessage) (path, x, y string, differ bool) {
	a, b := figures(first), figures(second)
	merged := maps.Clone(a)
	maps.Copy(merged, b)
	for _, path := range slices.Sorted(maps.Keys(merged)) {
		if a[path] != b[path] {
			return path, brief(a[path]), brief(b[path]), true
		}
	}
	return "", "", "", false
}

// brief shortens a number for a table. It returns "–" for an empty text.
func brief(s string) string {
	if x, err := strconv.ParseFloat(s, 64); err == nil && x != math.Trunc(x) {
		return fmt.Sprintf("%.6g", x)
	}
	return cmp.Or(s, "–")
}
