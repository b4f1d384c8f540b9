package nn_test

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

func TestCrossEntropy(t *testing.T) {
	be := cpu.New(tensor.Float64)
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	// Rows with the probabilities 1/4, 3/4 and 1/3, 2/3.
	logits := tape.Matrix(2, 2, []float64{0, math.Log(3), math.Log(2), math.Log(4)})
	if got, want := nn.CrossEntropy(logits, []int{1, 0}).Float(), (math.Log(4.0/3)+math.Log(3))/2; !(math.Abs(got-want) <= 1e-14) {
		t.Errorf("%v, want %v", got, want)
	}
	gradcheck.Check(t, be, func(_ *autodiff.Tape, in []*autodiff.Var) *autodiff.Var {
		return nn.CrossEntropy(in[0], []int{2, 0, 1, 2})
	}, []gradcheck.Input{gradcheck.Random(newRand(1), 4, 3)}, gradcheck.Options{})
	for name, want := range map[string][]int{
		"one class for two rows": {1}, "a class after the last": {2, 0}, "a class below 0": {0, -1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", name)
				}
			}()
			nn.CrossEntropy(logits, want)
		}()
	}
}
