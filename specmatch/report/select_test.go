package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/specmatch/run"
)

// Two settings of two folds: by their validation parts the first is chosen in the
// first fold of seed 0, and the second everywhere else.
func TestChoose(t *testing.T) {
	results := [2][2]string{
		{`{"Accuracy":60,"Folds":[50,70],"Inner":[90,10]}`, `{"Accuracy":80,"Folds":[80,80],"Inner":[30,30]}`},
		{`{"Accuracy":50,"Folds":[60,40],"Inner":[20,20]}`, `{"Accuracy":70,"Folds":[60,80],"Inner":[40,40]}`},
	}
	var runs []*run.Run
	for i, beta := range []string{"0.5", "1"} {
		r := &run.Run{Path: beta, Seeds: []int{0, 1}, Flags: map[string]json.RawMessage{"beta": json.RawMessage(beta)}}
		for _, m := range []string{"specmatch", "infonce"} {
			row := run.Row{Dataset: "MUTAG", Method: m, Protocol: "linear", Metric: "accuracy", Seeds: r.Seeds}
			for seed, text := range results[i] {
				if m == "infonce" { // which β does not touch
					text = results[0][seed]
				}
				r.Units = append(r.Units, run.Record{Name: fmt.Sprintf("MUTAG/%s/seed=%d/linear", m, seed), Result: json.RawMessage(text)})
				var accuracy float64
				fmt.Sscanf(text, `{"Accuracy":%g`, &accuracy)
				row.PerSeed = append(row.PerSeed, accuracy)
				row.Mean += accuracy / 2
			}
			r.Rows = append(r.Rows, row)
		}
		runs = append(runs, r)
	}
	for _, oracle := range []bool{false, true} {
		c := collate(runs, oracle)
		got := map[string][]float64{}
		for _, r := range c.panels[0].distinct() {
			got[r.label] = r.PerSeed
		}
		want := map[string][]float64{
			"InfoNCE (β = 0)": {60, 80}, "SpecMatch-CL, beta=0.5": {60, 80}, "SpecMatch-CL, beta=1": {50, 70},
			"SpecMatch-CL, chosen per fold": {(50 + 40) / 2, (60 + 80) / 2},
		}
		if oracle {
			want["SpecMatch-CL, oracle: best of 2 on the test folds"] = []float64{60, 80}
		}
		for label, values := range want {
			if !slices.Equal(got[label], values) {
				t.Errorf("%s: %v, want %v", label, got[label], values)
			}
		}
		if len(got) != len(want) {
			t.Errorf("rows %v, want %v", got, want)
		}
	}
	// The best loss is the smallest that is defined; of a metric that is neither good nor bad, there is no best one.
	cells := []result{{Row: run.Row{Mean: math.NaN()}}, {Row: run.Row{Mean: 3}}, {Row: run.Row{Mean: 2}}, {Row: run.Row{Mean: 4}}}
	for metric, want := range map[string]float64{"accuracy": 4, "rmse": 2, "rank": 0} {
		if best, ok := (&panel{metric: metric}).bestOf(cells); best.Mean != want || ok != (want > 0) {
			t.Errorf("%s: the best is %v, %v; want %v", metric, best.Mean, ok, want)
		}
	}
	if _, ok := (&panel{metric: "rmse"}).bestOf(cells[:1]); ok {
		t.Error("a mean that is not defined is the best")
	}
	// Without folds there is nothing to choose by.
	runs[1].Units[0].Result = json.RawMessage(`{"Accuracy":50}`)
	if got := collate(runs, false).panels[0].distinct(); len(got) != 3 {
		t.Errorf("%d rows without folds, want 3", len(got))
	}
}
