package gnn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// TestInputsRefuse: a batch of another kind than the first does not take its place,
// and one of the same kind does.
func TestInputsRefuse(t *testing.T) {
	const width = 3
	be := ref.New()
	first := twoViews(randomGraphs(t, 1, width, false, false, 3, 4))
	in := gnn.NewInputs(be, first, 20, 100, gnn.Reads{})
	in.Load(twoViews(randomGraphs(t, 2, width, false, false, 7, 5)))
	for name, b := range map[string]*graph.Batch{
		"more graphs": views(randomGraphs(t, 1, width, false, false, 3, 2, 4), 1, 2),
		"one view":    graph.Collate(randomGraphs(t, 1, width, false, false, 3, 4)...),
		"wider":       twoViews(randomGraphs(t, 1, width+1, false, false, 3, 4)),
		"dense":       twoViews(randomGraphs(t, 1, width, true, false, 3, 4)),
		"asymmetric":  twoViews(randomGraphs(t, 1, width, false, true, 3, 4)),
	} {
		func() {
			defer func() {
				if r := recover(); !strings.Contains(fmt.Sprint(r), "where 2 in 2 are wanted (3, true, false)") {
					t.Errorf("%s: panic %v, want one that names both batches", name, r)
				}
			}()
			in.Load(b)
		}()
	}
	in.Close()
	if n := be.InUse(); n != 0 {
		t.Errorf("%d bytes in use after Close", n)
	}
}

// TestInputsBatch: the batch on an engine passes messages and gradients as one that
// is not padded does, and nothing of it is made at its use, where a recording would
// forbid it.
func TestInputsBatch(t *testing.T) {
	const width, nodes, entries = 3, 20, 100
	be := ref.New()
	for _, directed := range []bool{false, true} {
		b := twoViews(randomGraphs(t, 1, width, true, directed, 6, 4, 5))
		in := gnn.NewInputs(be, b, nodes, entries, gnn.Reads{Normalized: true})
		tape := autodiff.NewTape(be)
		used := be.InUse()
		padded := in.Batch(tape)
		padded.Features()
		padded.Normalized()
		if got, want := padded.ViewGraphs().Host, b.ViewPtr; !slices.Equal(got, want) {
			t.Errorf("graphs of the views %v, want %v", got, want)
		}
		if n := be.InUse() - used; n != 0 {
			t.Errorf("directed %v: %d bytes are made at use", directed, n)
		}
		run := func(batch *gnn.Batch, n int) (values []float64) {
			x := tape.Leaf(n, width, gradcheck.Random(newRand(2), nodes, width).Values[:n*width])
			y := autodiff.ConcatCols(x.SpMM(batch.Adj, 1), x.SpMM(batch.Normalized(), 0)).SliceRows(0, b.Nodes())
			tape.Backward(y.Square().Sum())
			return append(y.Data(), x.Grad()[:b.Nodes()*width]...)
		}
		checkClose(t, fmt.Sprintf("directed %v", directed), run(padded, nodes), run(gnn.NewBatch(tape, b), b.Nodes()), 1e-14)
		tape.Reset()
		in.Close()
	}
}

// TestWideFeatures: one-hot features of many columns take the memory of their matrix, and not of a square of columns.
func TestWideFeatures(t *testing.T) {
	const width = 200_000 // squared, 160 GB
	be := cpu.New(tensor.Float32)
	host := graph.Collate(&graph.Graph{
		Ptr: []int32{0, 0, 0},
		X:   graph.Features{Width: width, Category: []int32{7, width - 1}},
	})
	tape := autodiff.NewInference(be)
	defer tape.Reset()
	var ones []int
	for k, v := range gnn.NewBatch(tape, host).Features().Data() {
		if v != 0 {
			ones = append(ones, k)
		}
	}
	if want := []int{7, 2*width - 1}; !slices.Equal(ones, want) {
		t.Errorf("ones at %v, want %v", ones, want)
	}
}
