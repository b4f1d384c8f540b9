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
		if rows := gnn.NewBatch(tape, c.b).ColorRows(3); !slices.Equal(rows, c.want) {
			t.Errorf("%s: %v rows, want %v", c.name, rows, c.want)
		}
		for what, other := range map[string]*gnn.Batch{
			"composed":            gnn.NewBatch(autodiff.NewTape(be, autodiff.Composed()), c.b),
			"no weighted norm":    gnn.NewBatch(autodiff.NewTape(ref.New()), c.b),
			"a step for a record": gnn.NewInputs(be, c.b, c.b.Nodes()+3, len(c.b.Adj)+3, gnn.Reads{Normalized: true}).Batch(tape),
		} {
			if rows := other.ColorRows(3); rows != nil {
				t.Errorf("%s, %s: %v rows", c.name, what, rows)
			}
		}
	}
}

// TestByColor: a ResGCN whose layers run on colors gives what it gives on nodes: values,
// gradients and running statistics.
func TestByColor(t *testing.T) {
	gs := []*graph.Graph{star(t, 9, 2), star(t, 3, 5), star(t, 9, 2), star(t, 40, 0), star(t, 9, 1), star(t, 1, 7)}
	for name, b := range map[string]*graph.Batch{"one view": views(gs, 6), "two views": views(gs, 2, 4), "an empty view": views(gs, 3, 0, 3)} {
		for _, residual := range []bool{false, true} {
			for mode, of := range map[nn.Mode]string{nn.Train: "training", nn.Eval: "evaluation"} {
				e := resGCN(gnn.ResGCNConfig{In: 2, Hidden: 6, Layers: 5, Residual: residual})
				want := encode(ref.New(), b, e, mode, autodiff.Composed())
				for _, be := range []backend.Backend{cpu.New(tensor.Float64), cpu.New(tensor.Float64, cpu.Workers(3))} {
					if rows := gnn.NewBatch(autodiff.NewTape(be), b).ColorRows(5); len(rows) != 6 {
						t.Fatalf("%s: rows of %d layers, %v", name, len(rows), rows)
					}
					got := encode(be, b, e, mode)
					for what, x := range map[string][2][]float64{"h": {got.h, want.h}, "gradients": {got.grads, want.grads}, "statistics": {got.running, want.running}} {
						scale := 0.0
						for _, v := range x[1] {
							scale = max(scale, math.Abs(v))
						}
						for i, v := range x[1] {
							if d := math.Abs(x[0][i] - v); !(d <= 1e-10*scale) {
								t.Fatalf("%s, residual %v, %s: %s %d is %v, want %v", name, residual, of, what, i, x[0][i], v)
							}
						}
					}
				}
			}
		}
	}
}
