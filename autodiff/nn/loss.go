package nn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
)

// CrossEntropy returns the mean [1×1] over the rows i of logits [N×C] of
// -ln softmax(logits_i)_want[i]. It panics unless there are N classes, all in 0..C-1.
func CrossEntropy(logits *autodiff.Var, want []int) *autodiff.Var {
	n := logits.Rows()
	c := logits.Cols()
	if len(want) != n {
		panic(fmt.Sprintf(
			"nn: CrossEntropy: %d classes for logits [%d×%d]",
			len(want),
			n,
			c,
		))
	}
	pick := make([]float64, n*c)
	for i, k := range want {
		if k < 0 || k >= c {
			panic(fmt.Sprintf(
				"nn: CrossEntropy: class %d of row %d is outside 0..%d",
				k, i, c-1,
			))
		}
		pick[i*c+k] = -1 / float64(n)
	}
	return logits.LogSoftmax().Dot(logits.Tape().Matrix(n, c, pick))
}
