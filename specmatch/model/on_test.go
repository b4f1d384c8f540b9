package model_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// TestOn: goroutines that share a model, each on an engine of its own, predict its bits. They use nothing of
// the engine that has the weights.
func TestOn(t *testing.T) {
	for _, a := range kinds {
		t.Run(a.Kind, func(t *testing.T) {
			weights := cpu.New(tensor.Float32)
			defer weights.Close()
			m, graphs := trainedModel(t, weights, a, heads[2])
			if err := m.Complete(); err != nil {
				t.Fatal(err)
			}
			m = m.Remembering(1 << 20)
			alone, err := m.Predict(t.Context(), graphs)
			if err != nil {
				t.Fatal(err)
			}
			inUse := weights.InUse()
			var group sync.WaitGroup
			for range 3 {
				be := cpu.New(tensor.Float32)
				defer be.Close()
				copied := m.On(be)
				group.Go(func() {
					for range 5 {
						y, err := copied.Predict(t.Context(), graphs)
						if err != nil || !slices.Equal(y, alone) {
							t.Errorf("predictions %v, want %v (%v)", y, alone, err)
						}
					}
				})
			}
			group.Wait()
			if weights.InUse() != inUse {
				t.Errorf("the engine of the weights has %d bytes in use, and had %d", weights.InUse(), inUse)
			}
		})
	}
}
