package finetune_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// besides returns a model whose head sees v(i) of graph i, and a learner of it.
func besides(t *testing.T, head model.Head, d finetune.Data, o finetune.Options, v func(i int) []float32) (*model.Trained, *finetune.Learner) {
	t.Helper()
	be := cpu.New(tensor.Float32)
	rng := rand.New(rand.NewPCG(1, 1))
	e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 2, Dropout: 0.5}.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range d.Graphs {
		g.Globals = v(i)
	}
	m := model.NewPredictorBeside(e, head, &model.Numbers{Features: []string{"v"}, Size: len(v(0)), Hidden: 4, Linear: true}, 0.5, rng)
	o.Batch, o.Rate, o.Seed = 40, cmp.Or(o.Rate, 1e-4), 4
	l, err := finetune.New(m, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return m, l
}

// predict predicts for all graphs, with another share of the linear model unless it is negative, and returns the
// common share that there was.
func predict(t *testing.T, m *model.Trained, graphs []*graph.Graph, share float64) (y []float64, was float64) {
	t.Helper()
	be, of := m.Head.W.Backend(), make([]float64, 1)
	be.Download(of, m.Beside.Linear.Share.Value)
	if share >= 0 {
		be.Fill(m.Beside.Linear.Share.Value, share)
		m.Card.Shares = nil
	}
	y, err := m.Predict(t.Context(), graphs)
	if err != nil {
		t.Fatal(err)
	}
	return y, of[0]
}

// TestMixture: where the numbers beside the graphs tell the answer, and the network has hardly learned, the linear
// model of them gets the most that it can, three quarters, and is right, with targets missing. A fit that was interrupted
// ends with the same bits.
func TestMixture(t *testing.T) {
	for _, kind := range kinds {
		head, d := problem(kind)
		of := func(i int) []float32 {
			return []float32{float32(math.Expm1(4 * carbons(d.Graphs[i]))), 1, float32(i % 7)}
		}
		var y []float64
		for again, stop := range []int{0, 2, 6} {
			o := train.Options{Epochs: 2, Checkpoint: filepath.Join(t.TempDir(), "c")}
			if stop > 0 {
				ctx, cancel := context.WithCancel(t.Context())
				_, l := besides(t, head, d, finetune.Options{Patience: 2, Average: 0.5}, of)
				if _, err := fit(ctx, &interrupted{l, stop, cancel}, o); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			m, l := besides(t, head, d, finetune.Options{Patience: 2, Average: 0.5}, of)
			if _, err := l.Fit(t.Context(), o, nil); err != nil {
				t.Fatal(err)
			}
			mixed, share := predict(t, m, d.Graphs, -1)
			if math.Abs(share-0.75) > 1e-6 {
				t.Errorf("%s: the share is %v, want 0.75", kind, share)
			}
			if again > 0 && !slices.Equal(mixed, y) {
				t.Errorf("%s, interrupted at step %d: other bits", kind, stop)
			}
			y = mixed
			if again == 2 {
				y, _ = predict(t, m, d.Graphs, 1)
			}
		}
		w := len(d.Y) / len(d.Graphs)
		for _, i := range d.Test {
			x := carbons(d.Graphs[i])
			p, want := y[2*i], 100+20*x
			switch {
			case kind == model.Classes:
				p, want = math.Round(y[2*i+1]), d.Y[i]
			case kind == model.Binary:
				p, want = math.Round(y[2*i]), d.Y[w*i]
			}
			if math.Abs(x-0.5) > 0.15 && (math.Abs(p-want) > 1.5 || p == 1-want) {
				t.Errorf("%s: graph %d: %v, want %v", kind, i, y[2*i:2*i+2], want)
			}
		}
	}
	// Without a network the linear model is alone.
	head, d := problem(model.Regression)
	m, l := besides(t, head, d, finetune.Options{Patience: 2, WithoutNetwork: true}, func(i int) []float32 {
		return []float32{float32(carbons(d.Graphs[i]))}
	})
	if _, err := l.Fit(t.Context(), train.Options{Epochs: 1}, nil); err != nil {
		t.Fatal(err)
	}
	mixed, share := predict(t, m, d.Graphs, -1)
	if linear, _ := predict(t, m, d.Graphs, 1); share != 1 || !slices.Equal(mixed, linear) {
		t.Errorf("without a network the share of the linear model is %v", share)
	}
	// Without a validation part the network stays alone.
	d.Valid = nil
	m, l = besides(t, head, d, finetune.Options{}, func(int) []float32 { return []float32{1} })
	if _, err := l.Fit(t.Context(), train.Options{Epochs: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if _, share := predict(t, m, d.Graphs, -1); share != 0 {
		t.Errorf("a share of %v without validation", share)
	}
}

// TestMixtureBalanced: of numbers that say nothing, the linear model's classes have equal probabilities if the loss is
// balanced, and those of the training part if it is not.
func TestMixtureBalanced(t *testing.T) {
	for _, kind := range []model.Kind{model.Classes, model.Binary} {
		for _, balanced := range []bool{false, true} {
			head := model.Head{Kind: kind, Outputs: 3}
			d := finetune.Data{Graphs: molecules(60)}
			for i := range d.Graphs {
				c := []float64{0, 0, 0, 1, 1, 2}[i%6]
				if d.Y = append(d.Y, c); kind == model.Binary {
					d.Y = append(d.Y[:3*i], min(c, 1), max(c-1, 0), 1-min(c, 1))
				}
				if i < 48 {
					d.Train = append(d.Train, i)
				} else {
					d.Valid = append(d.Valid, i)
				}
			}
			m, l := besides(t, head, d, finetune.Options{Balanced: balanced}, func(int) []float32 { return []float32{1} })
			if _, err := l.Fit(t.Context(), train.Options{Epochs: 1}, nil); err != nil {
				t.Fatal(err)
			}
			p, _ := predict(t, m, d.Graphs[:1], 1)
			want := map[model.Kind][]float64{model.Classes: {3. / 6, 2. / 6, 1. / 6}, model.Binary: {3. / 6, 1. / 6, 3. / 6}}[kind]
			for k, y := range p {
				if balanced {
					want[k] = map[model.Kind]float64{model.Classes: 1. / 3, model.Binary: 1. / 2}[kind]
				}
				if math.Abs(y-want[k]) > 1e-3 {
					t.Errorf("%s, balanced %v: %v, want %v", kind, balanced, p, want)
				}
			}
		}
	}
}

// TestTaskShares: of two tasks, one is linear in the numbers and the other is seen by the network alone. The first has
// the larger share of the linear model, and predictions mix each task by its own. A task with few validation labels has
// nearly the common share. A fit that was interrupted ends with the same bits, and so does its file.
func TestTaskShares(t *testing.T) {
	for _, kind := range []model.Kind{model.Regression, model.Binary} {
		rng := rand.New(rand.NewPCG(5, 6))
		head, d := problem(kind)
		numbers := make([]float32, len(d.Graphs))
		for i := range d.Graphs {
			numbers[i] = float32(rng.NormFloat64())
			d.Y[2*i] = float64(numbers[i])
			d.Y[2*i+1] = carbons(d.Graphs[i])
			if kind == model.Binary {
				d.Y[2*i] = math.Round(0.5 + 0.5*math.Copysign(1, d.Y[2*i]))
				d.Y[2*i+1] = math.Round(d.Y[2*i+1])
			}
		}
		of := func(i int) []float32 { return numbers[i : i+1] }
		options := finetune.Options{Patience: 12, Rate: 0.01}
		course := func(d finetune.Data, stop int) (*model.Trained, []float64) {
			o := train.Options{Epochs: 12, Checkpoint: filepath.Join(t.TempDir(), "c")}
			if stop > 0 {
				ctx, cancel := context.WithCancel(t.Context())
				_, l := besides(t, head, d, options, of)
				if _, err := fit(ctx, &interrupted{l, stop, cancel}, o); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			m, l := besides(t, head, d, options, of)
			if _, err := l.Fit(t.Context(), o, nil); err != nil {
				t.Fatal(err)
			}
			y, err := m.Predict(t.Context(), d.Graphs)
			if err != nil {
				t.Fatal(err)
			}
			return m, y
		}

		m, y := course(d, 0)
		shares := m.Card.Shares.Linear
		if len(shares) != 2 || shares[0] < shares[1]+0.1 {
			t.Fatalf("%s: shares %v of a task that is linear and one that is not", kind, shares)
		}
		path := filepath.Join(t.TempDir(), "m.safetensors")
		if err := m.Save(path); err != nil {
			t.Fatal(err)
		}
		opened, err := model.Open(path, m.Head.W.Backend())
		if err != nil {
			t.Fatal(err)
		}
		if again, err := opened.Predict(t.Context(), d.Graphs); err != nil || !slices.Equal(again, y) {
			t.Errorf("%s: the opened model predicts something else, %v", kind, err)
		}
		if _, again := course(d, 17); !slices.Equal(again, y) {
			t.Errorf("%s, interrupted: other bits", kind)
		}
		for task, share := range shares {
			alone, common := predict(t, opened, d.Graphs, share)
			for i := task; i < len(y); i += 2 {
				if math.Abs(alone[i]-y[i]) > 1e-5 {
					t.Fatalf("%s, task %d: %v, by its share alone %v", kind, task, y[i], alone[i])
				}
			}
			if task == 0 && !(shares[1] <= common && common <= shares[0]) {
				t.Errorf("%s: the common share %v is not between %v", kind, common, shares)
			}
		}

		rare := d
		rare.Y = slices.Clone(d.Y)
		for _, i := range d.Valid[2:] {
			rare.Y[2*i+1] = math.NaN()
		}
		m, _ = course(rare, 0)
		shares = m.Card.Shares.Linear
		_, common := predict(t, m, d.Graphs, -1)
		if math.Abs(shares[1]-common) > 0.5*2/50+1e-9 {
			t.Errorf("%s: shares %v and in common %v, where the second task has two labels", kind, shares, common)
		}
	}
	head, d := problem(model.Classes)
	m, l := besides(t, head, d, finetune.Options{Patience: 1}, func(int) []float32 { return []float32{1} })
	if _, err := l.Fit(t.Context(), train.Options{Epochs: 1}, nil); err != nil || m.Card.Shares != nil {
		t.Errorf("classes have the shares %v, %v", m.Card.Shares, err)
	}
}

// TestForestMember: where descriptors tell the answer in steps, which no line follows, a forest of them takes part
// and makes the predictions better; it is in the model file.
func TestForestMember(t *testing.T) {
	for _, kind := range kinds {
		var y strings.Builder
		y.WriteString("smiles,y\n")
		for i := range 120 {
			value := 0
			if size := i / 12; size >= 3 && size <= 6 {
				value = 1
			}
			text := fmt.Sprint(value)
			switch kind {
			case model.Regression:
				text = fmt.Sprint(10*value + i%3)
			case model.Classes:
				text = string(rune('a' + value))
			}
			fmt.Fprintf(&y, "%s%s,%s\n", strings.Repeat("C", 1+i/12), strings.Repeat("O", i%12), text)
		}
		options := records.Options{Input: strings.NewReader(y.String())}
		features, err := apply.ParseFeatures([]string{"descriptors"})
		if err != nil {
			t.Fatal(err)
		}
		numbers, vector, err := apply.Numbers(features)
		if err != nil {
			t.Fatal(err)
		}
		numbers.Hidden = 4
		numbers.Linear = true
		numbers.Trees = 20
		options.Vector = vector
		task := finetune.Task{Targets: []string{"y"}, Kind: kind, Beside: numbers}
		x, err := finetune.Read(t.Context(), "t.csv", task, options)
		if err != nil {
			t.Fatal(err)
		}
		split, err := x.Divide(1)
		if err != nil {
			t.Fatal(err)
		}
		be := cpu.New(tensor.Float32)
		m, err := x.NewModel(be, gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 1}, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		l, err := finetune.New(m, x.Data(split), finetune.Options{Patience: 1, Balanced: kind != model.Regression})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Fit(t.Context(), train.Options{Epochs: 1}, nil); err != nil {
			t.Fatal(err)
		}
		f := m.Card.Forest
		if f == nil || f.Share < 0.5 {
			t.Fatalf("%s: the forest %v has no large share", kind, f)
		}
		path := filepath.Join(t.TempDir(), "m.safetensors")
		if err := m.Save(path); err != nil {
			t.Fatal(err)
		}
		opened, err := model.Open(path, be)
		if err != nil {
			t.Fatal(err)
		}
		want, err := m.Predict(t.Context(), x.Set.Graphs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := opened.Predict(t.Context(), x.Set.Graphs)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: the opened model predicts something else, %v", kind, err)
		}
		_, ok, err := x.Forest(t.Context(), m, split, 1)
		if !ok || err != nil {
			t.Error(ok, err)
		}
		f.Columns[0][1]++
		if err := m.Save(path); err == nil {
			t.Errorf("%s: a forest of other columns is saved", kind)
		}
	}
}

// TestMixtureWeights: the linear model of graphs with the weight 2 is that of the same graphs twice.
func TestMixtureWeights(t *testing.T) {
	for _, kind := range kinds {
		var predictions [2][]float64
		head, whole := problem(kind)
		n := len(whole.Graphs)
		of := func(i int) []float32 {
			x := carbons(whole.Graphs[i%n])
			return []float32{float32(x), float32(x * x), float32(i % n % 7)}
		}
		for repeated := range 2 {
			d := whole
			d.Graphs = slices.Clone(whole.Graphs)
			d.Y = slices.Clone(whole.Y)
			d.Train = slices.Clone(whole.Train)
			width := len(d.Y) / n
			if repeated == 0 {
				d.Weights = slices.Repeat([]float64{1}, n)
			}
			for i := range 60 {
				if repeated == 0 {
					d.Weights[i] = 2
					continue
				}
				d.Graphs = append(d.Graphs, whole.Graphs[i])
				d.Y = append(d.Y, whole.Y[i*width:(i+1)*width]...)
				d.Train = append(d.Train, n+i)
			}
			m, l := besides(t, head, d, finetune.Options{Patience: 1}, of)
			if _, err := l.Fit(t.Context(), train.Options{Epochs: 1}, nil); err != nil {
				t.Fatal(err)
			}
			predictions[repeated], _ = predict(t, m, whole.Graphs, 1)
		}
		for i, y := range predictions[0] {
			if want := predictions[1][i]; math.Abs(y-want) > 2e-3*max(1, math.Abs(want)) {
				t.Errorf("%s: prediction %d is %v with weights, %v with repeated graphs", kind, i, y, want)
			}
		}
	}
}
