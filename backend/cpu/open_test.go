package cpu

import (
	"errors"
	"testing"

	"github.com/specmatch/specmatch/tensor"
)

// TestOpenLevel: an instruction set that is not to be had is an error, not
// another one's results.
func TestOpenLevel(t *testing.T) {
	wrong := errors.New("no such level")
	if be, err := opener(wrong)(tensor.Float32); be != nil || err != wrong {
		t.Errorf("with a wrong level: %v, %v", be, err)
	}
	be, err := opener(nil)(tensor.Float64)
	if err != nil || be == nil || be.Precision() != tensor.Float64 {
		t.Errorf("with a level: %v, %v", be, err)
	}
}
