package model_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/eval/forest"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor"
)

// TestMixShares: a mixture by equal shares of all tasks is that by the common one, to the bit, and with other shares
// each task is as if all had its share.
func TestMixShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, kind := range []model.Kind{model.Regression, model.Binary} {
		head := model.Head{Kind: kind, Outputs: 3}
		first := make([]float64, 30)
		second := make([]float64, 30)
		for i := range first {
			first[i] = 3 * rng.NormFloat64()
			second[i] = 3 * rng.NormFloat64()
		}
		shares := []float64{0, rng.Float64(), 1}
		mixed := head.Mix(shares, first, second)
		for task, share := range shares {
			common := head.Mix([]float64{share}, first, second)
			if !slices.Equal(head.Mix([]float64{share, share, share}, first, second), common) {
				t.Errorf("%s: equal shares of %v are not the common one", kind, share)
			}
			for i := task; i < len(mixed); i += 3 {
				if mixed[i] != common[i] {
					t.Errorf("%s, task %d: %v, with a common share %v", kind, task, mixed[i], common[i])
				}
			}
		}
	}
}

// TestTaskShares: shares of tasks are in the file of a model, count in predictions and explanations, and go with the
// fit that they are of. Those that do not suit the model are refused.
func TestTaskShares(t *testing.T) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 2}.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	numbers := &model.Numbers{Features: []string{"descriptors"}, Size: 2, Hidden: 5, Linear: true, Trees: 1}
	head := model.Head{Kind: model.Regression, Outputs: 2, Mean: []float64{0, 0}, Std: []float64{1, 1}}
	m := model.NewPredictorBeside(e, head, numbers, 0, rng)
	be.Upload(m.Beside.Linear.B.Value, []float64{10, 20})
	be.Fill(m.Beside.Linear.Share.Value, 0.5)
	tree := func(y float64) *forest.Forest {
		f, err := forest.Fit(t.Context(), []float32{1, 2, 3, 4}, 2, []float64{y, y}, 1, forest.Options{Trees: 1})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	m.Card.Forest = &model.Forest{Share: 0.5, Columns: [][2]int{{0, 2}}, Tasks: []*forest.Forest{tree(-8), tree(-4)}}
	graphs := []*graph.Graph{{
		Ptr:       []int32{0, 1, 2},
		Adj:       []int32{1, 0},
		EdgeLabel: []int32{0, 0},
		X:         graph.Features{Width: 120 * 3, Category: []int32{0, 3}},
		Globals:   []float32{1, -2},
	}}
	predict := func(m *model.Trained) []float64 {
		t.Helper()
		y, err := m.Predict(t.Context(), graphs)
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	common := predict(m)
	var text bytes.Buffer
	if err := m.Write(&text); err != nil || strings.Contains(text.String(), `"shares"`) {
		t.Errorf("a model without shares of tasks has them in its file, %v", err)
	}
	half := []float64{0.5, 0.5}
	m.Card.Shares = &model.TaskShares{Linear: half, Forest: half}
	if y := predict(m); !slices.Equal(y, common) {
		t.Errorf("%v by equal shares, %v by the common one", y, common)
	}
	m.Card.Shares = &model.TaskShares{Linear: []float64{1, 1}, Forest: []float64{0, 0.25}}
	want := []float64{10, 0.75*20 - 0.25*4}
	y := predict(m)
	for k := range want {
		if math.Abs(y[k]-want[k]) > 1e-5 {
			t.Errorf("task %d: %v, want %v", k, y[k], want[k])
		}
	}
	back := reread(t, m, be)
	if again := predict(back); !slices.Equal(again, y) || back.Card.Shares.Forest[1] != 0.25 {
		t.Errorf("predictions of the file %v, want %v", again, y)
	}
	why, err := back.Explain(t.Context(), graphs[0])
	if err != nil || math.Abs(why.Prediction[1]-want[1]) > 1e-5 {
		t.Errorf("%v, %v", why, err)
	}
	bare, err := back.WithReadout("last:mean")
	if err != nil || bare.Card.Shares != nil {
		t.Errorf("an encoder has the shares %v, %v", bare.Card.Shares, err)
	}
	for name, shares := range map[string]model.TaskShares{
		"one for two tasks": {Linear: []float64{1}},
		"above 1":           {Linear: []float64{1, 1.5}},
		"no number":         {Forest: []float64{math.NaN(), 0}},
	} {
		m.Card.Shares = &shares
		if err := m.Write(new(bytes.Buffer)); err == nil {
			t.Errorf("%s: saved", name)
		}
	}
	m.Card.Shares = &model.TaskShares{Forest: half}
	m.Card.Forest = nil
	if err := m.Write(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "lacks") {
		t.Errorf("shares of a forest that is not there: %v", err)
	}
}
