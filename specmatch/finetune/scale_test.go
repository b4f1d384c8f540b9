package finetune_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor"
)

// column is a table of molecules with the target y.
func column(y func(i int) float64, n int) string {
	var b strings.Builder
	b.WriteString("smiles,y\n")
	for i := range n {
		fmt.Fprintf(&b, "C%s,%g\n", strings.Repeat("C", i), y(i))
	}
	return b.String()
}

// TestScaleOfTask: a target without a place on the scale is an error with its line, and only numbers have a
// scale.
func TestScaleOfTask(t *testing.T) {
	positive := column(func(i int) float64 { return float64(i) }, 30) // 0 in line 2
	task := finetune.Task{Targets: []string{"y"}, Scale: model.Scale{Log: true}}
	_, err := read(t, positive, task)
	if err == nil || !strings.Contains(err.Error(), `t.csv:2: column y: "0" is not positive, as -target-scale`) {
		t.Error(err)
	}
	task.Scale = model.Scale{High: 20}
	_, err = read(t, positive, task)
	want := `t.csv:23: column y: "21" is not between 0 and 20, as -target-scale asks (and 8 other targets like it)`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, kind := range []model.Kind{model.Binary, model.Classes} {
		task.Kind = kind
		binary := column(func(i int) float64 { return float64(i % 2) }, 30)
		if _, err := read(t, binary, task); !errors.Is(err, finetune.ErrScale) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestProposedScales: the summary names the scale that suits the targets, and no other.
func TestProposedScales(t *testing.T) {
	for _, c := range []struct {
		name string
		y    func(i int) float64
		want string
	}{
		{"decades", func(i int) float64 { return math.Pow(10, float64(i)/25) },
			"; y spans 4.0 decades, 1 to 9120: -log"},
		{"per cent", func(i int) float64 { return float64(i) }, "; y lies between 0 and 99: -range 0,100"},
		{"fractions", func(i int) float64 { return float64(i) / 100 }, "between 0 and 0.99: -range 0,1 "},
		{"logarithms", func(i int) float64 { return float64(i)/25 - 2 }, ""},
		{"negative", func(i int) float64 { return math.Pow(10, float64(i)/25) - 2 }, ""},
		{"decades without a tail", func(i int) float64 { return float64(3*i + 3) }, ""},
		{"no tail", func(i int) float64 { return float64(i + 60) }, ""},
	} {
		x, err := read(t, column(c.y, 100), finetune.Task{Targets: []string{"y"}, Kind: model.Regression})
		if err != nil {
			t.Fatal(err)
		}
		summary := x.Summary()
		if !strings.Contains(summary, c.want) || c.want == "" && strings.Contains(summary, ";") {
			t.Errorf("%s: %s", c.name, summary)
		}
	}
}

// TestScaleMetrics: the metrics of logarithms stand behind the others, and the baseline predicts the
// geometric mean.
func TestScaleMetrics(t *testing.T) {
	h := model.Head{
		Kind:    model.Regression,
		Outputs: 2,
		Scales:  []model.Scale{{Log: true}, {}},
	}
	scores := finetune.Score(h, []float64{1, 1, 10, 2, 1000, 3}, []float64{10, 1, 10, 2, 100, 4})
	if got := scores[0]["rmse_log10"]; math.Abs(got-math.Sqrt(2./3)) > 1e-12 {
		t.Errorf("the RMSE of log10 is %g", got)
	}
	if got := scores[0]["r2_log10"]; math.Abs(got-(1-2/(2./3))) > 1e-12 {
		t.Errorf("R² of log10 is %g", got)
	}
	if _, ok := scores[1]["rmse_log10"]; ok {
		t.Error("a target in its unit has metrics of logarithms")
	}
	d := finetune.Data{Y: []float64{1, 1, 100, 3}}
	if got := d.Baseline(h, []int{0, 1}); math.Abs(got[0]-10) > 1e-12 || got[1] != 2 {
		t.Errorf("the baseline is %v, want the means 10 and 2", got)
	}
}

// TestSplitColumn: a column of parts without a validation or a test set takes a ninth of the training set
// for it.
func TestSplitColumn(t *testing.T) {
	for _, c := range []struct {
		parts               []string
		train, valid, test  int
		sameTest, sameValid bool
	}{
		{[]string{"train", "train", "Test"}, 178, 22, 100, true, false},
		{[]string{"training", "training", "val"}, 178, 100, 22, false, true},
		{[]string{"train", "valid", "test"}, 100, 100, 100, true, true},
	} {
		lines := strings.Split(strings.TrimSpace(rings()), "\n")
		lines[0] += ",part"
		for i := range lines[1:] {
			lines[1+i] += "," + c.parts[i%3]
		}
		x, err := read(t, strings.Join(lines, "\n"), finetune.Task{Targets: []string{"z"}, Split: "part"})
		if err != nil {
			t.Fatal(err)
		}
		a, err := x.Divide(1)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := x.Divide(2)
		if len(a.Train) != c.train || len(a.Valid) != c.valid || len(a.Test) != c.test {
			t.Errorf("%q: %d, %d, %d", c.parts, len(a.Train), len(a.Valid), len(a.Test))
		}
		if (fmt.Sprint(a.Test) == fmt.Sprint(b.Test)) != c.sameTest ||
			(fmt.Sprint(a.Valid) == fmt.Sprint(b.Valid)) != c.sameValid {
			t.Errorf("%q: seeds 1 and 2 give %v and %v", c.parts, a, b)
		}
	}
	x, err := read(t, "smiles,y,part\nC,1,train\nCC,2,train\nCCC,3,train\n", finetune.Task{Targets: []string{"y"}, Split: "part"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Divide(0); err == nil || !strings.Contains(err.Error(), "want some in every part") {
		t.Error(err)
	}
}

// TestChooseScales: of two tasks over decades, the one whose logarithm is linear is learned by it, and the one that
// is linear itself is not; a task with a 0 has no choice.
func TestChooseScales(t *testing.T) {
	_, d := problem(model.Regression)
	h := model.Head{Kind: model.Regression, Outputs: 3}
	n := len(d.Graphs)
	d.Y = nil
	for i := range n {
		v := float64(i%25) / 25
		tail := math.Pow(v, 6)
		d.Graphs[i].Globals = []float32{float32(math.Expm1(v)), float32(math.Expm1(tail))}
		d.Y = append(d.Y, math.Exp(6*v), 1+1000*tail, tail)
	}
	newModel := func(h model.Head) (*model.Trained, error) {
		be := cpu.New(tensor.Float32)
		rng := rand.New(rand.NewPCG(1, 1))
		e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 2, Layers: 1}.New(be, rng)
		numbers := &model.Numbers{Features: []string{"v"}, Size: 2, Hidden: 4, Linear: true}
		return model.NewPredictorBeside(e, h, numbers, 0, rng), err
	}
	scales, choices, err := finetune.ChooseScales(t.Context(), h, newModel, d, d)
	if err != nil || len(scales) != 3 || len(choices) != 2 {
		t.Fatal(scales, choices, err)
	}
	if !scales[0].Log || scales[1].Log || scales[2].Log {
		t.Errorf("%v, by %v", scales, choices)
	}
	h.Scales = scales
	if again, _, err := finetune.ChooseScales(t.Context(), h, newModel, d); again != nil || err != nil {
		t.Error("a head with scales gets others")
	}
}
