package cuda

import (
	"encoding/json"
	flags "flag" // the package has a flag of its own
	"os"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/tensor"
)

var rows = flags.Int("rows", 0, "`rows` of the matrices that TestKernelTimes times kernels on; 0 times none")

// TestKernelTimes prints how long kernels take by themselves, and their floors, for gpu.sh:
// a line of JSON each.
func TestKernelTimes(t *testing.T) {
	if *rows == 0 {
		t.Skip("without -rows there is nothing to time")
	}
	out := json.NewEncoder(os.Stdout)
	for _, name := range backend.Names() {
		for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
			if !strings.HasPrefix(name, "cuda") || strings.HasSuffix(name, "tf32") && p == tensor.Float64 {
				continue
			}
			be, err := backend.Open(name, p)
			if err != nil {
				t.Fatal(err)
			}
			line := func(k backendtest.KernelTime) error { return out.Encode(k) }
			if err := backendtest.TimeKernels(t.Context(), be, *rows, line); err != nil {
				t.Error(err)
			}
			if err := be.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
