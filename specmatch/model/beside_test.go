package model_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor"
)

// TestBeside: the head sees ReLU(z·W + b) of the standardised logarithms, by its definition and by its
// gradient, a model file keeps all of it, and graphs without the numbers are refused.
func TestBeside(t *testing.T) {
	be := cpu.New(tensor.Float64)
	a := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 2}
	rng := rand.New(rand.NewPCG(1, 2))
	e, err := a.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	n := &model.Numbers{Features: []string{"descriptors"}, Size: 3, Hidden: 5}
	m := model.NewPredictorBeside(e, model.Head{Kind: model.Regression, Outputs: 2}, n, 0, rng)
	var graphs []*graph.Graph
	for _, v := range [][]float32{{0, 1, 7}, {2, -3, 7}, {1, 0, 7}, {1e9, 0, 7}} {
		graphs = append(graphs, &graph.Graph{Ptr: []int32{0, 1, 2}, Adj: []int32{1, 0}, EdgeLabel: []int32{0, 0},
			X: graph.Features{Width: 120 * 3, Category: []int32{0, 3}}, Globals: v})
	}
	m.Beside.Fit(graphs, []int{0, 1, 2}, nil)

	forward := func(t *autodiff.Tape) *autodiff.Var {
		y, _ := m.Beside.Forward(t.Matrix(4, 1, []float64{1, 2, 3, 4}), graphs, nn.Train)
		return y
	}
	tape := autodiff.NewTape(be)
	got := forward(tape)
	w, b := make([]float64, 15), make([]float64, 5)
	be.Download(w, m.Beside.Hidden.W.Value)
	be.Download(b, m.Beside.Hidden.B.Value)
	var z [4][3]float64
	for k := range 3 {
		var v [4]float64
		for i, g := range graphs {
			x := float64(g.Globals[k])
			v[i] = math.Copysign(math.Log1p(math.Abs(x)), x)
		}
		mean := (v[0] + v[1] + v[2]) / 3
		std := math.Sqrt(((v[0]-mean)*(v[0]-mean) + (v[1]-mean)*(v[1]-mean) + (v[2]-mean)*(v[2]-mean)) / 3)
		for i := range v {
			if std > 1e-9 {
				z[i][k] = max(-6, min(6, (v[i]-mean)/max(std, 1)))
			}
		}
	}
	if z[3][0] != 6 {
		t.Fatalf("z = %v, want one that is clipped", z)
	}
	for i, row := range slices.Collect(slices.Chunk(got.Data(), 6)) {
		for j, y := range row {
			want := float64(i + 1)
			if j > 0 {
				want = b[j-1]
				for k := range 3 {
					want += z[i][k] * w[k*5+j-1]
				}
				want = max(0, want)
			}
			if math.Abs(y-want) > 1e-12 {
				t.Errorf("row %d, column %d: %v, want %v", i, j, y, want)
			}
		}
	}
	if err := gradcheck.Params(be, forward, m.Beside.Hidden.Parameters(), gradcheck.Options{AllowZero: true}); err != nil {
		t.Error(err)
	}

	want, err := m.Predict(t.Context(), graphs)
	if err != nil {
		t.Fatal(err)
	}
	back := reread(t, m, be)
	if y, err := back.Predict(t.Context(), graphs); err != nil || !near32(y, want) {
		t.Errorf("predictions of the file %v, want %v (%v)", y, want, err)
	}
	graphs[2].Globals = nil
	const refused = "graph 2 has 0 global numbers, but the model needs the 3 of [\"descriptors\"]"
	if _, err := back.Predict(t.Context(), graphs); err == nil || !strings.Contains(err.Error(), refused) {
		t.Error(err)
	}
	if _, err := back.Embed(t.Context(), graphs); err != nil {
		t.Error(err)
	}
}

// TestMix: predictions are those of the network and of the linear model by their share, for each kind of head; a file
// keeps them to the bit, and with a share of 0 they are the network's.
func TestMix(t *testing.T) {
	be := cpu.New(tensor.Float32)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, kind := range []model.Kind{model.Classes, model.Binary, model.Regression} {
		head := model.Head{Kind: kind, Outputs: 3}
		if kind == model.Regression {
			head.Mean, head.Std = []float64{1, 2, 3}, []float64{4, 5, 6}
		}
		predictor := func(linear bool) *model.Trained {
			rng := rand.New(rand.NewPCG(1, 2))
			e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 2}.New(be, rng)
			if err != nil {
				t.Fatal(err)
			}
			n := &model.Numbers{Features: []string{"descriptors"}, Size: 2, Hidden: 5, Linear: linear}
			return model.NewPredictorBeside(e, head, n, 0, rng)
		}
		g := &graph.Graph{Ptr: []int32{0, 1, 2}, Adj: []int32{1, 0}, EdgeLabel: []int32{0, 0},
			X: graph.Features{Width: 120 * 3, Category: []int32{0, 3}}, Globals: []float32{2, -30}}
		predict := func(m *model.Trained) []float64 {
			y, err := m.Predict(t.Context(), []*graph.Graph{g})
			if err != nil {
				t.Fatal(err)
			}
			return y
		}
		network, m := predict(predictor(false)), predictor(true)
		if y := predict(m); !slices.Equal(y, network) {
			t.Errorf("%s: with a share of 0 %v, the network %v", kind, y, network)
		}
		l := m.Beside.Linear
		w, b, share := []float64{1, -2, 0.5, 0.25, 1.5, -1}, []float64{0.5, -0.25, 0}, 0.25
		be.Upload(l.W.Value, w)
		be.Upload(l.B.Value, b)
		be.Fill(l.Share.Value, share)
		linear, sum := make([]float64, 3), 0.0
		for k := range linear {
			linear[k] = b[k] + math.Log(3)*w[k] - math.Log(31)*w[3+k]
			if kind == model.Regression {
				linear[k] = head.Mean[k] + head.Std[k]*linear[k]
			} else {
				linear[k] = sigmoid(linear[k])
			}
			sum += linear[k]
		}
		mixed := predict(m)
		for k, y := range mixed {
			if kind == model.Classes {
				linear[k] /= sum
			}
			if want := (1-share)*network[k] + share*linear[k]; math.Abs(y-want) > 1e-5 {
				t.Errorf("%s: output %d: %v, want %v", kind, k, y, want)
			}
		}
		back := reread(t, m, be)
		if y := predict(back); !slices.Equal(y, mixed) {
			t.Errorf("%s: predictions of the file %v, want %v", kind, y, mixed)
		}
		why, err := m.Explain(t.Context(), g)
		if err != nil || len(why.Parts) != 6 || kind == model.Regression && slices.Max(why.Parts) == 0 {
			t.Errorf("%s: %v, %v", kind, why, err)
		}
	}
}

// TestExplainSilent: an explanation of a model whose network has no share computes no embeddings, here of an encoder that
// cannot give any.
func TestExplainSilent(t *testing.T) {
	be := cpu.New(tensor.Float32)
	e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 2}.New(be, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range e.Parameters() {
		p.Value = nil
	}
	head := model.Head{Kind: model.Regression, Outputs: 1, Mean: []float64{1}, Std: []float64{2}}
	n := &model.Numbers{Features: []string{"descriptors"}, Size: 1, Hidden: 5, Linear: true}
	m := model.NewPredictorBeside(e, head, n, 0, rand.New(rand.NewPCG(1, 2)))
	be.Upload(m.Beside.Linear.W.Value, []float64{1})
	be.Fill(m.Head.W.Value, 0)
	be.Fill(m.Head.B.Value, 0)
	be.Fill(m.Beside.Linear.Share.Value, 1)
	g := &graph.Graph{Ptr: []int32{0, 1, 2}, Adj: []int32{1, 0}, EdgeLabel: []int32{0, 0},
		X: graph.Features{Width: 120 * 3, Category: []int32{0, 3}}, Globals: []float32{2}}
	why, err := m.Explain(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 2*math.Log(3); !near32(why.Prediction, []float64{want}) {
		t.Errorf("the prediction is %v, want %v", why.Prediction, want)
	}
}

// near32 reports whether numbers are equal up to the precision of a file.
func near32(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= 1e-4*(1+math.Abs(y)) })
}

// reread returns what the file of a model says.
func reread(t *testing.T, m *model.Trained, be backend.Backend) *model.Trained {
	t.Helper()
	var file bytes.Buffer
	if err := m.Write(&file); err != nil {
		t.Fatal(err)
	}
	back, err := model.Read(&file, be)
	if err != nil {
		t.Fatal(err)
	}
	return back
}
