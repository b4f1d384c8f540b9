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

// CrossEntropy returns the mean [1×1] of -ln softmax(logits) at the wanted columns,
// one for each row of logits [N×C]. It panics if there are not N of them.
func CrossEntropy(logits *autodiff.Var, want []int) *autodiff.Var {
	n, c := logits.Rows(), logits.Cols()
	if len(want) != n {
		panic(fmt.Sprintf("specmatch: CrossEntropy: %d wanted columns for logits [%d×%d]", len(want), n, c))
	}
	pick := make([]float64, n*c)
	for i, k := range want {
		pick[i*c+k] = -1 / float64(n)
	}
	return logits.LogSoftmax().Dot(logits.Tape().Matrix(n, c, pick))
}
