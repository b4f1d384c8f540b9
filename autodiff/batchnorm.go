package autodiff

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has what follows the matrix product in a layer, bias with ReLU and batch
// norm, as definitions. On engines that offer them as one call, batchnorm_fused.go
// makes it.

// AddRowReLU returns y_ij = max(x_ij + b_j, 0) for a row b [1×F]. VJP: dx = dy
// where y > 0, else 0; db = column sums of dx.
func (x *Var) AddRowReLU(b *Var) *Var {
	row.check("AddRowReLU", x, " + ", b)
	if f := x.tape.fused.Bias; f != nil {
		return x.addRowReLUFused(f, b)
	}
	return x.AddRow(b).ReLU()
}

// BatchNorm normalises the columns of x [N×F] within groups of rows and scales
// them, with γ and b rows [1×F]:
//
//	x̂_ij = (x_ij - μ_gj)/√(σ²_gj + ε),  y_ij = γ_j·x̂_ij + b_j,
//
// where g is the group of row i (groups[g] ≤ i < groups[g+1]) and μ, σ² are its
// column means and biased variances. It returns y, and μ and σ² [G×F], which
// carry no gradient. Rows after the last group are padding: y is 0 there.
//
// VJP, with sums over the n_g rows of a group: db = Σ dy and dγ = Σ dy∘x̂ over
// all groups, and with dx̂ = dy∘γ
//
//	dx_i = (dx̂_i - (Σ dx̂)/n - x̂_i∘(Σ dx̂∘x̂)/n)/√(σ²+ε).
func (x *Var) BatchNorm(gamma, b *Var, groups *backend.Indices, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	return x.batchNorm("BatchNorm", gamma, b, groups, eps, false)
}

// BatchNormReLU is [Var.BatchNorm] followed by ReLU: y ← max(y, 0).
func (x *Var) BatchNormReLU(gamma, b *Var, groups *backend.Indices, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	return x.batchNorm("BatchNormReLU", gamma, b, groups, eps, true)
}

func (x *Var) batchNorm(op string, gamma, b *Var, groups *backend.Indices, eps float64, relu bool) (y *Var, mean, variance *tensor.Tensor) {
	n := x.Rows()
	x.checkNorm(op, gamma, b, groups)
	if fuser := x.tape.fused.Norm; fuser != nil {
		return x.batchNormFused(op, fuser, gamma, b, groups, eps, relu)
	}
	mu := x.SegmentMean(groups)
	centred := x.Sub(mu.SegmentExpand(groups, n))
	sigma2 := centred.Square().SegmentMean(groups)
	rstd := sigma2.Shift(eps).InvSqrt()
	y = centred.Mul(rstd.SegmentExpand(groups, n)).MulRow(gamma).AddRow(b).MulCol(x.tape.inSegments(groups, n))
	if relu {
		y = y.ReLU()
	}
	return y, mu.value, sigma2.value
}

// inSegments returns the column [n×1] that is 1 in the rows of the segments and 0
// after them.
func (t *Tape) inSegments(ptr *backend.Indices, n int) *Var {
	ones := t.Alloc(ptr.Len()-1, 1)
	t.be.Fill(ones, 1)
	return t.Const(ones).SegmentExpand(ptr, n)
}
