package model_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/model"
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

// heldEngine reports a use of the engine by who does not hold the lock.
type heldEngine struct {
	backend.Backend
	held *bool
	t    *testing.T
}

func (e heldEngine) Download(dst []float64, src *tensor.Tensor) {
	if !*e.held {
		e.t.Errorf("%v is read out of turn", src)
	}
	e.Backend.Download(dst, src)
}

// heldLock is a lock that knows whether it is held.
type heldLock struct{ held *bool }

func (l heldLock) Lock()   { *l.held = true }
func (l heldLock) Unlock() { *l.held = false }

// TestTurn: a model reads nothing from an engine that goroutines use in turn unless it holds the turn.
func TestTurn(t *testing.T) {
	held := true
	be := heldEngine{cpu.New(tensor.Float32), &held, t}
	encoder, graphs := trainedModel(t, be, kinds[2], nil)
	n := &model.Numbers{Features: []string{"descriptors"}, Size: 3, Hidden: 5, Linear: true}
	m := model.NewPredictorBeside(encoder.Encoder, *heads[2], n, 0, rand.New(rand.NewPCG(1, 2)))
	for _, g := range graphs {
		g.Globals = []float32{1, 2, 3}
	}
	held = false
	m.Turn = heldLock{&held}
	if _, err := m.Predict(t.Context(), graphs); err != nil {
		t.Error(err)
	}
}
