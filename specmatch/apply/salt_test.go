package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// TestExplainSalts: values are those of the atoms of the given SMILES, whatever fragments the model drops. Atoms of
// those have 0.
func TestExplainSalts(t *testing.T) {
	const salts = "id,smiles,y\na,[Na+].CC(C)C(=O)[O-],1.5\nb,CC(=O)O.[Na+].CCN,2\nc,[H+].CCC(=O)[O-],3\nd,[H]OCC,4\n" +
		"e,CC(C)C(=O)O,5\n"
	o := records.Options{ID: "id", Input: strings.NewReader(salts)}
	o.Standard = feature.Standardisation{LargestFragment: true, Neutralise: true}
	x, err := finetune.Read(t.Context(), "m.csv", finetune.Task{Targets: []string{"y"}}, o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := x.NewModel(cpu.New(tensor.Float32), gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 2}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	split := dataset.Split{Train: []int{0, 1, 2}, Valid: []int{3}, Test: []int{4}}
	l, err := finetune.New(m, x.Data(split), finetune.Options{Batch: 3, Rate: 0.01, Patience: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Fit(t.Context(), train.Options{Epochs: 2}, nil); err != nil {
		t.Fatal(err)
	}
	predictor, err := apply.Predictor(m)
	if err != nil {
		t.Fatal(err)
	}
	explainer, err := apply.NewExplainer(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, byFragments := range []bool{false, true} {
		explainer.ByFragments = byFragments
		o.Input = strings.NewReader(salts)
		job := apply.Job{Path: "m.csv", Records: o, Model: predictor}
		explanations := map[string]*apply.Explanation{}
		drawn := map[string][]float64{}
		err := job.EachExplanation(t.Context(), func(r *records.Record, e *apply.Explanation) error {
			explanations[e.ID] = e
			drawn[e.ID] = e.Drawn(r, "y")
			return nil
		}, explainer)
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]string{"a": ".111111", "b": ".....111", "c": ".11111", "d": "111", "e": "111111"} {
			marks := ""
			for _, v := range explanations[id].Nodes["y"] {
				if v == 0 {
					marks += "."
				} else {
					marks += "1"
				}
			}
			if marks != want {
				t.Errorf("%s: values at %s, want %s", explanations[id].SMILES, marks, want)
			}
			if len(drawn[id]) != strings.Count(want, "1") {
				t.Errorf("%s: %d values are drawn", id, len(drawn[id]))
			}
		}
		if salt := explanations["a"].Nodes["y"][1:]; !slices.Equal(salt, explanations["e"].Nodes["y"]) {
			t.Errorf("a salt has %v, and its acid %v", salt, explanations["e"].Nodes["y"])
		}
		if byFragments {
			if f := explanations["b"].Fragments; !slices.Equal(f[0].Atoms, []int{5, 6, 7}) || f[0].SMILES != "CCN" {
				t.Errorf("%+v", f)
			}
		}
	}
}
