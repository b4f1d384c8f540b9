package report

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/run"
)

// fitted returns a fine-tuning of a data set, whose results are one more for a learning rate of 0.1.
func fitted(path, set, target, rate string) *run.Run {
	r := &run.Run{
		Path:       path,
		Experiment: finetuning,
		Flags: map[string]json.RawMessage{
			"target": json.RawMessage(`["` + target + `"]`),
			"in":     json.RawMessage(`"` + set + `.csv"`),
			"lr":     json.RawMessage(rate),
		},
	}
	for _, metric := range []string{"rmse", "spearman"} {
		values := []float64{1, math.NaN()}
		if rate == "0.1" && metric == "rmse" {
			values[0]++
		}
		r.Rows = append(r.Rows, run.Row{
			Experiment: finetuning,
			Dataset:    set,
			Method:     "regression",
			Metric:     metric,
			PerSeed:    values,
		})
	}
	return r
}

// TestJoint: rows of a joint page are labelled by what differs between the runs on the same targets, in every
// table, and the page names the runs.
func TestJoint(t *testing.T) {
	runs := []*run.Run{
		fitted("runs/first", "a", "logS", "0.01"),
		fitted("runs/second", "a", "logS", "0.1"),
		fitted("runs/third", "b", "logP", "0.01"),
	}
	c := collate(runs, false)
	if !slices.Equal(c.swept, []string{"lr"}) {
		t.Errorf("the runs differ in %v, want lr alone", c.swept)
	}
	for _, p := range c.panels {
		var labels []string
		for _, r := range p.results {
			labels = append(labels, r.label)
		}
		want := "regression, lr=0.01; regression, lr=0.1"
		if p.dataset == "logP of b" {
			want = "regression, lr=0.01"
		}
		if got := strings.Join(labels, "; "); got != want {
			t.Errorf("%s of %s: rows %s, want %s", p.metric, p.dataset, got, want)
		}
	}
	if got := title(runs); got != "logS of a; logP of b: 3 runs" {
		t.Errorf("title %q", got)
	}
	page, err := New(runs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := page.WriteMarkdown(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| runs/first | logS of a | lr=0.01 |",
		"| runs/third | logP of b | lr=0.01 |",
		"| setting | first: lr=0.01 |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	// The same target in files of the same name: only the flag tells them apart.
	runs[2] = fitted("runs/third", "a", "logS", "0.01")
	runs[2].Flags["in"] = json.RawMessage(`"other/a.csv"`)
	if c := collate(runs, false); !slices.Equal(c.swept, []string{"in", "lr"}) {
		t.Errorf("the runs differ in %v, want in and lr", c.swept)
	}
}
