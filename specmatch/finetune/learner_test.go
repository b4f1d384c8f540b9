package finetune_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// molecules are random trees whose nodes are of two kinds of atoms.
func molecules(n int) []*graph.Graph {
	rng := rand.New(rand.NewPCG(5, 5))
	var all []*graph.Graph
	for range n {
		size := 6 + rng.IntN(12)
		share := 0.1 + 0.8*float64(rng.IntN(2)) // of the second kind
		rows := make([][]int32, size)
		for i := 1; i < size; i++ {
			j := rng.IntN(i)
			rows[i], rows[j] = append(rows[i], int32(j)), append(rows[j], int32(i))
		}
		g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: feature.AtomTypes * feature.ChiralityTags}}
		for _, row := range rows {
			slices.Sort(row)
			g.Adj = append(g.Adj, row...)
			g.Ptr = append(g.Ptr, int32(len(g.Adj)))
			kind := int32(5)
			if rng.Float64() < share {
				kind++
			}
			g.X.Category = append(g.X.Category, kind*feature.ChiralityTags)
			g.EdgeLabel = append(g.EdgeLabel, make([]int32, len(row))...)
		}
		all = append(all, g)
	}
	return all
}

// carbons is the share of the nodes that are of the first kind.
func carbons(g *graph.Graph) float64 {
	n := 0.0
	for _, c := range g.X.Category {
		if c == 5*feature.ChiralityTags {
			n++
		}
	}
	return n / float64(g.Nodes())
}

// problem is a data set with targets of a kind.
func problem(kind model.Kind) (model.Head, finetune.Data) {
	graphs := molecules(240)
	head, d := model.Head{Kind: kind, Outputs: 2}, finetune.Data{Graphs: graphs}
	for i, g := range graphs {
		x := carbons(g)
		class := 0.0
		if x > 0.5 {
			class = 1
		}
		switch kind {
		case model.Classes:
			d.Y = append(d.Y, class)
		case model.Binary:
			d.Y = append(d.Y, class, 1-class)
		default:
			d.Y = append(d.Y, 100+20*x, -x/1000)
		}
		if kind != model.Classes && i%5 == 0 {
			d.Y[2*i+i/5%2] = math.NaN()
		}
		switch {
		case i < 160:
			d.Train = append(d.Train, i)
		case i < 200:
			d.Valid = append(d.Valid, i)
		default:
			d.Test = append(d.Test, i)
		}
	}
	return head, d
}

func newLearner(t *testing.T, kind model.Kind, dropout float64) (*model.Trained, *finetune.Learner, finetune.Data) {
	t.Helper()
	be := cpu.New(tensor.Float32)
	head, d := problem(kind)
	rng := rand.New(rand.NewPCG(1, 1))
	e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 16, Layers: 2, Dropout: dropout}.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	p := model.NewPredictor(e, head, rng)
	l, err := finetune.New(p, d, finetune.Options{Batch: 40, Rate: 0.01, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	return p, l, d
}

var kinds = []model.Kind{model.Classes, model.Binary, model.Regression}

// fit trains and returns the metrics of all epochs.
func fit(ctx context.Context, l train.Learner, o train.Options) (epochs []train.Metrics, err error) {
	_, err = train.Run(ctx, l, o, func(p train.Progress) error {
		if p.Ended {
			epochs = append(epochs, p.Metrics)
		}
		return nil
	})
	return epochs, err
}

// TestLearns: every kind of head learns what there is to learn, and predicts what
// its metrics say, in the targets' unit.
func TestLearns(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			p, l, d := newLearner(t, kind, 0)
			epochs, err := fit(t.Context(), l, train.Options{Epochs: 30})
			if err != nil {
				t.Fatal(err)
			}
			last := epochs[len(epochs)-1]
			var test []*graph.Graph
			for _, i := range d.Test {
				test = append(test, d.Graphs[i])
			}
			y, err := p.Predict(t.Context(), test)
			if err != nil || len(y) != 2*len(test) {
				t.Fatalf("%d predictions, %v", len(y), err)
			}
			squares, absolute, n, right := [2]float64{}, [2]float64{}, [2]float64{}, 0.0
			for k, i := range d.Test {
				for task := range 2 {
					switch kind {
					case model.Classes:
						if task == 0 && (y[2*k+1] > y[2*k]) == (d.Y[i] == 1) {
							right++
						}
						if s := y[2*k] + y[2*k+1]; math.Abs(s-1) > 1e-6 {
							t.Errorf("probabilities add up to %v", s)
						}
					case model.Binary:
						if want := d.Y[2*i+task]; !math.IsNaN(want) {
							if n[0]++; math.Abs(y[2*k+task]-want) < 0.5 {
								right++
							}
						}
					default:
						if e := y[2*k+task] - d.Y[2*i+task]; !math.IsNaN(e) {
							squares[task], absolute[task], n[task] = squares[task]+e*e, absolute[task]+math.Abs(e), n[task]+1
						}
					}
				}
			}
			switch kind {
			case model.Classes:
				if share := 100 * right / float64(len(test)); share != last["test_accuracy"] || share < 90 || last["valid_accuracy"] < 90 {
					t.Errorf("%v %% of the predictions are right; metrics %v", share, last)
				}
			case model.Binary:
				if right/n[0] < 0.9 || last["test_roc_auc"] < 95 || last["valid_roc_auc"] < 95 || last["test_one_class"] != 0 {
					t.Errorf("%v of %v predictions are right; metrics %v", right, n[0], last)
				}
			default:
				for task, name := range []string{"task_0", "task_1"} {
					rmse, mae := math.Sqrt(squares[task]/n[task]), absolute[task]/n[task]
					if math.Abs(rmse-last["test_rmse "+name]) > 1e-6*rmse || math.Abs(mae-last["test_mae "+name]) > 1e-6*mae ||
						last["test_r2 "+name] < 0.9 || rmse > 2 {
						t.Errorf("%s: rmse %v and mae %v; metrics %v", name, rmse, mae, last)
					}
				}
				if math.Abs(p.Card.Head.Mean[0]-110) > 3 || math.Abs(p.Card.Head.Std[1]-p.Card.Head.Std[0]/20/1000) > 1e-4 {
					t.Errorf("standardised by %v and %v", p.Card.Head.Mean, p.Card.Head.Std)
				}
			}
		})
	}
}

// TestResumed interrupts fine-tuning, dropout and all, at every step of its second
// epoch.
func TestResumed(t *testing.T) {
	for _, kind := range kinds {
		want, bits := []train.Metrics(nil), ""
		for at := range 5 {
			o := train.Options{Epochs: 3, Checkpoint: filepath.Join(t.TempDir(), "c")}
			ctx, cancel := context.WithCancel(t.Context())
			_, l, _ := newLearner(t, kind, 0.5)
			if at > 0 {
				if _, err := fit(ctx, &interrupted{l, 4 + at, cancel}, o); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				_, l, _ = newLearner(t, kind, 0.5)
			}
			cancel()
			got, err := fit(t.Context(), l, o)
			if err != nil {
				t.Fatal(err)
			}
			tensors, _ := l.State()
			var b bytes.Buffer
			if err := nn.Save(&b, tensors, nil); err != nil {
				t.Fatal(err)
			}
			if at == 0 {
				want, bits = got, b.String()
			} else if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" || b.String() != bits {
				t.Errorf("%s, interrupted at step %d: other bits, or %s", kind, at, d)
			}
		}
	}
}

// TestPatience: training ends when the validation part has not become better for some
// epochs, and the predictor gets the weights of the best epoch, wherever training was
// interrupted.
func TestPatience(t *testing.T) {
	metric := map[model.Kind]string{model.Classes: "valid_loss", model.Binary: "valid_roc_auc", model.Regression: "valid_loss"}
	count := map[model.Kind]int{}
	for _, kind := range append(kinds, kinds...) {
		count[kind]++
		average := 0.6 * float64(count[kind]-1) // and the second time those of the average
		patient := func() (*model.Trained, *finetune.Learner) {
			p, _, d := newLearner(t, kind, 0.5)
			l, err := finetune.New(p, d, finetune.Options{Batch: 40, Rate: 0.1, Seed: 4, Patience: 2, Average: average})
			if err != nil {
				t.Fatal(err)
			}
			return p, l
		}
		var want []train.Metrics
		bits := ""
		for at := range 4 {
			o := train.Options{Epochs: 40, Checkpoint: filepath.Join(t.TempDir(), "c")}
			if at > 0 {
				ctx, cancel := context.WithCancel(t.Context())
				_, l := patient()
				if _, err := fit(ctx, &interrupted{l, 5 * at, cancel}, o); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				cancel()
			}
			p, l := patient()
			got, err := fit(t.Context(), l, o)
			if err != nil {
				t.Fatal(err)
			}
			best, err := l.Best()
			if err != nil || best != len(got)-2 || len(got) == 40 {
				t.Fatalf("%s: epoch %d of %d is the best, %v; want 2 epochs behind it", kind, best, len(got), err)
			}
			for e, m := range got {
				a, b := m.Get(metric[kind]), got[best-1].Get(metric[kind])
				if kind == model.Binary {
					a, b = b, a
				}
				if a == b { // then the loss decides
					a, b = m["valid_loss"], got[best-1]["valid_loss"]
				}
				if a < b || e < best-1 && a == b {
					t.Errorf("%s: epoch %d is better than epoch %d: %v", kind, e+1, best, got)
				}
			}
			// Its weights give what was measured then.
			again, err := l.End(t.Context(), 99)
			if err != train.ErrStop || again.Get(metric[kind]) != got[best-1].Get(metric[kind]) {
				t.Errorf("%s: %v of the best epoch, %v with its weights, %v", kind, got[best-1], again, err)
			}
			var b bytes.Buffer
			if err := nn.Save(&b, p, nil); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if at == 0 {
				want, bits = got, b.String()
			} else if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" || b.String() != bits {
				t.Errorf("%s, interrupted at step %d: other bits, or %s", kind, 5*at, d)
			}
		}
	}
	p, l, d := newLearner(t, model.Classes, 0)
	if best, err := l.Best(); best != 0 || err != nil {
		t.Errorf("without patience: %d, %v", best, err)
	}
	d.Valid = nil
	if _, err := finetune.New(p, d, finetune.Options{Patience: 1}); err == nil || !strings.Contains(err.Error(), "validation set") {
		t.Errorf("nothing to validate on: %v", err)
	}
	p, _, d = newLearner(t, model.Binary, 0)
	for _, i := range d.Valid {
		d.Y[2*i], d.Y[2*i+1] = 1, 1
	}
	l, err := finetune.New(p, d, finetune.Options{Rate: 0.01, Patience: 3})
	if err != nil {
		t.Fatal(err)
	}
	epochs, err := fit(t.Context(), l, train.Options{Epochs: 9})
	best, _ := l.Best()
	if err != nil || best == 0 || !math.IsNaN(epochs[0].Get("valid_roc_auc")) {
		t.Fatalf("one class to validate on: epoch %d, %v", best, err)
	}
	for _, m := range epochs {
		if m["valid_loss"] < epochs[best-1]["valid_loss"] {
			t.Errorf("epoch %d is not the best by the loss: %v", best, epochs)
		}
	}
	for _, i := range d.Valid {
		d.Y[2*i], d.Y[2*i+1] = math.NaN(), math.NaN()
	}
	if _, err := finetune.New(p, d, finetune.Options{Patience: 1}); err == nil || !strings.Contains(err.Error(), "no graph to validate on has a label") {
		t.Errorf("no label to validate on: %v", err)
	}
}

// TestAverage: what is evaluated, and kept, is the running average of the weights.
func TestAverage(t *testing.T) {
	p, _, d := newLearner(t, model.Regression, 0)
	if _, err := finetune.New(p, d, finetune.Options{Average: 0.9}); err == nil || !strings.Contains(err.Error(), "average 0.9 with patience 0") {
		t.Errorf("nothing is kept without patience: %v", err)
	}
	const decay = 0.3
	l, err := finetune.New(p, d, finetune.Options{Batch: 40, Rate: 0.1, Seed: 4, Patience: 9, Average: decay})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	values := func() (all []float64) {
		for _, x := range p.Parameters() {
			v := make([]float64, x.Value.Len())
			x.Backend().Download(v, x.Value)
			all = append(all, v...)
		}
		return all
	}
	var want []float64
	steps := 0
	if _, err := fit(t.Context(), &stepped{l, func() {
		w := values()
		if want == nil {
			want = make([]float64, len(w))
		}
		d := min(decay, float64(steps)/float64(steps+10))
		steps++
		for i := range w {
			want[i] = d*want[i] + (1-d)*w[i]
		}
	}}, train.Options{Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	last := values()
	if _, err := l.Best(); err != nil {
		t.Fatal(err)
	}
	got, moved := values(), false
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-5 {
			t.Fatalf("weight %d is %v, want %v", i, got[i], want[i])
		}
		moved = moved || math.Abs(got[i]-last[i]) > 1e-3
	}
	if steps < 2 || !moved {
		t.Errorf("after %d steps the average is the last weights", steps)
	}
}

type stepped struct {
	train.Learner
	after func()
}

func (s *stepped) Step(b train.Batch) (train.Metrics, error) {
	m, err := s.Learner.Step(b)
	s.after()
	return m, err
}

type interrupted struct {
	train.Learner
	left   int
	cancel func()
}

func (i *interrupted) Step(b train.Batch) (train.Metrics, error) {
	if i.left--; i.left == 0 {
		i.cancel()
	}
	return i.Learner.Step(b)
}

// TestRefused: data that are not what the head is for.
func TestRefused(t *testing.T) {
	if _, err := finetune.New(nil, finetune.Data{}, finetune.Options{}); err == nil || !strings.Contains(err.Error(), "the model is nil") {
		t.Error(err)
	}
	be := cpu.New(tensor.Float32)
	ds := dataset.Default()
	e, err := gnn.Architecture{Kind: gnn.KindGIN, In: ds.FeatureWidth, Hidden: 4, Layers: 1}.New(be, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	graphs := ds.Graphs[:3]
	nan := math.NaN()
	for want, c := range map[string]struct {
		kind model.Kind
		d    finetune.Data
	}{
		"2 targets for 3 graphs":   {model.Classes, finetune.Data{Y: []float64{0, 1}, Train: []int{0}}},
		"sample 3 is not one of 3": {model.Classes, finetune.Data{Y: []float64{0, 1, 1}, Train: []int{0}, Test: []int{3}}},
		"graph 1, task 0: 2 cannot be a target of kind classes with 2 outputs": {model.Classes, finetune.Data{Y: []float64{0, 2, 1}, Train: []int{0, 1}}},
		"graph 0, task 0: 0.5 cannot":                                          {model.Classes, finetune.Data{Y: []float64{0.5, 1, 1}, Train: []int{0, 1}}},
		"graph 0, task 0: NaN cannot":                                          {model.Classes, finetune.Data{Y: []float64{nan, 1, 1}, Train: []int{0, 1}}},
		"graph 0, task 1: -1 cannot":                                           {model.Binary, finetune.Data{Y: []float64{0, -1, 0, 0, 1, 1}, Train: []int{0, 1}}},
		"graph 2, task 0: +Inf cannot":                                         {model.Regression, finetune.Data{Y: []float64{0, -1, 0, 0, math.Inf(1), 1}, Train: []int{0}, Valid: []int{2}}},
		"no graph to train on has a label":                                     {model.Binary, finetune.Data{Y: []float64{nan, nan, 0, 0, 1, 1}, Train: []int{0}, Test: []int{1}}},
		"no graph to train on has a label, 2":                                  {model.Classes, finetune.Data{Y: []float64{0, 1, 1}, Test: []int{1}}},
	} {
		c.d.Graphs = graphs
		p := model.NewPredictor(e, model.Head{Kind: c.kind, Outputs: 2}, rand.New(rand.NewPCG(1, 1)))
		if _, err := finetune.New(p, c.d, finetune.Options{}); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(want, ", 2")) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	// What NewModel makes of records that were read for an encoder of other categories.
	rich, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 1, Atoms: feature.Rich.Name}.New(be, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	p := model.NewPredictor(rich, model.Head{Kind: model.Classes, Outputs: 2}, rand.New(rand.NewPCG(1, 1)))
	d := finetune.Data{Graphs: molecules(3), Y: []float64{0, 1, 1}, Train: []int{0, 1}}
	if _, err := finetune.New(p, d, finetune.Options{}); err == nil || !strings.Contains(err.Error(), `graph 0: gnn: node features of width 360`) ||
		!strings.Contains(err.Error(), `the atom features "rich"`) {
		t.Errorf("%v for molecules of other categories", err)
	}
	for _, h := range []model.Head{
		{}, {Kind: "magic", Outputs: 2}, {Kind: model.Classes, Outputs: 1}, {Kind: model.Binary}, {Kind: model.Binary, Outputs: 2, Tasks: []string{"one"}},
		{Kind: model.Classes, Outputs: 2, ClassValues: []string{"1", "2", "3"}}, {Kind: model.Binary, Outputs: 1, ClassValues: []string{"1"}},
		{Kind: model.Regression, Outputs: 2, Mean: []float64{1}, Std: []float64{1}}, {Kind: model.Regression, Outputs: 1, Mean: []float64{1}},
	} {
		if h.Check() == nil {
			t.Errorf("accepted: %+v", h)
		}
	}
}

// TestOneClass: without both classes there is no ROC-AUC, and nothing else fails.
func TestOneClass(t *testing.T) {
	be := cpu.New(tensor.Float32)
	rng := rand.New(rand.NewPCG(1, 1))
	head, d := problem(model.Binary)
	for _, i := range d.Test {
		d.Y[2*i], d.Y[2*i+1] = 1, math.NaN()
	}
	e, err := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 1}.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	l, err := finetune.New(model.NewPredictor(e, head, rng), d, finetune.Options{})
	if err != nil {
		t.Fatal(err)
	}
	epochs, err := fit(t.Context(), l, train.Options{Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if m := epochs[0]; !math.IsNaN(m.Get("test_roc_auc")) || m["test_one_class"] != 2 || !(m["valid_roc_auc"] > 0) {
		t.Error(fmt.Sprint(m))
	}
}
