package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// Row is one row of results.json: one method on one data set under one protocol. Accuracies and AUCs
// are percentages.
type Row rowOf[float64]

// rowOf is a row of float64 for programs, or of [Float] for JSON. Scripts rely on the names in JSON.
type rowOf[F float64 | Float] struct {
	Experiment string `json:"experiment"`
	Dataset    string `json:"dataset"`
	Method     string `json:"method"`
	Protocol   string `json:"protocol"`
	Metric     string `json:"metric"`
	Mean       F      `json:"mean"` // over seeds
	Std        F      `json:"std"`  // over seeds, with n-1; of one seed it is NaN
	PerSeed    []F    `json:"per_seed"`
	Seeds      []int  `json:"seeds,omitempty"` // of PerSeed, or numbers of folds; nil in results of earlier versions
	// Twins is the share of test graphs that have a twin in the training part, in %, and WithoutTwins the
	// value of the others, for each value of PerSeed; nil where no test graph has one.
	Twins           []F        `json:"twins,omitempty"`
	WithoutTwins    []F        `json:"without_twins,omitempty"`
	Beta            train.Beta `json:"beta"` // a number, or a string such as "auto:0.2"
	Percentile      F          `json:"p"`
	Epochs          int        `json:"epochs"`
	Backend         string     `json:"backend"`
	Precision       string     `json:"precision"`
	Seconds         F          `json:"seconds"`
	GraphsPerSecond F          `json:"graphs_per_second"`
	// commits that computed the row; "" if unknown
	Code string `json:"code,omitempty"`
}

func convert[G, F float64 | Float](r rowOf[F]) rowOf[G] {
	return rowOf[G]{
		Experiment:      r.Experiment,
		Dataset:         r.Dataset,
		Method:          r.Method,
		Protocol:        r.Protocol,
		Metric:          r.Metric,
		Mean:            G(r.Mean),
		Std:             G(r.Std),
		PerSeed:         append([]G{}, convertAll[G](r.PerSeed)...),
		Seeds:           r.Seeds,
		Twins:           convertAll[G](r.Twins),
		WithoutTwins:    convertAll[G](r.WithoutTwins),
		Beta:            r.Beta,
		Percentile:      G(r.Percentile),
		Epochs:          r.Epochs,
		Backend:         r.Backend,
		Precision:       r.Precision,
		Seconds:         G(r.Seconds),
		GraphsPerSecond: G(r.GraphsPerSecond),
		Code:            r.Code,
	}
}

func convertAll[G, F float64 | Float](values []F) (converted []G) {
	for _, x := range values {
		converted = append(converted, G(x))
	}
	return converted
}

func (r Row) MarshalJSON() ([]byte, error) {
	return json.Marshal(convert[Float](rowOf[float64](r)))
}

func (r *Row) UnmarshalJSON(data []byte) error {
	var j rowOf[Float]
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*r = Row(convert[float64](j))
	if r.Seeds != nil && len(r.Seeds) != len(r.PerSeed) {
		return fmt.Errorf("%s on %s: %d values of %d seeds",
			r.Method, r.Dataset, len(r.PerSeed), len(r.Seeds))
	}
	return nil
}

// Paired returns the values of a and b for their common seeds, in a's order. It skips seeds with a NaN.
func Paired(a, b Row) (x, y []float64) {
	for i, seed := range a.Seeds {
		k := slices.Index(b.Seeds, seed)
		if k >= 0 && !math.IsNaN(a.PerSeed[i]) && !math.IsNaN(b.PerSeed[k]) {
			x = append(x, a.PerSeed[i])
			y = append(y, b.PerSeed[k])
		}
	}
	return x, y
}

// Report writes the rows to results.json, and the tables to tables.md and stdout. It skips nil tables.
func (d *Dir) Report(stdout io.Writer, rows []Row, tables ...*table.Table) error {
	if err := d.WriteResults(rows); err != nil {
		return err
	}
	return d.writeTables(stdout, slices.DeleteFunc(tables, func(t *table.Table) bool {
		return t == nil
	}))
}

// WriteResults writes results.json with one row per line, replacing an earlier one. A row with a value
// for each seed of the run gets the seeds. Every row gets the commits of the run's builds, if the go
// command recorded them, as go build does.
func (d *Dir) WriteResults(rows []Row) error {
	return files.Write(d.Join("results.json"), func(w io.Writer) error {
		text := []byte("[")
		for i, r := range rows {
			if i > 0 {
				text = append(text, ',')
			}
			if len(r.PerSeed) == len(d.config.Seeds) {
				r.Seeds = d.config.Seeds
			}
			r.Code = cmp.Or(r.Code, d.config.code())
			data, err := json.Marshal(r)
			if err != nil {
				return err
			}
			text = append(append(text, "\n  "...), data...)
		}
		_, err := w.Write(append(text, "\n]\n"...))
		return err
	})
}

func (d *Dir) writeTables(stdout io.Writer, tables []*table.Table) error {
	err := files.Write(d.Join("tables.md"), func(w io.Writer) error {
		for _, t := range tables {
			if err := t.WriteMarkdown(w); err != nil {
				return err
			}
			fmt.Fprintln(w)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range tables {
		if err := t.WriteText(stdout); err != nil {
			return err
		}
		fmt.Fprintln(stdout)
	}
	return nil
}

// OverSeeds returns the words of a caption for figures over n seeds.
func OverSeeds(n int) string {
	if n == 1 {
		return "one seed"
	}
	return fmt.Sprintf("mean ± standard deviation (n-1) over %d seeds", n)
}
