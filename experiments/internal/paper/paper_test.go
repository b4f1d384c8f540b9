package paper_test

import (
	"math"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func newRun(t *testing.T, name string) *training.Run {
	t.Helper()
	ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: 30})
	if err != nil {
		t.Fatal(err)
	}
	return &training.Run{
		Dataset: ds, Regime: method.Unsupervised, Encoder: paper.GIN(ds), Method: name, Seed: 3,
		Recipe:   cli.Recipe{Epochs: 3, Batch: 10, LR: 0.01},
		Settings: training.Settings{OwnRecipes: true},
	}
}

// learner returns the run's learner, which the end of the test closes.
func learner(t *testing.T, r *training.Run, be backend.Backend) *method.Learner {
	t.Helper()
	l, err := r.Learner(be)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestEvaluate: the folds are those of the seed, and the embeddings are the
// learner's, which for GraphCL's code are those of graphs with self-loops.
func TestEvaluate(t *testing.T) {
	be := cpu.New(tensor.Float64)
	const nfolds = 3
	evaluate := func(r *training.Run, loops bool, seed uint32) float64 {
		e := learner(t, r, be).Model.Encoder
		folds, err := dataset.StratifiedKFold(r.Dataset.Labels(), nfolds, true, seed)
		if err != nil {
			t.Fatal(err)
		}
		h, err := gnn.Embed(t.Context(), be, e, r.Dataset.Graphs, func(b *graph.Batch, g *graph.Graph) {
			augment.Identity{SelfLoops: loops}.Append(b, g, nil, new(augment.Workspace))
		})
		if err != nil {
			t.Fatal(err)
		}
		data := eval.Data{X: h, Dim: e.Width(), Y: r.Dataset.Labels()}
		result, err := eval.Evaluate(t.Context(), eval.Linear, data, folds, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return 100 * result.Mean
	}
	for _, name := range []string{method.InfoNCE, method.GraphCL} {
		r := newRun(t, name)
		plain, looped := evaluate(r, false, 3), evaluate(r, true, 3)
		if other := evaluate(r, false, 1); plain == looped || plain == other {
			t.Fatalf("accuracies %v, %v and %v do not tell folds or loops apart", plain, looped, other)
		}
		want := plain
		if name == method.GraphCL {
			want = looped
		}
		result, err := paper.Evaluate(t.Context(), learner(t, r, be), r, "linear", nfolds)
		if err != nil {
			t.Fatal(err)
		}
		if got := 100 * result.Mean; got != want {
			t.Errorf("%s: accuracy %v, want %v", name, got, want)
		}
	}
}

// TestCheck: what evaluation would refuse is refused before training.
func TestCheck(t *testing.T) {
	protocol := cli.Protocol{Protocols: []string{"linear"}, Folds: 5}
	if err := paper.Check([]*training.Run{newRun(t, method.InfoNCE)}, protocol); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(r *training.Run, protocol *cli.Protocol){
		"motifs in 31 folds":                     func(_ *training.Run, protocol *cli.Protocol) { protocol.Folds = 31 },
		"motifs in 5 folds: eval: all 30 points": func(r *training.Run, _ *cli.Protocol) { setClasses(r.Dataset, func(int) int { return 0 }) },
		"motifs in 5 folds: eval: outer fold":    func(r *training.Run, _ *cli.Protocol) { setClasses(r.Dataset, func(k int) int { return min(1, k/29) }) },
	} {
		r, protocol := newRun(t, method.InfoNCE), protocol
		change(r, &protocol)
		if err := paper.Check([]*training.Run{newRun(t, method.InfoNCE), r}, protocol); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// setClasses gives graph k of a set the class class(k).
func setClasses(ds *dataset.Dataset, class func(k int) int) {
	ds.Classes = 0
	for k, g := range ds.Graphs {
		g.Class = class(k)
		ds.Classes = max(ds.Classes, g.Class+1)
	}
}

func TestCurve(t *testing.T) {
	history := func(losses ...float64) (epochs []train.Metrics) {
		for _, l := range losses {
			epochs = append(epochs, train.Metrics{"loss_c": l, "loss": 100 * l})
		}
		return epochs
	}
	want := plot.Series{Name: "a", X: []float64{1, 2}, Y: []float64{2, 6}, Err: []float64{math.Sqrt2, 0}}
	if d := gocmp.Diff(want, paper.Curve("a", [][]train.Metrics{history(1, 6), history(3, 6)}, "loss_c")); d != "" {
		t.Error(d)
	}
	for name, runs := range map[string][][]train.Metrics{"runs without training": {nil}, "runs without the metric": {{{"loss": 1}}}} {
		if s := paper.Curve("a", runs, "loss_c"); len(s.X) != 0 {
			t.Errorf("%s have a curve: %v", name, s)
		}
	}
}

// TestShares: bands lie one upon the other and fill what they have together.
func TestShares(t *testing.T) {
	runs := [][]train.Metrics{
		{{"p_a": .5, "p_b": .5, "loss": 7}, {"p_a": 0, "p_b": 1}},
		{{"p_a": .1, "p_b": .9, "loss": 7}, {"p_a": .2, "p_b": .8}},
	}
	want := []plot.Series{
		{Name: "a", X: []float64{1, 2}, Y: []float64{.15, .05}, Err: []float64{.15, .05}},
		{Name: "b", X: []float64{1, 2}, Y: []float64{.65, .55}, Err: []float64{.35, .45}},
	}
	if d := gocmp.Diff(want, paper.Shares(runs, "p_"), cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
	pairs := [][]train.Metrics{{{"p_a_a": .25, "p_a_b": .25, "p_b_a": .5}}}
	want = []plot.Series{
		{Name: "a", X: []float64{1}, Y: []float64{.3125}, Err: []float64{.3125}},
		{Name: "b", X: []float64{1}, Y: []float64{.8125}, Err: []float64{.1875}},
	}
	if d := gocmp.Diff(want, paper.Shares(pairs, "p_"), cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
	if paper.Shares(runs, "q_") != nil {
		t.Error("bands of nothing")
	}
}
