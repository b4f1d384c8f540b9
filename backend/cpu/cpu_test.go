package cpu_test

import (
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) { return cpu.New(p), nil })
}
