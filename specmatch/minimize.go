package specmatch

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
)

// Minimize is one training step on any loss: f records it on the tape, and the
// optimizer updates the parameters, which are m's. If f returns nil there is nothing
// to learn from: nothing is done, and ok is false. A failure of the device and a
// loss that is not a finite number are returned as errors; the parameters are then
// unchanged. It resets the tape.
func Minimize(t *autodiff.Tape, m nn.Module, adam *optim.Adam, f func() *autodiff.Var) (loss float64, ok bool, err error) {
	defer t.Reset()
	defer recoverDevice(&err)
	nn.ZeroGrad(m)
	l := f()
	if l == nil {
		return 0, false, nil
	}
	if loss = l.Float(); math.IsNaN(loss) || math.IsInf(loss, 0) {
		return loss, false, fmt.Errorf("specmatch: the loss is %v; the first operator with such a value is %s", loss, t.FirstNonFinite())
	}
	t.Backward(l)
	adam.Step()
	return loss, true, nil
}
