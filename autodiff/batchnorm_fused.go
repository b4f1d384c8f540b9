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
		dx := t.be.Alloc(dy.Rows, dy.Cols)
		db := t.be.Alloc(1, dy.Cols)
		fuser.BiasReLUBackward(dx, db, dy, y)
		x.AddGrad(dx)
		b.AddGrad(db)
	}, x, b)
}

// batchNormFused is [Var.BatchNorm] in one call of the engine each way. It returns nil if the
// engine has no such call, or has one without weights where n has weights.
func (x *Var) batchNormFused(
	gamma, b *Var, n Norm,
) (y *Var, mean, variance *tensor.Tensor) {
	fuser := x.tape.fused.Norm
	if fuser == nil {
		return nil, nil, nil
	}
	takesBias, takesWeights := fuser.NormOperands()
	if n.Weights != nil && !takesWeights {
		return nil, nil, nil
	}
	if n.Bias != nil && (!takesBias || n.Weights != nil) {
		x = x.AddRow(n.Bias)
		n.Bias = nil
	}
	t := x.tape
	f := x.Cols()
	groups := n.Groups.Len() - 1
	k := &backend.Norm{
		Groups:  n.Groups,
		Eps:     n.Eps,
		ReLU:    n.ReLU,
		X:       x.value,
		Gamma:   gamma.value,
		Beta:    b.value,
		Weights: n.Weights,
		Y:       t.Alloc(x.Rows(), f),
		Mean:    t.Alloc(groups, f),
		Var:     t.Alloc(groups, f),
	}
	mean = k.Mean
	inputs := []*Var{x, gamma, b}
	if n.Bias != nil {
		mean = t.Alloc(groups, f)
		k.Bias = n.Bias.value
		k.BiasedMean = mean
		inputs = append(inputs, n.Bias)
	}
	fuser.NormForward(k)
	y = t.Record("BatchNorm", k.Y, func(dy *tensor.Tensor) {
		fusedNormGradients(fuser, k, dy, x, gamma, b, n.Bias)
	}, inputs...)
	return y, mean, k.Var
}

// fusedNormGradients adds the gradients of the operands of k, from that of its output.
// bias may be nil.
func fusedNormGradients(
	fuser backend.NormFuser,
	k *backend.Norm,
	dy *tensor.Tensor,
	x, gamma, beta, bias *Var,
) {
	be := x.tape.be
	f := x.Cols()
	d := &backend.NormGradients{
		DY:    dy,
		Gamma: be.Alloc(1, f),
		Beta:  be.Alloc(1, f),
	}
	if x.needs {
		d.DX = be.Alloc(x.Rows(), f)
	}
	if bias != nil {
		d.Bias = be.Alloc(1, f)
	}
	fuser.NormBackward(k, d)
	gamma.AddGrad(d.Gamma)
	beta.AddGrad(d.Beta)
	if d.DX != nil {
		x.AddGrad(d.DX)
	}
	if d.Bias != nil {
		bias.AddGrad(d.Bias)
	}
}
