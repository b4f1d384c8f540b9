package specmatch

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has the losses of a training step as one operator, for engines that
// offer it ([backend.ContrastFuser]); the definitions are [InfoNCE.Loss] and
// [LaplacianMatch.Loss].

// canFuse reports whether the tape's engine offers the loss with these options.
func (c InfoNCE) canFuse(t *autodiff.Tape) bool {
	return t.Fused().Contrast != nil && c.Variant == NTXent && c.Temperature >= backend.MinTemperature
}

// canFuseMatch reports whether L_G of z [2n×D] can be computed together with L_C: it
// must depend on the same similarities, and have the form that engines know.
func (o *Objective) canFuseMatch(z *autodiff.Var) bool {
	m := o.Match
	return z.Rows() >= 4 && !o.OnH && !o.Center && m.Adjacency == Sigmoid && m.Kappa > 0 &&
		!m.RandomWalk && !m.ThresholdGradient
}

// fused returns L_C and, unless match is nil, L_G of the unit rows u [2n×D] of both
// views.
func (c InfoNCE) fused(u *autodiff.Var, match *LaplacianMatch) (lossC, lossG *autodiff.Var) {
	t, m := u.Tape(), u.Rows()
	f := &backend.Contrast{
		U: u.Value(), Temperature: c.Temperature, Scale: c.scale(m),
		E: t.Alloc(m, m), InvZ: t.Alloc(m, 1), LossC: t.Alloc(1, 1),
	}
	if match != nil {
		n := m / 2
		f.Match, f.Kappa, f.Percentile = true, match.Kappa, match.Percentile
		f.A1, f.A2, f.R, f.W, f.LossG = t.Alloc(n, n), t.Alloc(n, n), t.Alloc(m, 1), t.Alloc(m, 1), t.Alloc(1, 1)
	}
	fuser := t.Fused().Contrast
	fuser.ContrastForward(f)
	vjp := func(dc, dg *tensor.Tensor) {
		du := t.Backend().Alloc(u.Rows(), u.Cols())
		fuser.ContrastBackward(f, dc, dg, du)
		u.AddGrad(du)
	}
	if match == nil {
		return t.Record("NTXent", f.LossC, func(dc *tensor.Tensor) { vjp(dc, nil) }, u), nil
	}
	return t.RecordPair("Contrast", f.LossC, f.LossG, vjp, u)
}
