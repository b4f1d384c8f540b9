package gnn_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/tensor"
)

// TestEmbedInTurn: goroutines that share an engine get the bits of one, and the engine has one user at
// a time (by the race detector).
func TestEmbedInTurn(t *testing.T) {
	be := cpu.New(tensor.Float64)
	defer be.Close()
	e := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 8, Layers: 2}, rand.New(rand.NewPCG(1, 2)))
	graphs := parsed(t, slices.Repeat(smiles, 20))
	want, err := gnn.Embed(t.Context(), be, e, graphs, nil)
	if err != nil {
		t.Fatal(err)
	}
	turn := new(sync.Mutex)
	var loaders sync.WaitGroup
	for range 4 {
		loaders.Go(func() {
			got, err := gnn.EmbedInTurn(t.Context(), be, turn, e, graphs, nil)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("other vectors in turn (%v)", err)
			}
		})
	}
	loaders.Wait()
}
