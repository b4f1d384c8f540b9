package autodiff

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Sum returns y = Σ_ij x_ij [1×1]. VJP: dx_ij = dy.
func (x *Var) Sum() *Var {
	t := x.tape
	be := t.be
	out := t.Alloc(1, 1)
	be.Dot(out, x.value, nil)
	return t.Record("Sum", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.Fill(dx, 0)
		be.BinaryScalar(dx, backend.Add, dx, dy)
		x.AddGrad(dx)
	}, x)
}

// Mean returns the mean of all entries [1×1].
func (x *Var) Mean() *Var {
	return x.Sum().Scale(1 / float64(x.value.Len()))
}

// Dot returns y = Σ_ij x_ij·b_ij [1×1] for equal shapes. VJP: dx = dy·b,
// db = dy·x.
func (x *Var) Dot(b *Var) *Var {
	checkSame("Dot", x, "·", b)
	t := x.tape
	be := t.be
	out := t.Alloc(1, 1)
	be.Dot(out, x.value, b.value)
	return t.Record("Dot", out, func(dy *tensor.Tensor) {
		for _, pair := range [2][2]*Var{{x, b}, {b, x}} {
			if pair[0].needs {
				d := x.newGrad()
				be.BinaryScalar(d, backend.Mul, pair[1].value, dy)
				pair[0].AddGrad(d)
			}
		}
	}, x, b)
}

// RowSums returns the column [N×1] y_i = Σ_j x_ij. VJP: dx_ij = dy_i.
func (x *Var) RowSums() *Var {
	t := x.tape
	be := t.be
	out := t.Alloc(x.Rows(), 1)
	be.ReduceRows(out, backend.RowSum, x.value)
	return t.Record("RowSums", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.Fill(dx, 0)
		be.BinaryCol(dx, backend.Add, dx, dy)
		x.AddGrad(dx)
	}, x)
}

// ColSums returns the row [1×F] y_j = Σ_i x_ij. VJP: dx_ij = dy_j.
func (x *Var) ColSums() *Var {
	t := x.tape
	be := t.be
	out := t.Alloc(1, x.Cols())
	be.ColSums(out, x.value)
	return t.Record("ColSums", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.Fill(dx, 0)
		be.BinaryRow(dx, backend.Add, dx, dy)
		x.AddGrad(dx)
	}, x)
}

// LogSumExp returns the column [N×1] y_i = ln Σ_j e^x_ij, computed without
// overflow. VJP: dx_ij = dy_i·e^(x_ij-y_i), the softmax of the row.
func (x *Var) LogSumExp() *Var {
	t := x.tape
	be := t.be
	out := t.Alloc(x.Rows(), 1)
	be.ReduceRows(out, backend.RowLogSumExp, x.value)
	return t.Record("LogSumExp", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.BinaryCol(dx, backend.Sub, x.value, out)
		be.Unary(dx, backend.Exp, dx)
		be.BinaryCol(dx, backend.Mul, dx, dy)
		x.AddGrad(dx)
	}, x)
}

// LogSoftmax returns y_ij = x_ij - ln Σ_k e^x_ik.
func (x *Var) LogSoftmax() *Var {
	return x.SubCol(x.LogSumExp())
}

// Softmax returns y_ij = e^x_ij / Σ_k e^x_ik.
func (x *Var) Softmax() *Var {
	return x.LogSoftmax().Exp()
}

// L2Normalize returns y_i = x_i/max(‖x_i‖₂, 1e-12), every row of length 1 (a
// zero row stays zero), like torch.nn.functional.normalize. VJP, with r the
// clamped norm: dx_i = (dy_i - (dy_i·y_i)·y_i)/r_i; where the norm is clamped,
// dx_i = dy_i/r_i.
func (x *Var) L2Normalize() *Var {
	t := x.tape
	if t.fused.Unit != nil {
		return x.l2NormalizeFused(t.fused.Unit)
	}
	be := t.be
	n := x.Rows()
	f := x.Cols()
	y := t.Alloc(n, f)
	r := t.Alloc(n, 1)
	sq := be.Alloc(n, f)
	be.Binary(sq, backend.Mul, x.value, x.value)
	be.ReduceRows(r, backend.RowSum, sq)
	be.Free(sq)
	be.Unary(r, backend.Sqrt, r)
	floor := be.Alloc(1, 1)
	be.Fill(floor, normFloor)
	// unclamped is 1 where r is the norm, 0 where it is the floor, a constant.
	unclamped := t.Alloc(n, 1)
	be.BinaryScalar(unclamped, backend.Greater, r, floor)
	be.BinaryScalar(r, backend.Max, r, floor)
	be.Free(floor)
	be.BinaryCol(y, backend.Div, x.value, r)
	return t.Record("L2Normalize", y, func(dy *tensor.Tensor) {
		dx := be.Alloc(n, f)
		proj := be.Alloc(n, 1)
		be.Binary(dx, backend.Mul, dy, y)
		be.ReduceRows(proj, backend.RowSum, dx)
		be.Binary(proj, backend.Mul, proj, unclamped)
		be.BinaryCol(dx, backend.Mul, y, proj)
		be.Axpby(dx, 1, dy, -1, dx)
		be.BinaryCol(dx, backend.Div, dx, r)
		be.Free(proj)
		x.AddGrad(dx)
	}, x)
}

// normFloor is the smallest norm that L2Normalize divides by, PyTorch's eps.
const normFloor = 1e-12

// UpperPercentile returns the p-th percentile [1×1] of the strict upper triangle of
// a square x [N×N], interpolated linearly between two entries as NumPy does it
// ([backend.PercentilePosition]). VJP: dy is split over those one or two entries.
// It panics unless 0 ≤ p ≤ 100.
func (x *Var) UpperPercentile(p float64) *Var {
	checkSquare("UpperPercentile", x)
	t := x.tape
	be := t.be
	out := t.Alloc(1, 1)
	var weights *tensor.Tensor
	if x.needs {
		weights = t.Alloc(x.Rows(), x.Cols())
	}
	be.UpperPercentile(out, weights, x.value, p)
	return t.Record("UpperPercentile", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.BinaryScalar(dx, backend.Mul, weights, dy)
		x.AddGrad(dx)
	}, x)
}
