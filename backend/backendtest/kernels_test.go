package backendtest

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

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

// TestKernels times a few rows of everything.
func TestKernels(t *testing.T) {
	var names []string
	be := &metered{Backend: ref.New()}
	err := TimeKernels(t.Context(), be, 20, func(r KernelTime) error {
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
	if err := TimeKernels(t.Context(), ref.New(), 20, nil); err == nil {
		t.Error("an engine that counts nothing has floors")
	}
}
