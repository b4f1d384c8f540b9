package method

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// The methods against testdata/golden.py, which writes them down once more in
// PyTorch. So that their own parts stand out, the encoder is a table: a node is the
// row of its category, and a graph the sum of its nodes.

const (
	tableRows  = 6
	tableWidth = 4
)

type table struct{ *nn.Embedding }

func newTable(be backend.Backend) table {
	return table{nn.NewEmbedding(be, "encoder.table", tableRows, tableWidth, rand.New(rand.NewPCG(1, 1)))}
}

func (e table) Nodes(b *gnn.Batch, _ nn.Mode) *autodiff.Var {
	return e.Embedding.Forward(b.Tape(), b.Host.X.Category)
}

func (e table) Forward(b *gnn.Batch, mode nn.Mode) *autodiff.Var {
	return gnn.GlobalAddPool(e.Nodes(b, mode), b)
}

func (table) Readout(b *gnn.Batch, x *autodiff.Var, _ nn.Mode) *autodiff.Var {
	return gnn.GlobalAddPool(x, b)
}

func (table) Width() int       { return tableWidth }
func (table) Reads() gnn.Reads { return gnn.Reads{} }

// tableGraphs are paths whose nodes have these categories, in so many views.
func tableGraphs(views ...[][]int32) *graph.Batch {
	b := new(graph.Batch)
	b.Reset(tableRows)
	for _, view := range views {
		for _, categories := range view {
			g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: tableRows, Category: categories}}
			for i := range categories {
				if i > 0 {
					g.Adj = append(g.Adj, int32(i-1))
				}
				if i+1 < len(categories) {
					g.Adj = append(g.Adj, int32(i+1))
				}
				g.Ptr = append(g.Ptr, int32(len(g.Adj)))
			}
			b.Append(g)
		}
		b.EndView()
	}
	return b
}

// The graphs of the goldens, raw and in a second view.
var (
	rawPaths  = [][]int32{{0, 1, 2}, {3, 4}, {5, 0, 0, 1}}
	someParts = [][]int32{{0, 1}, {4}, {5, 0, 1}}
)

// wave sets the parameters of a module to numbers that golden.py knows.
func wave(m nn.Module) {
	for k, p := range m.Parameters() {
		v := make([]float64, p.Value.Len())
		for i := range v {
			v[i] = 0.5 * math.Sin(1.3*float64(i)+0.01*float64(i*i)+float64(k)+0.7)
		}
		p.Backend().Upload(p.Value, v)
	}
}

// noise is the draws of a step that golden.py knows.
func noise(step int) func() float64 {
	i := 0.0
	return func() float64 { i++; return math.Cos(2.1*i + float64(step)) }
}

// golden is what a method does on the paths: the loss and the gradients of the
// first step, and the losses and parameters of three by Adam.
type golden struct {
	Losses     []float64
	Gradients  map[string][]float64
	Parameters map[string][]float64
}

// goldenElsewhere says where methods without a golden of their own name are tested.
var goldenElsewhere = map[string]string{
	Untrained:      "it does not learn",
	UntrainedTorch: "TestUntrainedTorch",
	"edgepred":     "TestEdgePrediction",
	"attrmasking":  "TestAtomMasking and TestEdgeMasking",
	"infomax":      "TestInfomax",
	GraphCL:        "the objective is specmatch's, and so are its goldens",
	InfoNCE:        "as for graphcl",
	Jitter:         "it is infonce from other weights",
	SpecMatch:      "as for graphcl",
}

// TestEveryMethodHasAGolden: a new method comes with one.
func TestEveryMethodHasAGolden(t *testing.T) {
	for _, m := range methods {
		if goldenElsewhere[m.Name] == "" {
			readGolden(t, m.Name)
		}
	}
}

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]golden{}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	g, ok := all[name]
	if !ok {
		t.Fatalf("testdata/golden.json has no %s: write it down in golden.py, run that, and test the method "+
			"by checkGolden and checkGradients, as simgrace_test.go does", name)
	}
	return g
}

// fileOrder is a parameter's entries as PyTorch has them.
func fileOrder(p *autodiff.Param, x *tensor.Tensor) []float64 {
	v := make([]float64, x.Len())
	p.Backend().Download(v, x)
	if p.Layout != autodiff.Transposed {
		return v
	}
	w := make([]float64, len(v))
	for i := range x.Rows {
		for j := range x.Cols {
			w[j*x.Rows+i] = v[i*x.Cols+j]
		}
	}
	return w
}

// checkGolden takes three steps down a loss and compares each with PyTorch.
func checkGolden(t *testing.T, name string, steps *train.Minimizer, m nn.Module, loss func(step int) *autodiff.Var) {
	t.Helper()
	checkGoldenPair(t, name, steps, m, func(step int) train.Losses { return train.Losses{Main: loss(step)} })
}

// checkGoldenPair is checkGolden with an auxiliary loss, whose weight the first step
// sets.
func checkGoldenPair(t *testing.T, name string, steps *train.Minimizer, m nn.Module, losses func(step int) train.Losses) {
	t.Helper()
	want := readGolden(t, name)
	tolerance := 1e-9
	near := func(what string, got, want []float64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s, %s: %d numbers, want %d", name, what, len(got), len(want))
		}
		for i := range want {
			if !(math.Abs(got[i]-want[i]) <= tolerance*(1+math.Abs(want[i]))) {
				t.Errorf("%s, %s: entry %d is %.15g, want %.15g", name, what, i, got[i], want[i])
			}
		}
	}
	gradient := func(f func(l train.Losses) *autodiff.Var) (norm float64) {
		nn.ZeroGrad(m)
		defer steps.Tape.Reset()
		steps.Tape.Backward(f(losses(0)))
		for _, p := range m.Parameters() {
			if p.HasGrad() {
				for _, v := range fileOrder(p, p.Grad) {
					norm += v * v
				}
			}
		}
		return math.Sqrt(norm)
	}
	main := func(l train.Losses) *autodiff.Var { return l.Main }
	if steps.Beta.Ratio == 0 {
		gradient(main)
	} else {
		beta := steps.Beta.Ratio * gradient(main) / gradient(func(l train.Losses) *autodiff.Var { return l.Aux })
		gradient(func(l train.Losses) *autodiff.Var { return l.Main.Add(l.Aux.Scale(beta)) })
	}
	for _, p := range m.Parameters() {
		if want, ok := want.Gradients[p.Name]; ok != p.HasGrad() {
			t.Errorf("%s, %s: has a gradient %v, want %v", name, p.Name, p.HasGrad(), ok)
		} else if ok {
			near("gradient of "+p.Name, fileOrder(p, p.Grad), want)
		}
	}
	var got []float64
	for step := range want.Losses {
		s, err := steps.Step(step == 0, func(bool) train.Losses { return losses(step) })
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Loss)
	}
	near("losses", got, want.Losses)
	for _, p := range m.Parameters() {
		if tolerance = 1e-9; strings.HasPrefix(p.Name, "critic.") {
			// A bias that the next norm hides has a gradient of rounding alone, which
			// Adam makes a step of.
			tolerance = 1e-6
		}
		near(p.Name, fileOrder(p, p.Value), want.Parameters[p.Name])
	}
}

// goldenSetup is that of the goldens.
func goldenSetup(be backend.Backend) Setup {
	s, err := Setup{Backend: be, Rate: 0.05}.Complete()
	if err != nil {
		panic(err)
	}
	return s
}

// goldenModel is the table with a projection head.
func goldenModel(be backend.Backend) *specmatch.Model {
	m := specmatch.NewModel(be, newTable(be), rand.New(rand.NewPCG(1, 1)))
	wave(m)
	return m
}

// checkGradients compares the gradients of all parameters with differences, but
// those of biases that a norm hides.
func checkGradients(t *testing.T, be backend.Backend, params []*autodiff.Param, hidden string, f func(tape *autodiff.Tape) *autodiff.Var) {
	t.Helper()
	var visible []*autodiff.Param
	for _, p := range params {
		if hidden == "" || !strings.Contains(p.Name, hidden) {
			visible = append(visible, p)
		}
	}
	if err := gradcheck.Params(be, f, visible); err != nil {
		t.Error(err)
	}
}

func nearly(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s: %.12g, want %.12g", what, got, want)
	}
}

func newFloat64() backend.Backend { return cpu.New(tensor.Float64) }

// motifGraphs are n graphs, where only their number counts.
func motifGraphs(n int) []*graph.Graph {
	gs := make([]*graph.Graph, n)
	for i := range gs {
		gs[i] = &graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: tableRows, Category: []int32{0}}}
	}
	return gs
}
