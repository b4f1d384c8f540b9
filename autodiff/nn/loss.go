package nn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
)

// CrossEntropy returns the mean [1×1] of -ln softmax(logits) at the wanted columns,
// one for each row of logits [N×C]. It panics if there are not N of them.
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
