package main

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// TestFloor: the largest part is the floor, of one call.
func TestFloor(t *testing.T) {
	r := rates{bytes: 1e6, flops: 1e9, launch: 0.01, replayed: 0.002}
	for _, c := range []struct {
		work     backend.Work
		replayed bool
		ms       float64
		binds    string
	}{
		{backend.Work{Launches: 20, Bytes: 4e6, Flops: 2e9}, false, 2, "bytes"},
		{backend.Work{Launches: 20, Bytes: 4e6, Flops: 10e9}, false, 5, "products"},
		{backend.Work{Launches: 800, Bytes: 4e6, Flops: 2e9}, false, 4, "launches"},
		{backend.Work{Launches: 800, Bytes: 1e6, Flops: 1e9}, true, 0.8, "launches"},
	} {
		f := r.floor(c.work, 2, c.replayed, 10)
		if math.Abs(f.MS-c.ms) > 1e-12 || f.Binds != c.binds || math.Abs(f.Share-c.ms/10) > 1e-12 {
			t.Errorf("%+v, replayed %v: %+v, want %v ms bound by %s", c.work, c.replayed, f, c.ms, c.binds)
		}
	}
}

// metered counts fills and products, as an engine with a device does.
type metered struct {
	backend.Backend
	work backend.Work
}

func (m *metered) Work() backend.Work { return m.work }

func (m *metered) Fill(dst *tensor.Tensor, v float64) {
	m.Backend.Fill(dst, v)
	m.work.Add(1, backend.Work{Launches: 1, Bytes: int64(dst.Len())})
}

func (m *metered) Gemm(dst *tensor.Tensor, transA, transB bool, alpha float64, a, b *tensor.Tensor, beta float64) {
	m.Backend.Gemm(dst, transA, transB, alpha, a, b, beta)
	m.work.Add(1, backend.Work{Launches: 1, Flops: 1000})
}

// TestStepFloor: the work of one step, whatever the number of steps.
func TestStepFloor(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the rates of this machine")
	}
	w := workloads["unsupervised"]
	w.batch = 4
	var floors []*floor
	for steps := 1; steps <= 2; steps++ {
		be := &metered{Backend: cpu.New(tensor.Float32)}
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

// TestKernels times a few rows of everything.
func TestKernels(t *testing.T) {
	var names []string
	be := &metered{Backend: ref.New()}
	err := timeKernels(t.Context(), be, 20, func(r kernelResult) error {
		names = append(names, r.Kernel)
		if !(r.MS > 0) || r.Floor == nil || math.IsNaN(r.Floor.MS) {
			t.Errorf("%+v", r)
		}
		return nil
	})
	if err != nil || len(names) < 6 {
		t.Errorf("%v: %v", names, err)
	}
	if n := be.InUse(); n != 0 {
		t.Errorf("%d bytes in use", n)
	}
	if err := timeKernels(t.Context(), ref.New(), 20, nil); err == nil {
		t.Error("an engine that counts nothing has floors")
	}
}
