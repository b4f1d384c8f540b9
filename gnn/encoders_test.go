package gnn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/tensor"
)

type encoder = gnn.Encoder

// encoders are the encoders beside GIN, small, and the graphs that they take.
var encoders = []struct {
	name   string
	new    func(be backend.Backend) encoder
	graphs func(t *testing.T, seed uint64, directed bool, sizes ...int) []*graph.Graph
}{
	{
		"ResGCN, paper", func(be backend.Backend) encoder {
			return gnn.NewResGCN(be, gnn.ResGCNConfig{In: 3, Hidden: 5, Layers: 3, Residual: true}, newRand(1))
		}, denseGraphs,
	},
	{
		"ResGCN, reference", func(be backend.Backend) encoder {
			return gnn.NewResGCN(be, gnn.ResGCNConfig{In: 3, Hidden: 4, Layers: 2}, newRand(2))
		}, denseGraphs,
	},
	{
		"ChemGIN", func(be backend.Backend) encoder {
			return gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 3, Layers: 2}, newRand(3))
		}, moleculeGraphs,
	},
	{
		"ChemGIN with sum", func(be backend.Backend) encoder {
			return gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 3, Layers: 2, Sum: true}, newRand(3))
		}, moleculeGraphs,
	},
	{
		"BioGIN", func(be backend.Backend) encoder {
			return gnn.NewBioGIN(be, gnn.BioGINConfig{Hidden: 3, Layers: 2}, newRand(4))
		}, proteinGraphs,
	},
	{
		"BioGIN with center", func(be backend.Backend) encoder {
			return gnn.NewBioGIN(be, gnn.BioGINConfig{Hidden: 3, Layers: 2, Center: true}, newRand(4))
		}, proteinGraphs,
	},
	{
		"GIN, all read", func(be backend.Backend) encoder {
			return gnn.NewGIN(be, gnn.GINConfig{In: 3, Hidden: 4, Layers: 2, Readout: gnn.ReadoutAll}, newRand(5))
		}, denseGraphs,
	},
	{
		"ResGCN, some read", func(be backend.Backend) encoder {
			return gnn.NewResGCN(be, gnn.ResGCNConfig{In: 3, Hidden: 3, Layers: 3, Residual: true, Readout: "1,3:max,sum"}, newRand(6))
		}, denseGraphs,
	},
	{
		"ChemGIN, all read", func(be backend.Backend) encoder {
			return gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 3, Layers: 2, Readout: gnn.ReadoutAll}, newRand(7))
		}, moleculeGraphs,
	},
	{
		"ChemGIN, rich", func(be backend.Backend) encoder {
			return gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 3, Layers: 2, Atoms: feature.Rich.Name}, newRand(3))
		}, func(t *testing.T, seed uint64, directed bool, sizes ...int) []*graph.Graph {
			return labelled(randomGraphs(t, seed, feature.Rich.NodeWidth(), false, directed, sizes...), seed, int32(feature.Rich.EdgeLabels()))
		},
	},
	{
		"BioGIN, all read", func(be backend.Backend) encoder {
			return gnn.NewBioGIN(be, gnn.BioGINConfig{Hidden: 3, Layers: 2, Readout: "all:mean,sum"}, newRand(8))
		}, proteinGraphs,
	},
}

func moleculeGraphs(t *testing.T, seed uint64, directed bool, sizes ...int) []*graph.Graph {
	return labelled(randomGraphs(t, seed, feature.AtomTypes*feature.ChiralityTags, false, directed, sizes...), seed, feature.BondTypes*feature.BondDirections)
}

func proteinGraphs(t *testing.T, seed uint64, directed bool, sizes ...int) []*graph.Graph {
	return labelled(randomGraphs(t, seed, gnn.NodeFlags, false, directed, sizes...), seed, 1<<gnn.EdgeBits)
}

// labelled gives every entry a label below n.
func labelled(gs []*graph.Graph, seed uint64, n int32) []*graph.Graph {
	rng := newRand(seed)
	for _, g := range gs {
		g.EdgeLabel = make([]int32, len(g.Adj))
		for k := range g.EdgeLabel {
			g.EdgeLabel[k] = rng.Int32N(n)
		}
	}
	return gs
}

func denseGraphs(t *testing.T, seed uint64, directed bool, sizes ...int) []*graph.Graph {
	return randomGraphs(t, seed, 3, true, directed, sizes...)
}

// stir moves all parameters and running statistics off the values they start
// from, so that each is seen in the output.
func stir(be backend.Backend, m nn.Module) {
	rng := newRand(78)
	shift := func(v *tensor.Tensor, spread float64) {
		x := make([]float64, v.Len())
		be.Download(x, v)
		for i := range x {
			x[i] = float64(float32(x[i] + spread*(2*rng.Float64()-1)))
		}
		be.Upload(v, x)
	}
	for _, p := range m.Parameters() {
		if p.Value.Rows == 1 {
			shift(p.Value, 0.4)
		}
	}
	for _, b := range m.Buffers() {
		shift(b.Value, 0.4)
	}
}

func forEncoders(t *testing.T, f func(t *testing.T, newEncoder func(be backend.Backend) encoder, graphs func(directed bool, seed uint64, sizes ...int) []*graph.Graph)) {
	for _, e := range encoders {
		t.Run(e.name, func(t *testing.T) {
			f(t, func(be backend.Backend) encoder {
				m := e.new(be)
				stir(be, m)
				return m
			}, func(directed bool, seed uint64, sizes ...int) []*graph.Graph {
				return e.graphs(t, seed, directed, sizes...)
			})
		})
	}
}

func TestEncoderGradients(t *testing.T) {
	forEncoders(t, func(t *testing.T, newEncoder func(backend.Backend) encoder, graphs func(bool, uint64, ...int) []*graph.Graph) {
		for _, directed := range []bool{false, true} {
			b := twoViews(graphs(directed, 5, 4, 1, 5, 3, 6, 2, 7, 4))
			for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
				t.Run(fmt.Sprintf("directed %v/train %v", directed, mode), func(t *testing.T) {
					onExactEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option) {
						e := newEncoder(be)
						if err := gradcheck.Params(be, func(tape *autodiff.Tape) *autodiff.Var {
							return e.Forward(gnn.NewBatch(tape, b), mode)
						}, visible(e, mode), gradcheck.Options{Tape: opts}); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	})
}

// visible returns the parameters whose gradient is not zero by construction, as
// that of a bias is in front of a norm that trains, and those of what is not read.
func visible(e encoder, mode nn.Mode) (ps []*autodiff.Param) {
	hidden := ""
	if g, ok := e.(*gnn.ResGCN); ok && g.Config.Readout != "" {
		ps := g.Parameters()
		return ps[:len(ps)-6]
	}
	if mode == nn.Train {
		switch e.(type) {
		case *gnn.ChemGIN:
			hidden = ".mlp.2.bias"
		case *gnn.BioGIN:
			hidden = ".mlp.0.bias"
		}
	}
	for _, p := range e.Parameters() {
		if hidden == "" || !strings.HasSuffix(p.Name, hidden) {
			ps = append(ps, p)
		}
	}
	return ps
}

// pass is what a forward and a backward pass leave behind. Every entry of the
// embedding matters to the loss.
func pass(be backend.Backend, e encoder, b *graph.Batch, mode nn.Mode, opts ...autodiff.Option) encoded {
	tape := autodiff.NewTape(be, opts...)
	defer tape.Reset()
	return passOn(tape, e, gnn.NewBatch(tape, b), mode)
}

func passOn(tape *autodiff.Tape, e encoder, b *gnn.Batch, mode nn.Mode) encoded {
	be := tape.Backend()
	y := e.Forward(b, mode)
	weights := make([]float64, y.Value().Len())
	for i := range weights {
		weights[i] = math.Sin(float64(3*i + 1))
	}
	tape.Backward(y.Dot(tape.Matrix(y.Rows(), y.Cols(), weights)))
	r := encoded{h: y.Data(), running: runningStats(be, e)}
	for _, p := range visible(e, mode) {
		g := make([]float64, p.Value.Len())
		be.Download(g, p.Grad)
		r.grads = append(r.grads, g...)
		p.ZeroGrad()
	}
	return r
}

func TestEncoderEnginesAgree(t *testing.T) {
	forEncoders(t, func(t *testing.T, newEncoder func(backend.Backend) encoder, graphs func(bool, uint64, ...int) []*graph.Graph) {
		for _, directed := range []bool{false, true} {
			b := twoViews(graphs(directed, 9, 30, 1, 17, 40, 2, 25, 33, 8))
			for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
				r := ref.New()
				want := pass(r, newEncoder(r), b, mode, autodiff.Composed())
				onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
					got := pass(be, newEncoder(be), b, mode, opts...)
					checkClose(t, "embeddings", got.h, want.h, 50*tol)
					checkClose(t, "gradients", got.grads, want.grads, 50*tol)
					checkClose(t, "running statistics", got.running, want.running, 50*tol)
				})
			}
		}
	})
}

// TestFormsOnPaddedBatches: the definitions of the encoders compute on a padded
// batch what both forms compute on it and without padding: embeddings, gradients
// and running statistics.
func TestFormsOnPaddedBatches(t *testing.T) {
	t.Setenv("SPECMATCH_DEBUG", "1") // undefined memory is NaN
	check := func(t *testing.T, newEncoder func(backend.Backend) encoder, b *graph.Batch) {
		for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
			r := ref.New()
			want := pass(r, newEncoder(r), b, mode)
			onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
				e := newEncoder(be)
				if e.Reads().Host { // and so never padded
					return
				}
				in := gnn.NewInputs(be, b, b.Nodes()+13, len(b.Adj)+40, e.Reads())
				defer in.Close()
				tape := autodiff.NewTape(be, opts...)
				defer tape.Reset()
				got := passOn(tape, e, in.Batch(tape), mode)
				checkClose(t, "embeddings", got.h, want.h, 50*tol)
				checkClose(t, "gradients", got.grads, want.grads, 50*tol)
				checkClose(t, "running statistics", got.running, want.running, 50*tol)
			})
		}
	}
	for _, kind := range kinds {
		t.Run("GIN, "+kind.name, func(t *testing.T) {
			gs := randomGraphs(t, 9, 7, kind.dense, kind.directed, 30, 1, 17, 40, 2, 25, 33, 8)
			check(t, gin(gnn.GINConfig{In: 7, Hidden: 8, Layers: 3}, 0.5), twoViews(gs))
		})
	}
	forEncoders(t, func(t *testing.T, newEncoder func(backend.Backend) encoder, graphs func(bool, uint64, ...int) []*graph.Graph) {
		for _, directed := range []bool{false, true} {
			check(t, newEncoder, twoViews(graphs(directed, 9, 30, 1, 17, 40, 2, 25, 33, 8)))
		}
	})
}

// TestEncoderInvariances: neither the numbering of the nodes nor, in Eval mode,
// the company of a graph changes its embedding; and a batch of views is one
// pass per view.
func TestEncoderInvariances(t *testing.T) {
	forEncoders(t, func(t *testing.T, newEncoder func(backend.Backend) encoder, graphs func(bool, uint64, ...int) []*graph.Graph) {
		be := ref.New()
		for _, directed := range []bool{false, true} {
			gs := graphs(directed, 4, 9, 2, 15, 6, 1, 12)
			rng := newRand(11)
			var ps []*graph.Graph
			for _, g := range gs {
				perm := []int{0} // the first node is the center of BioGIN
				for _, k := range rng.Perm(g.Nodes() - 1) {
					perm = append(perm, k+1)
				}
				p := permuted(g, perm)
				if err := p.Validate(); err != nil {
					t.Fatal(err)
				}
				ps = append(ps, p)
			}
			for _, mode := range []nn.Mode{nn.Train, nn.Eval} {
				want, got := pass(be, newEncoder(be), twoViews(gs), mode), pass(be, newEncoder(be), twoViews(ps), mode)
				checkClose(t, "permuted: embeddings", got.h, want.h, 1e-11)
				checkClose(t, "permuted: gradients", got.grads, want.grads, 1e-10)
			}
			e := newEncoder(be)
			together := pass(be, e, twoViews(gs), nn.Eval).h
			var alone []float64
			for _, g := range gs {
				alone = append(alone, pass(be, e, graph.Collate(g), nn.Eval).h...)
			}
			checkClose(t, "one by one", together, alone, 1e-12)

			together, apart := pass(be, newEncoder(be), twoViews(gs), nn.Train).h, newEncoder(be)
			views := append(pass(be, apart, graph.Collate(gs[:3]...), nn.Train).h, pass(be, apart, graph.Collate(gs[3:]...), nn.Train).h...)
			checkClose(t, "view by view", together, views, 1e-12)
		}
	})
}

// TestEncoderMemory: a Reset gives back all that a pass took.
func TestEncoderMemory(t *testing.T) {
	forEncoders(t, func(t *testing.T, newEncoder func(backend.Backend) encoder, graphs func(bool, uint64, ...int) []*graph.Graph) {
		for _, directed := range []bool{false, true} {
			b := twoViews(graphs(directed, 4, 9, 2, 15, 6))
			onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, _ float64) {
				e := newEncoder(be)
				before := be.InUse()
				pass(be, e, b, nn.Train, opts...)
				if n := be.InUse() - before; n != 0 {
					t.Errorf("%d bytes in use after Reset", n)
				}
			})
		}
	})
}

// TestEncoderNames: names are unique, as files of weights need.
func TestEncoderNames(t *testing.T) {
	forEncoders(t, func(t *testing.T, newEncoder func(backend.Backend) encoder, _ func(bool, uint64, ...int) []*graph.Graph) {
		var names []string
		e := newEncoder(ref.New())
		for _, p := range e.Parameters() {
			names = append(names, p.Name)
		}
		for _, b := range e.Buffers() {
			names = append(names, b.Name)
		}
		slices.Sort(names)
		for i, n := range names {
			if !strings.HasPrefix(n, "encoder.") || i > 0 && n == names[i-1] {
				t.Errorf("name %q", n)
			}
		}
	})
}

func TestResGCNSizes(t *testing.T) {
	be := ref.New()
	paper, reference := gnn.NewResGCN(be, gnn.PaperResGCN(139), newRand(1)), gnn.NewResGCN(be, gnn.ResGCNConfig{In: 139, Hidden: 128, Layers: 3}, newRand(1))
	count := func(layers int) int { return 139*128 + 2*139 + (layers+1)*(128*128+128) + (layers+2)*2*128 }
	if n := nn.NumParameters(paper); n != count(5) || paper.Width() != 128 {
		t.Errorf("the papers' encoder: %d parameters, want %d; width %d", n, count(5), paper.Width())
	}
	if !paper.Config.Residual || reference.Config.Residual {
		t.Errorf("residual convolutions: the papers' encoder %v, the reference's %v", paper.Config.Residual, reference.Config.Residual)
	}
	if n := nn.NumParameters(reference); n != count(3) {
		t.Errorf("the reference's encoder: %d parameters, want %d", n, count(3))
	}
}

func TestResGCNMisuse(t *testing.T) {
	be := ref.New()
	tape := autodiff.NewTape(be)
	e := gnn.NewResGCN(be, gnn.ResGCNConfig{In: 3, Hidden: 4, Layers: 1}, newRand(1))
	for what, c := range map[string]struct {
		f    func()
		want string
	}{
		"no layers": {func() { gnn.NewResGCN(be, gnn.ResGCNConfig{In: 3, Hidden: 4}, newRand(1)) }, "want positive sizes"},
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

// TestGCNConvFormula computes y = Â·x·W + b by hand, with and without ReLU: nodes 0
// and 1 are neighbours, of degree 2 with their loops, and node 2 is alone.
func TestGCNConvFormula(t *testing.T) {
	g := &graph.Graph{Ptr: []int32{0, 1, 2, 2}, Adj: []int32{1, 0}, X: graph.Features{Width: 1, Category: []int32{0, 0, 0}}}
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
		c := gnn.NewGCNConv(be, "conv", 1, 2, newRand(1))
		be.Upload(c.Linear.W.Value, []float64{1, -2})
		be.Upload(c.Linear.B.Value, []float64{0.5, 0.25})
		tape := autodiff.NewInference(be, opts...)
		defer tape.Reset()
		b, x := gnn.NewBatch(tape, graph.Collate(g)), tape.Matrix(3, 1, []float64{1, 2, 4})
		checkClose(t, "y", c.Forward(b, x).Data(), []float64{2, -2.75, 2, -2.75, 4.5, -7.75}, tol)
		checkClose(t, "max(y, 0)", c.Forward(b, x).ReLU().Data(), []float64{2, 0, 2, 0, 4.5, 0}, tol)
	})
}

// TestGINEConvFormula computes y_i = MLP(x_i + e_loop + Σ (x_j + e_ji)) by hand,
// with an MLP that adds its inputs.
func TestGINEConvFormula(t *testing.T) {
	g := &graph.Graph{Ptr: []int32{0, 0, 2, 3}, Adj: []int32{0, 2, 1}, EdgeLabel: []int32{1*3 + 2, 0, 3 * 3}, Directed: true,
		X: graph.Features{Width: 1, Category: []int32{0, 0, 0}}}
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
		c := gnn.NewGINEConv(be, "conv", 1, 1, 1, feature.Hu.EdgeColumns(), newRand(1))
		for _, l := range c.MLP.Layers {
			be.Fill(l.W.Value, 1)
			be.Fill(l.B.Value, 0)
		}
		be.Upload(c.Tables[0].Table.Value, []float64{10, 20, 30, 40, 50, 60})
		be.Upload(c.Tables[1].Table.Value, []float64{0.1, 0.2, 0.3})
		tape := autodiff.NewInference(be, opts...)
		defer tape.Reset()
		y := c.Forward(gnn.NewBatch(tape, graph.Collate(g)), tape.Matrix(3, 1, []float64{1, 2, 4}))
		// Self-loops give 50.1; node 1 hears 0 over (1,2) and 2 over (0,0), node 2 hears 1 over (3,0).
		checkClose(t, "y", y.Data(), []float64{1 + 50.1, 2 + 50.1 + 1 + 20.3 + 4 + 10.1, 4 + 50.1 + 2 + 40.1}, tol)
	})
}

// TestBioConvFormula is the same for edge vectors; batch norm evaluates with
// statistics 0 and 1, and sees positive numbers.
func TestBioConvFormula(t *testing.T) {
	g := &graph.Graph{Ptr: []int32{0, 0, 2, 3}, Adj: []int32{0, 2, 1}, EdgeLabel: []int32{1, 1<<6 | 1<<2, 1 << 8}, Directed: true,
		X: graph.Features{Width: 1, Category: []int32{0, 0, 0}}}
	onEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option, tol float64) {
		c := gnn.NewBioConv(be, "conv", 1, newRand(1))
		c.Norm.Eps = 0
		be.Upload(c.Edge.W.Value, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9})
		be.Upload(c.Edge.B.Value, []float64{0.5})
		be.Upload(c.First.W.Value, []float64{1, 0, 0, 1})
		be.Fill(c.First.B.Value, 0)
		be.Upload(c.Second.W.Value, []float64{1, 100})
		be.Fill(c.Second.B.Value, 0)
		tape := autodiff.NewInference(be, opts...)
		defer tape.Reset()
		y := c.Forward(gnn.NewBatch(tape, graph.Collate(g)), tape.Matrix(3, 1, []float64{1, 2, 4}), nn.Eval)
		checkClose(t, "y", y.Data(), []float64{1 + 100*8.5, 7 + 100*(8.5+1.5+10.5), 6 + 100*(8.5+9.5)}, tol)
	})
}

// TestEdgeCountsByLabels: a batch gives the counts of the labels that it is asked
// for, whatever it was asked for before.
func TestEdgeCountsByLabels(t *testing.T) {
	tape := autodiff.NewInference(ref.New())
	defer tape.Reset()
	b := gnn.NewBatch(tape, graph.Collate(&graph.Graph{Ptr: []int32{0, 1, 2}, Adj: []int32{1, 0}, EdgeLabel: []int32{1, 3},
		X: graph.Features{Width: 1, Category: []int32{0, 0}}}))
	wide := graph.EdgeColumns{Widths: []int{5}, SelfLoop: []int{4}}
	first := b.EdgeCounts(gnn.BitLabels(3, 4))
	for range 2 {
		// Each bit, and the number of edges with the self-loop.
		checkClose(t, "bits", b.EdgeCounts(gnn.BitLabels(3, 4)).Data(), []float64{1, 0, 1, 2, 1, 1, 1, 2}, 0)
		checkClose(t, "bits with another loop", b.EdgeCounts(gnn.BitLabels(3, 2)).Data(), []float64{1, 1, 0, 2, 1, 2, 0, 2}, 0)
		checkClose(t, "columns", b.EdgeCounts(gnn.ColumnLabels(wide)).Data(), []float64{0, 1, 0, 0, 1, 0, 0, 0, 1, 1}, 0)
	}
	checkClose(t, "the first", first.Data(), []float64{1, 0, 1, 2, 1, 1, 1, 2}, 0)
}

func TestCategoricalMisuse(t *testing.T) {
	be := ref.New()
	tape := autodiff.NewTape(be)
	chem := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 3, Layers: 1}, newRand(1))
	bio := gnn.NewBioGIN(be, gnn.BioGINConfig{Hidden: 3, Layers: 1, Center: true}, newRand(1))
	for want, f := range map[string]func(){
		"gnn: NewChemGIN: want positive sizes": func() { gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 3}, newRand(1)) },
		"gnn: NewBioGIN: want positive sizes":  func() { gnn.NewBioGIN(be, gnn.BioGINConfig{Layers: 1}, newRand(1)) },
		"gnn: BioGIN: want 2 categories of nodes; the features have width 2 (one-hot: false)": func() {
			bio.Forward(gnn.NewBatch(tape, graph.Collate(randomGraphs(t, 1, gnn.NodeFlags, true, false, 4)...)), nn.Eval)
		},
		"gnn: ChemGIN: want 360 categories of nodes; the features have width 3 (one-hot: true)": func() {
			chem.Forward(gnn.NewBatch(tape, graph.Collate(randomGraphs(t, 1, 3, false, false, 4)...)), nn.Eval)
		},
		"gnn: BioGIN: graph 1 of the batch has no center": func() {
			gs := proteinGraphs(t, 1, false, 3)
			bio.Forward(gnn.NewBatch(tape, graph.Collate(gs[0], empty(gnn.NodeFlags, false), gs[0])), nn.Eval)
		},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), want) {
					t.Errorf("panic %v, want %q in it", r, want)
				}
			}()
			f()
		}()
	}
}

// TestEmbedded: a node begins as the sum of the rows of its categories, of few as of many.
func TestEmbedded(t *testing.T) {
	be := ref.New()
	for _, name := range feature.Names() {
		c, err := feature.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		e := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 3, Layers: 1, Atoms: name}, newRand(3))
		b := graph.Collate(randomGraphs(t, 5, c.NodeWidth(), false, false, 9, 12)...)
		want := make([]float64, 3*b.Nodes())
		for k, rest := len(c.Atoms)-1, slices.Clone(b.X.Category); k >= 0; k-- {
			table := make([]float64, 3*c.Atoms[k].Size)
			be.Download(table, e.Atoms[k].Table.Value)
			for i := range rest {
				size := int32(c.Atoms[k].Size)
				for j := range 3 {
					want[3*i+j] += table[3*int(rest[i]%size)+j]
				}
				rest[i] /= size
			}
		}
		tape := autodiff.NewInference(be)
		checkClose(t, name, e.Embedded(gnn.NewBatch(tape, b)).Data(), want, 1e-14)
	}
}

// TestChemGINSum: the sum of a molecule's n atoms is n/SumUnit times their mean.
func TestChemGINSum(t *testing.T) {
	be := ref.New()
	sizes := []int{9, 7, 5, 26}
	b := twoViews(moleculeGraphs(t, 4, false, sizes...))
	mean := pass(be, gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 2}, newRand(3)), b, nn.Eval).h
	sum := pass(be, gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 2, Sum: true}, newRand(3)), b, nn.Eval).h
	for i := range mean {
		mean[i] *= float64(sizes[i/6%4]) / gnn.SumUnit
	}
	checkClose(t, "sums", sum, mean, 1e-12)
}

// TestEncoderDropout: dropout changes what Train mode computes, anew at every
// pass, and nothing in Eval mode.
func TestEncoderDropout(t *testing.T) {
	be := ref.New()
	b := twoViews(moleculeGraphs(t, 4, false, 9, 7, 5, 6))
	plain := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 2}, newRand(3))
	drops := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 2, Dropout: 0.5}, newRand(3))
	checkClose(t, "Eval", pass(be, drops, b, nn.Eval).h, pass(be, plain, b, nn.Eval).h, 0)
	first, second := pass(be, drops, b, nn.Train).h, pass(be, drops, b, nn.Train).h
	if slices.Equal(first, second) || slices.Equal(first, pass(be, plain, b, nn.Train).h) {
		t.Error("dropout does nothing, or the same at every pass")
	}
}

// TestEncoderDropoutLast: the last layer, which has no ReLU, has dropout too, and
// every layer masks of its own.
func TestEncoderDropoutLast(t *testing.T) {
	be := ref.New()
	chem := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 16, Layers: 2, Dropout: 0.5}, newRand(3))
	bio := gnn.NewBioGIN(be, gnn.BioGINConfig{Hidden: 16, Layers: 2, Dropout: 0.5}, newRand(3))
	for name, c := range map[string]struct {
		b     *graph.Batch
		nodes func(b *gnn.Batch, mode nn.Mode) *autodiff.Var
		drops []*nn.Dropout
	}{
		"ChemGIN": {twoViews(moleculeGraphs(t, 4, false, 9, 7, 5, 6)), chem.Nodes, chem.Drops},
		"BioGIN":  {twoViews(proteinGraphs(t, 4, false, 9, 7, 5, 6)), bio.Nodes, bio.Drops},
	} {
		for mode, want := range map[nn.Mode]float64{nn.Train: 0.5, nn.Eval: 0} {
			tape := autodiff.NewInference(be)
			x := c.nodes(gnn.NewBatch(tape, c.b), mode).Data()
			zeros := 0.0
			for _, v := range x {
				if v == 0 {
					zeros++
				}
			}
			if share := zeros / float64(len(x)); math.Abs(share-want) > 0.1*min(want, 1) {
				t.Errorf("%s, train %v: a share of %.2f of the nodes' features is 0, want %.2f", name, mode, share, want)
			}
			tape.Reset()
		}
		if c.drops[0].Seed == c.drops[1].Seed {
			t.Errorf("%s: both layers have the seed %d", name, c.drops[0].Seed)
		}
	}
}

// TestInitialValues: every parameter starts as its encoder's comment says.
func TestInitialValues(t *testing.T) {
	be := ref.New()
	const hidden = 24
	xavier := func(v *tensor.Tensor, _ int) float64 { return math.Sqrt(6 / float64(v.Rows+v.Cols)) }
	kaiming := func(_ *tensor.Tensor, in int) float64 { return 1 / math.Sqrt(float64(in)) }
	type kind struct {
		value  float64                                   // of all entries, or
		spread func(v *tensor.Tensor, fanIn int) float64 // the bound of uniform ones
	}
	type rule struct {
		part string
		kind kind
	}
	one, zero, small := kind{value: 1}, kind{}, kind{value: 1e-4}
	for _, c := range []struct {
		e     encoder
		rules []rule // the first whose part is in the name counts
	}{
		{gnn.NewGIN(be, gnn.GINConfig{In: 9, Hidden: hidden, Layers: 2}, newRand(1)), []rule{
			{".nn.0.weight", kind{spread: xavier}}, {".nn.2.weight", kind{spread: xavier}}, {".weight", one}, {".bias", zero},
		}},
		{gnn.NewResGCN(be, gnn.ResGCNConfig{In: 9, Hidden: hidden, Layers: 2}, newRand(2)), []rule{
			{".lins.", kind{spread: kaiming}}, {"conv_feat.weight", kind{spread: xavier}}, {".convs.0.weight", kind{spread: xavier}},
			{".convs.1.weight", kind{spread: xavier}}, {".convs.", zero}, {".weight", one}, {".bias", small},
		}},
		{gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: hidden, Layers: 2}, newRand(3)), []rule{
			{"_embedding", kind{spread: xavier}}, {".mlp.", kind{spread: kaiming}}, {".weight", one}, {".bias", zero},
		}},
		{gnn.NewBioGIN(be, gnn.BioGINConfig{Hidden: hidden, Layers: 2}, newRand(4)), []rule{
			{"_embeddings", kind{spread: xavier}}, {".mlp.1.weight", one}, {".mlp.1.bias", zero}, {".gnns.", kind{spread: kaiming}},
		}},
	} {
		fanIn := 0 // of the weight before
		for _, p := range c.e.Parameters() {
			x := make([]float64, p.Value.Len())
			be.Download(x, p.Value)
			if p.Value.Rows > 1 {
				fanIn = p.Value.Rows
			}
			at := slices.IndexFunc(c.rules, func(r rule) bool { return strings.Contains(p.Name, r.part) })
			if at < 0 {
				t.Errorf("%s is of no kind", p.Name)
				continue
			}
			lo, hi := slices.Min(x), slices.Max(x)
			switch k := c.rules[at].kind; {
			case k.spread == nil && (lo != k.value || hi != k.value):
				t.Errorf("%s starts between %v and %v, want %v", p.Name, lo, hi, k.value)
			case k.spread != nil:
				if bound := k.spread(p.Value, fanIn); lo < -bound || hi > bound || lo > -0.6*bound || hi < 0.6*bound {
					t.Errorf("%s%v starts between %v and %v, want ±%v", p.Name, p.Value, lo, hi, bound)
				}
			}
		}
	}
}

// dropper is an encoder with dropout.
type dropper interface {
	encoder
	DropoutState() []*nn.Buffer
}

// TestDropoutState: an encoder with the parameters and buffers of another one and
// with its dropout's state goes on as that one does.
func TestDropoutState(t *testing.T) {
	be := ref.New()
	for name, c := range map[string]struct {
		b   *graph.Batch
		new func() dropper
	}{
		"ChemGIN": {twoViews(moleculeGraphs(t, 4, false, 9, 7, 5, 6)), func() dropper {
			return gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 3, Dropout: 0.5}, newRand(3))
		}},
		"BioGIN": {twoViews(proteinGraphs(t, 4, false, 9, 7, 5, 6)), func() dropper {
			return gnn.NewBioGIN(be, gnn.BioGINConfig{Hidden: 6, Layers: 3, Dropout: 0.5}, newRand(3))
		}},
	} {
		e, late := c.new(), c.new()
		for range 3 {
			pass(be, e, c.b, nn.Train)
		}
		names := map[string]bool{}
		from := e.DropoutState()
		for i, b := range late.DropoutState() {
			names[b.Name] = true
			be.CopyBlock(b.Value, 0, 0, from[i].Value, 0, 0, 1, 1)
		}
		if len(names) != 3 {
			t.Errorf("%s: %d names for 3 layers", name, len(names))
		}
		checkClose(t, name, pass(be, late, c.b, nn.Train).h, pass(be, e, c.b, nn.Train).h, 0)
	}
}

// TestReadouts: a readout is the layers that it names, each by the kinds that it names, in
// the place that its column says, and leaves the encoder's nodes as they are; an encoder gets
// another one without losing its weights.
func TestReadouts(t *testing.T) {
	be := ref.New()
	sizes := []int{9, 1, 5, 12}
	for _, a := range []gnn.Architecture{
		{Kind: gnn.KindGIN, In: 3, Hidden: 4, Layers: 3}, {Kind: gnn.KindResGCN, In: 3, Hidden: 4, Layers: 3},
		{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 3}, {Kind: gnn.KindBioGIN, Hidden: 4, Layers: 3},
	} {
		gs, unit := denseGraphs(t, 1, false, sizes...), 1.
		switch a.Kind {
		case gnn.KindChemGIN:
			gs, unit = moleculeGraphs(t, 1, false, sizes...), 1./gnn.SumUnit
		case gnn.KindBioGIN:
			gs = proteinGraphs(t, 1, false, sizes...)
		}
		e, err := a.New(be, newRand(1))
		if err != nil {
			t.Fatal(err)
		}
		stir(be, e)
		values := func(r gnn.Readout) map[string][]float64 {
			t.Helper()
			other, err := gnn.WithReadout(e, r)
			if err != nil {
				t.Fatal(err)
			}
			of, _ := gnn.ArchitectureOf(other)
			names, h := of.Columns(), pass(be, other, graph.Collate(gs...), nn.Eval).h
			if len(names) != other.Width() || len(h) != len(gs)*len(names) {
				t.Fatalf("%s %s: %d names, width %d, %d numbers", a.Kind, r, len(names), other.Width(), len(h))
			}
			m := map[string][]float64{}
			for i, v := range h {
				m[names[i%len(names)]] = append(m[names[i%len(names)]], v)
			}
			return m
		}
		all, some := values(gnn.ReadoutAll), values("1,3:max,mean")
		if len(all) != 3*3*4 || len(some) != 2*2*4 {
			t.Errorf("%s: %d and %d columns", a.Kind, len(all), len(some))
		}
		for name, v := range some {
			checkClose(t, a.Kind+" "+name, v, all[name], 0)
		}
		tape := autodiff.NewInference(be)
		nodes := e.Nodes(gnn.NewBatch(tape, graph.Collate(gs...)), nn.Eval)
		x, width, at := nodes.Data(), nodes.Cols(), 0
		for g, n := range sizes {
			for i := range 4 { // the last layer's columns are the last
				sum, largest := 0., math.Inf(-1)
				for range n {
					sum, largest = sum+x[(at+1)*width-4+i], max(largest, x[(at+1)*width-4+i])
					at++
				}
				at -= n
				for kind, want := range map[string]float64{"sum": unit * sum, "mean": sum / float64(n), "max": largest} {
					checkClose(t, a.Kind+" "+kind, []float64{all[fmt.Sprintf("l3_%s_%d", kind, i)][g]}, []float64{want}, 1e-12)
				}
			}
			at += n
		}
		own := pass(be, e, graph.Collate(gs...), nn.Eval).h
		back, err := gnn.WithReadout(e, "")
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "its own", pass(be, back, graph.Collate(gs...), nn.Eval).h, own, 0)
	}
}

// TestReadout: an encoder in two steps is the encoder, in both forms of its layers,
// gradients included.
func TestReadout(t *testing.T) {
	be := cpu.New(tensor.Float64)
	for _, kind := range []string{gnn.KindGIN, gnn.KindResGCN} {
		for form, opts := range map[string][]autodiff.Option{"fused": nil, "composed": {autodiff.Composed()}} {
			e, err := gnn.Architecture{Kind: kind, In: 3, Hidden: 4, Layers: 3}.New(be, rand.New(rand.NewPCG(1, 2)))
			if err != nil {
				t.Fatal(err)
			}
			steps := e.(gnn.ReadoutEncoder)
			run := func(forward func(b *gnn.Batch) *autodiff.Var) (all [][]float64) {
				tape := autodiff.NewTape(be, opts...)
				defer tape.Reset()
				nn.ZeroGrad(e)
				h := forward(gnn.NewBatch(tape, graph.Collate(denseGraphs(t, 1, false, 4, 6, 5)...)))
				all = append(all, h.Data())
				tape.Backward(h.Tanh().Sum())
				for _, p := range e.Parameters() {
					g := make([]float64, p.Value.Len())
					be.Download(g, p.Grad)
					all = append(all, g)
				}
				return all
			}
			whole := run(func(b *gnn.Batch) *autodiff.Var { return e.Forward(b, nn.Train) })
			parts := run(func(b *gnn.Batch) *autodiff.Var { return steps.Readout(b, steps.Nodes(b, nn.Train), nn.Train) })
			if d := cmp.Diff(whole, parts, cmpopts.EquateApprox(1e-10, 1e-12)); d != "" {
				t.Errorf("%s, %s:\n%s", kind, form, d)
			}
		}
	}
}
