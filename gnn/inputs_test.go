package gnn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// TestInputsRefuse: a batch of another kind than the first does not take its place,
// and one of the same kind does.
func TestInputsRefuse(t *testing.T) {
	const width = 3
	be := ref.New()
	first := twoViews(randomGraphs(t, 1, width, false, false, 3, 4))
	in := gnn.NewInputs(be, first, 20, 100, nil)
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
				if r := recover(); !strings.Contains(fmt.Sprint(r), "in the place of 2 in 2 (3, true, false)") {
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
