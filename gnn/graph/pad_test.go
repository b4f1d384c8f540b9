package graph_test

import (
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

// TestPad pads batches of both forms, in the same memory, and leaves them as they
// were.
func TestPad(t *testing.T) {
	one := &graph.Graph{Ptr: []int32{0, 1, 2}, Adj: []int32{1, 0}, X: graph.Features{Width: 3, Category: []int32{2, 1}}}
	var dst graph.Batch
	for _, dense := range []bool{false, true, false} {
		b := graph.Collate(one, one)
		if dense {
			b.Densify(b.Nodes())
		}
		b.Asymmetric, b.Multigraph = dense, !dense
		b.Pad(&dst, 6, 7)
		if dst.Nodes() != 6 || dst.Graphs() != 2 || dst.Views() != 1 {
			t.Errorf("dense %v: %d nodes of %d graphs in %d views, want 6 of 2 in 1", dense, dst.Nodes(), dst.Graphs(), dst.Views())
		}
		if !slices.Equal(dst.Ptr, []int32{0, 1, 2, 3, 4, 4, 4}) || !slices.Equal(dst.Adj, []int32{1, 0, 3, 2, 0, 0, 0}) || !slices.Equal(dst.GraphPtr, b.GraphPtr) {
			t.Errorf("dense %v: Ptr %v, Adj %v, GraphPtr %v", dense, dst.Ptr, dst.Adj, dst.GraphPtr)
		}
		want := []float32{0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0}
		if dense && !slices.Equal(dst.X.Dense, want) || !dense && !slices.Equal(dst.X.Category, []int32{2, 1, 2, 1, 0, 0}) || dst.X.OneHot() == dense || dst.X.Width != 3 {
			t.Errorf("dense %v: features %+v", dense, dst.X)
		}
		if ptr, adj := dst.Transpose(); !slices.Equal(ptr, dst.Ptr) || !slices.Equal(adj, dst.Adj) {
			t.Errorf("dense %v: the transpose of a symmetric batch is %v, %v", dense, ptr, adj)
		}
		if dst.Asymmetric != dense || dst.Multigraph == dense {
			t.Errorf("dense %v: asymmetric %v, multigraph %v", dense, dst.Asymmetric, dst.Multigraph)
		}
		if err := b.Validate(); err != nil || b.Nodes() != 4 {
			t.Errorf("the batch itself was changed: %v", err)
		}
	}
	one.EdgeLabel = []int32{5, 5}
	edgeless := &graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: 2, Category: []int32{1}}}
	for _, c := range []struct {
		g    *graph.Graph
		want []int32
	}{{one, []int32{5, 5, -1}}, {edgeless, []int32{-1, -1, -1}}} {
		graph.Collate(c.g).Pad(&dst, 6, 3)
		if !slices.Equal(dst.EdgeLabel, c.want) {
			t.Errorf("labels of edges are %v, want %v", dst.EdgeLabel, c.want)
		}
		if dst.X.Width != c.g.X.Width || !slices.Equal(dst.ViewPtr, []int32{0, 1}) {
			t.Errorf("width %d and views %v are left of the batch before", dst.X.Width, dst.ViewPtr)
		}
	}
	graph.Collate(one, one).Pad(&dst, 4, 4) // it just fits
	if ptr, adj := (&graph.Batch{Asymmetric: true}).Transpose(); !slices.Equal(ptr, []int32{0}) || len(adj) != 0 {
		t.Errorf("the transpose of an empty batch is %v, %v", ptr, adj)
	}
	for name, size := range map[string][2]int{"nodes": {3, 7}, "entries": {6, 3}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("too few %s: no panic", name)
				}
			}()
			graph.Collate(one, one).Pad(&dst, size[0], size[1])
		}()
	}
}
