package classical_test

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/gnn/classical"
	"github.com/specmatch/specmatch/gnn/dataset"
)

// TestOptionsOutOfRange: walks that would never end are an error of node2vec.
func TestOptionsOutOfRange(t *testing.T) {
	graphs := dataset.Default().Graphs[:2]
	run := func(change func(o *classical.Options)) error {
		o := classical.Options{Dim: 2, Walks: 1, WalkLength: 3, P: 1, Q: 2}
		change(&o)
		for _, m := range classical.Methods() {
			if m.Name == "node2vec" {
				_, err := m.Features(t.Context(), graphs, o)
				return err
			}
		}
		t.Fatal("there is no node2vec")
		return nil
	}
	if err := run(func(*classical.Options) {}); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(o *classical.Options){
		"no P":            func(o *classical.Options) { o.P = 0 },
		"no Q":            func(o *classical.Options) { o.Q = 0 },
		"an infinite P":   func(o *classical.Options) { o.P = math.Inf(1) },
		"Q is no number":  func(o *classical.Options) { o.Q = math.NaN() },
		"no walks":        func(o *classical.Options) { o.Walks = 0 },
		"walks of a node": func(o *classical.Options) { o.WalkLength = 1 },
		"endless walks":   func(o *classical.Options) { o.WalkLength = 0 },
	} {
		if err := run(change); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
