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
	"github.com/specmatch/specmatch/specmatch/method"
)

// Compare returns the report of two runs side by side: settings that differ, what the
// second is above the first, and units whose results are not equal.
func Compare(a, b *rundir.Run) *Page {
	return &Page{Title: fmt.Sprintf("%s and %s", a.Path, b.Path), sections: []section{
		{title: "Settings", note: "What differs between the runs.", blocks: unequal(a, b)},
		{title: "Differences", note: "Second minus first run over the n seeds that both have, with the standard error and the p value of Student's paired test, as it is and by Holm's correction for all rows of the table.", blocks: paired(a, b)},
		{title: "Units", note: "Timings aside.", blocks: changed(a, b)},
	}}
}

// unequal is a table of the settings in which two runs differ.
func unequal(a, b *rundir.Run) []block {
	t := table.New("setting", table.Names("first", "second")...)
	for _, s := range settingsOf([]*rundir.Run{a, b}) {
		if s.differs() && !slices.Contains([]string{"started", "finished units", "-out"}, s.name) {
			t.Add(s.name, texts(s.values...)...)
		}
	}
	return []block{{table: t}}
}

// paired is a table of the rows that both runs have.
func paired(a, b *rundir.Run) []block {
	var all []comparison
	for _, x := range a.Rows {
		for _, y := range b.Rows {
			if x.Dataset == y.Dataset && x.Method == y.Method && x.Protocol == y.Protocol && x.Metric == y.Metric {
				p := panel{protocol: x.Protocol, metric: x.Metric}
				d := p.decimals()
				before := append(texts(x.Dataset, p.caption()), table.MeanStd(x.Mean, x.Std, d), table.MeanStd(y.Mean, y.Std, d))
				all = append(all, comparison{method.Title(x.Method), before, d, minus(result{Row: y}, result{Row: x}), nil})
			}
		}
	}
	if all == nil {
		return nil
	}
	return []block{{table: compared([]string{"data set", "of", "first", "second"}, all)}}
}

// changed is a table of the units that one of the runs lacks, or whose results differ.
func changed(a, b *rundir.Run) []block {
	t := table.New("unit", table.Names("what", "first", "second")...)
	units := map[string]*[2]json.RawMessage{} // results in the first and the second run, nil for none
	for i, r := range []*rundir.Run{a, b} {
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
		at, first, second, differ := unlike(decode(x), decode(y))
		switch {
		case y == nil:
			t.Add(name, texts("finished", "yes", "no")...)
		case x == nil:
			t.Add(name, texts("finished", "no", "yes")...)
		case differ:
			t.Add(name, texts(at, first, second)...)
		default:
			equal++
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
