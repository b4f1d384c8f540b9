package method_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/tasks"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// setup is a small one for a regime, on the given kind of encoder.
func setup(t *testing.T, be backend.Backend, r method.Regime, kind string) method.Setup {
	t.Helper()
	s := method.Setup{
		Backend: be, Regime: r, Encoder: gnn.Architecture{Kind: kind, Hidden: 8, Layers: 2}, Batch: 10, Seed: 3,
	}
	switch kind {
	case gnn.KindChemGIN:
		for k := range 25 {
			s.Graphs = append(s.Graphs, ring(5+k%4, 6, feature.AtomTypes*feature.ChiralityTags/3, uint64(k)))
		}
		for k, g := range s.Graphs {
			g.X.Width = feature.AtomTypes * feature.ChiralityTags
			s.SMILES = append(s.SMILES, strings.Repeat("C", 1+k%7)+strings.Repeat("O", k%3)+strings.Repeat("N", k%2))
		}
		s.Labels = []*tasks.Labels{labels(len(s.Graphs))}
	case gnn.KindBioGIN:
		for k := range 25 {
			s.Graphs = append(s.Graphs, ring(5+k%4, 3, gnn.NodeFlags, uint64(k)))
		}
	default:
		ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: 25})
		if err != nil {
			t.Fatal(err)
		}
		s.Graphs, s.Encoder.In = ds.Graphs, ds.FeatureWidth
	}
	return s
}

// labels returns labels of n graphs for two tasks, with gaps.
func labels(n int) *tasks.Labels {
	l := &tasks.Labels{File: "labels", Names: []string{"binary", "number"}}
	for k := range n {
		row := []tasks.Label{{Task: 1, Value: float32(k*k%17) / 3}}
		if k%5 > 1 {
			row = []tasks.Label{{Task: 0, Value: float32(k % 2)}, row[0]}
		}
		l.Rows = append(l.Rows, row)
	}
	return l
}

// kinds are the encoders of the regimes.
var kinds = map[method.Regime][]string{
	method.Unsupervised: {gnn.KindGIN}, method.SemiSupervised: {gnn.KindResGCN}, method.Transfer: {gnn.KindChemGIN, gnn.KindBioGIN},
}

// each runs a test for every registered method in every regime that it is for.
func each(t *testing.T, test func(t *testing.T, m *method.Method, newSetup func(be backend.Backend) method.Setup)) {
	for regime, kinds := range kinds {
		for _, kind := range kinds {
			for _, m := range method.All(regime) {
				if m.Molecules && kind != gnn.KindChemGIN {
					continue
				}
				t.Run(string(regime)+"/"+kind+"/"+m.Name, func(t *testing.T) {
					test(t, m, func(be backend.Backend) method.Setup { return setup(t, be, regime, kind) })
				})
			}
		}
	}
}

// epochs returns how many a test trains a method.
func epochs(m *method.Method) int {
	if m.Frozen {
		return 0
	}
	return 3
}

// outcome is what a training leaves.
type outcome struct {
	Epochs     []train.Metrics
	Tensors    string
	Values     any
	Embeddings []float64
}

// begun is the place behind the first Begin, before a step.
const begun = -1

// learn trains a new learner, of which at calls f before a step counted over all
// epochs from 1, or where it is begun.
func learn(t *testing.T, ctx context.Context, m *method.Method, s method.Setup, checkpoint string, at int, f func()) (out outcome, steps int, err error) {
	t.Helper()
	l, err := m.New(s)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	counted := &counting{Learner: l, at: at, f: f}
	_, err = train.Run(ctx, counted, train.Options{Epochs: epochs(m), Checkpoint: checkpoint}, func(p train.Progress) error {
		if p.Ended {
			out.Epochs = append(out.Epochs, p.Metrics)
		}
		return nil
	})
	if err != nil {
		return out, counted.steps, err
	}
	tensors, values := l.State()
	var b bytes.Buffer
	if err := nn.Save(&b, tensors, nil); err != nil {
		t.Fatal(err)
	}
	out.Tensors, out.Values = b.String(), values
	out.Embeddings, err = l.Embed(t.Context(), s.Graphs)
	return out, counted.steps, err
}

type counting struct {
	train.Learner
	steps, at int
	f         func()
}

func (c *counting) Begin(ctx context.Context, epoch int) error {
	err := c.Learner.Begin(ctx, epoch)
	if c.at == begun && epoch == 0 && err == nil {
		c.f()
	}
	return err
}

func (c *counting) Step(b train.Batch) (train.Metrics, error) {
	if c.steps++; c.steps == c.at {
		c.f()
	}
	return c.Learner.Step(b)
}

// TestResumed interrupts every method before its first step and at every step of its
// second epoch: what it leaves in the end is what a training without interruption leaves.
func TestResumed(t *testing.T) {
	each(t, func(t *testing.T, m *method.Method, newSetup func(be backend.Backend) method.Setup) {
		be := cpu.New(tensor.Float32)
		want, steps, err := learn(t, t.Context(), m, newSetup(be), "", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m.Frozen {
			return
		}
		places := []int{begun}
		for at := steps/3 + 1; at <= 2*steps/3; at++ {
			places = append(places, at)
		}
		for _, at := range places {
			checkpoint := filepath.Join(t.TempDir(), "checkpoint")
			ctx, cancel := context.WithCancel(t.Context())
			if _, _, err := learn(t, ctx, m, newSetup(be), checkpoint, at, cancel); !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted at step %d: %v", at, err)
			}
			got, more, err := learn(t, t.Context(), m, newSetup(be), checkpoint, 0, nil)
			if err != nil || more >= steps && at != begun {
				t.Fatalf("taken up at step %d of %d: %d more steps, %v", at, steps, more, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("interrupted at step %d:\n%.2000s", at, d)
			}
		}
	})
}

// TestMethods: every method of the list starts from the weights of the seed, reports
// a loss, and goes somewhere of its own.
func TestMethods(t *testing.T) {
	seen := map[string]string{}
	each(t, func(t *testing.T, m *method.Method, newSetup func(be backend.Backend) method.Setup) {
		be := cpu.New(tensor.Float32)
		s := newSetup(be)
		l, err := m.New(s)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		initial, _, err := s.NewEncoder()
		if err != nil {
			t.Fatal(err)
		}
		same := cmp.Diff(bits(t, initial), bits(t, l.Model.Encoder)) == ""
		if want := m.Name != method.UntrainedTorch; same != want {
			t.Errorf("it starts from the seed's initial weights: %v, want %v", same, want)
		}
		out, _, err := learn(t, t.Context(), m, s, "", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for e, metrics := range out.Epochs {
			if _, ok := metrics["loss"]; !ok {
				t.Errorf("epoch %d has no loss: %v", e+1, metrics)
			}
		}
		key := out.Tensors
		if other, ok := seen[key]; ok {
			t.Errorf("it ends with the weights of %s", other)
		}
		seen[key] = t.Name()
	})
}

func bits(t *testing.T, m nn.Module) string {
	t.Helper()
	var b bytes.Buffer
	if err := nn.Save(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestList: names are unique, and what is not there is said.
func TestList(t *testing.T) {
	for _, r := range []method.Regime{method.Unsupervised, method.SemiSupervised, method.Transfer} {
		seen := map[string]bool{}
		for _, name := range method.Names(r) {
			m, err := method.Get(name)
			if err != nil || m.Name != name || m.Title == "" || method.Title(name) != m.Title || seen[name] {
				t.Errorf("%s: %+v, %v", name, m, err)
			}
			seen[name] = true
		}
		if !seen[method.SpecMatch] || !seen[method.GraphCL] {
			t.Errorf("%s has %v", r, seen)
		}
	}
	if _, err := method.New("magic", method.Setup{}); err == nil || !strings.Contains(err.Error(), `"magic" is unknown (have: untrained, `) {
		t.Error(err)
	}
	if method.Title("magic") != "magic" {
		t.Error("a title of a method that is not there")
	}
}

// TestRefused: a setup that a method is not for.
func TestRefused(t *testing.T) {
	be := cpu.New(tensor.Float32)
	gin := setup(t, be, method.Unsupervised, gnn.KindGIN)
	wrongPolicy, noEncoder, cold, unknown, word := gin, gin, gin, gin, gin
	cold.Options = method.Options{"tau": 0}
	unknown.Options = method.Options{"taw": 1}
	word.Options = method.Options{"kappa": "sharp"}
	negative, backwards, nothing, broken := gin, gin, gin, gin
	negative.Batch, backwards.Rate, nothing.Graphs = -1, -1, nil
	broken.Graphs = append(slices.Clone(gin.Graphs[:2]), &graph.Graph{Ptr: []int32{0, 1}, Adj: []int32{7}, X: gin.Graphs[0].X})
	wrongPolicy.Options, noEncoder.Encoder.Hidden = method.Options{"policy": "random9"}, 0
	elsewhere, noGamma, noNoise, both := gin, gin, gin, gin
	elsewhere.Regime = method.Transfer
	noGamma.Options = method.Options{"joao-gamma": math.NaN()}
	noNoise.Options = method.Options{"simgrace-eta": 0}
	both.Options = method.Options{"raw-statistics": true, "joao-probe-moves": true}
	for want, c := range map[string]struct {
		method string
		s      method.Setup
	}{
		"not for encoder gin":               {"attrmasking", elsewhere},
		"not for the regime":                {"attrmasking", gin},
		"setting joao-gamma = NaN: want":    {"joao", noGamma},
		"setting simgrace-eta = 0: want":    {"simgrace", noNoise},
		"want one of them":                  {"joao", both},
		"no augmentation":                   {"simgrace", wrongPolicy},
		"setting tau = 0: want a number":    {"graphcl", cold},
		`no setting "taw"`:                  {"graphcl", unknown},
		"setting kappa = sharp: want":       {"simgrace", word},
		"batches of -1 graphs":              {"infonce", negative},
		"learning rate -1":                  {"infonce", backwards},
		"no graphs to learn from":           {"infonce", nothing},
		"graph 2: graph: ":                  {"infonce", broken},
		"an encoder of 2 layers of width 0": {"untrained", noEncoder},
	} {
		if _, err := method.New(c.method, c.s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", c.method, err, want)
		}
	}
	l, err := method.New(method.Untrained, gin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := train.Run(t.Context(), l, train.Options{Epochs: 1}, func(train.Progress) error { return nil }); err == nil || !strings.Contains(err.Error(), "want 0 epochs") {
		t.Errorf("training the untrained encoder: %v", err)
	}
	// A batch of one graph has nothing to contrast.
	gin.Graphs = gin.Graphs[:1]
	one, err := method.New(method.InfoNCE, gin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := train.Run(t.Context(), one, train.Options{Epochs: 1}, func(train.Progress) error { return nil }); err == nil || !strings.Contains(err.Error(), "no batch had anything to learn from") {
		t.Errorf("one graph: %v", err)
	}
	var none []*graph.Graph
	if h, err := one.Embed(t.Context(), none); err != nil || len(h) != 0 {
		t.Errorf("embeddings of no graphs: %v, %v", h, err)
	}
}

// TestRichCategories: every method for molecules learns from an encoder of more categories than
// those of Hu et al., and hides atoms among them.
func TestRichCategories(t *testing.T) {
	for _, m := range method.All(method.Transfer) {
		s := setup(t, cpu.New(tensor.Float32), method.Transfer, gnn.KindChemGIN)
		s.Encoder.Atoms = feature.Rich.Name
		for _, g := range s.Graphs {
			g.X.Width = feature.Rich.NodeWidth()
		}
		out, _, err := learn(t, t.Context(), m, s, "", 0, func() {})
		if err != nil || len(out.Epochs) != epochs(m) {
			t.Errorf("%s: %d epochs, %v", m.Name, len(out.Epochs), err)
		}
	}
}

// TestOwnGraphs: on what graphs of users and encoders of the flags may have, every method learns or says why it does not.
func TestOwnGraphs(t *testing.T) {
	withEdges := func(g *graph.Graph, value func(k int) int32) {
		g.EdgeLabel = make([]int32, len(g.Adj))
		for k := range g.EdgeLabel {
			g.EdgeLabel[k] = value(k)
		}
	}
	for name, change := range map[string]func(s *method.Setup){
		"labels of edges": func(s *method.Setup) {
			s.Encoder.EdgeLabels = 3
			for _, g := range s.Graphs {
				withEdges(g, func(k int) int32 { return int32(k % 3) })
			}
		},
		"weights of edges": func(s *method.Setup) {
			s.Encoder.Weights = true
			for _, g := range s.Graphs {
				withEdges(g, func(k int) int32 { return graph.WeightLabel(0.5 * float32(k%3)) })
			}
		},
		"the last layer":    func(s *method.Setup) { s.Encoder.Readout = "last:mean" },
		"several readouts":  func(s *method.Setup) { s.Encoder.Readout = "all:sum,mean,max" },
		"arcs of one sense": func(s *method.Setup) { direct(s.Graphs) },
	} {
		for _, m := range method.All(method.Unsupervised) {
			if m.Molecules {
				continue
			}
			t.Run(name+"/"+m.Name, func(t *testing.T) {
				s := setup(t, cpu.New(tensor.Float32), method.Unsupervised, gnn.KindGIN)
				change(&s)
				trainsOrRefuses(t, m, s)
			})
		}
	}
}

// TestReadouts: methods of the other regimes train with any readout, or refuse it by name.
func TestReadouts(t *testing.T) {
	for regime, kind := range map[method.Regime]string{method.SemiSupervised: gnn.KindResGCN, method.Transfer: gnn.KindChemGIN} {
		for _, m := range method.All(regime) {
			for _, readout := range []gnn.Readout{"4:sum", "all:sum,mean,max"} {
				t.Run(fmt.Sprint(regime, "/", m.Name, "/", readout), func(t *testing.T) {
					s := setup(t, cpu.New(tensor.Float32), regime, kind)
					s.Encoder.Layers = 4
					s.Encoder.Hidden = 8
					s.Encoder.Readout = readout
					trainsOrRefuses(t, m, s)
				})
			}
		}
	}
}

func trainsOrRefuses(t *testing.T, m *method.Method, s method.Setup) {
	l, err := m.New(s)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "method: ") {
			t.Error(err)
		}
		return
	}
	defer l.Close()
	if _, err := train.Run(t.Context(), l, train.Options{Epochs: min(1, epochs(m))}, nil); err != nil {
		t.Error(err)
	}
}

// direct keeps the arcs of graphs that go to a smaller number.
func direct(graphs []*graph.Graph) {
	for k, g := range graphs {
		d := *g
		d.Ptr = []int32{0}
		d.Adj = nil
		d.Directed = true
		for i := range g.Nodes() {
			for _, j := range g.Adj[g.Ptr[i]:g.Ptr[i+1]] {
				if int(j) < i {
					d.Adj = append(d.Adj, j)
				}
			}
			d.Ptr = append(d.Ptr, int32(len(d.Adj)))
		}
		graphs[k] = &d
	}
}
