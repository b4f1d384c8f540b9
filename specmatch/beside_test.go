package specmatch_test

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
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
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
	n := &specmatch.Numbers{Features: []string{"descriptors"}, Size: 3, Hidden: 5}
	m := specmatch.NewPredictorBeside(e, specmatch.Head{Kind: specmatch.Regression, Outputs: 2}, n, 0, rng)
	var graphs []*graph.Graph
	for _, v := range [][]float32{{0, 1, 7}, {2, -3, 7}, {1, 0, 7}, {1e9, 0, 7}} {
		graphs = append(graphs, &graph.Graph{Ptr: []int32{0, 1, 2}, Adj: []int32{1, 0}, EdgeLabel: []int32{0, 0},
			X: graph.Features{Width: 120 * 3, Category: []int32{0, 3}}, Vector: v})
	}
	m.Beside.Fit(graphs, []int{0, 1, 2})

	forward := func(t *autodiff.Tape) *autodiff.Var {
		return m.Beside.Forward(t.Matrix(4, 1, []float64{1, 2, 3, 4}), graphs, nn.Train)
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
			x := float64(g.Vector[k])
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
	var file bytes.Buffer
	if err := m.Write(&file); err != nil {
		t.Fatal(err)
	}
	back, err := specmatch.Read(&file, be)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := back.Predict(t.Context(), graphs); err != nil || !near32(y, want) {
		t.Errorf("predictions of the file %v, want %v (%v)", y, want, err)
	}
	graphs[2].Vector = nil
	const refused = "graph 2 has 0 numbers beside it, and the model wants the 3 of [\"descriptors\"]"
	if _, err := back.Predict(t.Context(), graphs); err == nil || !strings.Contains(err.Error(), refused) {
		t.Error(err)
	}
	if _, err := back.Embed(t.Context(), graphs); err != nil {
		t.Error(err)
	}
}

// near32 reports whether numbers are equal up to the precision of a file.
func near32(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= 1e-4*(1+math.Abs(y)) })
}
