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
	t := x.tape
	be := t.be
	f, g := x.Cols(), groups.Len()-1
	n := &backend.Norm{
		Groups: groups, Eps: eps, ReLU: relu, X: x.value, Gamma: gamma.value, Beta: b.value,
		Y: t.Alloc(x.Rows(), f), Mean: t.Alloc(g, f), Var: t.Alloc(g, f),
	}
	fuser.NormForward(n)
	y = t.Record(op, n.Y, func(dy *tensor.Tensor) {
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
