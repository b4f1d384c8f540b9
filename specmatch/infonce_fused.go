package specmatch

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// This file has the losses of a training step as one operator, for engines that
// offer it ([backend.ContrastFuser]); the definitions are [InfoNCE.Loss] and
// [LaplacianMatch.Loss].

// keptGraphs is the largest batch whose similarities are kept for the way back. Of a
// larger one they are computed twice, in tiles, so that memory is linear in the batch.
var keptGraphs = 1024

// tiles reports whether losses of n graphs are computed in tiles.
func tiles(t *autodiff.Tape, n int) bool {
	fuser := t.Fused().Contrast
	return n > keptGraphs && fuser != nil && fuser.ContrastTiles()
}

// canFuse reports whether the tape's engine offers the loss of n graphs.
func (c InfoNCE) canFuse(t *autodiff.Tape, n int) bool {
	return t.Fused().Contrast != nil && c.Tau >= backend.MinTemperature &&
		(c.Variant == NTXent || n > 1 && tiles(t, n))
}

// canFuse reports whether L_G has the form that engines know.
func (c LaplacianMatch) canFuse() bool {
	return c.Adjacency == Sigmoid && c.Kappa > 0 && !c.RandomWalk && !c.ThresholdGradient
}

// canFuseMatch reports whether L_G of z [2n×D] can be computed together with L_C: it
// must depend on the same similarities.
func (o *Objective) canFuseMatch(z *autodiff.Var) bool {
	return z.Rows() >= 4 && !o.OnH && !o.Center && o.Match.canFuse()
}

// fusedLoss returns the loss of unit rows u¹, u² [N×D] in one call of the engine, nil if it
// offers none.
func (c InfoNCE) fusedLoss(u1, u2 *autodiff.Var) *autodiff.Var {
	if !c.canFuse(u1.Tape(), u1.Rows()) {
		return nil
	}
	loss, _ := fused(autodiff.ConcatRows(u1, u2), &c, nil)
	return loss
}

// fusedLoss returns the loss of z¹, z² [n×D] in tiles, nil if the engine offers none or n is
// so small that the definition is faster.
func (c LaplacianMatch) fusedLoss(z1, z2 *autodiff.Var) *autodiff.Var {
	if !c.canFuse() || !tiles(z1.Tape(), z1.Rows()) {
		return nil
	}
	_, loss := fused(autodiff.ConcatRows(z1.L2Normalize(), z2.L2Normalize()), nil, &c)
	return loss
}

// fusedLosses returns the losses of z [2n×D] that the engine computes in one call, where it
// offers that: L_C, and with match L_G if it depends on the same similarities. Others are nil.
func (o *Objective) fusedLosses(z *autodiff.Var, match bool) (l train.Losses) {
	if !o.Contrast.canFuse(z.Tape(), z.Rows()/2) {
		return l
	}
	var matched *LaplacianMatch
	if match && o.canFuseMatch(z) {
		matched = &o.Match
	}
	l.Main, l.Aux = fused(z.L2Normalize(), &o.Contrast, matched)
	return l
}

// fused returns L_C and L_G, unless one of c and match is nil, of the unit rows u
// [2n×D] of both views.
func fused(u *autodiff.Var, c *InfoNCE, match *LaplacianMatch) (lossC, lossG *autodiff.Var) {
	t := u.Tape()
	m := u.Rows()
	n := m / 2
	whole := !tiles(t, n)
	f := &backend.Contrast{U: u.Value()}
	if c != nil {
		f.Temperature = c.Tau
		f.Scale = c.scale(m)
		f.CrossView = c.Variant == CrossView
		if f.CrossView {
			f.Scale = c.scale(n)
		}
		f.InvZ, f.LossC = t.Alloc(m, 1), t.Alloc(1, 1)
		if whole {
			f.E = t.Alloc(m, m)
		}
	}
	if match != nil {
		f.Match = true
		f.Kappa = match.Kappa
		f.Percentile = match.Percentile
		f.R, f.W, f.LossG = t.Alloc(m, 1), t.Alloc(m, 1), t.Alloc(1, 1)
		if whole {
			f.A1, f.A2 = t.Alloc(n, n), t.Alloc(n, n)
		}
	}
	fuser := t.Fused().Contrast
	fuser.ContrastForward(f)
	vjp := func(dc, dg *tensor.Tensor) {
		du := t.Backend().Alloc(u.Rows(), u.Cols())
		fuser.ContrastBackward(f, dc, dg, du)
		u.AddGrad(du)
	}
	switch {
	case match == nil:
		return t.Record("NTXent", f.LossC, func(dc *tensor.Tensor) { vjp(dc, nil) }, u), nil
	case c == nil:
		return nil, t.Record("LaplacianMatch", f.LossG, func(dg *tensor.Tensor) { vjp(nil, dg) }, u)
	}
	return t.RecordPair("Contrast", f.LossC, f.LossG, vjp, u)
}
