package autodiff

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// BatchNorm normalises the columns of x [N×F] within groups of rows and scales
// them, with γ and b rows [1×F]:
//
//	x̂_ij = (x_ij - μ_gj)/√(σ²_gj + ε),  y_ij = γ_j·x̂_ij + b_j,
//
// where g is the group of row i (groups[g] ≤ i < groups[g+1]) and μ, σ² are its
// column means and biased variances. It returns y, and μ and σ² [G×F], which
// carry no gradient.
//
// VJP, with sums over the n_g rows of a group: db = Σ dy and dγ = Σ dy∘x̂ over
// all rows, and with dx̂ = dy∘γ
//
//	dx_i = (dx̂_i - (Σ dx̂)/n - x̂_i∘(Σ dx̂∘x̂)/n)/√(σ²+ε).
func (x *Var) BatchNorm(gamma, b *Var, groups *backend.Indices, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	if x.tape.composed {
		return x.batchNormComposed(gamma, b, groups, eps)
	}
	if fuser, ok := x.tape.be.(backend.NormFuser); ok {
		return x.batchNormFused(fuser, gamma, b, groups, eps, false)
	}
	t := x.tape
	be := t.be
	n, f, g := x.Rows(), x.Cols(), groups.Len()-1
	inv := x.inverseCounts(groups)

	xhat, out, full := t.Alloc(n, f), t.Alloc(n, f), be.Alloc(n, f)
	mean, variance, rstd := t.Alloc(g, f), t.Alloc(g, f), t.Alloc(g, f)
	be.SegmentSum(mean, groups, x.value)
	be.BinaryCol(mean, backend.Mul, mean, inv)
	be.SegmentExpand(full, groups, mean)
	be.Axpby(xhat, 1, x.value, -1, full)
	be.Binary(full, backend.Mul, xhat, xhat)
	be.SegmentSum(variance, groups, full)
	be.BinaryCol(variance, backend.Mul, variance, inv)
	be.Affine(rstd, 1, variance, eps)
	be.Unary(rstd, backend.InvSqrt, rstd)
	be.SegmentExpand(full, groups, rstd)
	be.Binary(xhat, backend.Mul, xhat, full)
	be.Free(full)
	be.BinaryRow(out, backend.Mul, xhat, gamma.value)
	be.BinaryRow(out, backend.Add, out, b.value)

	y = t.Record("BatchNorm", out, func(dy *tensor.Tensor) {
		if b.needs {
			db := be.Alloc(1, f)
			be.ColSums(db, dy)
			b.AddGrad(db)
		}
		tmp := be.Alloc(n, f)
		if gamma.needs {
			dg := be.Alloc(1, f)
			be.Binary(tmp, backend.Mul, dy, xhat)
			be.ColSums(dg, tmp)
			gamma.AddGrad(dg)
		}
		if x.needs {
			dx, sum, proj := be.Alloc(n, f), be.Alloc(g, f), be.Alloc(g, f)
			be.BinaryRow(dx, backend.Mul, dy, gamma.value)
			be.SegmentSum(sum, groups, dx)
			be.BinaryCol(sum, backend.Mul, sum, inv)
			be.Binary(tmp, backend.Mul, dx, xhat)
			be.SegmentSum(proj, groups, tmp)
			be.BinaryCol(proj, backend.Mul, proj, inv)
			be.SegmentExpand(tmp, groups, sum)
			be.Axpby(dx, 1, dx, -1, tmp)
			be.SegmentExpand(tmp, groups, proj)
			be.Binary(tmp, backend.Mul, tmp, xhat)
			be.Axpby(dx, 1, dx, -1, tmp)
			be.SegmentExpand(tmp, groups, rstd)
			be.Binary(dx, backend.Mul, dx, tmp)
			be.Free(sum)
			be.Free(proj)
			x.AddGrad(dx)
		}
		be.Free(tmp)
	}, x, gamma, b)
	return y, mean, variance
}

// BatchNormReLU is BatchNorm with y = max(BatchNorm(x), 0).
func (x *Var) BatchNormReLU(gamma, b *Var, groups *backend.Indices, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	if fuser, ok := x.tape.be.(backend.NormFuser); ok && !x.tape.composed {
		return x.batchNormFused(fuser, gamma, b, groups, eps, true)
	}
	y, mean, variance = x.BatchNorm(gamma, b, groups, eps)
	return y.ReLU(), mean, variance
}

// batchNormFused is BatchNorm or BatchNormReLU as one call of the engine.
func (x *Var) batchNormFused(fuser backend.NormFuser, gamma, b *Var, groups *backend.Indices, eps float64, relu bool) (y *Var, mean, variance *tensor.Tensor) {
	t := x.tape
	be := t.be
	f, g := x.Cols(), groups.Len()-1
	n := &backend.Norm{
		Groups: groups, Eps: eps, ReLU: relu, X: x.value, Gamma: gamma.value, Beta: b.value,
		Y: t.Alloc(x.Rows(), f), Mean: t.Alloc(g, f), Var: t.Alloc(g, f),
	}
	fuser.NormForward(n)
	y = t.Record("BatchNorm", n.Y, func(dy *tensor.Tensor) {
		d := &backend.NormGradients{DY: dy, Gamma: be.Alloc(1, f), Beta: be.Alloc(1, f)}
		if x.needs {
			d.DX = be.Alloc(x.Rows(), f)
		}
		fuser.NormBackward(n, d)
		gamma.AddGrad(d.Gamma)
		b.AddGrad(d.Beta)
		if d.DX != nil {
			x.AddGrad(d.DX)
		}
	}, x, gamma, b)
	return y, n.Mean, n.Var
}

// batchNormComposed is the definition of BatchNorm.
func (x *Var) batchNormComposed(gamma, b *Var, groups *backend.Indices, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	mu := x.SegmentMean(groups)
	centred := x.Sub(mu.SegmentExpand(groups))
	sigma2 := centred.Square().SegmentMean(groups)
	rstd := sigma2.Shift(eps).InvSqrt()
	y = centred.Mul(rstd.SegmentExpand(groups)).MulRow(gamma).AddRow(b)
	return y, mu.value, sigma2.value
}
