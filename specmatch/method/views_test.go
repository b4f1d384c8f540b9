package method

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/tasks"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// motifs is a small set with a small encoder.
func motifs(t *testing.T, regime Regime) Setup {
	t.Helper()
	ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: 30})
	if err != nil {
		t.Fatal(err)
	}
	return Setup{
		Backend: cpu.New(tensor.Float32), Regime: regime, Graphs: ds.Graphs, Batch: 10, Seed: 3,
		Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: ds.FeatureWidth, Hidden: 8, Layers: 2},
		Options: Options{"policy": "dropN", "ratio": 0.3},
	}
}

// rings are graphs as an encoder of molecules or of proteins takes them: cycles of
// 3 nodes and more.
func rings(kind string, n int) (gs []*graph.Graph) {
	width := feature.AtomTypes * feature.ChiralityTags
	if kind == gnn.KindBioGIN {
		width = gnn.NodeFlags
	}
	for size := int32(3); len(gs) < n; size++ {
		g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: width}, EdgeLabel: make([]int32, 2*size)}
		for i := range size {
			neighbours := []int32{(i + 1) % size, (i + size - 1) % size}
			slices.Sort(neighbours)
			g.Adj = append(g.Adj, neighbours...)
			g.Ptr = append(g.Ptr, int32(len(g.Adj)))
			g.X.Category = append(g.X.Category, i%2)
		}
		gs = append(gs, g)
	}
	return gs
}

func hu(kind string, layers int) Setup {
	labels := &tasks.Labels{Names: []string{"y"}}
	for i := range 12 {
		labels.Rows = append(labels.Rows, []tasks.Label{{Value: float32(i)}})
	}
	return Setup{
		Backend: cpu.New(tensor.Float32), Regime: Transfer, Graphs: rings(kind, 12), Batch: 5, Seed: 3,
		SMILES:  strings.Fields("C CC CCC CCO CN CO C=O C#N CCl c1ccccc1 C1CC1 O"),
		Labels:  []*tasks.Labels{labels},
		Encoder: gnn.Architecture{Kind: kind, Hidden: 8, Layers: layers},
	}
}

func newLearner(t *testing.T, name string, s Setup) *Learner {
	t.Helper()
	l, err := New(name, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestViews: the methods differ in views and order of the batches as they say.
func TestViews(t *testing.T) {
	view := func(impl augment.Impl, ratio float64) augment.Augmentation {
		v, err := augment.ParsePolicy("dropN", impl, ratio)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	intended, semi := view(augment.ImplIntended, 0.3), view(augment.ImplSemi, 0.3)
	raw := augment.Identity{}
	for _, c := range []struct {
		method        string
		regime        Regime
		code          bool
		first, second augment.Augmentation
		order         augment.Order
		loops         bool // of graphs to embed
	}{
		{InfoNCE, Unsupervised, true, intended, intended, augment.Reshuffle, false},
		{SpecMatch, Unsupervised, true, intended, intended, augment.Reshuffle, false},
		{SpecMatch, SemiSupervised, true, intended, intended, augment.Reshuffle, false},
		{SpecMatch, Transfer, true, intended, intended, augment.Reshuffle, false},
		{GraphCL, Unsupervised, true, augment.Identity{SelfLoops: true}, view(augment.ImplUnsupervised, 0), augment.ShuffleOnce, true},
		{GraphCL, Unsupervised, false, raw, intended, augment.Reshuffle, false},
		{GraphCL, SemiSupervised, true, semi, semi, augment.Reshuffle, false},
		{GraphCL, SemiSupervised, false, intended, intended, augment.Reshuffle, false},
		{GraphCL, Transfer, true, intended, intended, augment.Reshuffle, false},
	} {
		s := motifs(t, c.regime)
		s.Options = s.Options.With(Options{"graphcl-code": c.code})
		l := newLearner(t, c.method, s)
		loader := l.Learner.(*contrastive).Loader
		want := []any{[]augment.Augmentation{c.first, c.second}, uint64(3), c.order, 10, c.loops}
		got := []any{loader.Collator.Views, loader.Collator.Seed, loader.Order, loader.Batch, l.SelfLoops}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s, %s, code %v:\n%s", c.method, c.regime, c.code, d)
		}
	}
	// Pretext tasks hide things themselves.
	for _, name := range []string{"edgepred", "attrmasking", "infomax", "contextpred"} {
		loader := newLearner(t, name, hu(gnn.KindChemGIN, 2)).Learner.(*pretext).Loader
		if d := cmp.Diff([]augment.Augmentation{raw}, loader.Collator.Views); d != "" || loader.Order != augment.Reshuffle {
			t.Errorf("%s, order %v:\n%s", name, loader.Order, d)
		}
	}
	for _, name := range []string{GraphCL, InfoNCE, SpecMatch} {
		s := motifs(t, Unsupervised)
		s.Options = s.Options.With(Options{"policy": "random9"})
		if _, err := New(name, s); err == nil || !strings.Contains(err.Error(), "random9") {
			t.Errorf("%s, an unknown policy: %v", name, err)
		}
	}
}

// TestViewsDiffer: the two views of a graph never share random state, as they do in
// the code that the published figures come from, nor do two epochs.
func TestViewsDiffer(t *testing.T) {
	s := motifs(t, Transfer)
	s.Options = Options{"policy": "dropN,subgraph"}
	l := newLearner(t, SpecMatch, s)
	// views are both views of every graph.
	views := func(epoch int) (first, second [30][]int32) {
		for samples, b := range l.Epoch(t.Context(), epoch) {
			for k, i := range samples {
				nodes := func(g int) []int32 { return slices.Clone(b.Adj[b.Ptr[b.GraphPtr[g]]:b.Ptr[b.GraphPtr[g+1]]]) }
				first[i], second[i] = shift(nodes(k), b.GraphPtr[k]), shift(nodes(len(samples)+k), b.GraphPtr[len(samples)+k])
			}
		}
		return first, second
	}
	first, second := views(0)
	later, _ := views(1)
	same, repeated := 0, 0
	for i := range first {
		if slices.Equal(first[i], second[i]) {
			same++
		}
		if slices.Equal(first[i], later[i]) {
			repeated++
		}
	}
	if same > 5 || repeated > 5 {
		t.Errorf("of 30 graphs %d have two equal views and %d the same view in two epochs", same, repeated)
	}
	if again, _ := views(0); !cmp.Equal(first, again) {
		t.Error("an epoch has other views when it is asked for again")
	}
}

// shift makes the numbers of nodes count from the graph's first.
func shift(nodes []int32, first int32) []int32 {
	for k := range nodes {
		nodes[k] -= first
	}
	return nodes
}

// TestObjectives: which part of the objective a method has.
func TestObjectives(t *testing.T) {
	s := motifs(t, Unsupervised)
	s.Options = Options{
		"tau": 0.3, "sum": true, "adjacency": "hard", "kappa": 5, "percentile": 70, "random-walk": true, "theta-gradient": true,
		"on-h": true, "center": true, "beta": "auto:0.1", "warmup": 7,
	}
	whole := specmatch.Objective{
		Contrast: specmatch.InfoNCE{Tau: 0.3, Sum: true},
		Match: specmatch.LaplacianMatch{
			Adjacency: specmatch.Hard, Kappa: 5, Percentile: 70, RandomWalk: true, ThresholdGradient: true,
		},
		OnH: true, Center: true,
		Beta: specmatch.Beta{Ratio: 0.1}, Warmup: 7,
	}
	alone, crossed := whole, whole
	alone.Beta, crossed.Beta, crossed.Warmup = specmatch.Beta{}, specmatch.Beta{}, 0
	crossed.Contrast.Variant = specmatch.CrossView
	for name, want := range map[string]specmatch.Objective{SpecMatch: whole, InfoNCE: alone, GraphCL: crossed} {
		trainer := newLearner(t, name, s).Learner.(*contrastive).Trainer
		if d := cmp.Diff(want, trainer.Objective); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

// TestEmbed: GraphCL by its code embeds graphs with the self-loops of its raw view,
// every other method graphs as they are.
func TestEmbed(t *testing.T) {
	s := motifs(t, Unsupervised)
	for name, loops := range map[string]bool{SpecMatch: false, Untrained: false, GraphCL: true} {
		l := newLearner(t, name, s)
		want, err := gnn.Embed(t.Context(), s.Backend, l.Model.Encoder, s.Graphs, func(b *graph.Batch, g *graph.Graph) {
			augment.Identity{SelfLoops: loops}.Append(b, g, nil, new(augment.Workspace))
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Embed(t.Context(), s.Graphs)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, or other embeddings than with self-loops %v", name, err, loops)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Embed(cancelled, s.Graphs); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", name, err)
		}
	}
}

// failing is an engine without memory from some moment on.
type failing struct {
	backend.Backend
	failed bool
	left   int // calls of Axpby and Download before one fails, and with it all of Alloc
}

var errMemory = errors.New("no memory")

func (f *failing) check(op string, left *int) {
	if *left--; f.failed && *left < 0 {
		panic(&backend.Error{Backend: "failing", Op: op, Err: errMemory})
	}
}

func (f *failing) Alloc(rows, cols int) *tensor.Tensor {
	if f.left == 0 {
		f.check("Alloc", new(int))
	}
	return f.Backend.Alloc(rows, cols)
}

func (f *failing) Axpby(dst *tensor.Tensor, a float64, x *tensor.Tensor, b float64, y *tensor.Tensor) {
	f.check("Axpby", &f.left)
	f.Backend.Axpby(dst, a, x, b, y)
}

func (f *failing) Download(dst []float64, src *tensor.Tensor) {
	f.check("Download", &f.left)
	f.Backend.Download(dst, src)
}

// TestDeviceFails: a device that fails is an error, not a panic, whatever it was
// asked for.
func TestDeviceFails(t *testing.T) {
	for _, regime := range []Regime{Unsupervised, Transfer} {
		for _, name := range Names(regime) {
			s := motifs(t, regime)
			if regime == Transfer {
				s = hu(gnn.KindChemGIN, 2)
			}
			be := &failing{Backend: s.Backend}
			s.Backend = be
			l := newLearner(t, name, s)
			be.failed = true
			if _, err := New(name, s); !errors.Is(err, errMemory) {
				t.Errorf("%s, a new one: %v", name, err)
			}
			if _, err := l.Embed(t.Context(), s.Graphs); !errors.Is(err, errMemory) {
				t.Errorf("%s, embeddings: %v", name, err)
			}
			if Frozen(name) {
				continue
			}
			for samples, graphs := range l.Epoch(t.Context(), 0) {
				if _, err := l.Step(train.Batch{Samples: samples, Graphs: graphs}); !errors.Is(err, errMemory) {
					t.Errorf("%s, a step: %v", name, err)
				}
				break
			}
			// Later failures come wherever the engine is called: all of an epoch must return
			// the error until there are no more calls.
			for left, failed := 1, true; failed; left++ {
				failed = false
				be.failed = false
				l := newLearner(t, name, s)
				be.failed, be.left = true, left
				_, err := train.Run(t.Context(), l, train.Options{Epochs: 1}, func(train.Progress) error { return nil })
				if failed = err != nil; failed && !errors.Is(err, errMemory) {
					t.Errorf("%s, call %d: %v", name, left, err)
				}
				if left > 40 {
					left += left / 4
				}
			}
		}
	}
}

// TestDefaults: the temperatures are the papers', and no regime is the unsupervised one.
func TestDefaults(t *testing.T) {
	for regime, tau := range map[Regime]float64{"": 0.2, Unsupervised: 0.2, SemiSupervised: 0.5, Transfer: 0.1} {
		s, err := Setup{Regime: regime}.Complete()
		if got := Tau.Of(s.Options); err != nil || got != tau {
			t.Errorf("regime %q: temperature %v, want %v; %v", regime, got, tau, err)
		}
	}
}

// TestOneGraph: a batch of one graph has no negatives; a contrastive method takes no
// step on it.
func TestOneGraph(t *testing.T) {
	s := motifs(t, Unsupervised)
	s.Graphs = s.Graphs[:11] // in batches of 10
	l := newLearner(t, InfoNCE, s)
	moved := func(step func()) bool {
		before := values(l.Model)
		step()
		return !cmp.Equal(before, values(l.Model))
	}
	index := 0
	for samples, graphs := range l.Epoch(t.Context(), 0) {
		b := train.Batch{Index: index, Samples: samples, Graphs: graphs}
		if alone := len(samples) == 1; moved(func() {
			if m, err := l.Step(b); err != nil || (m == nil) != alone {
				t.Errorf("batch of %d graphs: %v, %v", len(samples), m, err)
			}
		}) == alone {
			t.Errorf("batch of %d graphs: weights moved %v", len(samples), !alone)
		}
		index++
	}
	if index != 2 {
		t.Errorf("%d batches", index)
	}
}

// values are the parameters' by name.
func values(m nn.Module) map[string][]float64 {
	all := map[string][]float64{}
	for _, p := range m.Parameters() {
		v := make([]float64, p.Value.Len())
		p.Backend().Download(v, p.Value)
		all[p.Name] = v
	}
	return all
}

// TestFirstBatchIsProbed: the metrics of an epoch's first batch have a closer look;
// those of others the losses alone.
func TestFirstBatchIsProbed(t *testing.T) {
	l := newLearner(t, GraphCL, motifs(t, Unsupervised))
	index := 0
	for samples, graphs := range l.Epoch(t.Context(), 0) {
		m, err := l.Step(train.Batch{Index: index, Samples: samples, Graphs: graphs})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"loss", "loss_c"}
		if index == 0 {
			want = []string{
				"align", "beta", "edge_density", "gradient_cosine", "gradient_ratio", "isolated",
				"loss", "loss_c", "loss_g", "loss_g_hard", "similarity_std", "uniform",
			}
		}
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(m))); d != "" {
			t.Errorf("batch %d:\n%s", index, d)
		}
		index++
	}
}

// TestTaskDraws: what a pretext task hides is drawn anew for every batch and epoch,
// and depends on nothing else.
func TestTaskDraws(t *testing.T) {
	s := hu(gnn.KindChemGIN, 2)
	s.Rate = 1e-30 // at which float32 weights stay what they are
	l := newLearner(t, "attrmasking", s)
	loss := func(epoch, index int) float64 {
		m, err := l.Step(train.Batch{Epoch: epoch, Index: index, Graphs: graph.Collate(rings(gnn.KindChemGIN, 20)...)})
		if err != nil || m == nil {
			t.Fatal(m, err)
		}
		return m["loss"]
	}
	first := loss(0, 0)
	if again, batch, epoch := loss(0, 0), loss(0, 1), loss(1, 0); again != first || batch == first || epoch == first || batch == epoch {
		t.Errorf("losses %v and, the same, %v; of another batch %v, of another epoch %v", first, again, batch, epoch)
	}
}

// TestContextSteps: for molecules the neighbourhood is what the encoder sees, for
// proteins the whole network, and the context what is around it.
func TestContextSteps(t *testing.T) {
	for layers, want := range map[int][3]int{2: {2, 1, 4}, 5: {5, 4, 7}} {
		task := newLearner(t, "contextpred", hu(gnn.KindChemGIN, layers)).Learner.(*pretext).task.(*ContextPrediction)
		if got := [3]int{task.Hops, task.Inner, task.Outer}; got != want || task.First {
			t.Errorf("%d layers: %v steps, want %v", layers, got, want)
		}
		if depth := task.Context.(*gnn.ChemGIN).Config.Layers; depth != 3 {
			t.Errorf("an encoder of contexts of %d layers, want 3", depth)
		}
	}
	task := newLearner(t, "contextpred", hu(gnn.KindBioGIN, 2)).Learner.(*pretext).task.(*ContextPrediction)
	if depth := task.Context.(*gnn.BioGIN).Config.Layers; !task.First || task.Inner != 1 || task.Outer < 1e6 || task.Hops < 1e6 || depth != 3 {
		t.Errorf("context prediction over %d, %d and %d steps with %d layers", task.Hops, task.Inner, task.Outer, depth)
	}
}

// TestMaskingByDomain: atoms are hidden in molecules, edges between proteins.
func TestMaskingByDomain(t *testing.T) {
	if task, ok := newLearner(t, "attrmasking", hu(gnn.KindChemGIN, 2)).Learner.(*pretext).task.(*NodeMasking); !ok {
		t.Errorf("of molecules: %T", task)
	}
	if task, ok := newLearner(t, "attrmasking", hu(gnn.KindBioGIN, 2)).Learner.(*pretext).task.(*EdgeMasking); !ok {
		t.Errorf("of proteins: %T", task)
	}
}
