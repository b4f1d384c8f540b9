package finetune_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
)

// TestChooseFeatures: of sets of features, the one is kept by which forests err less, and the others' numbers are
// dropped.
func TestChooseFeatures(t *testing.T) {
	sets := [][]string{{"bits:0:2"}, {"crippen"}} // logP tells chains apart
	features, err := apply.ParseFeatures(finetune.EveryFeature(sets))
	if err != nil {
		t.Fatal(err)
	}
	task := finetune.Task{Targets: []string{"y"}}
	options := records.Options{Input: strings.NewReader(column(func(i int) float64 { return float64(i) }, 60))}
	task.Beside, options.Vector, err = apply.Numbers(features)
	if err != nil {
		t.Fatal(err)
	}
	x, err := finetune.Read(t.Context(), "t.csv", task, options)
	if err != nil {
		t.Fatal(err)
	}
	var s dataset.Split
	for i := range 60 {
		if i%3 == 0 {
			s.Valid = append(s.Valid, i)
		} else {
			s.Train = append(s.Train, i)
		}
	}
	whole := x.Set.Graphs[5].Globals
	line, err := x.ChooseFeatures(t.Context(), sets, s)
	if err != nil {
		t.Fatal(err)
	}
	if want := "features crippen: on the validation sets, forests err by "; !strings.HasPrefix(line, want) {
		t.Errorf("%q, want %q", line, want)
	}
	kept := x.Set.Graphs[5].Globals
	if !slices.Equal(kept, whole[2:]) || x.Beside.Size != 2 || !slices.Equal(x.Beside.Features, sets[1]) {
		t.Errorf("kept %v of %v, size %d of %q", kept, whole, x.Beside.Size, x.Beside.Features)
	}
	if _, err := x.ChooseFeatures(t.Context(), [][]string{{"bits"}}, s); err == nil {
		t.Error("a feature that the records lack")
	}
}
