package main

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/specmatch/table"
)

// report writes results.json and the table of a finished run.
func (x *experiment) report(stdout io.Writer, outcomes []outcome) error {
	t := table.New("set", append([]table.Column{{Name: "metric"}}, x.columns()...)...)
	t.Caption = fmt.Sprintf("Test part of the official division, %s that divide the rest into 7/8 to fit on and 1/8 to choose the regularisation on: ridge or logistic regression.", rundir.OverSeeds(x.recipe.Seeds))
	if s, _ := find(x.data.Datasets[0]); s.scaffolds {
		t.Caption = fmt.Sprintf("%d divisions by scaffold into 80 %% to fit on, 10 %% to choose the regularisation on and 10 %% to test on: mean ± standard error.", x.recipe.Seeds)
	}
	var rows []rundir.Row
	for _, name := range x.data.Datasets {
		s, _ := find(name) // they have been looked for
		direction := "↑"
		if s.lower() {
			direction = "↓"
		}
		cells := []table.Cell{table.Text(s.metric + " " + direction)}
		for _, m := range x.methods {
			r := rundir.Row{Experiment: "admet", Dataset: name, Method: m, Protocol: s.protocol(), Metric: s.metric, Backend: engine, Precision: "float32"}
			for _, o := range outcomes {
				if o.Set == name && o.Method == m {
					r.PerSeed = append(r.PerSeed, o.Value)
				}
			}
			r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
			spread, digits := r.Std, 3
			if s.scaffolds {
				spread /= math.Sqrt(float64(len(r.PerSeed)))
				digits = 2
			}
			rows, cells = append(rows, r), append(cells, table.MeanStd(r.Mean, spread, digits))
		}
		t.Add(name, cells...)
	}
	if err := x.dir.Report(stdout, rows, t); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "results and table: %s\n", x.dir.Path)
	return err
}

func (x *experiment) columns() (columns []table.Column) {
	for _, m := range x.methods {
		columns = append(columns, table.Column{Name: methodOf(m).title})
	}
	return columns
}
