//go:build cuda && linux && amd64

package cuda

import (
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/tensor"
)

// onDevice skips a test where there is no GPU, with the reason.
func onDevice(t *testing.T) {
	t.Helper()
	be, err := backend.Open("cuda", tensor.Float32)
	if err != nil {
		t.Skip(err)
	}
	if err := be.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDevice(t *testing.T) {
	onDevice(t)
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) { return New(p) })
}
