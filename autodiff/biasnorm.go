package autodiff

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// BiasNorm is x.AddRow(bias).BatchNorm(gamma, b, groups, eps), or with relu its
// [Var.BatchNormReLU]: batch norm behind a linear layer. The mean takes the bias away, so
// that nothing but the mean depends on it: dbias = 0, up to rounding.
func (x *Var) BiasNorm(bias, gamma, b *Var, groups *backend.Indices, eps float64, relu bool) (y *Var, mean, variance *tensor.Tensor) {
	const op = "BiasNorm"
	if !bias.Value().Is(1, x.Cols()) {
		mismatch(op, fmt.Sprintf("%v + %v", x.value, bias.value), fmt.Sprintf("want a bias [1×%d]", x.Cols()))
	}
	x.checkNorm(op, gamma, b, groups)
	if fuser := x.tape.fused.BiasNorm; fuser != nil {
		return x.biasNormFused(op, fuser, bias, gamma, b, groups, eps, relu)
	}
	return x.AddRow(bias).batchNorm(op, gamma, b, groups, eps, relu)
}
