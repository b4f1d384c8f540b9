package autodiff

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// WeightedBatchNorm is [Var.BatchNorm] where row i counts as weights_i > 0 equal rows of
// its group, for constant weights [N×1]: with n = Σ w_i over the group,
//
//	μ = Σ w_i·x_i / n,  σ² = Σ w_i·(x_i - μ)² / n.
//
// y has each row once, and its gradient is that of all equal rows together. VJP, with
// dx̂ = dy∘γ:
//
//	dx_i = (dx̂_i - w_i·((Σ dx̂)/n + x̂_i∘(Σ dx̂∘x̂)/n))/√(σ²+ε).
func (x *Var) WeightedBatchNorm(gamma, b *Var, groups *backend.Indices, weights *tensor.Tensor, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	const op = "WeightedBatchNorm"
	t, rows := x.tape, x.Rows()
	x.checkNorm(op, gamma, b, groups)
	if !weights.Is(rows, 1) {
		mismatch(op, x.value.String(), fmt.Sprintf("want weights [%d×1], not %v", rows, weights))
	}
	if fuser := t.fused.WeightedNorm; fuser != nil {
		n := x.norm(gamma, b, groups, eps, false)
		n.Weights = weights
		fuser.NormForward(n)
		return x.recordNorm(op, n, fuser.NormBackward, gamma, b), n.Mean, n.Var
	}
	total, w := t.Alloc(groups.Len()-1, 1), t.Const(weights)
	t.be.SegmentSum(total, groups, weights)
	t.be.BinaryScalar(total, backend.Max, total, t.Scalar(1).value) // no 0/0 for a group without rows
	average := func(v *Var) *Var { return v.MulCol(w).SegmentSum(groups).DivCol(t.Const(total)) }
	mu := average(x)
	centred := x.Sub(mu.SegmentExpand(groups, rows))
	sigma2 := average(centred.Square())
	rstd := sigma2.Shift(eps).InvSqrt()
	y = centred.Mul(rstd.SegmentExpand(groups, rows)).MulRow(gamma).AddRow(b).MulCol(t.inSegments(groups, rows))
	return y, mu.value, sigma2.value
}
