package main

import (
	"testing"

	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/roofline"
	"github.com/specmatch/specmatch/tensor"
)

// TestStepFloor: the work of one step, whatever the number of steps.
func TestStepFloor(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the rates of this machine")
	}
	w := workloads["unsupervised"]
	w.batch = 4
	var floors []*roofline.Floor
	for steps := 1; steps <= 2; steps++ {
		be := &backendtest.Metered{Backend: cpu.New(tensor.Float32)}
		r, err := measure(t.Context(), be, w, steps, 0, steps == 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Floor == nil || !(r.Floor.MFlops > 0) || !(r.Floor.MS > 0) {
			t.Fatalf("%d steps: %+v", steps, r.Floor)
		}
		floors = append(floors, r.Floor)
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	}
	if a, b := floors[0].MFlops, floors[1].MFlops; a != b {
		t.Errorf("a step has %v and %v MFLOP", a, b)
	}
}
