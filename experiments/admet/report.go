package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

// report writes results.json and the tables of a finished run.
func (x *experiment) report(stdout io.Writer, outcomes []outcome) error {
	columns := []string{"metric"}
	for _, m := range x.methods.Names {
		columns = append(columns, methodOf(m).title)
	}
	pairs, gains := x.pairs()
	t := table.New("set", table.Names(columns...)...)
	paired := table.New("gain of", table.Names(gains...)...)
	paired.Caption = "Gains are positive where the vectors are better: paired over the seeds, mean ± standard error."
	t.Caption = x.caption()
	var rows []run.Row
	for _, name := range x.data.Datasets {
		s, _ := find(name) // execute has found it
		first := len(rows)
		digits := 3
		if s.scaffolds {
			digits = 2
		}
		cells := []table.Cell{table.Text(x.metrics(s))}
		for _, m := range x.methods.Names {
			r := newRow(s, m, outcomes)
			spread := r.Std
			if s.scaffolds {
				spread /= math.Sqrt(float64(len(r.PerSeed)))
			}
			rows = append(rows, r)
			cells = append(cells, table.MeanStd(r.Mean, spread, digits))
		}
		t.Add(name, cells...)
		rows = append(rows, x.addEndpoints(t, s, outcomes)...)
		cells = nil
		for _, p := range pairs {
			d := compare.Seeds(rows[first+p[0]].PerSeed, rows[first+p[1]].PerSeed)
			_, sign := methodOf(x.methods.Names[p[0]]).metric(s)
			cells = append(cells, table.MeanStd(sign*d.Mean, d.Err, digits))
		}
		paired.Add(name, cells...)
	}
	if pairs == nil {
		paired = nil
	}
	if err := x.dir.Report(stdout, rows, t, paired); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "results and table: %s\n", x.dir.Path)
	return err
}

// metric returns the name of what the method is scored by on a set, and 1 if more of it is better, else -1.
func (m method) metric(s set) (name string, sign float64) {
	if m.model == recall {
		return "scaffold_recall", 1
	}
	return s.metric, s.sign()
}

// metrics names the metrics of a set, each with the direction in which it is better; methods may have different ones.
func (x *experiment) metrics(s set) string {
	var texts []string
	for _, name := range x.methods.Names {
		metric, sign := methodOf(name).metric(s)
		direction := "↑"
		if sign < 0 {
			direction = "↓"
		}
		if text := metric + " " + direction; !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}

// caption says how the sets are divided: each way once.
func (x *experiment) caption() string {
	var captions []string
	for _, name := range x.data.Datasets {
		s, _ := find(name) // execute has found it
		if text := x.division(s); !slices.Contains(captions, text) {
			captions = append(captions, text)
		}
	}
	return strings.Join(captions, " Others: ")
}

// division says how a set is divided, and what its entries are.
func (x *experiment) division(s set) string {
	switch {
	case s.scaffolds:
		return fmt.Sprintf(
			"%d divisions by scaffold into 80 %% to fit on, 10 %% to choose the regularisation on and "+
				"10 %% to test on: mean ± standard error.",
			x.recipe.Seeds,
		)
	case s.endpoints() != nil:
		return fmt.Sprintf(
			"Latest fifth of the molecules, %s that divide the earlier ones into 7/8 to fit on and 1/8 to choose on: "+
				"the relative absolute error of each endpoint, and first their mean.",
			run.OverSeeds(x.recipe.Seeds),
		)
	}
	return fmt.Sprintf(
		"Test part of the official division, %s that divide the rest into 7/8 to fit on and 1/8 to "+
			"choose the regularisation on: ridge or logistic regression.",
		run.OverSeeds(x.recipe.Seeds),
	)
}

// addEndpoints adds a line for each endpoint of a joined set, and returns the rows of results.json.
func (x *experiment) addEndpoints(t *table.Table, s set, outcomes []outcome) (rows []run.Row) {
	for k, endpoint := range s.endpoints() {
		cells := []table.Cell{table.Text(s.metric + " ↓")}
		for _, m := range x.methods.Names {
			r := newRow(s, m, outcomes)
			r.Dataset += " " + endpoint
			r.PerSeed = nil
			for _, o := range outcomes {
				if o.Set == s.name && o.Method == m {
					r.PerSeed = append(r.PerSeed, o.Endpoints[k])
				}
			}
			r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
			rows = append(rows, r)
			cells = append(cells, table.MeanStd(r.Mean, r.Std, 3))
		}
		t.Add(endpoint, cells...)
	}
	return rows
}

// pairs returns the indices and names of the methods to compare: frozen vectors with other features of
// the same model.
func (x *experiment) pairs() (pairs [][2]int, names []string) {
	for i, m := range x.methods.Names {
		for k, second := range x.methods.Names {
			if k != i && slices.Equal(methodOf(m).features, []string{"vectors"}) &&
				methodOf(second).model == methodOf(m).model {
				pairs = append(pairs, [2]int{i, k})
				names = append(names, m+" over "+second)
			}
		}
	}
	return pairs, names
}

// newRow returns the row of results.json for a method on a set.
func newRow(s set, method string, outcomes []outcome) run.Row {
	metric, _ := methodOf(method).metric(s)
	r := run.Row{
		Experiment: "admet",
		Dataset:    s.name,
		Method:     method,
		Protocol:   s.protocol(),
		Metric:     metric,
		Backend:    engine,
		Precision:  "float32",
	}
	for _, o := range outcomes {
		if o.Set == s.name && o.Method == method {
			r.PerSeed = append(r.PerSeed, o.Value)
		}
	}
	r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
	return r
}
