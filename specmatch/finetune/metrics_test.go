package finetune

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
)

// span are the numbers below n.
func span(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// TestScore: metrics of 500 random predictions, with ties, constants and gaps, and of the
// baselines beside them, are scikit-learn's and SciPy's; those of a task are the same among others.
func TestScore(t *testing.T) {
	data, err := os.ReadFile("testdata/metrics.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		model.Head
		P, Train          []float64
		Y                 []*float64
		Metrics, Baseline map[string]any // nil where one is undefined
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 500 {
		t.Fatalf("%d cases", len(cases))
	}
	seen := map[string]bool{}
	for k, c := range cases {
		var y []float64
		for _, v := range c.Y {
			if y = append(y, math.NaN()); v != nil {
				y[len(y)-1] = *v
			}
		}
		var base []float64
		known := Data{Y: c.Train}
		row := known.Baseline(c.Head, span(len(c.Train)))
		for range y {
			base = append(base, row...)
		}
		got := Score(c.Head, c.P, y)
		for of, m := range map[string]struct {
			p    []float64
			got  train.Metrics
			want map[string]any
		}{"predictions": {c.P, got[0], c.Metrics}, "baseline": {base, Score(c.Head, base, y)[0], c.Baseline}} {
			for name, want := range m.want {
				switch want := want.(type) {
				case float64:
					if v := m.got.Get(name); !(math.Abs(v-want) <= 1e-12*max(1, math.Abs(want))) {
						t.Errorf("case %d, %s of %s of %d targets, %s: %v, want %v", k, of, c.Kind, len(y), name, v, want)
					}
					seen[string(c.Kind)+name] = true
				case nil:
					if v, ok := m.got[name]; ok {
						t.Errorf("case %d, %s of %s, %s: %v, want it undefined", k, of, c.Kind, name, v)
					}
				default:
					if v := Confusion(c.Head, m.p, y)[0]; fmt.Sprint(v) != fmt.Sprint(want) {
						t.Errorf("case %d, %s of %s: confusion %v, want %v", k, of, c.Kind, v, want)
					}
				}
			}
		}
		if c.Kind == model.Classes {
			continue
		}
		var p, both []float64
		for i, v := range y {
			p, both = append(p, c.P[i], 0.5), append(both, v, math.NaN())
		}
		two := Score(model.Head{Kind: c.Kind, Outputs: 2}, append(p, 0.1, 0.7), append(both, math.NaN(), 1))
		for name, v := range got[0] {
			if two[0][name] != v {
				t.Errorf("%s beside another task: %v, want %v", name, two[0][name], v)
			}
		}
	}
	for _, kind := range []model.Kind{model.Classes, model.Binary, model.Regression} {
		for _, m := range Metrics(model.Head{Kind: kind, Outputs: 3}) {
			if !seen[string(kind)+m.Name] {
				t.Errorf("no golden value of %s for %s", m.Name, kind)
			}
		}
	}
	// What is undefined is left out, so that no report has an infinite number.
	one := model.Head{Kind: model.Regression, Outputs: 1}
	if m := Score(one, []float64{1, 2, 3}, []float64{3.7, 3.7, 3.7})[0]; len(m) != 2 {
		t.Errorf("of a constant: %v", m)
	}
	one.Kind = model.Binary
	if m := Score(one, []float64{0.1, 0.2}, []float64{0, 0})[0]; !math.IsNaN(m.Get("roc_auc")) || !math.IsNaN(m.Get("average_precision")) {
		t.Errorf("of negatives only: %v", m)
	}
}

// TestSettle: scores that differ in the last bits of a float32 are one, so that those of
// ten alike have an area of one half whatever the noise; those that differ by more stay.
func TestSettle(t *testing.T) {
	h := model.Head{Kind: model.Binary, Outputs: 1}
	y := []float64{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}
	for _, base := range []float64{0.5, 0.3, 1e-4, 0.9999} {
		var p []float64
		for i := range y {
			v := float32(base)
			for range i * 7 % 3 {
				v = math.Nextafter32(v, 2)
			}
			p = append(p, float64(v))
		}
		if slices.Equal(p[1:], p[:len(p)-1]) {
			t.Fatal("no noise")
		}
		Settle(h, p)
		if auc := Score(h, p, y)[0]["roc_auc"]; auc != 50 {
			t.Errorf("ROC-AUC %v of noise about %v, want 50", auc, base)
		}
	}
	p := []float64{0.1, 0.9, 0.1001, 0.90001}
	Settle(h, p)
	if auc := Score(h, p, []float64{0, 0, 1, 1})[0]["roc_auc"]; auc != 75 {
		t.Errorf("ROC-AUC %v of scores that differ, want 75: %v", auc, p)
	}
}

// TestTwoClasses: two classes have the ROC-AUC of the probability of one of them; three have none.
func TestTwoClasses(t *testing.T) {
	p := []float64{0.9, 0.4, 0.35, 0.8}
	y := []float64{1, 0, 0, 0}
	var rows []float64
	for _, v := range p {
		rows = append(rows, 1-v, v)
	}
	h := model.Head{Kind: model.Classes, Outputs: 2, ClassValues: []string{"Active", "Inactive"}}
	if got := Score(h, rows, y)[0]["roc_auc"]; got != 100 {
		t.Errorf("ROC-AUC %v, want 100", got)
	}
	h.Outputs = 3
	for _, m := range Metrics(h) {
		if m.Name == "roc_auc" {
			t.Error("three classes have a ROC-AUC")
		}
	}
}

// TestNaN: a prediction that is NaN has no rank, and ends no program.
func TestNaN(t *testing.T) {
	h := model.Head{Kind: model.Regression, Outputs: 1, Std: []float64{1}}
	p := []float64{1, math.NaN(), 2, math.NaN()}
	Settle(h, p)
	if m := Score(h, p, []float64{1, 2, 3, 4})[0]; len(m) != 0 {
		t.Errorf("metrics of NaN: %v", m)
	}
	if got := ranks([]float64{3, 1, 3, 2, math.NaN()}); !slices.Equal(got[:4], []float64{3.5, 1, 3.5, 2}) {
		t.Errorf("ranks %v", got)
	}
}

// TestSumConfusion: matrices are added up by task, and those of a task without targets are skipped.
func TestSumConfusion(t *testing.T) {
	a := [][][]float64{{{1, 2}, {3, 4}}, nil}
	b := [][][]float64{{{10, 20}, {30, 40}}, {{1, 0}, {0, 1}}}
	got := SumConfusion([][][][]float64{a, b})
	if fmt.Sprint(got) != "[[[11 22] [33 44]] [[1 0] [0 1]]]" || fmt.Sprint(a[0]) != "[[1 2] [3 4]]" {
		t.Errorf("%v, of %v", got, a)
	}
}

// TestShift: in a balanced fit, the log-odds of a class against n-1 others are corrected for n-1 times as many targets.
func TestShift(t *testing.T) {
	l := &Learner{
		m:         &model.Trained{Card: model.Card{Head: &model.Head{Kind: model.Classes, Outputs: 3}}},
		weighting: weighting{weights: [][]float64{{1, 1, 1}}},
	}
	for _, c := range []struct{ classes, want []float64 }{
		{[]float64{0, 1, 2}, []float64{0, 0, 0}},
		{[]float64{0, 0, 1, 2}, []float64{math.Log(0.5), math.Log(1.5), math.Log(1.5)}},
	} {
		var y []float64
		for _, class := range c.classes {
			row := make([]float64, 3)
			row[int(class)] = 1
			y = append(y, row...)
		}
		for k, got := range l.shift(y, nil) {
			if math.Abs(got-c.want[k]) > 1e-12 {
				t.Errorf("%v: class %d: %v, want %v", c.classes, k, got, c.want[k])
			}
		}
	}
	l.m.Card.Head = &model.Head{Kind: model.Binary, Outputs: 1}
	if got := l.shift([]float64{1, 0, 0, 0, math.NaN()}, nil)[0]; math.Abs(got-math.Log(3)) > 1e-12 {
		t.Errorf("a binary task: %v, want ln 3", got)
	}
}
