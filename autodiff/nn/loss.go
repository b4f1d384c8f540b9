package nn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
)

// CrossEntropy returns the mean [1×1] over the rows i of logits [N×C] of
// -ln softmax(logits_i)_want[i]. It panics unless there are N classes, all in 0..C-1.
func CrossEntropy(logits *autodiff.Var, want []int) *autodiff.Var {
	n, c := logits.Rows(), logits.Cols()
	if len(want) != n {
		panic(fmt.Sprintf("nn: CrossEntropy: %d wanted columns for logits [%d×%d]", len(want), n, c))
	}
	pick := make([]float64, n*c)
	for i, k := range want {
		pick[i*c+k] = -1 / float64(n)
	}
	return logits.LogSoftmax().Dot(logits.Tape().Matrix(n, c, pick))
}
