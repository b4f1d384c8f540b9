package optim_test

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// Fit the line y = 2x - 1 by least squares: the tape records the loss, Backward
// gives the gradients, Adam takes the step.
func ExampleAdam() {
	be := cpu.New(tensor.Float64)
	slope := autodiff.NewParam(be, "slope", 1, 1, []float64{0})
	intercept := autodiff.NewParam(be, "intercept", 1, 1, []float64{0})
	opt := optim.NewAdam(be, []*autodiff.Param{slope, intercept}, 0.1)

	tape := autodiff.NewTape(be)
	for step := range 201 {
		x := tape.Matrix(4, 1, []float64{-1, 0, 1, 2})
		y := tape.Matrix(4, 1, []float64{-3, -1, 1, 3})
		a, b := tape.Param(slope), tape.Param(intercept)
		loss := x.MatMul(a).AddRow(b).Sub(y).Square().Mean()
		if step == 0 || step == 10 || step == 20 || step == 200 {
			fmt.Printf("step %3d: loss %.3f, y = %.2fx %+.2f\n", step, loss.Float(), a.Float(), b.Float())
		}
		tape.Backward(loss)
		opt.Step()
		tape.Reset() // gives the step's memory back
	}
	// Output:
	// step   0: loss 5.000, y = 0.00x +0.00
	// step  10: loss 1.312, y = 0.98x -0.49
	// step  20: loss 0.062, y = 1.78x -0.89
	// step 200: loss 0.000, y = 2.00x -1.00
}
