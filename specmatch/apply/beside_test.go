package apply_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// TestBeside: a model whose head sees fingerprints and descriptors predicts the same from its file,
// which computes them itself, and its weights alone decide what features are.
func TestBeside(t *testing.T) {
	text, _ := nitriles(120)
	features, err := apply.ParseFeatures([]string{"descriptors", "morgan:1:64"})
	if err != nil {
		t.Fatal(err)
	}
	task, o := finetune.Task{Targets: []string{"y"}}, records.Options{ID: "name", Input: strings.NewReader(text)}
	if task.Beside, o.Vector, err = apply.Numbers(features); err != nil {
		t.Fatal(err)
	}
	task.Beside.Hidden = 8
	x, err := finetune.Read(t.Context(), "m.csv", task, o)
	if err != nil {
		t.Fatal(err)
	}
	split, err := x.Divide(0)
	if err != nil {
		t.Fatal(err)
	}
	be := cpu.New(tensor.Float32)
	m, err := x.NewModel(be, gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 2, Dropout: 0.1}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := finetune.New(m, x.Data(split), finetune.Options{Batch: 16, Patience: 10})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := l.Fit(t.Context(), train.Options{Epochs: 20}, nil); err != nil || r.Kept()["test_roc_auc"] < 90 {
		t.Fatal(r.Kept(), err)
	}
	all := span(len(x.Records))
	if err := x.Calibrate(t.Context(), m, split); err != nil {
		t.Fatal(err)
	}
	p, err := x.Predict(t.Context(), m, all)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := m.Save(path); err != nil {
		t.Fatal(err)
	}
	back, err := model.Open(path, be)
	if err != nil {
		t.Fatal(err)
	}
	for name, model := range map[string]func() (apply.Model, error){
		"one":  func() (apply.Model, error) { return apply.Predictor(back) },
		"two":  func() (apply.Model, error) { return apply.Predictor(back, back) },
		"sure": func() (apply.Model, error) { return apply.Sure(0.8, true, back) },
	} {
		predictor, err := model()
		if err != nil {
			t.Fatal(name, err)
		}
		k := 0
		job := apply.Job{Path: "m.csv", Records: records.Options{ID: "name", Input: strings.NewReader(text)}, Model: predictor}
		if err := job.Stream(t.Context(), func(b apply.Batch) error {
			for _, row := range b.Rows() {
				if _, want, _ := p.Row(k); math.Abs(row[0]-want[0]) > 1e-6 {
					t.Errorf("%s: record %d: %v, want %v", name, k, row, want)
				}
				k++
			}
			return nil
		}); err != nil || k != len(all) {
			t.Error(name, k, err)
		}
	}
	other := back.Card
	beside := *other.Beside
	beside.Features = []string{"descriptors", "bits:1:64"}
	if other.Beside = &beside; apply.Alike(back.Card, other) {
		t.Error("models with other features are alike")
	}
	beside.Features = []string{"descriptors", "bits:1:63"}
	if _, err := apply.Reads(other); err == nil || !strings.Contains(err.Error(), "are 115 numbers, and the model has seen 116") {
		t.Error(err)
	}
	if s := apply.Describe(back.Card); !strings.Contains(s, "vector and descriptors, morgan:1:64") {
		t.Error(s)
	}
}

// TestPretrainedFeature: the feature pretrained is the vector of the built-in encoder, to the bit. A program has several
// encoders, of which a model sees one; a model that has seen the vectors of one that is not there is refused.
func TestPretrainedFeature(t *testing.T) {
	m, err := pretrained.Open(cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	f, err := apply.ParseFeature("pretrained")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := apply.ParseFeature(f.String()); again != f || err != nil {
		t.Error(again, err)
	}
	if _, err := apply.ParseFeature("pretrained:01234567"); err == nil || !strings.Contains(err.Error(), "it has minimol (7a80951c), zinc (") {
		t.Error(err)
	}
	other, err := apply.ParseFeature("pretrained:zinc")
	if err != nil || other == f {
		t.Fatal(other, err)
	}
	if _, err := apply.Features(m, f, other); err == nil || !strings.Contains(err.Error(), "is there twice") {
		t.Error(err)
	}
	model, err := apply.Features(m, apply.Encoder, f)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := nitriles(12)
	job := apply.Job{Path: "m.csv", Records: records.Options{ID: "name", Input: strings.NewReader(text)}, Model: model}
	if err := job.Stream(t.Context(), func(b apply.Batch) error {
		for _, row := range b.Rows() {
			if n := m.Width(); len(row) != 2*n || !slices.Equal(row[:n], row[n:]) {
				t.Errorf("%v, want twice the same", row)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if c := model.Columns; c[0] != "l1_sum_0" || c[m.Width()] != "pretrained_l1_sum_0" {
		t.Error(c[0], c[m.Width()])
	}
}
