package ref_test

import (
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/tensor"
)

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) { return backend.Open("ref", p) },
		backendtest.Only(tensor.Float64))
}
