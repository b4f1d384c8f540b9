//go:build emulate

package kernels_test

import (
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/specmatch/specmatch/backend/cuda/kernels"
	"github.com/specmatch/specmatch/tensor"
)

// TestEmulationSeesFaults runs kernels that are wrong on purpose.
func TestEmulationSeesFaults(t *testing.T) {
	for name, want := range map[string]string{
		"fault_none":      "",
		"fault_race":      "race: s[",
		"fault_twice":     "race: s[",
		"fault_unwritten": "s[0] is read before it was written",
		"fault_index":     "s[64] of 64 elements",
		"fault_barrier":   "divergence: 63 threads wait",
		"fault_lane":      "divergence: 62 threads wait", // both warps
		"fault_halves":    "divergence: thread",
		"fault_address":   "touches address",
		"nonsense":        "there is no kernel nonsense",
	} {
		for _, order := range orders {
			kernels.SetOrder(order)
			err := emulateOn(t, name, 64, [3]uint32{64, 1, 1}, nil)
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %v", name, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: error %v, want one with %q", name, err, want)
			}
		}
	}
	kernels.SetOrder(0)
	if err := emulateOn(t, "fault_none", 64, [3]uint32{48, 1, 1}, nil); err == nil || !strings.Contains(err.Error(), "parts of warps") {
		t.Errorf("48 threads: error %v", err)
	}
	if err := emulateOn(t, "fault_none", 64, [3]uint32{64, 1, 1}, []uint64{1}); err == nil || !strings.Contains(err.Error(), "1 parameters, not 2") {
		t.Errorf("two parameters: error %v", err)
	}
}

// TestOrders: a kernel whose result depends on the order of its threads shows it.
func TestOrders(t *testing.T) {
	last := map[float32]bool{}
	for _, order := range orders {
		kernels.SetOrder(order)
		mem := place(t, 4, true)
		if err := kernels.Emulate(tensor.Float32, "fault_order", blocks(1), threads, 0, []uint64{address(mem)}); err != nil {
			t.Fatal(err)
		}
		last[view[float32](mem.data)[0]] = true
		syscall.Munmap(mem.all)
	}
	kernels.SetOrder(0)
	if !last[255] || !last[0] || len(last) < 3 {
		t.Errorf("the threads that came last are %v; want 255 (forward), 0 (reverse) and another", last)
	}
}

func address(mem region) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem.data)))) }

// emulateOn runs a kernel with n numbers and further parameters.
func emulateOn(t *testing.T, name string, n int, block [3]uint32, more []uint64) error {
	mem := place(t, 4*n, true)
	defer syscall.Munmap(mem.all)
	return kernels.Emulate(tensor.Float32, name, blocks(1), block, 0, append([]uint64{address(mem)}, more...))
}
