package specmatch

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file is the losses of a training step as one operator, on engines that
// have it ([backend.ContrastFuser]); the definitions are [InfoNCE.Loss] and
// [LaplacianMatch.Loss].

// canFuse reports whether L_C of z [2n×D] can run so.
func (o *Objective) canFuse(z *autodiff.Var) bool {
	_, ok := z.Tape().Backend().(backend.ContrastFuser)
	return ok && z.Tape().Fused() && o.Contrast.Variant == NTXent && o.Contrast.Temperature >= backend.MinTemperature
}

// canFuseMatch reports whether L_G can run along with it: it must be a function
// of the same similarities, in the form that the engine knows.
func (o *Objective) canFuseMatch(z *autodiff.Var) bool {
	m := o.Match
	return z.Rows() >= 4 && !o.OnH && !o.Center && m.Adjacency == Sigmoid && m.Kappa > 0 &&
		!m.RandomWalk && !m.ThresholdGradient && !(m.FixedThreshold && m.Clamp)
}

// fused returns L_C and, with match, L_G of z, the embeddings of both views.
func (o *Objective) fused(z *autodiff.Var, match bool) (lossC, lossG *autodiff.Var) {
	u := z.L2Normalize()
	t := u.Tape()
	be := t.Backend()
	m := u.Rows()
	c := &backend.Contrast{
		U: u.Value(), Temperature: o.Contrast.Temperature, Scale: o.Contrast.scale(m),
		E: t.Alloc(m, m), InvZ: t.Alloc(m, 1), LossC: t.Alloc(1, 1),
	}
	if match {
		n := m / 2
		c.Match = true
		c.Kappa, c.SimilarityScale, c.Factor = o.Match.Kappa, o.Match.similarityScale(), o.Match.factor(n)
		c.FixedThreshold, c.Threshold = o.Match.FixedThreshold, o.Match.Threshold
		c.Quantile = o.Match.percentile() / 100
		c.A1, c.A2, c.R, c.W, c.LossG = t.Alloc(n, n), t.Alloc(n, n), t.Alloc(m, 1), t.Alloc(m, 1), t.Alloc(1, 1)
	}
	fuser := be.(backend.ContrastFuser)
	fuser.ContrastForward(c)
	vjp := func(dc, dg *tensor.Tensor) {
		du := be.Alloc(u.Rows(), u.Cols())
		fuser.ContrastBackward(c, dc, dg, du)
		u.AddGrad(du)
	}
	if !match {
		return t.Record("NTXent", c.LossC, func(dc *tensor.Tensor) { vjp(dc, nil) }, u), nil
	}
	return t.RecordPair("Contrast", c.LossC, c.LossG, vjp, u)
}
