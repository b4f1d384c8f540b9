package autodiff

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// addRowReLUFused is [Var.AddRowReLU] in one call of the engine each way.
func (x *Var) addRowReLUFused(fuser backend.BiasFuser, b *Var) *Var {
	t := x.tape
	y := t.Alloc(x.Rows(), x.Cols())
	fuser.BiasReLU(y, x.value, b.value)
	return t.Record("AddRowReLU", y, func(dy *tensor.Tensor) {
		dx, db := t.be.Alloc(dy.Rows, dy.Cols), t.be.Alloc(1, dy.Cols)
		fuser.BiasReLUBackward(dx, db, dy, y)
		x.AddGrad(dx)
		b.AddGrad(db)
	}, x, b)
}

// batchNormFused is [Var.BatchNorm], or with relu [Var.BatchNormReLU], in one call
// of the engine each way.
func (x *Var) batchNormFused(op string, fuser backend.NormFuser, gamma, b *Var, groups *backend.Indices, eps float64, relu bool) (y *Var, mean, variance *tensor.Tensor) {
	n := x.norm(gamma, b, groups, eps, relu)
	fuser.NormForward(n)
	return x.recordNorm(op, n, fuser.NormBackward, gamma, b), n.Mean, n.Var
}

// biasNormFused is [Var.BiasNorm] without the bias's addition.
func (x *Var) biasNormFused(op string, fuser backend.BiasNormFuser, bias, gamma, b *Var, groups *backend.Indices, eps float64, relu bool) (y *Var, mean, variance *tensor.Tensor) {
	n := x.norm(gamma, b, groups, eps, relu)
	mean = x.tape.Alloc(n.Mean.Rows, n.Mean.Cols)
	fuser.BiasNormForward(n, bias.value, mean)
	return x.recordNorm(op, n, func(n *backend.Norm, g *backend.NormGradients) {
		dbias := x.tape.be.Alloc(1, x.Cols())
		fuser.BiasNormBackward(n, g, dbias)
		bias.AddGrad(dbias)
	}, gamma, b, bias), mean, n.Var
}

// norm returns the operands of a norm of x, with memory for its results.
func (x *Var) norm(gamma, b *Var, groups *backend.Indices, eps float64, relu bool) *backend.Norm {
	t, f, g := x.tape, x.Cols(), groups.Len()-1
	return &backend.Norm{
		Groups: groups, Eps: eps, ReLU: relu, X: x.value, Gamma: gamma.value, Beta: b.value,
		Y: t.Alloc(x.Rows(), f), Mean: t.Alloc(g, f), Var: t.Alloc(g, f),
	}
}

// recordNorm records a norm that has been computed, with the call for its gradients.
func (x *Var) recordNorm(op string, n *backend.Norm, backward func(n *backend.Norm, g *backend.NormGradients), gamma, b *Var, bias ...*Var) *Var {
	be, f := x.tape.be, x.Cols()
	return x.tape.Record(op, n.Y, func(dy *tensor.Tensor) {
		d := &backend.NormGradients{DY: dy, Gamma: be.Alloc(1, f), Beta: be.Alloc(1, f)}
		if x.needs {
			d.DX = be.Alloc(x.Rows(), f)
		}
		backward(n, d)
		gamma.AddGrad(d.Gamma)
		b.AddGrad(d.Beta)
		if d.DX != nil {
			x.AddGrad(d.DX)
		}
	}, append(bias, x, gamma, b)...)
}
