package gnn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
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
	"github.com/specmatch/specmatch/tensor"
)

var engines = []struct {
	name string
	open func() backend.Backend
	tol  float64 // relative error of an encoder's output or gradient
}{
	{"ref", ref.New, 1e-12},
	{"cpu float64", func() backend.Backend { return cpu.New(tensor.Float64) }, 1e-12},
	{"cpu float32", func() backend.Backend { return cpu.New(tensor.Float32) }, 2e-5},
}

var forms = map[string][]autodiff.Option{"fused": nil, "composed": {autodiff.Composed()}}

func onEngines(t *testing.T, f func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64)) {
	for _, e := range engines {
		for form, opts := range forms {
			t.Run(e.name+"/"+form, func(t *testing.T) { f(t, e.open(), opts, e.tol) })
		}
	}
}

func checkClose(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(v))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*scale) {
			t.Errorf("%s: entry %d is %.17g, want %.17g", what, i, got[i], want[i])
			return
		}
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// kinds are the kinds of graphs that an encoder meets.
var kinds = []struct {
	name            string
	dense, directed bool
}{
	{"one-hot", false, false},
	{"dense", true, false},
	{"one-hot, asymmetric", false, true},
	{"dense, asymmetric", true, true},
}

// randomGraph has n nodes with features of the given width, each edge with
// probability 0.3, and some nodes without any.
func randomGraph(rng *rand.Rand, n, width int, dense, directed bool) *graph.Graph {
	edge := make([]bool, n*n) // edge[i·n+j]: j → i
	for i := range n {
		for j := range i {
			e := rng.Float64() < 0.3
			edge[i*n+j], edge[j*n+i] = e, e
			if directed {
				edge[j*n+i] = rng.Float64() < 0.3
			}
		}
	}
	g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: width}}
	for i := range n {
		for j := range n {
			if edge[i*n+j] {
				g.Adj = append(g.Adj, int32(j))
			}
		}
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
		if dense {
			for range width {
				g.X.Dense = append(g.X.Dense, float32(rng.NormFloat64()))
			}
		} else {
			g.X.Category = append(g.X.Category, rng.Int32N(int32(width)))
		}
	}
	g.Directed = !g.Symmetric()
	return g
}

func randomGraphs(t *testing.T, seed uint64, width int, dense, directed bool, sizes ...int) []*graph.Graph {
	t.Helper()
	rng := newRand(seed)
	var gs []*graph.Graph
	for _, n := range sizes {
		g := randomGraph(rng, n, width, dense, directed)
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		gs = append(gs, g)
	}
	if directed && !slices.ContainsFunc(gs, func(g *graph.Graph) bool { return g.Directed }) {
		t.Fatal("no graph is asymmetric")
	}
	return gs
}

// twoViews is a batch of the graphs, the first half as one view, the second as
// another.
func twoViews(gs []*graph.Graph) *graph.Batch {
	b := new(graph.Batch)
	for i, g := range gs {
		b.Append(g)
		if i == len(gs)/2-1 || i == len(gs)-1 {
			b.EndView()
		}
	}
	return b
}

// newGIN is an encoder whose biases and norms are not the initial ones, so that
// each is seen in the output.
func newGIN(be backend.Backend, c gnn.GINConfig) *gnn.GIN {
	e := gnn.NewGIN(be, c, newRand(77))
	rng := newRand(78)
	draw := func(v *tensor.Tensor, around, spread float64) {
		x := make([]float64, v.Len())
		for i := range x {
			x[i] = float64(float32(around + spread*(2*rng.Float64()-1)))
		}
		be.Upload(v, x)
	}
	for l := range e.Convs {
		for _, lin := range e.Convs[l].MLP.Layers {
			draw(lin.B.Value, 0, 0.3)
		}
		draw(e.Norms[l].Gamma.Value, 1, 0.5)
		draw(e.Norms[l].Bias.Value, 0, 0.5)
		draw(e.Norms[l].RunningMean.Value, 0.5, 0.5)
		draw(e.Norms[l].RunningVar.Value, 1.5, 0.5)
	}
	return e
}

// TestGINConvFormula computes y_i = MLP((1+ε)x_i + Σ_{j→i} x_j) by hand. Node 1
// receives from 0 and 2, node 2 from 1, node 0 from none.
func TestGINConvFormula(t *testing.T) {
	g := &graph.Graph{Ptr: []int32{0, 0, 2, 3}, Adj: []int32{0, 2, 1}, Directed: true,
		X: graph.Features{Width: 2, Dense: []float32{1, 0, 0, 1, 2, -3}}}
	// Sums with ε = 0.5: 1.5·(1,0); 1.5·(0,1)+(1,0)+(2,-3); 1.5·(2,-3)+(0,1).
	sums := []float64{1.5, 0, 3, -1.5, 3, -3.5}
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
		c := gnn.NewGINConv(be, "conv", 2, 2, 1, nn.XavierUniform, newRand(1))
		c.Eps = 0.5
		be.Upload(c.MLP.Layers[0].W.Value, []float64{1, 2, -1, 1})
		be.Upload(c.MLP.Layers[0].B.Value, []float64{-0.5, 0.25})
		be.Upload(c.MLP.Layers[1].W.Value, []float64{1, 10})
		be.Upload(c.MLP.Layers[1].B.Value, []float64{0.125})
		var want []float64
		for i := range 3 {
			a, b := sums[2*i], sums[2*i+1]
			want = append(want, max(a-b-0.5, 0)+10*max(2*a+b+0.25, 0)+0.125)
		}
		tape := autodiff.NewInference(be, opts...)
		defer tape.Reset()
		b := gnn.NewBatch(tape, graph.Collate(g))
		checkClose(t, "input features", c.Forward(b, nil).Data(), want, tol)
		checkClose(t, "hidden features", c.Forward(b, tape.Matrix(3, 2, []float64{1, 0, 0, 1, 2, -3})).Data(), want, tol)
	})
}

// TestGINSelfLoops: ε = 1 is a self-loop on every node.
func TestGINSelfLoops(t *testing.T) {
	plain := &graph.Graph{Ptr: []int32{0, 1, 3, 4}, Adj: []int32{1, 0, 2, 1}, X: graph.Features{Width: 1, Dense: []float32{1, -2, 3}}}
	loops := &graph.Graph{Ptr: []int32{0, 2, 5, 7}, Adj: []int32{0, 1, 0, 1, 2, 1, 2}, X: plain.X}
	be := ref.New()
	embed := func(g *graph.Graph, eps float64) []float64 {
		return pass(be, gnn.NewGIN(be, gnn.GINConfig{In: 1, Hidden: 4, Layers: 3, Eps: eps}, newRand(1)), graph.Collate(g), nn.Eval).h
	}
	checkClose(t, "ε = 1", embed(plain, 1), embed(loops, 0), 1e-12)
}

func TestGINConvGradients(t *testing.T) {
	const width = 3
	for _, kind := range kinds {
		b := graph.Collate(randomGraphs(t, 5, width, kind.dense, kind.directed, 4, 1, 5)...)
		t.Run(kind.name, func(t *testing.T) {
			onExactEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option) {
				c := gnn.NewGINConv(be, "conv", width, 4, 2, nn.XavierUniform, newRand(1))
				c.Eps = 0.3
				for i, l := range c.MLP.Layers {
					l.ResetBias(be, newRand(uint64(2+i)))
				}
				check := func(what string, params []*autodiff.Param, f func(tape *autodiff.Tape) *autodiff.Var) {
					if err := gradcheck.Params(be, f, params, gradcheck.Options{Tape: opts}); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				check("input features", c.Parameters(), func(tape *autodiff.Tape) *autodiff.Var {
					return c.Forward(gnn.NewBatch(tape, b), nil)
				})
				x := autodiff.NewParam(be, "x", b.Nodes(), width, gradcheck.Random(newRand(6), b.Nodes(), width).Values)
				check("hidden features", append(c.Parameters(), x), func(tape *autodiff.Tape) *autodiff.Var {
					return c.Forward(gnn.NewBatch(tape, b), tape.Param(x))
				})
				noBias := &gnn.GINConv{MLP: &nn.MLP{Layers: []*nn.Linear{
					nn.NewLinearNoBias(be, "a", width, 4, nn.XavierUniform, newRand(8)),
					nn.NewLinearNoBias(be, "b", 4, 2, nn.XavierUniform, newRand(9)),
				}}}
				check("without biases", noBias.Parameters(), func(tape *autodiff.Tape) *autodiff.Var {
					return noBias.Forward(gnn.NewBatch(tape, b), nil)
				})
			})
		})
	}
}

func onExactEngines(t *testing.T, f func(t *testing.T, be backend.Backend, opts []autodiff.Option)) {
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, _ float64) {
		if be.Precision() == tensor.Float64 {
			f(t, be, opts)
		}
	})
}

func TestGINGradients(t *testing.T) {
	for _, kind := range kinds {
		b := twoViews(randomGraphs(t, 5, 3, kind.dense, kind.directed, 4, 1, 5, 3, 6, 2))
		for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
			t.Run(fmt.Sprintf("%s/train %v", kind.name, mode), func(t *testing.T) {
				onExactEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option) {
					e := newGIN(be, gnn.GINConfig{In: 3, Hidden: 4, Layers: 2})
					if err := gradcheck.Params(be, func(tape *autodiff.Tape) *autodiff.Var {
						return e.Forward(gnn.NewBatch(tape, b), mode)
					}, e.Parameters(), gradcheck.Options{Tape: opts}); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// run encodes a batch and returns the embeddings, the gradients of a fixed
// function of them, and the running statistics afterwards.
func run(be backend.Backend, opts []autodiff.Option, b *graph.Batch, mode nn.Mode) (h, grads, running []float64) {
	e := newGIN(be, gnn.GINConfig{In: b.X.Width, Hidden: 5, Layers: 3})
	tape := autodiff.NewTape(be, opts...)
	defer tape.Reset()
	y := e.Forward(gnn.NewBatch(tape, b), mode)
	weights := make([]float64, y.Value().Len())
	for i := range weights {
		weights[i] = float64(i%7) - 2.5
	}
	tape.Backward(y.Dot(tape.Matrix(y.Rows(), y.Cols(), weights)))
	for _, p := range e.Parameters() {
		g := make([]float64, p.Value.Len())
		be.Download(g, p.Grad)
		grads = append(grads, g...)
	}
	return y.Data(), grads, runningStats(be, e)
}

func runningStats(be backend.Backend, e nn.Module) (all []float64) {
	for _, b := range e.Buffers() {
		v := make([]float64, b.Value.Len())
		be.Download(v, b.Value)
		all = append(all, v...)
	}
	return all
}

// densified is g with its one-hot features written out.
func densified(g *graph.Graph) *graph.Graph {
	d := *g
	d.X = graph.Features{Width: g.X.Width, Dense: slices.Clone(g.X.Materialize(g.Nodes()))}
	return &d
}

// permuted renumbers the nodes of g: node i becomes perm[i].
func permuted(g *graph.Graph, perm []int) *graph.Graph {
	n, w := g.Nodes(), g.X.Width
	inverse := make([]int, n)
	for i, p := range perm {
		inverse[p] = i
	}
	q := &graph.Graph{Ptr: []int32{0}, Directed: g.Directed, X: graph.Features{Width: w}}
	for p := range n {
		i := inverse[p]
		row, label := []int32{}, map[int32]int32{}
		for k := g.Ptr[i]; k < g.Ptr[i+1]; k++ {
			j := int32(perm[g.Adj[k]])
			row = append(row, j)
			if g.EdgeLabel != nil {
				label[j] = g.EdgeLabel[k]
			}
		}
		slices.Sort(row)
		q.Adj = append(q.Adj, row...)
		if g.EdgeLabel != nil {
			for _, j := range row {
				q.EdgeLabel = append(q.EdgeLabel, label[j])
			}
		}
		q.Ptr = append(q.Ptr, int32(len(q.Adj)))
		if g.X.OneHot() {
			q.X.Category = append(q.X.Category, g.X.Category[i])
		} else {
			q.X.Dense = append(q.X.Dense, g.X.Dense[i*w:(i+1)*w]...)
		}
	}
	return q
}

// TestOneHotIsDense: the path that never builds one-hot features computes what
// the plain one does, gradients included.
func TestOneHotIsDense(t *testing.T) {
	for _, directed := range []bool{false, true} {
		gs := randomGraphs(t, 3, 6, false, directed, 7, 1, 12, 5)
		var ds []*graph.Graph
		for _, g := range gs {
			ds = append(ds, densified(g))
		}
		onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
			for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
				h, grads, running := run(be, opts, twoViews(gs), mode)
				h2, grads2, running2 := run(be, opts, twoViews(ds), mode)
				checkClose(t, "embeddings", h, h2, tol)
				checkClose(t, "gradients", grads, grads2, tol)
				checkClose(t, "running statistics", running, running2, tol)
			}
		})
	}
}

// TestPermutationInvariance: the numbering of the nodes has no influence.
func TestPermutationInvariance(t *testing.T) {
	for _, kind := range kinds {
		gs := randomGraphs(t, 4, 3, kind.dense, kind.directed, 9, 2, 15, 6)
		rng := newRand(11)
		var ps []*graph.Graph
		for _, g := range gs {
			p := permuted(g, rng.Perm(g.Nodes()))
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			ps = append(ps, p)
		}
		t.Run(kind.name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
				for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
					h, grads, _ := run(be, opts, twoViews(gs), mode)
					h2, grads2, _ := run(be, opts, twoViews(ps), mode)
					checkClose(t, "embeddings", h, h2, tol)
					checkClose(t, "gradients", grads, grads2, tol)
				}
			})
		})
	}
}

// TestBatchingIsOneByOne: in Eval mode a graph's embedding does not depend on
// its company; neither does the order matter.
func TestBatchingIsOneByOne(t *testing.T) {
	for _, kind := range kinds {
		gs := randomGraphs(t, 6, 3, kind.dense, kind.directed, 5, 1, 17, 8)
		t.Run(kind.name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
				e := newGIN(be, gnn.GINConfig{In: 3, Hidden: 4, Layers: 2})
				tape := autodiff.NewInference(be, opts...)
				embed := func(gs ...*graph.Graph) []float64 {
					defer tape.Reset()
					return e.Forward(gnn.NewBatch(tape, graph.Collate(gs...)), nn.Eval).Data()
				}
				var single, reversed []float64
				for _, g := range gs {
					single = append(single, embed(g)...)
				}
				back := slices.Clone(gs)
				slices.Reverse(back)
				all := embed(back...)
				for i := range gs {
					k := len(gs) - 1 - i
					reversed = append(reversed, all[k*e.Width():(k+1)*e.Width()]...)
				}
				checkClose(t, "a batch", embed(gs...), single, tol)
				checkClose(t, "the batch in reverse", reversed, single, tol)
			})
		})
	}
}

// TestViewsAreSeparatePasses: in Train mode a batch of views is what a forward
// pass per view would be: embeddings, and running statistics after both.
func TestViewsAreSeparatePasses(t *testing.T) {
	gs := randomGraphs(t, 7, 3, false, false, 9, 4, 7, 11, 3, 8)
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
		c := gnn.GINConfig{In: 3, Hidden: 4, Layers: 2}
		together, apart := newGIN(be, c), newGIN(be, c)
		tape := autodiff.NewInference(be, opts...)
		defer tape.Reset()
		h := together.Forward(gnn.NewBatch(tape, twoViews(gs)), nn.Train).Data()
		h1 := apart.Forward(gnn.NewBatch(tape, graph.Collate(gs[:3]...)), nn.Train).Data()
		h2 := apart.Forward(gnn.NewBatch(tape, graph.Collate(gs[3:]...)), nn.Train).Data()
		checkClose(t, "embeddings", h, append(h1, h2...), tol)
		checkClose(t, "running statistics", runningStats(be, together), runningStats(be, apart), tol)

		one := newGIN(be, c).Forward(gnn.NewBatch(tape, graph.Collate(gs...)), nn.Train).Data()
		if math.Abs(one[0]-h[0]) < 1e-3 {
			t.Error("one view and two give the same embeddings: the test would not see the difference")
		}
	})
}

// TestBatchViews: where a batch says nothing of views it is one view.
func TestBatchViews(t *testing.T) {
	be := ref.New()
	tape := autodiff.NewInference(be)
	defer tape.Reset()
	gs := randomGraphs(t, 8, 2, false, false, 3, 4, 2)
	unclosed := new(graph.Batch)
	for _, g := range gs {
		unclosed.Append(g)
	}
	halfClosed := graph.Collate(gs[0])
	halfClosed.Append(gs[1])
	for _, c := range []struct {
		b             *graph.Batch
		nodes, graphs []int32
	}{
		{unclosed, []int32{0, 9}, []int32{0, 3}},
		{graph.Collate(gs...), []int32{0, 9}, []int32{0, 3}},
		{twoViews(gs), []int32{0, 3, 9}, []int32{0, 1, 3}},
		{twoViews(gs[:2]), []int32{0, 3, 7}, []int32{0, 1, 2}},
		{halfClosed, []int32{0, 3, 7}, []int32{0, 1, 2}},
		{new(graph.Batch), []int32{0}, []int32{0}},
	} {
		b := gnn.NewBatch(tape, c.b)
		if nodes, graphs := b.ViewNodes.Host, b.ViewGraphs().Host; !slices.Equal(nodes, c.nodes) || !slices.Equal(graphs, c.graphs) {
			t.Errorf("nodes of the views %v, want %v; graphs %v, want %v", nodes, c.nodes, graphs, c.graphs)
		}
	}
}

func TestPools(t *testing.T) {
	empty := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: 2}}
	gs := randomGraphs(t, 8, 2, false, false, 2, 3)
	b := graph.Collate(gs[0], empty, gs[1])
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
		tape := autodiff.NewInference(be, opts...)
		defer tape.Reset()
		db := gnn.NewBatch(tape, b)
		x := tape.Matrix(5, 2, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, -1})
		checkClose(t, "sum", gnn.GlobalAddPool(x, db).Data(), []float64{4, 6, 0, 0, 21, 13}, tol)
		checkClose(t, "mean", gnn.GlobalMeanPool(x, db).Data(), []float64{2, 3, 0, 0, 7, 13. / 3}, tol)
	})
}

// TestSmallGraphs: a graph without nodes embeds as zeros, and single nodes
// without edges are no special case; all values and gradients are finite.
func TestSmallGraphs(t *testing.T) {
	empty := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: 2}}
	single := randomGraphs(t, 8, 2, false, false, 1, 1)
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
		for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
			h, grads, running := run(be, opts, twoViews([]*graph.Graph{single[0], empty, empty, single[1]}), mode)
			w := len(h) / 4
			checkClose(t, "an empty graph", h[w:2*w], make([]float64, w), 0)
			for _, v := range slices.Concat(h, grads, running) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("embeddings %v, gradients %v, running statistics %v", h, grads, running)
				}
			}
		}
	})
}

func TestGINParameters(t *testing.T) {
	be := ref.New()
	e := gnn.NewGIN(be, gnn.GINConfig{In: 7, Hidden: 32, Layers: 3}, newRand(1))
	if e.Width() != 96 {
		t.Errorf("width %d", e.Width())
	}
	var names []string
	for _, p := range e.Parameters() {
		names = append(names, fmt.Sprint(p.Name, p.Value))
	}
	for _, b := range e.Buffers() {
		names = append(names, fmt.Sprint(b.Name, b.Value))
	}
	var want []string
	for l := range 3 {
		in := 32
		if l == 0 {
			in = 7
		}
		conv, norm := fmt.Sprintf("encoder.convs.%d.nn.", l), fmt.Sprintf("encoder.bns.%d.", l)
		want = append(want, fmt.Sprintf("%s0.weight[%d×32]", conv, in), conv+"0.bias[1×32]", conv+"2.weight[32×32]", conv+"2.bias[1×32]",
			norm+"weight[1×32]", norm+"bias[1×32]")
	}
	for l := range 3 {
		norm := fmt.Sprintf("encoder.bns.%d.", l)
		want = append(want, norm+"running_mean[1×32]", norm+"running_var[1×32]")
	}
	if !slices.Equal(names, want) {
		t.Errorf("names\n%v\nwant\n%v", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	if n := nn.NumParameters(e); n != 7*32+32+5*(32*32+32)+3*64 {
		t.Errorf("%d parameters", n)
	}
}

func TestGINMisuse(t *testing.T) {
	be := ref.New()
	e := newGIN(be, gnn.GINConfig{In: 3, Hidden: 4, Layers: 1})
	tape := autodiff.NewTape(be)
	for what, c := range map[string]struct {
		f    func()
		want string
	}{
		"no layers": {func() { gnn.NewGIN(be, gnn.GINConfig{In: 3, Hidden: 4}, newRand(1)) }, "want positive sizes"},
		"other width": {func() {
			e.Forward(gnn.NewBatch(tape, graph.Collate(randomGraphs(t, 1, 5, false, false, 3)...)), nn.Eval)
		}, "features of width 5 for an encoder of width 3"},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), c.want) {
					t.Errorf("%s: panic %v, want %q in it", what, r, c.want)
				}
			}()
			c.f()
		}()
	}
}

// TestMemory: a tape's Reset gives back all that a batch and an encoder took.
func TestMemory(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, _ float64) {
		for _, kind := range kinds {
			b := twoViews(randomGraphs(t, 4, 3, kind.dense, kind.directed, 9, 2, 15, 6))
			e := newGIN(be, gnn.GINConfig{In: 3, Hidden: 4, Layers: 2})
			before := be.InUse()
			tape := autodiff.NewTape(be, opts...)
			tape.Backward(e.Forward(gnn.NewBatch(tape, b), nn.Train).Sum())
			tape.Reset()
			if n := be.InUse() - before; n != 0 {
				t.Errorf("%s: %d bytes in use after Reset", kind.name, n)
			}
		}
	})
}
