package method

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// scales are four views of eight graphs, enough for norms over a batch to be well
// conditioned.
var scales = [4][][]int32{
	{{0, 1, 2}, {3, 4}, {5, 0, 0, 1}, {2, 2, 3}, {4, 5, 1}, {0, 3, 3, 5}, {1, 1, 2, 4}, {5, 5, 3}},
	{{1, 2}, {3, 4}, {0, 0, 1}, {2, 3}, {4, 5}, {3, 3, 5}, {1, 2, 4}, {5, 3}},
	{{0, 1}, {4}, {5, 0, 1}, {2}, {5, 1}, {0, 3}, {1, 1}, {5, 5}},
	{{2}, {3}, {5, 0}, {3}, {4}, {3, 5}, {2, 4}, {3, 5}},
}

func fourViews() *graph.Batch { return tableGraphs(scales[:]...) }

// partners are the graphs that the critic meets by chance.
var partners = []int{1, 2, 0, 4, 7, 5, 3, 6}

func newTableMultiScale(t *testing.T) *multiScale {
	be := newFloat64()
	s := goldenSetup(be)
	m := newMultiScale(s, goldenModel(be), rand.New(rand.NewPCG(1, 1)))
	wave(m.critic)
	return m
}

func TestMSSGCLGolden(t *testing.T) {
	m := newTableMultiScale(t)
	checkGolden(t, "mssgcl", m.Minimizer, m, func(int) *autodiff.Var {
		z := m.views(gnn.NewBatch(m.Tape, fourViews()))
		m.train(z[2].Detach(), z[3].Detach(), partners)
		return m.objective(z)
	})
}

func TestMSSGCLGradients(t *testing.T) {
	m := newTableMultiScale(t)
	be := m.Tape.Backend()
	checkGradients(t, be, m.model.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
		return m.objective(m.views(gnn.NewBatch(tape, fourViews())))
	})
	local := m.views(gnn.NewBatch(m.Tape, fourViews()))
	l1, l2 := local[2].Data(), local[3].Data()
	checkGradients(t, be, m.critic.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
		return m.critic.loss(tape.Matrix(len(partners), tableWidth, l1), tape.Matrix(len(partners), tableWidth, l2), partners)
	})
}

// TestCriticLearns: the critic comes to tell what belongs together, and its steps do
// not touch the encoder.
func TestCriticLearns(t *testing.T) {
	m := newTableMultiScale(t)
	defer m.Tape.Reset()
	before := values(m.model)
	z := m.views(gnn.NewBatch(m.Tape, fourViews()))
	l1, l2 := z[2].Detach(), z[3].Detach()
	first := m.train(l1, l2, partners)
	last := first
	for range 60 {
		last = m.train(l1, l2, partners)
	}
	if !(last > first+0.3) {
		t.Errorf("the critic's difference went from %v to %v", first, last)
	}
	if !cmp.Equal(before, values(m.model)) {
		t.Error("training the critic moves the encoder")
	}
	nn.ZeroGrad(m)
	m.Tape.Backward(m.objective(z))
	for _, p := range m.critic.Parameters() {
		if p.HasGrad() || p.Frozen {
			t.Errorf("%s takes part in the encoder's step", p.Name)
		}
	}
}

// TestSaturatedCritic: a critic that is certain gives its values, and no gradients that are
// subnormal numbers.
func TestSaturatedCritic(t *testing.T) {
	be := cpu.New(tensor.Float32)
	rng := rand.New(rand.NewPCG(1, 1))
	c := newCritic(be, 4, rng)
	tape := autodiff.NewTape(be)
	rows := func() *autodiff.Var {
		v := make([]float64, 16*4)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return tape.Matrix(16, 4, v)
	}
	l1, l2 := rows(), rows()
	for scale := 1; scale <= 1<<14; scale *= 2 { // of the last layer's weights
		last := c.last.Layers[1].W.Value
		if scale > 1 {
			be.Affine(last, 2, last, 0)
		}
		nn.ZeroGrad(c)
		y := c.Forward(l1, l2)
		tape.Backward(y.Mean())
		most, subnormal := 0.0, 0
		for _, p := range c.Parameters() {
			g := make([]float64, p.Grad.Len())
			be.Download(g, p.Grad)
			for _, v := range g {
				if most = max(most, math.Abs(v)); v != 0 && math.Abs(v) < 0x1p-126 {
					subnormal++
				}
			}
		}
		if subnormal > 0 || scale == 1 && most == 0 {
			t.Errorf("weights times %d: %d subnormal gradients, the largest %g", scale, subnormal, most)
		}
		for i, v := range y.Data() {
			if v < 0 || v > 1 || scale == 1<<14 && v > 1e-9 && v < 1-1e-9 {
				t.Errorf("weights times %d: value %d is %v", scale, i, v)
			}
		}
	}
}

// TestMSSGCLPermutation: the order of the graphs of a batch does not matter.
func TestMSSGCLPermutation(t *testing.T) {
	m := newTableMultiScale(t)
	defer m.Tape.Reset()
	loss := func(order ...int) float64 {
		views := make([][][]int32, 4)
		for v, paths := range scales {
			for _, i := range order {
				views[v] = append(views[v], paths[i])
			}
		}
		return m.objective(m.views(gnn.NewBatch(m.Tape, tableGraphs(views...)))).Float()
	}
	nearly(t, "loss", loss(2, 0, 1, 7, 4, 3, 6, 5), loss(0, 1, 2, 3, 4, 5, 6, 7), 1e-12)
}

// TestShares: how much of a graph the views keep.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    [2]float64
	}{
		{Options{"policy": augment.Random2}, [2]float64{.8, .2}},
		{Options{"policy": augment.Random4}, [2]float64{.9, .1}},
		{Options{"policy": augment.Random4, "mssgcl-global": .7, "mssgcl-local": .4}, [2]float64{.7, .4}},
	} {
		s := motifs(t, Unsupervised)
		s.Options = c.options
		views := newLearner(t, "mssgcl", s).Learner.(*tracking).Learner.(*multiScale).Loader.Collator.Views
		for v, view := range views {
			nearly(t, fmt.Sprint(c.options), 1-view.(augment.Subgraph).Ratio, c.want[v/2], 1e-12)
		}
	}
	s := motifs(t, Unsupervised)
	s.Options = Options{"mssgcl-global": .5}
	if _, err := New("mssgcl", s); err == nil || !strings.Contains(err.Error(), "-mssgcl-global 0.5 -mssgcl-local 0: want both") {
		t.Error(err)
	}
}

// TestRawStatistics: with the option, any method's running statistics are moved by a
// batch's raw graphs, once, and its steps are otherwise the same.
func TestRawStatistics(t *testing.T) {
	for _, name := range Names(Unsupervised) {
		if Frozen(name) {
			continue
		}
		run := func(raw bool) (l *Learner, m train.Metrics, samples []int) {
			s := motifs(t, Unsupervised)
			s.Options = s.Options.With(Options{"raw-statistics": raw})
			l = newLearner(t, name, s)
			for of, graphs := range l.Epoch(t.Context(), 0) {
				samples = append(samples, of...)
				var err error
				if m, err = l.Step(train.Batch{Samples: of, Graphs: graphs}); err != nil {
					t.Fatal(err)
				}
				break
			}
			if last, err := l.Last(); err != nil {
				t.Fatal(err)
			} else if last != nil {
				m = last
			}
			return l, m, samples
		}
		l, loss, samples := run(true)
		other, want, _ := run(false)
		if d := cmp.Diff(want, loss, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s learns otherwise:\n%s", name, d)
		}
		if d := cmp.Diff(values(other.Model.Encoder), values(l.Model.Encoder)); d != "" {
			t.Errorf("%s: other weights", name)
		}
		s := motifs(t, Unsupervised)
		e, _, err := s.NewEncoder()
		if err != nil {
			t.Fatal(err)
		}
		b, form := new(graph.Batch), augment.Identity{SelfLoops: l.SelfLoops}
		b.Reset(s.Graphs[0].X.Width)
		for _, i := range samples {
			form.Append(b, s.Graphs[i], nil, new(augment.Workspace))
		}
		b.EndView()
		tape := autodiff.NewInference(s.Backend)
		e.Forward(gnn.NewBatch(tape, b), nn.Train)
		tape.Reset()
		if d := cmp.Diff(buffersOf(e), buffersOf(l.Model.Encoder)); d != "" {
			t.Errorf("%s: running statistics:\n%s", name, d)
		}
	}
}

func buffersOf(e gnn.Encoder) (all [][]float64) {
	be := e.Parameters()[0].Backend()
	for _, b := range e.Buffers() {
		v := make([]float64, b.Value.Len())
		be.Download(v, b.Value)
		all = append(all, v)
	}
	return all
}
