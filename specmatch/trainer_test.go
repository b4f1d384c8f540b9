package specmatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	training "github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// engines are those that training is tested on.
var engines = []struct {
	name string
	open func() backend.Backend
}{
	{"ref", ref.New},
	{"cpu float64", func() backend.Backend { return cpu.New(tensor.Float64) }},
	{"cpu float32", func() backend.Backend { return cpu.New(tensor.Float32) }},
}

func onEngines(t *testing.T, f func(t *testing.T, be backend.Backend)) {
	for _, e := range engines {
		if e.name == "ref" && testing.Short() {
			continue // the slow oracle; -short is for the race detector
		}
		t.Run(e.name, func(t *testing.T) { f(t, e.open()) })
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

const labels = 4 // node labels of the graphs below

// randomGraph is a ring with chords, of two kinds: many chords and low labels,
// or few and high ones.
func randomGraph(rng *rand.Rand) *graph.Graph {
	n, kind := 6+rng.IntN(10), rng.IntN(2)
	edges := map[[2]int]bool{}
	for i := range n {
		edges[[2]int{i, (i + 1) % n}], edges[[2]int{(i + 1) % n, i}] = true, true
	}
	for range n * (1 - kind) {
		if i, j := rng.IntN(n), rng.IntN(n); i != j {
			edges[[2]int{i, j}], edges[[2]int{j, i}] = true, true
		}
	}
	g := &graph.Graph{Ptr: []int32{0}, Class: kind, X: graph.Features{Width: labels}}
	for i := range n {
		for j := range n {
			if edges[[2]int{i, j}] {
				g.Adj = append(g.Adj, int32(j))
			}
		}
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
		g.X.Category = append(g.X.Category, int32(2*kind+rng.IntN(2)))
	}
	return g
}

// dropNodes is g without one node in five.
func dropNodes(g *graph.Graph, rng *rand.Rand) *graph.Graph {
	id := make([]int32, g.Nodes())
	kept := int32(0)
	for i := range id {
		if id[i] = -1; rng.IntN(5) > 0 || i == 0 {
			id[i] = kept
			kept++
		}
	}
	v := &graph.Graph{Ptr: []int32{0}, Class: g.Class, X: graph.Features{Width: g.X.Width}}
	for i := range id {
		if id[i] < 0 {
			continue
		}
		for _, j := range g.Neighbors(i) {
			if id[j] >= 0 {
				v.Adj = append(v.Adj, id[j])
			}
		}
		v.Ptr = append(v.Ptr, int32(len(v.Adj)))
		v.X.Category = append(v.X.Category, g.X.Category[i])
	}
	return v
}

func randomGraphs(seed uint64, n int) []*graph.Graph {
	rng := newRand(seed)
	var gs []*graph.Graph
	for range n {
		gs = append(gs, randomGraph(rng))
	}
	return gs
}

// randomBatch is two views of n graphs.
func randomBatch(seed uint64, n int) *graph.Batch {
	rng := newRand(seed)
	gs := randomGraphs(seed, n)
	b := new(graph.Batch)
	for range 2 {
		for _, g := range gs {
			b.Append(dropNodes(g, rng))
		}
		b.EndView()
	}
	return b
}

// smallModel has a GIN of 2 layers of width 6.
func smallModel(be backend.Backend, seed uint64) *specmatch.Model {
	rng := newRand(seed)
	return specmatch.NewModel(be, gnn.NewGIN(be, gnn.GINConfig{In: labels, Hidden: 6, Layers: 2}, rng), rng)
}

func objective(beta float64) specmatch.Objective {
	return specmatch.Objective{
		Contrast: specmatch.InfoNCE{Tau: 0.2},
		Match:    specmatch.DefaultLaplacianMatch(),
		Beta:     specmatch.Beta{Weight: beta},
	}
}

// weights are all parameters of a model, one behind another.
func weights(m nn.Module) (all []float64) {
	for _, p := range m.Parameters() {
		v := make([]float64, p.Value.Len())
		p.Backend().Download(v, p.Value)
		all = append(all, v...)
	}
	return all
}

// saved is the whole state of a model, buffers included.
func saved(t *testing.T, m *specmatch.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := nn.Save(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// train runs steps on a few batches in turn and returns what they saw.
func train(t *testing.T, tr *specmatch.Trainer, steps int, probe func(step int) bool) []specmatch.Stats {
	t.Helper()
	batches := []*graph.Batch{randomBatch(1, 12), randomBatch(2, 12), randomBatch(3, 9)}
	var all []specmatch.Stats
	for step := range steps {
		s, err := tr.Step(batches[step%len(batches)], probe(step))
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		all = append(all, s)
	}
	return all
}

func never(int) bool  { return false }
func always(int) bool { return true }

// TestTrainingLowersTheLoss, in every setting that a flag can choose.
func TestTrainingLowersTheLoss(t *testing.T) {
	settings := map[string]func(o *specmatch.Objective){
		"L_C alone":        func(o *specmatch.Objective) { o.Beta.Weight = 0 },
		"L_C + L_G":        func(*specmatch.Objective) {},
		"cross-view":       func(o *specmatch.Objective) { o.Contrast.Variant = specmatch.CrossView },
		"on h":             func(o *specmatch.Objective) { o.OnH = true },
		"centred":          func(o *specmatch.Objective) { o.Center = true },
		"spread sigmoid":   func(o *specmatch.Objective) { o.Match.Adjacency, o.Match.Kappa = specmatch.SpreadSigmoid, 4 },
		"random walk":      func(o *specmatch.Objective) { o.Match.RandomWalk = true },
		"moving threshold": func(o *specmatch.Objective) { o.Match.ThresholdGradient = true },
		"steered":          func(o *specmatch.Objective) { o.Beta = specmatch.Beta{Ratio: 0.3} },
	}
	for name, set := range settings {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, be backend.Backend) {
				o := objective(0.5)
				set(&o)
				stats := train(t, specmatch.NewTrainer(be, smallModel(be, 1), o, 0.01), 45, never)
				mean := func(ss []specmatch.Stats) (m float64) {
					for _, s := range ss {
						m += s.Main / float64(len(ss))
					}
					return m
				}
				// Every batch comes once in three steps.
				if first, last := mean(stats[:3]), mean(stats[42:]); !(last < first-0.2) {
					t.Errorf("L_C went from %v to %v", first, last)
				}
			})
		})
	}
}

// TestStats: the loss is L_C + β·L_G, and L_G is NaN where it is not computed.
func TestStats(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend) {
		for _, c := range []struct {
			beta  float64
			probe func(int) bool
			lossG bool
		}{{0, never, false}, {0, always, true}, {0.5, never, true}, {0.5, always, true}} {
			for _, s := range train(t, specmatch.NewTrainer(be, smallModel(be, 1), objective(c.beta), 0.01), 3, c.probe) {
				if math.IsNaN(s.Aux) == c.lossG || (s.Probe != nil) != c.probe(0) || s.Beta != c.beta {
					t.Errorf("β = %v: %+v", c.beta, s)
				}
				want := s.Main
				if c.beta > 0 {
					want += c.beta * s.Aux
				}
				near(t, "the loss", s.Loss, want, 1e-6)
			}
		}
	})
}

// TestProbesChangeNothing: looking closely at steps leaves the trajectory as it
// is, bit by bit.
func TestProbesChangeNothing(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend) {
		for _, beta := range []float64{0, 0.5} {
			var states [3][]byte
			for k, probe := range []func(int) bool{never, always, func(step int) bool { return step%3 == 1 }} {
				m := smallModel(be, 1)
				train(t, specmatch.NewTrainer(be, m, objective(beta), 0.01), 8, probe)
				states[k] = saved(t, m)
			}
			if !bytes.Equal(states[0], states[1]) || !bytes.Equal(states[0], states[2]) {
				t.Errorf("β = %v: probed and unprobed training differ", beta)
			}
		}
	})
}

// TestHardThresholdTrainsTheBaseline: with the paper's literal loss β has no
// influence, bit by bit, while a sigmoid's has.
func TestHardThresholdTrainsTheBaseline(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend) {
		final := func(beta float64, adj specmatch.Adjacency) []byte {
			o := objective(beta)
			o.Match.Adjacency = adj
			m := smallModel(be, 1)
			stats := train(t, specmatch.NewTrainer(be, m, o, 0.01), 8, never)
			if beta > 0 && !(stats[7].Aux > 0) {
				t.Errorf("L_G = %v: nothing to train on", stats[7].Aux)
			}
			return saved(t, m)
		}
		baseline := final(0, specmatch.Hard)
		if !bytes.Equal(final(1, specmatch.Hard), baseline) {
			t.Error("β = 1 with the hard threshold differs from β = 0")
		}
		if bytes.Equal(final(1, specmatch.Sigmoid), baseline) {
			t.Error("β = 1 with the sigmoid does not differ from β = 0")
		}
	})
}

// gradientNorms computes ‖∇L_C‖, ‖∇L_G‖ and their cosine over the parameters of
// m without the trainer, in composed form, and the losses.
func gradientNorms(be backend.Backend, m *specmatch.Model, o specmatch.Objective, b *graph.Batch) (gc, gg, cosine, lossC, lossG float64) {
	tape := autodiff.NewTape(be, autodiff.Composed())
	defer tape.Reset()
	n := int(b.ViewPtr[1])
	h, z := m.Forward(gnn.NewBatch(tape, b), nn.Train)
	z1, z2 := z.SliceRows(0, n), z.SliceRows(n, 2*n)
	matched := z
	if o.OnH {
		matched = h
	}
	g1, g2 := matched.SliceRows(0, n), matched.SliceRows(n, 2*n)
	if o.Center {
		mean := tape.Matrix(1, n, slices.Repeat([]float64{1 / float64(n)}, n))
		g1, g2 = g1.SubRow(mean.MatMul(g1)), g2.SubRow(mean.MatMul(g2))
	}
	gradient := func(loss *autodiff.Var) (all []float64) {
		nn.ZeroGrad(m)
		tape.Backward(loss)
		for _, p := range m.Parameters() {
			g := make([]float64, p.Value.Len())
			if p.HasGrad() { // the head has none of h
				be.Download(g, p.Grad)
			}
			all = append(all, g...)
		}
		nn.ZeroGrad(m)
		return all
	}
	lc, lg := o.Contrast.Loss(z1, z2), o.Match.Loss(g1, g2)
	c, g := gradient(lc), gradient(lg)
	var cc, ggg, cg float64
	for i := range c {
		cc += c[i] * c[i]
		ggg += g[i] * g[i]
		cg += c[i] * g[i]
	}
	return math.Sqrt(cc), math.Sqrt(ggg), cg / math.Sqrt(cc*ggg), lc.Float(), lg.Float()
}

// TestProbe: a probe reports the gradients as an independent computation gives
// them, and the step the losses, with every setting of the objective.
func TestProbe(t *testing.T) {
	for name, set := range map[string]func(o *specmatch.Objective){
		"default":          func(*specmatch.Objective) {},
		"cross-view":       func(o *specmatch.Objective) { o.Contrast.Variant = specmatch.CrossView },
		"on h":             func(o *specmatch.Objective) { o.OnH = true },
		"centred":          func(o *specmatch.Objective) { o.Center = true },
		"on h and centred": func(o *specmatch.Objective) { o.OnH, o.Center = true, true },
		"random walk":      func(o *specmatch.Objective) { o.Match.RandomWalk = true },
		"moving threshold": func(o *specmatch.Objective) { o.Match.ThresholdGradient = true },
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, be backend.Backend) {
				tol := 1e-9
				if be.Precision() == tensor.Float32 {
					tol = 1e-3 // the cosine cancels
				}
				o, b := objective(0.7), randomBatch(1, 11) // the width is 12
				set(&o)
				gc, gg, cosine, lossC, lossG := gradientNorms(be, smallModel(be, 1), o, b)
				s, err := specmatch.NewTrainer(be, smallModel(be, 1), o, 0.01).Step(b, true)
				if err != nil {
					t.Fatal(err)
				}
				near(t, "L_C", s.Main, lossC, tol)
				near(t, "L_G", s.Aux, lossG, tol)
				near(t, "‖∇L_C‖", s.Probe.Main, gc, tol)
				near(t, "‖∇L_G‖", s.Probe.Aux, gg, tol)
				near(t, "cosine", s.Probe.Cosine, cosine, tol)
				near(t, "ratio", s.Probe.Ratio, 0.7*gg/gc, tol)
				if s.Diagnosis.Density < 0.15 || s.Diagnosis.Density > 0.25 {
					t.Errorf("density %v at the 80th percentile", s.Diagnosis.Density)
				}
			})
		})
	}
}

// TestSteeredBeta: β makes ‖β·∇L_G‖ the wanted part of ‖∇L_C‖, is measured at
// step 0 and at every probe, and holds in between.
func TestSteeredBeta(t *testing.T) {
	const ratio = 0.2
	onEngines(t, func(t *testing.T, be backend.Backend) {
		tol := 1e-9
		if be.Precision() == tensor.Float32 {
			tol = 1e-3
		}
		o := objective(0)
		o.Beta = specmatch.Beta{Ratio: ratio}
		m := smallModel(be, 1)
		tr := specmatch.NewTrainer(be, m, o, 0.01)
		beta := math.NaN()
		changes := 0
		for step := range 9 {
			b := randomBatch(uint64(step), 12)
			probe := step%4 == 0 && step > 0
			if step == 0 || probe {
				gc, gg, _, _, _ := gradientNorms(be, m, o, b)
				if beta != ratio*gc/gg {
					changes++
				}
				beta = ratio * gc / gg
			}
			s, err := tr.Step(b, probe)
			if err != nil {
				t.Fatal(err)
			}
			near(t, fmt.Sprintf("β in step %d", step), s.Beta, beta, tol)
			near(t, fmt.Sprintf("the loss of step %d", step), s.Loss, s.Main+s.Beta*s.Aux, 1e-6)
			if probe {
				near(t, fmt.Sprintf("the ratio in step %d", step), s.Probe.Ratio, ratio, 1e-9)
			}
		}
		if changes != 3 {
			t.Errorf("β was measured %d times; the test wants 3 values", changes)
		}
		// Another trainer goes on with the β that this one had reached.
		other := specmatch.NewTrainer(be, smallModel(be, 2), o, 0.01)
		at, resumed := &tr.Values, &other.Values
		*resumed = *at
		if s, err := other.Step(randomBatch(1, 12), false); err != nil || s.Beta != at.Beta || resumed.Steps != 10 {
			t.Errorf("resumed with β = %v, %v; want %v", s.Beta, err, at.Beta)
		}

		// A loss without gradient cannot be steered to any ratio.
		o.Match.Adjacency = specmatch.Hard
		s, err := specmatch.NewTrainer(be, smallModel(be, 1), o, 0.01).Step(randomBatch(1, 12), true)
		if err != nil || s.Beta != 0 || s.Probe.Aux != 0 || s.Probe.Cosine != 0 || s.Loss != s.Main {
			t.Errorf("steering the hard threshold: %+v, probe %+v, %v", s, s.Probe, err)
		}
	})
}

func TestWarmup(t *testing.T) {
	be := cpu.New(tensor.Float64)
	o := objective(2)
	o.Warmup = 4
	var betas []float64
	for step, s := range train(t, specmatch.NewTrainer(be, smallModel(be, 1), o, 0.01), 6, never) {
		betas = append(betas, s.Beta)
		if math.IsNaN(s.Aux) != (step == 0) {
			t.Errorf("step %d: L_G = %v with β = %v", step, s.Aux, s.Beta)
		}
	}
	if want := []float64{0, 0.5, 1, 1.5, 2, 2}; !slices.Equal(betas, want) {
		t.Errorf("β went %v, want %v", betas, want)
	}

	// Steered, it is the ratio that grows.
	o.Beta, o.Warmup = specmatch.Beta{Ratio: 0.2}, 4
	for step, s := range train(t, specmatch.NewTrainer(be, smallModel(be, 1), o, 0.01), 6, always) {
		near(t, fmt.Sprintf("the ratio in step %d", step), s.Probe.Ratio, 0.2*float64(min(step, 4))/4, 1e-12)
	}
}

// withNaN is a batch like b with dense features, one of them NaN.
func withNaN(b *graph.Batch) *graph.Batch {
	bad := *b
	bad.X = graph.Features{Width: labels, Dense: slices.Clone(b.X.Materialize(b.Nodes()))}
	bad.X.Dense[5] = float32(math.NaN())
	return &bad
}

// TestNonFiniteLoss: the step is an error that says where the number came from,
// and as if it had not been: model, optimizer and memory.
func TestNonFiniteLoss(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend) {
		good := randomBatch(1, 12)
		m, untouched := smallModel(be, 1), smallModel(be, 1)
		tr, reference := specmatch.NewTrainer(be, m, objective(0.5), 0.01), specmatch.NewTrainer(be, untouched, objective(0.5), 0.01)
		first := "MatMul"
		if backend.CapabilitiesOf(be).GIN != nil {
			first = "GINLayer"
		}
		for k := range 3 {
			for _, x := range []*specmatch.Trainer{tr, reference} {
				if _, err := x.Step(good, false); err != nil {
					t.Fatal(err)
				}
			}
			before := be.InUse()
			_, err := tr.Step(withNaN(good), k == 1)
			var nonFinite *training.NonFiniteError
			if !errors.As(err, &nonFinite) {
				t.Fatalf("a NaN among the features: %v", err)
			}
			if nonFinite.Step != k+1 || nonFinite.What != "the loss" || !math.IsNaN(nonFinite.Value) || !strings.HasPrefix(nonFinite.Op, first+" [") {
				t.Errorf("%+v; want step %d and the first %s", nonFinite, k+1, first)
			}
			if msg := err.Error(); !strings.Contains(msg, fmt.Sprintf("step %d: the loss is NaN; the first operator with such a value is %s", k+1, first)) {
				t.Errorf("message %q", msg)
			}
			if n := be.InUse(); n != before {
				t.Errorf("the failed step left %d bytes in use", n-before)
			}
			if !bytes.Equal(saved(t, m), saved(t, untouched)) {
				t.Error("the failed step changed the model")
			}
		}
	})
}

// hugeGradient gives a small model embeddings of a size that the head brings back:
// the gradient of the head's first weights is as large, and its square beyond the
// format.
func hugeGradient(m *specmatch.Model) {
	w := m.Head.Layers[0].W
	be, big := w.Backend(), 1e200
	if be.Precision() == tensor.Float32 {
		big = 1e30
	}
	for _, norm := range m.Encoder.(*gnn.GIN).Norms[1:] {
		be.Fill(norm.Gamma.Value, big)
	}
	be.Affine(w.Value, 1/big, w.Value, 0)
}

// TestNonFiniteGradient: a finite loss can have a gradient that is not.
func TestNonFiniteGradient(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend) {
		m := smallModel(be, 1)
		hugeGradient(m)
		before := saved(t, m)
		s, err := specmatch.NewTrainer(be, m, objective(0), 0.01).Step(randomBatch(1, 12), false)
		var nonFinite *training.NonFiniteError
		if !errors.As(err, &nonFinite) || nonFinite.What != "the gradient's norm" || !math.IsInf(nonFinite.Value, 1) {
			t.Fatalf("error %v; want an infinite gradient", err)
		}
		if math.IsNaN(s.Loss) || math.IsInf(s.Loss, 0) {
			t.Errorf("the loss is %v; the test wants a finite one", s.Loss)
		}
		if !bytes.Equal(saved(t, m), before) {
			t.Error("the failed step changed the model")
		}
		for _, p := range m.Parameters() {
			if p.HasGrad() {
				t.Errorf("%s keeps a gradient", p.Name)
			}
		}
	})
}

func TestStepRefusesABatch(t *testing.T) {
	gs := randomGraphs(1, 6)
	views := func(sizes ...int) *graph.Batch {
		b := new(graph.Batch)
		b.Reset(labels)
		k := 0
		for _, n := range sizes {
			for range n {
				b.Append(gs[k%len(gs)])
				k++
			}
			b.EndView()
		}
		return b
	}
	onEngines(t, func(t *testing.T, be backend.Backend) {
		m := smallModel(be, 1)
		tr := specmatch.NewTrainer(be, m, objective(0.5), 0.01)
		before, inUse := saved(t, m), be.InUse()
		for name, b := range map[string]*graph.Batch{
			"no views": new(graph.Batch), "one view": views(4), "three views": views(2, 2, 2),
			"unequal views": views(3, 2), "empty views": views(0, 0),
		} {
			if _, err := tr.Step(b, false); err == nil || !strings.Contains(err.Error(), "want two equal, non-empty views") {
				t.Errorf("%s: %v, want an error", name, err)
			}
		}
		if !bytes.Equal(saved(t, m), before) || be.InUse() != inUse {
			t.Error("a refused batch left traces")
		}
		// One graph per view is the least.
		if s, err := tr.Step(views(1, 1), true); err != nil || s.Aux != 0 {
			t.Errorf("one graph per view: %v, L_G = %v", err, s.Aux)
		}
	})
}

// failing is an engine that runs out of memory at the Alloc number after.
type failing struct {
	backend.Backend
	after int
}

func (e *failing) Alloc(rows, cols int) *tensor.Tensor {
	if e.after--; e.after == 0 {
		panic(&backend.Error{Backend: "failing", Op: "Alloc", Err: errMemory})
	}
	return e.Backend.Alloc(rows, cols)
}

var errMemory = errors.New("no memory")

// TestDeviceError: whatever allocation fails, Step returns the engine's error,
// the parameters stay, and the next step is as if nothing had happened.
func TestDeviceError(t *testing.T) {
	be := &failing{Backend: ref.New()}
	b := randomBatch(1, 4)
	m, untouched := smallModel(be, 1), smallModel(be, 1)
	tr, reference := specmatch.NewTrainer(be, m, objective(0.5), 0.01), specmatch.NewTrainer(be, untouched, objective(0.5), 0.01)
	failures := 0
	for n := 1; ; n += 1 + n/8 {
		before := weights(m)
		be.after = n
		_, err := tr.Step(b, n%2 == 1)
		be.after = 0
		var device *backend.Error
		if err != nil && (!errors.As(err, &device) || !errors.Is(err, errMemory)) {
			t.Fatalf("Alloc %d: %v", n, err)
		}
		if err != nil && !slices.Equal(weights(m), before) {
			t.Fatalf("Alloc %d failed and the parameters changed", n)
		}
		if err == nil {
			break
		}
		failures++
	}
	if failures < 20 {
		t.Errorf("only %d failures", failures)
	}
	// The last step of tr succeeded.
	if _, err := reference.Step(b, false); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(weights(m), weights(untouched)) {
		t.Error("the step after failures differs from the first step of a fresh trainer")
	}
}

// TestStepPassesOtherPanicsOn: only failures of the device are errors.
func TestStepPassesOtherPanicsOn(t *testing.T) {
	be := ref.New()
	m := smallModel(be, 1)
	m.Head = nn.NewMLP(be, "head", []int{5, 5}, nn.XavierUniform, newRand(1))
	tr := specmatch.NewTrainer(be, m, objective(0.5), 0.01)
	before := be.InUse()
	defer func() {
		if _, ok := recover().(*tensor.ShapeError); !ok {
			t.Error("no *tensor.ShapeError")
		}
		if be.InUse() != before {
			t.Error("the panic left memory in use")
		}
	}()
	tr.Step(randomBatch(1, 4), false)
}

// TestFormsTrainAlike: fused and composed operators lead to the same weights.
func TestFormsTrainAlike(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend) {
		tol := 1e-9
		if be.Precision() == tensor.Float32 {
			tol = 2e-3
		}
		fused, composed := smallModel(be, 1), smallModel(be, 1)
		train(t, specmatch.NewTrainer(be, fused, objective(0.5), 0.01), 10, never)
		train(t, specmatch.NewTrainer(be, composed, objective(0.5), 0.01, autodiff.Composed()), 10, never)
		want := weights(composed)
		for i, v := range weights(fused) {
			if !(math.Abs(v-want[i]) <= tol) {
				t.Fatalf("weight %d is %v fused and %v composed", i, v, want[i])
			}
		}
	})
}

// TestPrecisionsTrainAlike: float32 follows float64, closely at first.
func TestPrecisionsTrainAlike(t *testing.T) {
	run := func(be backend.Backend) ([]specmatch.Stats, []float64) {
		m := smallModel(be, 1)
		return train(t, specmatch.NewTrainer(be, m, objective(0.5), 0.01), 12, never), weights(m)
	}
	s64, w64 := run(cpu.New(tensor.Float64))
	s32, w32 := run(cpu.New(tensor.Float32))
	for k := range s64 {
		near(t, fmt.Sprintf("L_C of step %d", k), s32[k].Main, s64[k].Main, 1e-4)
		near(t, fmt.Sprintf("L_G of step %d", k), s32[k].Aux, s64[k].Aux, 1e-3)
	}
	near(t, "L_C of the first step", s32[0].Main, s64[0].Main, 1e-6)
	difference, size := 0.0, 0.0
	for i := range w64 {
		difference += (w32[i] - w64[i]) * (w32[i] - w64[i])
		size += w64[i] * w64[i]
	}
	if rel := math.Sqrt(difference / size); rel > 1e-3 || rel == 0 {
		t.Errorf("the weights after 12 steps differ by %v", rel)
	}
}

// TestThreadsDoNotMatter: the weights are the same, bit by bit, for any number
// of threads.
func TestThreadsDoNotMatter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	b := randomBatch(1, 96)
	for _, precision := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		var states [][]byte
		for _, threads := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(threads)
			be := cpu.New(precision)
			m := specmatch.NewGINModel(be, labels, newRand(1))
			tr := specmatch.NewTrainer(be, m, objective(0.5), 0.01)
			for range 10 {
				if _, err := tr.Step(b, false); err != nil {
					t.Fatal(err)
				}
			}
			states = append(states, saved(t, m))
		}
		if !bytes.Equal(states[0], states[1]) || !bytes.Equal(states[0], states[2]) {
			t.Errorf("%v: 1, 2 and 4 threads lead to different weights", precision)
		}
	}
}

// TestSeeds: equal seeds give equal bytes, different seeds do not.
func TestSeeds(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend) {
		final := func(seed uint64) []byte {
			m := smallModel(be, seed)
			train(t, specmatch.NewTrainer(be, m, objective(0.5), 0.01), 4, never)
			return saved(t, m)
		}
		if !bytes.Equal(final(1), final(1)) {
			t.Error("equal seeds, different weights")
		}
		if bytes.Equal(final(1), final(2)) {
			t.Error("different seeds, equal weights")
		}
	})
}

var raceDetector bool

// TestStepMemory: a step keeps no memory of the engine's, and makes as many Go
// allocations as any other; on the fast engine that number does not grow with
// the batch either.
func TestStepMemory(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend) {
		count := func(graphs, warmup int) float64 {
			b := randomBatch(1, graphs)
			tr := specmatch.NewTrainer(be, smallModel(be, 1), objective(0.5), 0.01)
			before := be.InUse()
			step := func() {
				if _, err := tr.Step(b, false); err != nil {
					t.Fatal(err)
				}
			}
			for range warmup {
				step()
			}
			allocs := testing.AllocsPerRun(5, step)
			if n := be.InUse(); n != before {
				t.Errorf("steps left %d bytes in use", n-before)
			}
			return allocs
		}
		early, late, large := count(6, 3), count(6, 40), count(24, 3)
		if raceDetector {
			return
		}
		if early != late || early != large && be.Name() != "ref" {
			t.Errorf("%v allocations in step 4, %v in step 41, %v with four times the graphs", early, late, large)
		}
	})
}

// TestObjectiveGradient checks the whole: encoder, head and both losses, over
// all parameters. θ takes part in the derivative, or is fixed: a numeric
// derivative cannot hold a percentile constant.
func TestObjectiveGradient(t *testing.T) {
	for name, c := range map[string]struct {
		specmatch.Objective
		theta float64 // 0 is the percentile
	}{
		"percentile": {specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.LaplacianMatch{Kappa: 10, Percentile: 80, ThresholdGradient: true}}, 0},
		"fixed":      {specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.5, Variant: specmatch.CrossView}, Match: specmatch.LaplacianMatch{Kappa: 5}}, 0.3},
		"spread":     {specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.LaplacianMatch{Adjacency: specmatch.SpreadSigmoid, Kappa: 2}}, 0.5},
	} {
		match := func(z1, z2 *autodiff.Var) *autodiff.Var {
			if c.theta == 0 {
				return c.Match.Loss(z1, z2)
			}
			return specmatch.LossWithThresholds(c.Match, z1, z2, c.theta, c.theta)
		}
		b := randomBatch(4, 5)
		for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
			for form, opts := range forms() {
				t.Run(fmt.Sprintf("%s/train %v/%s", name, mode, form), func(t *testing.T) {
					onEngines(t, func(t *testing.T, be backend.Backend) {
						if _, has := formsOn(be)[form]; !has || be.Precision() != tensor.Float64 {
							t.Skip("the engine has no fused form, or numeric derivatives mean nothing in float32")
						}
						rng := newRand(5)
						m := specmatch.NewModel(be, gnn.NewGIN(be, gnn.GINConfig{In: labels, Hidden: 4, Layers: 2}, rng), rng)
						for _, p := range m.Parameters() { // biases are 0 at first
							v := make([]float64, p.Value.Len())
							be.Download(v, p.Value)
							for i := range v {
								v[i] += 0.2 * (2*rng.Float64() - 1)
							}
							be.Upload(p.Value, v)
						}
						if err := gradcheck.Params(be, func(tape *autodiff.Tape) *autodiff.Var {
							h, z := m.Forward(gnn.NewBatch(tape, b), mode)
							loss := c.Contrast.Loss(z.SliceRows(0, 5), z.SliceRows(5, 10))
							loss = loss.Add(match(z.SliceRows(0, 5), z.SliceRows(5, 10)).Scale(0.5))
							return loss.Add(match(h.SliceRows(0, 5), h.SliceRows(5, 10)))
						}, m.Parameters(), gradcheck.Options{Tape: opts}); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

// TestEmbed: embeddings come in the order of the graphs, do not depend on how
// these are batched, and are those of the collated views where a collate
// function is given.
func TestEmbed(t *testing.T) {
	gs := randomGraphs(3, 9000) // more nodes than one evaluation batch takes
	onEngines(t, func(t *testing.T, be backend.Backend) {
		if be.Name() == "ref" {
			t.Skip("too slow for so many graphs")
		}
		tol := 1e-12
		if be.Precision() == tensor.Float32 {
			tol = 1e-5
		}
		m := smallModel(be, 1)
		train(t, specmatch.NewTrainer(be, m, objective(0.5), 0.01), 3, never)
		before, inUse := saved(t, m), be.InUse()
		h := embed(t, be, m, gs, nil)
		w := m.Encoder.Width()
		if len(h) != len(gs)*w {
			t.Fatalf("%d values for %d graphs of width %d", len(h), len(gs), w)
		}
		for _, i := range []int{0, 1, 4500, 8998, 8999} {
			for j, v := range embed(t, be, m, gs[i:i+1], nil) {
				near(t, fmt.Sprintf("graph %d, entry %d", i, j), h[i*w+j], v, tol)
			}
		}
		calls := 0
		added := embed(t, be, m, gs, func(b *graph.Batch, g *graph.Graph) {
			calls++
			b.Append(g)
		})
		if !slices.Equal(added, h) || calls != len(gs) {
			t.Errorf("%d graphs added, and embeddings that differ: %v", calls, !slices.Equal(added, h))
		}
		if !bytes.Equal(saved(t, m), before) || be.InUse() != inUse {
			t.Error("Embed changed the model or kept memory")
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := gnn.Embed(cancelled, be, m.Encoder, gs, nil); err != context.Canceled {
			t.Errorf("cancelled: %v", err)
		}
		if len(embed(t, be, m, nil, nil)) != 0 {
			t.Error("no graphs have embeddings")
		}
	})
}

func embed(t *testing.T, be backend.Backend, m *specmatch.Model, gs []*graph.Graph, add func(b *graph.Batch, g *graph.Graph)) []float64 {
	t.Helper()
	h, err := gnn.Embed(t.Context(), be, m.Encoder, gs, add)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
