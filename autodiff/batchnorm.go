package autodiff

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file defines what follows the matrix product in a layer; batchnorm_fused.go calls
// the fused forms of engines that have them.

// AddRowReLU returns y_ij = max(x_ij + b_j, 0) for a row b [1×F]. VJP: dx = dy
// where y > 0, else 0; db = column sums of dx.
func (x *Var) AddRowReLU(b *Var) *Var {
	row.check("AddRowReLU", x, " + ", b)
	if f := x.tape.fused.Bias; f != nil {
		return x.addRowReLUFused(f, b)
	}
	return x.AddRow(b).ReLU()
}

// Norm says how [Var.BatchNorm] normalises the rows of x [N×F].
type Norm struct {
	// Groups delimits the groups of rows: g is Groups[g] ≤ i < Groups[g+1]. Rows after the
	// last group are padding.
	Groups *backend.Indices
	Eps    float64
	// Weights [N×1], unless nil, are constants ≥ 1: row i counts as Weights_i equal rows of
	// its group. The result has each row once; its gradient is that of all equal rows.
	Weights *tensor.Tensor
	// Bias [1×F], unless nil, is added to x first. The mean takes it away again, so that
	// nothing but the mean depends on it, and an engine need not add it.
	Bias *Var
	ReLU bool // y ← max(y, 0)
}

// BatchNorm normalises the columns of x [N×F] within groups of rows and scales
// them, with γ and b rows [1×F]:
//
//	x̂_ij = (x_ij - μ_gj)/√(σ²_gj + ε),  y_ij = γ_j·x̂_ij + b_j,
//
// where g is the group of row i and, with weights w (1 without) and n = Σ w_i over the group,
//
//	μ = Σ w_i·x_i / n,  σ² = Σ w_i·(x_i - μ)² / n.
//
// It returns y, and μ and σ² [G×F], which carry no gradient. y is 0 in padding.
//
// VJP, with sums over the rows of a group: db = Σ dy and dγ = Σ dy∘x̂ over all groups,
// dBias = 0 up to rounding, and with dx̂ = dy∘γ
//
//	dx_i = (dx̂_i - w_i·((Σ dx̂)/n + x̂_i∘(Σ dx̂∘x̂)/n))/√(σ²+ε).
func (x *Var) BatchNorm(gamma, b *Var, n Norm) (y *Var, mean, variance *tensor.Tensor) {
	t := x.tape
	rows := x.Rows()
	x.checkNorm(gamma, b, n)
	if y, mean, variance = x.batchNormFused(gamma, b, n); y != nil {
		return y, mean, variance
	}
	if n.Bias != nil {
		x = x.AddRow(n.Bias)
	}
	average := func(v *Var) *Var { return v.SegmentMean(n.Groups) }
	if n.Weights != nil {
		total := t.Alloc(n.Groups.Len()-1, 1)
		w := t.Const(n.Weights)
		t.be.SegmentSum(total, n.Groups, n.Weights)
		t.be.BinaryScalar(total, backend.Max, total, t.Scalar(1).value) // no 0/0 for a group without rows
		average = func(v *Var) *Var {
			return v.MulCol(w).SegmentSum(n.Groups).DivCol(t.Const(total))
		}
	}
	mu := average(x)
	centred := x.Sub(mu.SegmentExpand(n.Groups, rows))
	sigma2 := average(centred.Square())
	rstd := sigma2.Shift(n.Eps).InvSqrt()
	y = centred.Mul(rstd.SegmentExpand(n.Groups, rows)).MulRow(gamma).AddRow(b).
		MulCol(t.inSegments(n.Groups, rows))
	if n.ReLU {
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

// checkNorm panics unless the operands of BatchNorm have the right shapes.
func (x *Var) checkNorm(gamma, b *Var, n Norm) {
	const op = "BatchNorm"
	rows := x.Rows()
	f := x.Cols()
	if n.Bias != nil && !n.Bias.Value().Is(1, f) {
		mismatch(
			op, fmt.Sprintf("%v + %v", x.value, n.Bias.value), fmt.Sprintf("want a bias [1×%d]", f),
		)
	}
	if !gamma.Value().Is(1, f) || !b.Value().Is(1, f) {
		mismatch(
			op,
			fmt.Sprintf("%v, γ %v, b %v", x.value, gamma.value, b.value),
			fmt.Sprintf("want γ and b [1×%d]", f),
		)
	}
	if n.Weights != nil && !n.Weights.Is(rows, 1) {
		mismatch(op, x.value.String(), fmt.Sprintf("want weights [%d×1], not %v", rows, n.Weights))
	}
	checkSegments(op, x, n.Groups, rows)
}
