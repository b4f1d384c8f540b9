package main

import (
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
)

// TestUndefinedFold: a fold without a positive label is not in the mean sensitivity, nor one without any label in that
// of the coverage, as metrics skip them.
func TestUndefinedFold(t *testing.T) {
	x := &tuning{examples: &finetune.Examples{
		Task: finetune.Task{Targets: []string{"active"}},
		Head: model.Head{Kind: model.Binary, Outputs: 1, Tasks: []string{"active"}},
	}}
	metric := finetune.Metrics(x.examples.Head)[0].Name
	results := []outcome{
		{
			Test:      []train.Metrics{{metric: 90}},
			Coverage:  []finetune.Coverage{{Percent: 88, Size: 1}},
			Cuts:      []finetune.Cut{{Probability: 0.25, Sensitivity: 60, Specificity: 90}},
			Confusion: [][][]float64{{{9, 1}, {4, 6}}},
		},
		{
			Test:      []train.Metrics{{}},
			Coverage:  []finetune.Coverage{{}},
			Cuts:      []finetune.Cut{{Probability: 0.25}},
			Confusion: [][][]float64{nil},
		},
	}
	for table, want := range map[*table.Table]string{
		x.cuts(results):     "active 0.250 ± 0.000 60.000 90.000 75.000",
		x.coverage(results): "active 88.000 1.000",
	} {
		var text strings.Builder
		if err := table.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if row := strings.Join(strings.Fields(lines[len(lines)-1]), " "); row != want {
			t.Errorf("the row is %q, want %q", row, want)
		}
	}
}
