//go:build emulate

package cuda

import (
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/tensor"
)

// TestEmulated holds the engine and its kernels, run on the processor, against
// the conformance suite.
func TestEmulated(t *testing.T) {
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) { return open(newEmulator(p), p) })
}
