package train

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
)

// Minimize takes one training step on any loss [1×1]: f records it on the tape, and
// adam, which must be the optimizer of m's parameters, updates them. If f returns
// nil there is nothing to learn from; Minimize then does nothing, and ok is false. A
// failure of the device and a loss that is not a finite number are errors that leave
// the parameters unchanged. Minimize resets the tape.
func Minimize(t *autodiff.Tape, m nn.Module, adam *optim.Adam, f func() *autodiff.Var) (loss float64, ok bool, err error) {
	defer t.Reset()
	defer backend.Recover(&err)
	nn.ZeroGrad(m)
	l := f()
	if l == nil {
		return 0, false, nil
	}
	if loss = l.Float(); math.IsNaN(loss) || math.IsInf(loss, 0) {
		return loss, false, fmt.Errorf("train: the loss is %v; the first operator with such a value is %s", loss, t.FirstNonFinite())
	}
	t.Backward(l)
	adam.Step()
	return loss, true, nil
}
