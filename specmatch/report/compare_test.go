package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/run"
)

// R: t.test(c(2, 4, 6, 8, 10), c(1, 2, 3, 4, 5), paired = TRUE).
func TestMinus(t *testing.T) {
	a := result{Row: run.Row{PerSeed: []float64{2, 4, 6, 8, 10, 99, math.NaN()}, Seeds: []int{0, 1, 2, 3, 4, 5, 6}}}
	b := result{Row: run.Row{PerSeed: []float64{7, 5, 4, 3, 2, 1}, Seeds: []int{6, 4, 3, 2, 1, 0}}}
	d := minus(a, b)
	for _, x := range []struct {
		name      string
		got, want float64
	}{
		{"n", float64(d.N), 5}, {"mean", d.Mean, 3}, {"standard error", d.Err, 0.7071067811865476},
		{"p", d.P, 0.01323559904}, {"half of the interval", half(d), 1.963243161},
	} {
		if math.Abs(x.got-x.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", x.name, x.got, x.want)
		}
	}
	if d := minus(a, result{}); d.N != 0 || !math.IsNaN(half(d)) {
		t.Errorf("no seed in common: %+v", d)
	}
}

// TestOtherData: results on other records are not paired, whatever their names and seeds.
func TestOtherData(t *testing.T) {
	made := func(set string, inputs map[string]string) *run.Run {
		row := run.Row{Dataset: set, Method: "none", Metric: "rmse", PerSeed: []float64{1, 2, 4}, Seeds: []int{0, 1, 2}}
		return &run.Run{Path: "a", Experiment: finetuning, Inputs: inputs, Rows: []run.Row{row}}
	}
	type sums map[string]string
	for _, tt := range []struct {
		set           string
		first, second sums
		want          int
	}{
		{"a", nil, sums{"in": "1"}, 3},
		{"a", sums{"in": "1", "model": "1"}, sums{"in": "1", "model": "2"}, 3},
		{"a", sums{"in": "1"}, sums{"in": "2"}, 0},
		{"a", sums{"in": "1", "test": "1"}, sums{"in": "1", "test": "2"}, 0},
		{"a", sums{"in": "1", "test": "1"}, sums{"in": "2", "test": "1"}, 3},
		{"NCI1", sums{"NCI1_A.txt": "1"}, sums{"NCI1_A.txt": "2"}, 0},
		{"NCI1", sums{"NCI109_A.txt": "1"}, sums{"NCI109_A.txt": "2"}, 3},
		{"bace", sums{"bace.csv": "1"}, sums{"bace.csv": "2"}, 0},
	} {
		first := made(tt.set, tt.first)
		second := made(tt.set, tt.second)
		second.Rows[0].PerSeed = []float64{2, 3, 6}
		second.Flags = map[string]json.RawMessage{"lr": json.RawMessage("1")}
		var b strings.Builder
		if err := Compare(first, second).WriteMarkdown(&b); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(" | %d | ", tt.want); !strings.Contains(b.String(), want) {
			t.Errorf("%v and %v: no n of %d in\n%s", tt.first, tt.second, tt.want, b.String())
		}
		blocks, err := collate([]*run.Run{first, second}, false).differences("")
		if err != nil || (len(blocks) > 0) != (tt.want > 0) {
			t.Errorf("%v and %v: %d blocks of differences, %v", tt.first, tt.second, len(blocks), err)
		}
	}
}
