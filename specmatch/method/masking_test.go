package method

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/train"
)

// maskingDraws is the random stream of a step, whose draws golden.py knows.
func maskingDraws(step int) *rand.Rand { return rand.New(rand.NewPCG(uint64(step), 1)) }

// linearNodes is an encoder that reads the features and nothing else.
type linearNodes struct{ *nn.Linear }

func (e linearNodes) Nodes(b *gnn.Batch, _ nn.Mode) *autodiff.Var { return e.Forward(b.Features()) }

func newLinearMasking(be backend.Backend) *FeatureMasking {
	rng := maskingDraws(0)
	e := linearNodes{nn.NewLinear(be, "encoder", tableRows, tableWidth, nn.XavierUniform, rng)}
	m := NewFeatureMasking(be, e, tableWidth, tableRows, rng)
	m.Replace = 0.2
	wave(m)
	return m
}

func newTableArcs(be backend.Backend) *ArcMasking {
	m := NewArcMasking(be, newTable(be), 2, tableWidth/2, maskingDraws(0))
	wave(m)
	return m
}

func TestGraphMAEGolden(t *testing.T) {
	be := newFloat64()
	m := newLinearMasking(be)
	steps := train.NewMinimizer(be, m, 0.05)
	checkGolden(t, "graphmae", steps, m, func(step int) *autodiff.Var {
		return m.Loss(tableGraphs(rawPaths), steps.Tape, maskingDraws(step))
	})
}

func TestS2GAEGolden(t *testing.T) {
	be := newFloat64()
	m := newTableArcs(be)
	steps := train.NewMinimizer(be, m, 0.05)
	checkGolden(t, "s2gae", steps, m, func(step int) *autodiff.Var {
		return m.Loss(tableGraphs(rawPaths), steps.Tape, maskingDraws(step))
	})
}

func TestMaskingGradients(t *testing.T) {
	be := newFloat64()
	for name, m := range map[string]Task{
		"graphmae": newGINMasking(be), "s2gae": newTableArcs(be),
	} {
		t.Run(name, func(t *testing.T) {
			checkGradients(t, be, m.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
				return m.Loss(tableGraphs(rawPaths), tape, maskingDraws(0))
			})
		})
	}
}

func newGINMasking(be backend.Backend) *FeatureMasking {
	rng := maskingDraws(7)
	e := gnn.NewGIN(be, gnn.GINConfig{In: tableRows, Hidden: 3, Layers: 2}, rng)
	m := NewFeatureMasking(be, e, e.Width(), tableRows, rng)
	wave(m)
	return m
}

// TestHiddenFeatures: the features of nodes that a token stands for reach the loss as its
// answer alone. The decoder's answer to a node does not depend on them, so that the losses for
// all categories of the only node of a kind of graph add up as cosines with one vector do.
func TestHiddenFeatures(t *testing.T) {
	be := newFloat64()
	m := newGINMasking(be)
	m.Share, m.Replace = 1, 0
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	squares := 0.0
	for c := range int32(tableRows) {
		// All nodes are hidden, and look alike.
		loss := m.Loss(tableGraphs([][]int32{{c, c}, {c, c}}), tape, maskingDraws(1)).Float()
		squares += math.Pow(1-math.Sqrt(loss), 2)
	}
	nearly(t, "squared cosines with all categories", squares, 1, 1e-9)
	if m.Share = 0.4; m.Loss(tableGraphs([][]int32{{1}, {2}}), tape, maskingDraws(1)) != nil {
		t.Error("a loss without a hidden node")
	}
}

// shownFeatures is an encoder that keeps the features that it saw.
type shownFeatures struct {
	linearNodes
	rows []float64
}

func (e *shownFeatures) Nodes(b *gnn.Batch, mode nn.Mode) *autodiff.Var {
	e.rows = b.Features().Data()
	return e.linearNodes.Nodes(b, mode)
}

// TestReplacedFeatures: where all nodes are hidden, nine of ten show the token, and one of ten the features of
// a node that is drawn, most often another one.
func TestReplacedFeatures(t *testing.T) {
	be := newFloat64()
	const n = 200
	rng := maskingDraws(0)
	e := &shownFeatures{linearNodes: linearNodes{nn.NewLinear(be, "encoder", n, tableWidth, nn.XavierUniform, rng)}}
	m := NewFeatureMasking(be, e, tableWidth, n, rng)
	m.Share = 1
	token := make([]float64, n)
	for i := range token {
		token[i] = 2
	}
	be.Upload(m.Token.Value, token)
	g := &graph.Graph{Ptr: make([]int32, n+1), X: graph.Features{Width: n, Category: make([]int32, n)}}
	for i := range g.X.Category {
		g.X.Category[i] = int32(i)
	}
	b := new(graph.Batch)
	b.Reset(n)
	b.Append(g)
	b.EndView()
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	m.Loss(b, tape, maskingDraws(1))
	tokens := 0
	others := 0
	for i := range n {
		row := e.rows[i*n : (i+1)*n]
		switch {
		case slices.Equal(row, token):
			tokens++
		case row[i] != 1:
			others++
		}
	}
	if tokens != 9*n/10 || others < n/10-2 {
		t.Errorf("of %d hidden nodes, %d show the token and %d another node's features", n, tokens, others)
	}
}

// seeing is an encoder that keeps the batch that it saw.
type seeing struct {
	table
	arcs map[[2]int32]int
}

func (e seeing) Nodes(b *gnn.Batch, mode nn.Mode) *autodiff.Var {
	for i := range int32(b.Host.Nodes()) {
		for _, j := range b.Host.Adj[b.Host.Ptr[i]:b.Host.Ptr[i+1]] {
			e.arcs[[2]int32{i, j}]++
		}
	}
	return e.table.Nodes(b, mode)
}

// TestHiddenArcs: the encoder sees each arc that is not asked for, once, and no other; some
// edge is seen in one direction only; pairs stay within their graphs.
func TestHiddenArcs(t *testing.T) {
	be := newFloat64()
	e := seeing{newTable(be), map[[2]int32]int{}}
	m := NewArcMasking(be, e, 2, tableWidth/2, maskingDraws(0))
	path := make([]int32, 30)
	b := tableGraphs([][]int32{path, path})
	all := map[[2]int32]bool{}
	for i := range int32(b.Nodes()) {
		for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
			all[[2]int32{i, j}] = true
		}
	}
	before := slices.Clone(b.Adj)
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	if m.Loss(b, tape, maskingDraws(2)) == nil {
		t.Fatal("no loss")
	}
	oneWay := 0
	for arc, n := range e.arcs {
		if !all[arc] || n != 1 {
			t.Errorf("arc %v is seen %d times", arc, n)
		}
		if e.arcs[[2]int32{arc[1], arc[0]}] == 0 {
			oneWay++
		}
	}
	if len(e.arcs) != len(all)/2 || oneWay == 0 {
		t.Errorf("%d of %d arcs are seen, %d of them without their reverse", len(e.arcs), len(all), oneWay)
	}
	if !slices.Equal(before, b.Adj) {
		t.Error("the batch has changed")
	}
	lonely := &graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: tableRows, Category: []int32{1}}}
	if m.Loss(graph.Collate(lonely), tape, maskingDraws(2)) != nil {
		t.Error("a loss without an arc")
	}
}
