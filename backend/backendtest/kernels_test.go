package backendtest

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/backend/ref"
)

// TestKernels times a few rows of everything.
func TestKernels(t *testing.T) {
	var names []string
	be := &Metered{Backend: ref.New()}
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
