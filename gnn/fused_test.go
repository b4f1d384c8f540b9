package gnn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/internal/plan"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/tensor"
)

// raceDetector is set in builds with the race detector.
var raceDetector bool

// fusing are the engines that run chains of primitives as one call.
var fusing = []func(p tensor.Precision) backend.Backend{func(p tensor.Precision) backend.Backend { return cpu.New(p) }}

// ring is a graph of n nodes in a circle, with irregular categories 0..width-1.
func ring(n, width int) *graph.Graph {
	g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: width}}
	for i := range n {
		a, b := (i+n-1)%n, (i+1)%n
		g.Adj = append(g.Adj, int32(min(a, b)), int32(max(a, b)))
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
		g.X.Category = append(g.X.Category, int32((i*40503>>5)%width))
	}
	return g
}

// empty is the graph without nodes.
func empty(width int, dense bool) *graph.Graph {
	g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: width, Category: []int32{}}}
	if dense {
		g.X = graph.Features{Width: width, Dense: []float32{}}
	}
	return g
}

// views is a batch of views of the given numbers of graphs.
func views(gs []*graph.Graph, sizes ...int) *graph.Batch {
	b := new(graph.Batch)
	for _, n := range sizes {
		for _, g := range gs[:n] {
			b.Append(g)
		}
		b.EndView()
		gs = gs[n:]
	}
	return b
}

// encoded is what a forward and a backward pass leave behind.
type encoded struct{ h, grads, running []float64 }

// encode is [pass] of a new encoder.
func encode(be backend.Backend, b *graph.Batch, newEncoder func(be backend.Backend) encoder, mode nn.Mode, opts ...autodiff.Option) encoded {
	return pass(be, newEncoder(be), b, mode, opts...)
}

// gin and resGCN make encoders with parameters off their initial values.
func gin(c gnn.GINConfig, eps float64) func(be backend.Backend) encoder {
	return func(be backend.Backend) encoder {
		e := newGIN(be, c)
		for _, l := range e.Convs {
			l.Eps = eps
		}
		return e
	}
}

func resGCN(c gnn.ResGCNConfig) func(be backend.Backend) encoder {
	return func(be backend.Backend) encoder {
		e := gnn.NewResGCN(be, c, newRand(79))
		stir(be, e)
		return e
	}
}

// TestFusedIsComposed compares the two forms of the encoders on what batches can
// look like: values, gradients and running statistics.
func TestFusedIsComposed(t *testing.T) {
	type example struct {
		name string
		b    *graph.Batch
		new  func(be backend.Backend) encoder
	}
	var examples []example
	addGIN := func(name string, b *graph.Batch, hidden, layers int, eps float64) {
		if err := b.Validate(); err != nil {
			t.Fatal(name, err)
		}
		examples = append(examples, example{"GIN, " + name, b, gin(gnn.GINConfig{In: b.X.Width, Hidden: hidden, Layers: layers}, eps)})
	}
	add := func(name string, b *graph.Batch, hidden, layers int, eps float64) {
		addGIN(name, b, hidden, layers, eps)
		for _, residual := range []bool{false, true} {
			examples = append(examples, example{fmt.Sprintf("ResGCN, residual %v, %s", residual, name), b,
				resGCN(gnn.ResGCNConfig{In: b.X.Width, Hidden: hidden, Layers: layers, Residual: residual})})
		}
	}
	for _, kind := range kinds {
		sizes := []int{30, 1, 17, 40, 2, 25, 33, 8}
		gs := randomGraphs(t, 9, 7, kind.dense, kind.directed, sizes...)
		add(kind.name+", one view", views(gs, 8), 32, 3, 0)
		add(kind.name+", two views", views(gs, 4, 4), 32, 3, 0)
		add(kind.name+", three unequal views", views(gs, 1, 5, 2), 32, 2, 0.5)
		add(kind.name+", odd width", views(gs, 3, 5), 19, 3, -0.25)
		add(kind.name+", width 1", views(gs, 4, 4), 1, 2, 0)
		add(kind.name+", ε = -1", views(gs, 4, 4), 8, 2, -1)
		add(kind.name+", wide", views(gs, 4, 4), 130, 2, 0)
		gaps := []*graph.Graph{empty(7, kind.dense), gs[0], empty(7, kind.dense), empty(7, kind.dense), gs[1], gs[2], empty(7, kind.dense)}
		add(kind.name+", empty graphs", views(gaps, 3, 4), 16, 2, 0)
		add(kind.name+", a view without nodes", views(gaps, 1, 1, 1, 4), 16, 2, 0)
		single := randomGraphs(t, 10, 3, kind.dense, false, 1, 1, 1, 1, 1)
		if kind.dense {
			add(kind.name+", single nodes", views(single, 2, 3), 16, 2, 0)
		} else { // all nodes of a view may be alike, and the norms of ResGCN blow up their rounding errors
			addGIN(kind.name+", single nodes", views(single, 2, 3), 16, 2, 0)
		}
		add(kind.name+", one node in all", views(single, 1), 16, 2, 0)
	}
	var many []*graph.Graph
	for i := range 120 {
		many = append(many, ring(3+i%31, 37))
	}
	add("many blocks", views(many, 60, 60), 32, 3, 0)
	add("graphs larger than a block", views([]*graph.Graph{ring(5, 3), ring(900, 3), ring(7, 3), ring(1300, 3)}, 2, 2), 32, 3, 0)
	// Irregular graphs: the nodes of a ring would all be alike, and batch norm
	// would blow up the rounding errors.
	add("constant feature", views(randomGraphs(t, 11, 1, false, false, 30, 1, 12, 9, 24, 50), 4, 2), 32, 3, 0)

	examples = append(examples, example{"ChemGIN", views(moleculeGraphs(t, 12, false, 9, 1, 24, 30), 2, 2), func(be backend.Backend) encoder {
		e := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 12, Layers: 2}, newRand(3))
		stir(be, e)
		return e
	}})

	for _, x := range examples {
		t.Run(x.name, func(t *testing.T) {
			for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
				want := encode(cpu.New(tensor.Float64), x.b, x.new, mode, autodiff.Composed())
				want32 := encode(cpu.New(tensor.Float32), x.b, x.new, mode, autodiff.Composed())
				for _, open := range fusing {
					be := open(tensor.Float64)
					what := fmt.Sprintf("%s, train %v, ", be.Name(), mode)
					got := encode(be, x.b, x.new, mode)
					checkClose(t, what+"embeddings", got.h, want.h, 1e-11)
					checkClose(t, what+"running statistics", got.running, want.running, 1e-11)
					checkClose(t, what+"gradients", got.grads, want.grads, 1e-11)
					// In float32 the forms may differ as far as they are from the
					// truth, which batch norm of similar rows can make large.
					got32 := encode(open(tensor.Float32), x.b, x.new, mode)
					asNear(t, what+"embeddings", got32.h, want32.h, want.h)
					asNear(t, what+"running statistics", got32.running, want32.running, want.running)
					asNear(t, what+"gradients", got32.grads, want32.grads, want.grads)
				}
			}
		})
	}
}

// asNear fails if got is much farther from the exact values than want is. What it
// grants, beyond that, is what y = scale·h2 + shift loses against the composed
// scale·(h2-μ) where the variance is near 0: 1/√ε units of the last place for
// each layer; most examples differ by a hundredth of that.
func asNear(t *testing.T, what string, got, want, exact []float64) {
	t.Helper()
	var scale, ours, theirs float64
	for i, v := range exact {
		scale = max(scale, math.Abs(v))
		ours, theirs = max(ours, math.Abs(got[i]-v)), max(theirs, math.Abs(want[i]-v))
	}
	if !(ours <= 4*theirs+5e-4*scale) {
		t.Errorf("%s in float32: off by %g, the composed form by %g, of %g", what, ours, theirs, scale)
	}
}

// TestFusedMessages compares the two forms of a layer with embeddings of edges, also where
// only some gradients are wanted, and with more rows of tables than one launch takes.
func TestFusedMessages(t *testing.T) {
	const width = 12
	for _, columns := range []graph.EdgeColumns{feature.Hu.EdgeColumns(), {Widths: []int{5}, SelfLoop: []int{4}}, {Widths: []int{9, 1, 8}, SelfLoop: []int{0, 0, 7}}} {
		labels := int32(1)
		for _, w := range columns.Widths {
			labels *= int32(w)
		}
		b := views(labelled(randomGraphs(t, 9, 1, false, true, 5, 1, 14, 8), 6, labels), 2, 2)
		for k := range 3 {
			frozen, constant := k == 1, k == 2
			compute := func(be backend.Backend, opts ...autodiff.Option) (all []float64) {
				c := gnn.NewGINEConv(be, "conv", width, 4, 3, columns, newRand(1))
				for _, e := range c.Tables {
					e.Table.Frozen = frozen
				}
				tape := autodiff.NewTape(be, opts...)
				defer tape.Reset()
				x := tape.Leaf(b.Nodes(), width, gradcheck.Random(newRand(2), b.Nodes(), width).Values)
				in := x
				if constant {
					in = x.Detach()
				}
				batch := gnn.NewBatch(tape, b)
				y := c.Forward(batch, in)
				if tape.Fused().Messages != nil {
					var tables []*autodiff.Var
					for _, e := range c.Tables {
						tables = append(tables, tape.Param(e.Table))
					}
					counts := batch.EdgeCounts(gnn.ColumnLabels(columns))
					y = c.MLP.Forward(plan.Messages(in, batch.Adj, 1, counts, tables))
				}
				tape.Backward(y.Square().Sum())
				all = append(y.Data(), x.Grad()...)
				for _, p := range c.Parameters() {
					if g := make([]float64, p.Value.Len()); p.HasGrad() {
						be.Download(g, p.Grad)
						all = append(all, g...)
					}
				}
				return all
			}
			want := compute(ref.New(), autodiff.Composed())
			for _, open := range fusing {
				be := open(tensor.Float64)
				checkClose(t, fmt.Sprintf("%s, tables %v, frozen %v, constant x %v", be.Name(), columns.Widths, frozen, constant), compute(be), want, 1e-12)
			}
		}
	}
}

// TestFusedScratch: what an engine computed before, with other options and sizes,
// reaches nobody.
func TestFusedScratch(t *testing.T) {
	small, large := randomGraphs(t, 3, 7, false, false, 9, 4, 6), randomGraphs(t, 9, 7, false, false, 30, 1, 17, 40)
	var dense []*graph.Graph
	for _, g := range large {
		dense = append(dense, densified(g))
	}
	config := gnn.GINConfig{In: 7, Hidden: 8, Layers: 2}
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		used := cpu.New(p)
		for k, x := range []struct {
			gs  []*graph.Graph
			new func(be backend.Backend) encoder
		}{
			{small, gin(config, 0.5)}, {large, gin(config, 0)}, {small, gin(config, 0.5)}, {dense, gin(config, 0.5)},
			{large, resGCN(gnn.ResGCNConfig{In: 7, Hidden: 9, Layers: 2, Residual: true})},
			{small, resGCN(gnn.ResGCNConfig{In: 7, Hidden: 5, Layers: 1})}, {dense, gin(config, 0)},
		} {
			for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
				b := views(x.gs, 2, len(x.gs)-2)
				if want, got := encode(cpu.New(p), b, x.new, mode), encode(used, b, x.new, mode); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%v, encoder %d, train %v: an engine that was used before gives other numbers", p, k, mode)
				}
			}
		}
	}
}

// TestUnfusedMLPs: convolutions with other MLPs than NewGIN's compute what they
// say, on engines that have fused layers too.
func TestUnfusedMLPs(t *testing.T) {
	b := views(randomGraphs(t, 9, 7, true, true, 30, 1, 17, 40), 2, 2)
	noBias := func(be backend.Backend, name string, in, out int) *nn.Linear {
		return nn.NewLinearNoBias(be, name, in, out, nn.XavierUniform, newRand(3))
	}
	for name, mlp := range map[string]func(be backend.Backend, l []*nn.Linear) []*nn.Linear{
		"no first bias": func(be backend.Backend, l []*nn.Linear) []*nn.Linear {
			return []*nn.Linear{noBias(be, "a", 8, 8), l[1]}
		},
		"no second bias": func(be backend.Backend, l []*nn.Linear) []*nn.Linear {
			return []*nn.Linear{l[0], noBias(be, "b", 8, 8)}
		},
		"one layer":    func(be backend.Backend, l []*nn.Linear) []*nn.Linear { return l[:1] },
		"three layers": func(be backend.Backend, l []*nn.Linear) []*nn.Linear { return append(l, noBias(be, "c", 8, 8)) },
	} {
		newEncoder := func(be backend.Backend) encoder {
			e := newGIN(be, gnn.GINConfig{In: 7, Hidden: 8, Layers: 2})
			e.Convs[1].MLP.Layers = mlp(be, e.Convs[1].MLP.Layers)
			return e
		}
		want := encode(cpu.New(tensor.Float64), b, newEncoder, nn.Train, autodiff.Composed())
		for _, open := range fusing {
			got := encode(open(tensor.Float64), b, newEncoder, nn.Train)
			checkClose(t, name+": embeddings", got.h, want.h, 1e-11)
			checkClose(t, name+": gradients", got.grads, want.grads, 1e-11)
		}
	}
}

// TestNoNodes: a batch without nodes that was never told of views has rows all the
// same, those of its graphs.
func TestNoNodes(t *testing.T) {
	b := new(graph.Batch)
	b.Append(empty(3, true))
	b.Append(empty(3, true))
	for name, newEncoder := range map[string]func(be backend.Backend) encoder{
		"GIN":    gin(gnn.GINConfig{In: 3, Hidden: 4, Layers: 2}, 0),
		"ResGCN": resGCN(gnn.ResGCNConfig{In: 3, Hidden: 4, Layers: 2, Residual: true}),
	} {
		onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
			for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
				e := newEncoder(be)
				tape := autodiff.NewInference(be, opts...)
				h := e.Forward(gnn.NewBatch(tape, b), mode)
				if !h.Value().Is(2, e.Width()) {
					t.Fatalf("%s: embeddings %v", name, h.Value())
				}
				d := h.Data()
				checkClose(t, name+": the second", d[:e.Width()], d[e.Width():], 0)
				for _, v := range d {
					if math.IsNaN(v) {
						t.Fatalf("%s, train %v: embeddings %v", name, mode, d)
					}
				}
				tape.Reset()
			}
		})
	}
}

// TestFusedThreads: any number of workers, equal bits.
func TestFusedThreads(t *testing.T) {
	var gs, dense []*graph.Graph
	for i := range 300 {
		g := ring(3+i%40, 37)
		gs, dense = append(gs, g), append(dense, densified(g))
	}
	for name, x := range map[string]struct {
		gs  []*graph.Graph
		new func(be backend.Backend) encoder
	}{
		"GIN":        {gs, gin(gnn.GINConfig{In: 37, Hidden: 32, Layers: 3}, 0)},
		"GIN, dense": {dense, gin(gnn.GINConfig{In: 37, Hidden: 32, Layers: 3}, 0)},
		"ResGCN":     {gs, resGCN(gnn.ResGCNConfig{In: 37, Hidden: 128, Layers: 2, Residual: true})},
	} {
		b := views(x.gs, 150, 150)
		for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
			var want encoded
			for _, workers := range []int{1, 2, 4} {
				got := encode(cpu.New(p, cpu.Workers(workers)), b, x.new, nn.Train)
				if workers == 1 {
					want = got
				}
				for k, pair := range [][2][]float64{{got.h, want.h}, {got.grads, want.grads}, {got.running, want.running}} {
					for i, v := range pair[0] {
						if math.Float64bits(v) != math.Float64bits(pair[1][i]) {
							t.Fatalf("%s, %v, %d workers: value %d of kind %d is %v, with one %v", name, p, workers, i, k, v, pair[1][i])
						}
					}
				}
			}
		}
	}
}

// TestGINLayerOutputs checks the gradient of the layer's operator with losses on
// either output and on both, and with an input that needs a gradient.
func TestGINLayerOutputs(t *testing.T) {
	be := cpu.New(tensor.Float64)
	b := twoViews(randomGraphs(t, 5, 3, true, true, 4, 1, 5, 3, 6, 2))
	draw := func(seed uint64, rows, cols int) gradcheck.Input { return gradcheck.Random(newRand(seed), rows, cols) }
	in := []gradcheck.Input{draw(1, b.Nodes(), 3), draw(2, 3, 4), draw(3, 1, 4), draw(4, 4, 5), draw(5, 1, 5), draw(6, 1, 5), draw(7, 1, 5)}
	run := func(tape *autodiff.Tape, v []*autodiff.Var, pooledOnly bool) (y, pooled *autodiff.Var) {
		batch := gnn.NewBatch(tape, b)
		f := &backend.GINLayer{Adj: batch.Adj.A, AdjT: batch.Adj.T, Self: 1.5, Eps: 1e-5, Graphs: batch.GraphPtr, Views: batch.ViewNodes}
		return gnn.GINLayer(f, v[0], v[1:7], pooledOnly)
	}
	t.Run("x alone", func(t *testing.T) {
		gradcheck.Check(t, be, func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
			y, pooled := run(tape, append(v, constants(tape, in[1:])...), false)
			return autodiff.ConcatRows(y, pooled)
		}, in[:1])
	})
	for name, f := range map[string]gradcheck.Func{
		"y": func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
			y, _ := run(tape, v, false)
			return y
		},
		"pooled": func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
			_, pooled := run(tape, v, false)
			return pooled
		},
		"pooled only": func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
			_, pooled := run(tape, v, true)
			return pooled
		},
		"both, each twice": func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
			y, pooled := run(tape, v, false)
			return autodiff.ConcatRows(y, pooled, y.Square(), pooled.Scale(0.1).Square())
		},
		"lent": func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
			y, pooled := run(tape, v, false)
			return autodiff.ConcatRows(y.Add(y), pooled.Add(pooled).Tanh())
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := be.InUse()
			gradcheck.Check(t, be, f, in)
			if n := be.InUse() - before; n != 0 {
				t.Errorf("%d bytes left in use", n)
			}
		})
	}
}

// constants are the inputs as variables without gradient, like frozen parameters.
func constants(tape *autodiff.Tape, in []gradcheck.Input) (v []*autodiff.Var) {
	for _, x := range in {
		v = append(v, tape.Matrix(x.Rows, x.Cols, x.Values))
	}
	return v
}

// TestGCNLayerOutputs checks the gradient of the layer's operator where the
// output is used twice, the input too, or the input needs no gradient.
func TestGCNLayerOutputs(t *testing.T) {
	be := cpu.New(tensor.Float64)
	b := twoViews(randomGraphs(t, 5, 3, true, true, 4, 1, 5, 3, 6, 2))
	draw := func(seed uint64, rows, cols int) gradcheck.Input { return gradcheck.Random(newRand(seed), rows, cols) }
	parameters := []gradcheck.Input{draw(2, 1, 3), draw(3, 1, 3), draw(4, 3, 3), draw(5, 1, 3)}
	x := draw(1, b.Nodes(), 3)
	run := func(tape *autodiff.Tape, x *autodiff.Var, v []*autodiff.Var, residual bool) *autodiff.Var {
		batch := gnn.NewBatch(tape, b)
		adj := batch.Normalized()
		f := &backend.GCNLayer{Adj: adj.A, AdjT: adj.T, Residual: residual, Eps: 1e-5, Graphs: batch.GraphPtr, Views: batch.ViewNodes}
		return gnn.GCNLayer(f, x, v[:4])
	}
	for _, residual := range []bool{false, true} {
		for name, c := range map[string]struct {
			in []gradcheck.Input
			f  gradcheck.Func
		}{
			"y": {append(parameters, x), func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
				return run(tape, v[4], v, residual)
			}},
			"y twice": {append(parameters, x), func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
				y := run(tape, v[4], v, residual)
				return autodiff.ConcatRows(y.Add(y), y.Square())
			}},
			"x twice": {append(parameters, x), func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
				return run(tape, v[4], v, residual).Mul(v[4])
			}},
			"two layers": {append(parameters, x), func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
				return run(tape, run(tape, v[4], v, residual), v, residual)
			}},
			"x alone": {[]gradcheck.Input{x}, func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
				return run(tape, v[0], constants(tape, parameters), residual)
			}},
			"constant x": {parameters, func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
				return run(tape, tape.Matrix(b.Nodes(), 3, x.Values), v, residual)
			}},
		} {
			t.Run(fmt.Sprintf("%s, residual %v", name, residual), func(t *testing.T) {
				before := be.InUse()
				gradcheck.Check(t, be, c.f, c.in)
				if n := be.InUse() - before; n != 0 {
					t.Errorf("%d bytes left in use", n)
				}
			})
		}
	}
	t.Run("narrower, constant x", func(t *testing.T) {
		gradcheck.Check(t, cpu.New(tensor.Float64), func(tape *autodiff.Tape, v []*autodiff.Var) *autodiff.Var {
			return run(tape, tape.Matrix(b.Nodes(), 3, x.Values), v, false)
		}, []gradcheck.Input{draw(2, 1, 3), draw(3, 1, 3), draw(4, 3, 1), draw(5, 1, 1)})
	})
}

// TestFusedPadding: nodes behind the last graph get and give zeros, a view without
// nodes has zero statistics, a block without nodes adds nothing, and what earlier
// batches left in memory reaches nobody.
func TestFusedPadding(t *testing.T) {
	t.Setenv("SPECMATCH_DEBUG", "1") // undefined memory is NaN
	const f, rows, padding = 64, 1100, 5
	gaps := views([]*graph.Graph{empty(1, false), empty(1, false), ring(rows, 1), empty(1, false)}, 1, 2, 1)
	padded := new(graph.Batch)
	gaps.Pad(padded, rows+padding, len(gaps.Adj))
	draw := func(seed uint64, rows int) []float64 { return gradcheck.Random(newRand(seed), rows, f).Values }
	run := func(be backend.Backend, b *graph.Batch, residual bool) (values [][]float64) {
		tape := autodiff.NewTape(be)
		defer tape.Reset()
		batch := gnn.NewBatch(tape, b)
		v := []*autodiff.Var{
			tape.Leaf(b.Nodes(), f, draw(1, rows+padding)[:b.Nodes()*f]),
			tape.Leaf(1, f, draw(2, 1)), tape.Leaf(1, f, draw(3, 1)), tape.Leaf(f, f, draw(4, f)), tape.Leaf(1, f, draw(5, 1)),
		}
		adj := batch.Normalized()
		layer := &backend.GCNLayer{Adj: adj.A, AdjT: adj.T, Residual: residual, Eps: 1e-5, Graphs: batch.GraphPtr, Views: tape.Indices([]int32{0, 0, rows, rows})}
		y := gnn.GCNLayer(layer, v[0], v[1:])
		mean, variance := layer.Mean, layer.Var
		statistics := make([]float64, 2*mean.Len())
		be.Download(statistics[:mean.Len()], mean)
		be.Download(statistics[mean.Len():], variance)
		// As behind a readout, nothing comes back to padding.
		weights := make([]float64, y.Value().Len())
		copy(weights, draw(6, rows))
		tape.Backward(y.Dot(tape.Matrix(y.Rows(), f, weights)))
		values = append(values, statistics, y.Data())
		for _, v := range v {
			values = append(values, v.Grad())
		}
		return values
	}
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		for _, residual := range []bool{false, true} {
			used := cpu.New(p)
			encode(used, views([]*graph.Graph{ring(1200, f), ring(1300, f)}, 1, 1), resGCN(gnn.ResGCNConfig{In: f, Hidden: f, Layers: 1, Residual: true}), nn.Train)
			want, got := run(cpu.New(p), gaps, residual), run(used, padded, residual)
			for k, w := range want {
				if k == 1 || k == 2 { // y and dx
					w = append(w, make([]float64, padding*f)...)
				}
				for i := range w {
					if got[k][i] != w[i] {
						t.Fatalf("%v, residual %v: value %d of kind %d is %v, without padding %v", p, residual, i, k, got[k][i], w[i])
					}
				}
			}
			for i, v := range want[0] {
				if view := i / f % 3; view != 1 && v != 0 {
					t.Errorf("statistics of empty view %d: %v", view, v)
				}
			}
		}
	}
}

// TestGINPadding is [TestFusedPadding] for the layers of GIN.
func TestGINPadding(t *testing.T) {
	t.Setenv("SPECMATCH_DEBUG", "1") // undefined memory is NaN
	const f, rows, padding = 64, 300, 3
	// The first graph is a block of its own, since the second fills one.
	b := views([]*graph.Graph{empty(1, false), ring(rows-4, 1), empty(1, false), ring(4, 1)}, 2, 2)
	padded := new(graph.Batch)
	b.Pad(padded, rows+padding, len(b.Adj))
	draw := func(seed uint64, rows, cols int) []float64 { return gradcheck.Random(newRand(seed), rows, cols).Values }
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		be := cpu.New(p)
		run := func(b *graph.Batch) (values [][]float64) {
			tape := autodiff.NewTape(be)
			defer tape.Reset()
			batch := gnn.NewBatch(tape, b)
			n := b.Nodes()
			v := []*autodiff.Var{tape.Leaf(n, f, draw(1, rows+padding, f)[:n*f]), tape.Leaf(f, f, draw(2, f, f)), tape.Leaf(1, f, draw(3, 1, f)),
				tape.Leaf(f, f, draw(4, f, f)), tape.Leaf(1, f, draw(5, 1, f)), tape.Leaf(1, f, draw(6, 1, f)), tape.Leaf(1, f, draw(7, 1, f))}
			layer := &backend.GINLayer{Adj: batch.Adj.A, AdjT: batch.Adj.T, Self: 1.5, Eps: 1e-5, Graphs: batch.GraphPtr, Views: tape.Indices([]int32{0, rows - 4, rows})}
			y, pooled := gnn.GINLayer(layer, v[0], v[1:], false)
			tape.Backward(autodiff.ConcatRows(y.SliceRows(0, rows), pooled).Square().Sum())
			values = append(values, y.Data(), v[0].Grad(), pooled.Data())
			for _, v := range v[1:] {
				values = append(values, v.Grad())
			}
			return values
		}
		want, got := run(b), run(padded)
		for k := range 2 { // y and dx
			want[k] = append(want[k], make([]float64, padding*f)...)
		}
		for k, w := range want {
			for i := range w {
				if got[k][i] != w[i] {
					t.Fatalf("%v: value %d of kind %d is %v, without padding %v", p, i, k, got[k][i], w[i])
				}
			}
		}
	}
}

// TestFusedAllocations: once its shapes have been seen, a layer allocates handles
// and closures only.
func TestFusedAllocations(t *testing.T) {
	be := cpu.New(tensor.Float32, cpu.Workers(1))
	for name, newEncoder := range map[string]func(be backend.Backend) encoder{
		"GIN":    gin(gnn.GINConfig{In: 37, Hidden: 32, Layers: 3}, 0),
		"ResGCN": resGCN(gnn.ResGCNConfig{In: 37, Hidden: 32, Layers: 3, Residual: true}),
	} {
		var counts []float64
		for _, n := range []int{20, 400} {
			var gs []*graph.Graph
			for i := range n {
				gs = append(gs, ring(3+i%40, 37))
			}
			b := views(gs, n/2, n/2)
			e := newEncoder(be)
			tape := autodiff.NewTape(be)
			counts = append(counts, testing.AllocsPerRun(10, func() {
				h := e.Forward(gnn.NewBatch(tape, b), nn.Train)
				tape.Backward(h.Sum())
				tape.Reset()
			}))
		}
		if !raceDetector && counts[1] > counts[0]+2 {
			t.Errorf("%s: %v allocations with few graphs, %v with many", name, counts[0], counts[1])
		}
	}
}
