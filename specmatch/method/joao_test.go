package method

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/train"
)

func TestSimplexGolden(t *testing.T) {
	losses := []float64{1.9, 1.5, 2.1, 1.6, .4}
	uniform := []float64{.2, .2, .2, .2, .2}
	p := []float64{.3, .1, .4, .15, .05}
	first := []float64{.366811, 0, .567674, .065516, 0}
	for name, c := range map[string]struct {
		p, losses []float64
		gamma     float64
		want      []float64
	}{
		"uniform, γ .1": {uniform, losses, .1, first},
		"uniform, γ 1":  {uniform, losses, 1, first},
		"no memory":     {p, losses, 1, first},
		"γ .1":          {p, losses, .1, []float64{.353766, 0, .646234, 0, 0}},
		"vertex":        {uniform, []float64{3, 0, 0, 0, 0}, 0, []float64{1, 0, 0, 0, 0}},
	} {
		got := ascend(c.p, c.losses, c.gamma)
		for i := range got {
			nearly(t, name, got[i], c.want[i], 5e-7)
		}
	}
}

// TestSimplex: what comes out is a distribution, close to the exact projection
// (Duchi et al. 2008) and in the order of what went in.
func TestSimplex(t *testing.T) {
	exact := func(b []float64) []float64 {
		sorted := slices.Clone(b)
		slices.SortFunc(sorted, func(x, y float64) int { return -cmpFloat(x, y) })
		sum, mu := 0.0, 0.0
		for k, v := range sorted {
			sum += v
			if next := (sum - 1) / float64(k+1); v > next {
				mu = next
			}
		}
		p := make([]float64, len(b))
		for i, v := range b {
			p[i] = max(v-mu, 0)
		}
		return p
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		b := make([]float64, 1+rng.IntN(25))
		scale := math.Exp(4 * rng.NormFloat64())
		for i := range b {
			b[i] = 3 + scale*rng.NormFloat64()
		}
		got, want, sum := simplex(slices.Clone(b)), exact(b), 0.0
		for i := range b {
			sum += got[i]
			if !(got[i] >= 0) {
				t.Fatalf("%v: a probability of %v", b, got[i])
			}
			nearly(t, "probability", got[i], want[i], 0.021)
		}
		nearly(t, "sum", sum, 1, 1e-12)
	}
	for _, b := range [][]float64{{7}, {1e300, 1, 0}, {-1e20, -1e20}} {
		p, sum := simplex(b), 0.0
		for _, v := range p {
			sum += v
		}
		nearly(t, fmt.Sprint(b), sum, 1, 1e-9)
	}
}

func cmpFloat(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// TestDraw: arms are drawn as often as P says, those without probability never.
func TestDraw(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p, times := []float64{.3, 0, .6, .1, 0}, [5]float64{}
	const n = 20000
	for range n {
		times[draw(p, rng)]++
	}
	for i, k := range times {
		if math.Abs(k-n*p[i]) > 5*math.Sqrt(n*p[i]*(1-p[i])) {
			t.Errorf("arm %d was drawn %v times of %d, its probability is %v", i, k, n, p[i])
		}
	}
}

// newTableJoint is JOAOv2 on the goldens' graphs, whose arms are given.
func newTableJoint(t *testing.T, arms ...arm) *joint {
	be := newFloat64()
	var heads []*nn.MLP
	rng := rand.New(rand.NewPCG(1, 1))
	for k := range joaoOps {
		heads = append(heads, nn.NewMLP(be, fmt.Sprintf("proj_head.%d", k), []int{tableWidth, tableWidth, tableWidth}, nn.XavierUniform, rng))
	}
	j, err := newJoint(goldenSetup(be), newTable(be), heads)
	if err != nil {
		t.Fatal(err)
	}
	wave(j)
	j.drawn = arms
	j.head = func(view, sample int) int { return j.drawn[sample][view] }
	return j
}

var goldenArms = []arm{{4, 0}, {4, 2}, {4, 0}}

func TestJOAOGolden(t *testing.T) {
	be := newFloat64()
	m := goldenModel(be)
	j, err := newJoint(goldenSetup(be), m.Encoder, []*nn.MLP{m.Head})
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "joao", j.Minimizer, j, func(int) *autodiff.Var {
		return j.contrast(j.Tape, tableGraphs(rawPaths, someParts), []int{0, 1, 2})
	})
}

func TestJOAOv2Golden(t *testing.T) {
	j := newTableJoint(t, goldenArms...)
	checkGolden(t, "joaov2", j.Minimizer, j, func(int) *autodiff.Var {
		return j.contrast(j.Tape, tableGraphs(rawPaths, someParts), []int{0, 1, 2})
	})
}

func TestJOAOv2Gradients(t *testing.T) {
	j := newTableJoint(t, goldenArms...)
	var used []*autodiff.Param
	for _, p := range j.Parameters() {
		if !slices.Contains([]byte("13"), p.Name[min(len("proj_head."), len(p.Name)-1)]) || p.Name[0] != 'p' { // heads of no graph
			used = append(used, p)
		}
	}
	checkGradients(t, j.be, used, "", func(tape *autodiff.Tape) *autodiff.Var {
		return j.contrast(tape, tableGraphs(rawPaths, someParts), []int{0, 1, 2})
	})
}

// TestJOAOHeads: which head sees which view.
func TestJOAOHeads(t *testing.T) {
	for _, byEpoch := range []bool{false, true} {
		for _, regime := range []Regime{Unsupervised, SemiSupervised} {
			s := motifs(t, regime)
			s.Options = s.Options.With(Options{"joao-heads-by-epoch": byEpoch})
			j := newLearner(t, "joaov2", s).Learner.(*joint)
			j.Epoch(t.Context(), 0)
			first := arm{j.head(0, 0), j.head(1, 0)}
			alike := true
			for i, a := range j.drawn {
				got := arm{j.head(0, i), j.head(1, i)}
				if !byEpoch && got != a {
					t.Errorf("%s: graph %d of arm %v has heads %v", regime, i, a, got)
				}
				alike = alike && got == first
			}
			if alike != byEpoch || byEpoch && regime == Unsupervised && first[0] != 0 {
				t.Errorf("%s, by epoch %v: heads %v, for all graphs %v", regime, byEpoch, first, alike)
			}
			if want := map[Regime]int{Unsupervised: 5, SemiSupervised: 25}[regime]; len(j.arms) != want {
				t.Errorf("%s: %d arms, want %d", regime, len(j.arms), want)
			}
		}
	}
}

// TestJOAOViews: a graph's views are those of its arm.
func TestJOAOViews(t *testing.T) {
	s := motifs(t, SemiSupervised)
	j := newLearner(t, "joao", s).Learner.(*joint)
	differ := 0
	for samples, b := range j.Epoch(t.Context(), 0) {
		n := len(samples)
		for r := range 2 * n {
			op, whole := joaoOps[j.drawn[samples[r%n]][r/n]], s.Graphs[samples[r%n]].Nodes()
			nodes := int(b.GraphPtr[r+1] - b.GraphPtr[r])
			if removes := op == "dropN" || op == "subgraph"; removes && nodes > whole || !removes && nodes != whole {
				t.Errorf("%s of %d nodes leaves %d", op, whole, nodes)
			} else if nodes < whole {
				differ++
			}
		}
	}
	if differ == 0 {
		t.Error("no view has lost a node")
	}
}

// TestCategoryMasking: the share of a molecule's atoms is hidden, and nothing else
// changes.
func TestCategoryMasking(t *testing.T) {
	s := hu(gnn.KindChemGIN, 2)
	view, err := s.joaoView("maskN")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range s.Graphs {
		b := graph.Collate(s.Graphs[0])
		first := b.Nodes()
		view.Append(b, g, rand.New(rand.NewPCG(1, 2)), nil)
		hidden := 0
		for i, c := range b.X.Category[first:] {
			if c == feature.Hu.Masked() {
				hidden++
			} else if c != g.X.Category[i] {
				t.Errorf("atom %d changed from %d to %d", i, g.X.Category[i], c)
			}
		}
		if hidden != g.Nodes()/5 || slices.Contains(b.X.Category[:first], feature.Hu.Masked()) {
			t.Errorf("%d of %d atoms are hidden", hidden, g.Nodes())
		}
	}
}

// TestJOAOMeasure: the loss of every arm is that of batches whose graphs all have it.
func TestJOAOMeasure(t *testing.T) {
	const epoch = 3
	for _, regime := range []Regime{Unsupervised, SemiSupervised} {
		s := motifs(t, regime)
		s.Batch = 2
		j := newLearner(t, "joaov2", s).Learner.(*joint)
		losses, err := j.measure(t.Context(), epoch)
		if err != nil {
			t.Fatal(err)
		}
		for k, a := range j.arms {
			for i := range j.drawn {
				j.drawn[i] = a
			}
			j.head = func(view, _ int) int { return a[view] }
			want, graphs := 0.0, 0
			for samples, b := range j.Loader.Epoch(t.Context(), epoch) {
				want += float64(float64(len(samples)) * j.contrast(j.Tape, b, samples).Float())
				j.Tape.Reset()
				if graphs += len(samples); graphs > len(j.Loader.Graphs)/map[Regime]int{Unsupervised: 5, SemiSupervised: 10}[regime] {
					break
				}
			}
			nearly(t, fmt.Sprintf("%v, %s", regime, j.name(a)), losses[k], want/float64(graphs), 1e-6)
		}
	}
}

// TestJOAOEnd: measuring the arms leaves everything but P as it was, and the running
// statistics too unless they are to move.
func TestJOAOEnd(t *testing.T) {
	for _, moves := range []bool{false, true} {
		s := motifs(t, Unsupervised)
		s.Options = s.Options.With(Options{"joao-probe-moves": moves})
		j := newLearner(t, "joao", s).Learner.(*joint)
		read := func() (params map[string][]float64, buffers [][]float64) {
			for _, b := range j.Buffers() {
				v := make([]float64, b.Value.Len())
				j.be.Download(v, b.Value)
				buffers = append(buffers, v)
			}
			return values(j), buffers
		}
		params, buffers := read()
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := j.End(cancelled, 0); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, now := read(); !cmp.Equal(buffers, now) || j.state.P[0] != 0.2 {
			t.Error("what was cancelled left traces")
		}
		inUse := j.be.InUse()
		m, err := j.End(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := j.be.InUse(); n != inUse {
			t.Errorf("%d bytes in use, were %d", n, inUse)
		}
		sum := 0.0
		for _, op := range joaoOps {
			sum += m["p_"+string(op)]
		}
		nearly(t, "sum of the metrics", sum, 1, 1e-12)
		nowParams, nowBuffers := read()
		if !cmp.Equal(params, nowParams) || cmp.Equal(buffers, nowBuffers) == moves {
			t.Errorf("probes that move statistics %v: parameters stay %v, statistics stay %v", moves, cmp.Equal(params, nowParams), cmp.Equal(buffers, nowBuffers))
		}
	}
}

// TestJOAOPermutation: the order of the graphs of a batch does not matter.
func TestJOAOPermutation(t *testing.T) {
	j := newTableJoint(t, goldenArms...)
	defer j.Tape.Reset()
	loss := func(order ...int) float64 {
		var raw, parts [][]int32
		for _, i := range order {
			raw, parts = append(raw, rawPaths[i]), append(parts, someParts[i])
		}
		return j.contrast(j.Tape, tableGraphs(raw, parts), order).Float()
	}
	nearly(t, "loss", loss(2, 0, 1), loss(0, 1, 2), 1e-13)
	if m, err := j.Step(train.Batch{Samples: []int{0}}); m != nil || err != nil {
		t.Errorf("one graph: %v, %v", m, err)
	}
}
