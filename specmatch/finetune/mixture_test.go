package finetune_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// fitBeside fits a model whose head sees v(i) of graph i, for two epochs, and returns it with its predictions for all.
func fitBeside(t *testing.T, head specmatch.Head, d finetune.Data, o finetune.Options, v func(i int) []float32) (m *specmatch.Trained, y []float64) {
	t.Helper()
	be := cpu.New(tensor.Float32)
	rng := rand.New(rand.NewPCG(1, 1))
	e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 2, Dropout: 0.5}.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range d.Graphs {
		g.Vector = v(i)
	}
	m = specmatch.NewPredictorBeside(e, head, &specmatch.Numbers{Features: []string{"v"}, Size: len(v(0)), Hidden: 4, Linear: true}, 0.5, rng)
	o.Batch, o.Rate, o.Seed, o.Patience = 40, 1e-4, 4, 2
	l, err := finetune.New(m, d, o)
	if err == nil {
		_, err = l.Fit(t.Context(), train.Options{Epochs: 2}, nil)
	}
	if err == nil {
		y, err = m.Predict(t.Context(), d.Graphs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, y
}

// TestMixture: where the numbers beside the graphs tell the answer, and the network has hardly learned, the linear
// model of them gets the most that it can, three quarters, and is right, with targets missing; the same again to the bit.
func TestMixture(t *testing.T) {
	for _, kind := range kinds {
		head, d := problem(kind)
		of := func(i int) []float32 {
			return []float32{float32(math.Expm1(4 * carbons(d.Graphs[i]))), 1, float32(i % 7)}
		}
		m, y := fitBeside(t, head, d, finetune.Options{}, of)
		var share [1]float64
		m.Head.W.Backend().Download(share[:], m.Beside.Linear.Share.Value)
		if math.Abs(share[0]-0.75) > 1e-6 {
			t.Errorf("%s: the share is %v, want 0.75", kind, share[0])
		}
		if _, again := fitBeside(t, head, d, finetune.Options{}, of); !slices.Equal(y, again) {
			t.Errorf("%s: another time there are other bits", kind)
		}
		m.Head.W.Backend().Fill(m.Beside.Linear.Share.Value, 1)
		y, err := m.Predict(t.Context(), d.Graphs)
		if err != nil {
			t.Fatal(err)
		}
		w := len(d.Y) / len(d.Graphs)
		for _, i := range d.Test {
			x := carbons(d.Graphs[i])
			p, want := y[2*i], 100+20*x
			switch {
			case kind == specmatch.Classes:
				p, want = math.Round(y[2*i+1]), d.Y[i]
			case kind == specmatch.Binary:
				p, want = math.Round(y[2*i]), d.Y[w*i]
			}
			if math.Abs(x-0.5) > 0.15 && (math.Abs(p-want) > 1.5 || p == 1-want) {
				t.Errorf("%s: graph %d: %v, want %v", kind, i, y[2*i:2*i+2], want)
			}
		}
	}
	// Without a validation part the network stays alone.
	head, d := problem(specmatch.Regression)
	be := cpu.New(tensor.Float32)
	rng := rand.New(rand.NewPCG(1, 1))
	e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 2}.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range d.Graphs {
		g.Vector = []float32{1}
	}
	m := specmatch.NewPredictorBeside(e, head, &specmatch.Numbers{Features: []string{"v"}, Size: 1, Hidden: 4, Linear: true}, 0, rng)
	d.Valid = nil
	l, err := finetune.New(m, d, finetune.Options{})
	if err == nil {
		_, err = l.Fit(t.Context(), train.Options{Epochs: 1}, nil)
	}
	share := []float64{-1}
	if be.Download(share, m.Beside.Linear.Share.Value); err != nil || share[0] != 0 {
		t.Errorf("a share of %v without validation, %v", share, err)
	}
}

// TestMixtureBalanced: of numbers that say nothing, the linear model's classes have equal probabilities if the loss is
// balanced, and those of the training part if it is not.
func TestMixtureBalanced(t *testing.T) {
	for _, kind := range []specmatch.Kind{specmatch.Classes, specmatch.Binary} {
		for _, balanced := range []bool{false, true} {
			head := specmatch.Head{Kind: kind, Outputs: 3}
			d := finetune.Data{Graphs: molecules(60)}
			for i := range d.Graphs {
				c := []float64{0, 0, 0, 1, 1, 2}[i%6]
				if d.Y = append(d.Y, c); kind == specmatch.Binary {
					d.Y = append(d.Y[:3*i], min(c, 1), max(c-1, 0), 1-min(c, 1))
				}
				if i < 48 {
					d.Train = append(d.Train, i)
				} else {
					d.Valid = append(d.Valid, i)
				}
			}
			m, _ := fitBeside(t, head, d, finetune.Options{Balanced: balanced}, func(int) []float32 { return []float32{1} })
			m.Head.W.Backend().Fill(m.Beside.Linear.Share.Value, 1)
			p, err := m.Predict(t.Context(), []*graph.Graph{d.Graphs[0]})
			if err != nil {
				t.Fatal(err)
			}
			want := map[specmatch.Kind][]float64{specmatch.Classes: {3. / 6, 2. / 6, 1. / 6}, specmatch.Binary: {3. / 6, 1. / 6, 3. / 6}}[kind]
			for k, y := range p {
				if balanced {
					want[k] = map[specmatch.Kind]float64{specmatch.Classes: 1. / 3, specmatch.Binary: 1. / 2}[kind]
				}
				if math.Abs(y-want[k]) > 1e-3 {
					t.Errorf("%s, balanced %v: %v, want %v", kind, balanced, p, want)
				}
			}
		}
	}
}
