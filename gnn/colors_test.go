package gnn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/tensor"
)

// star is a hub of the first category with leaves of the second, and a path behind one
// of the leaves.
func star(t *testing.T, leaves, path int) *graph.Graph {
	var edges [][2]int
	x := graph.Features{Width: 2, Category: []int32{0}}
	for i := range leaves + path {
		from := 0
		if i > leaves {
			from = i
		} else if i == leaves {
			from = leaves
		}
		edges, x.Category = append(edges, [2]int{from, i + 1}), append(x.Category, 1)
	}
	g, err := graph.FromEdges(1+leaves+path, edges, x)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestColorRows: how many rows the layers have on graphs where that can be counted by
// hand, and where nothing is gained or may not be.
func TestColorRows(t *testing.T) {
	stars := func(n ...int) (gs []*graph.Graph) {
		for _, k := range n {
			gs = append(gs, star(t, k, 0))
		}
		return gs
	}
	for _, c := range []struct {
		name string
		b    *graph.Batch
		want []int
	}{
		// Hubs differ by degree from the start, as Â does; leaves by their hubs from
		// the first layer on. After that nothing changes.
		{"stars", views(stars(9, 9, 5), 3), []int{3, 4, 4, 4}},
		{"stars in two views", views(stars(9, 9, 5, 9), 2, 2), []int{2 + 3, 2 + 4, 6, 6}},
		{"equal stars", views(stars(7, 7, 7), 3), []int{2, 2, 2, 2}},
		// At first the hub, the nodes between two others, and the ends.
		{"a path at a star", views([]*graph.Graph{star(t, 12, 3)}, 1), []int{3, 6, 6, 6}},
		{"all nodes differ", views(randomGraphs(t, 3, 7, true, false, 20, 30), 2), nil},
		{"no nodes", views([]*graph.Graph{empty(2, false)}, 1), nil},
	} {
		be := cpu.New(tensor.Float64)
		tape := autodiff.NewTape(be)
		if rows := gnn.NewBatch(tape, c.b).ColorRows(graph.Normalized, 3); !slices.Equal(rows, c.want) {
			t.Errorf("%s: %v rows, want %v", c.name, rows, c.want)
		}
		for what, other := range map[string]*gnn.Batch{
			"composed":            gnn.NewBatch(autodiff.NewTape(be, autodiff.Composed()), c.b),
			"no weighted norm":    gnn.NewBatch(autodiff.NewTape(ref.New()), c.b),
			"a step for a record": gnn.NewInputs(be, c.b, c.b.Nodes()+3, len(c.b.Adj)+3, gnn.Reads{Normalized: true}).Batch(tape),
		} {
			if rows := other.ColorRows(graph.Normalized, 3); rows != nil {
				t.Errorf("%s, %s: %v rows", c.name, what, rows)
			}
		}
	}
}

// molecules are graphs with every other edge of another label, those of one direction of
// a third one where directed, and in the last graph a self-loop that an augmentation made.
func molecules(gs []*graph.Graph, directed bool) (ms []*graph.Graph) {
	const atoms = feature.AtomTypes * feature.ChiralityTags
	for k, g := range gs {
		m := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: atoms}, Directed: directed}
		for i := range int32(len(g.Ptr) - 1) {
			m.X.Category = append(m.X.Category, 7*g.X.Category[i]+3)
			for _, j := range g.Adj[g.Ptr[i]:g.Ptr[i+1]] {
				label := max(i, j) % 2 * feature.BondDirections
				if directed && i < j {
					label = 5
				}
				m.Adj, m.EdgeLabel = append(m.Adj, j), append(m.EdgeLabel, label)
			}
			if k == len(gs)-1 && i == 1 {
				m.Adj, m.EdgeLabel = append(m.Adj, i), append(m.EdgeLabel, -1)
			}
			m.Ptr = append(m.Ptr, int32(len(m.Adj)))
		}
		ms = append(ms, m)
	}
	return ms
}

// TestLabelledRows: the labels of edges tell the leaves of a star apart, but not degrees
// before the first layer.
func TestLabelledRows(t *testing.T) {
	tape := autodiff.NewTape(cpu.New(tensor.Float64))
	for name, c := range map[string]struct {
		gs   []*graph.Graph
		want []int
	}{
		// Two hubs and the leaves of both kinds; then leaves by their hubs, too.
		"stars": {[]*graph.Graph{star(t, 8, 0), star(t, 8, 0), star(t, 6, 0)}, []int{2, 4, 6, 6}},
		// A leaf of the second star is by itself; then its hub, then all leaves there.
		"with a self-loop": {[]*graph.Graph{star(t, 8, 0), star(t, 8, 0)}, []int{2, 4, 5, 7}},
	} {
		ms := molecules(c.gs, false)
		if name == "stars" {
			ms = molecules(append(c.gs, star(t, 1, 0)), false)[:len(c.gs)] // without the last one's self-loop
		}
		if rows := gnn.NewBatch(tape, views(ms, len(ms))).ColorRows(graph.Labelled, 3); !slices.Equal(rows, c.want) {
			t.Errorf("%s: %v rows, want %v", name, rows, c.want)
		}
	}
}

// TestByColor: an encoder whose layers run on colors gives what it gives on nodes: values,
// gradients and running statistics.
func TestByColor(t *testing.T) {
	gs := []*graph.Graph{star(t, 9, 2), star(t, 3, 5), star(t, 9, 2), star(t, 40, 0), star(t, 9, 1), star(t, 1, 7)}
	gs = append(gs, randomGraphs(t, 5, 2, false, false, 60, 70, 80)...)
	chem := func(dropout float64) func(be backend.Backend) encoder {
		return func(be backend.Backend) encoder {
			e := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 5, Dropout: dropout}, newRand(79))
			stir(be, e)
			return e
		}
	}
	rich := molecules(gs, false)
	for _, g := range rich {
		g.X.Width = feature.Rich.NodeWidth()
	}
	for name, c := range map[string]struct {
		gs    []*graph.Graph
		new   func(be backend.Backend) encoder
		sight graph.Sight
		// How many layers have rows of colors, or follow from such a layer, on a path whose
		// nodes are told apart one by one, and on graphs where most are after one round.
		path, random int
	}{
		"ResGCN, residual": {gs, resGCN(gnn.ResGCNConfig{In: 2, Hidden: 6, Layers: 5, Residual: true}), graph.Normalized, 3, 2},
		"ChemGIN, rich": {rich, func(be backend.Backend) encoder {
			e := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 5, Atoms: feature.Rich.Name}, newRand(79))
			stir(be, e)
			return e
		}, graph.Labelled, 4, 1},
		"ResGCN, all read": {gs, resGCN(gnn.ResGCNConfig{In: 2, Hidden: 6, Layers: 5, Readout: gnn.ReadoutAll}), graph.Normalized, 3, 2},
		"ChemGIN, all read": {molecules(gs, false), func(be backend.Backend) encoder {
			e := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 5, Readout: gnn.ReadoutAll}, newRand(79))
			stir(be, e)
			return e
		}, graph.Labelled, 4, 1},
		"ResGCN":            {gs, resGCN(gnn.ResGCNConfig{In: 2, Hidden: 6, Layers: 5}), graph.Normalized, 3, 2},
		"ChemGIN":           {molecules(gs, false), chem(0), graph.Labelled, 4, 1},
		"ChemGIN, dropout":  {molecules(gs, false), chem(0.5), graph.Labelled, 4, 1},
		"ChemGIN, directed": {molecules(gs, true), chem(0), graph.Labelled, 3, 1},
	} {
		for of, b := range map[string]*graph.Batch{"one view": views(c.gs, 6), "two views": views(c.gs, 2, 4), "an empty view": views(c.gs, 3, 0, 3), "a path": views(c.gs[5:], 1), "random": views(c.gs[6:], 2, 1)} {
			for mode, during := range map[nn.Mode]string{nn.Train: "training", nn.Eval: "evaluation"} {
				defined := encode(ref.New(), b, c.new, mode, autodiff.Composed())
				for _, be := range []backend.Backend{cpu.New(tensor.Float64), cpu.New(tensor.Float64, cpu.Workers(3))} {
					want := map[string]int{"one view": 6, "two views": 6, "an empty view": 6, "a path": c.path, "random": c.random}[of]
					rows := gnn.NewBatch(autodiff.NewTape(be), b).ColorRows(c.sight, 5)
					if left := rows[len(rows)-1] == b.Nodes(); len(rows) != want || left != (want == 2) {
						t.Fatalf("%s, %s: rows %v of %d nodes", name, of, rows, b.Nodes())
					}
					got := encode(be, b, c.new, mode)
					for what, x := range map[string][2][]float64{"h": {got.h, defined.h}, "gradients": {got.grads, defined.grads}, "statistics": {got.running, defined.running}} {
						scale := 0.0
						for _, v := range x[1] {
							scale = max(scale, math.Abs(v))
						}
						for i, v := range x[1] {
							if d := math.Abs(x[0][i] - v); !(d <= 1e-10*scale) {
								t.Fatalf("%s, %s, %s: %s %d is %v, want %v", name, of, during, what, i, x[0][i], v)
							}
						}
					}
				}
			}
		}
	}
}

// TestDropoutByNode: with dropout, nodes that are equal before it are not after it.
func TestDropoutByNode(t *testing.T) {
	b := views(molecules([]*graph.Graph{star(t, 40, 0), star(t, 40, 0)}, false), 2)
	be := cpu.New(tensor.Float64)
	e := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 1, Dropout: 0.5}, newRand(79))
	tape := autodiff.NewTape(be)
	for mode, want := range map[nn.Mode]bool{nn.Train: false, nn.Eval: true} {
		x := e.Nodes(gnn.NewBatch(tape, b), mode).Data() // leaves 1 and 3 of the first star
		if equal := slices.Equal(x[6:12], x[18:24]); equal != want {
			t.Errorf("mode %v: two leaves are equal: %v, want %v", mode, equal, want)
		}
	}
}
