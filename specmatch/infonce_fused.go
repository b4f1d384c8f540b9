package specmatch

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// This file computes the losses of a training step as one operator, for engines that offer it
// ([backend.ContrastFuser]). The definitions are [InfoNCE.Loss] and [LaplacianMatch.Loss].

// keptGraphs is [train.KeptGraphs], which tests lower.
var keptGraphs = train.KeptGraphs

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

// canFuse reports whether L_G has the form that engines offer.
func (c LaplacianMatch) canFuse() bool {
	return c.Adjacency == Sigmoid && c.Kappa > 0 && !c.RandomWalk && !c.ThresholdGradient
}

// fusedLoss returns the loss of unit rows u¹, u² [N×D] from one call of the engine, or nil if the engine
// does not offer it.
func (c InfoNCE) fusedLoss(u1, u2 *autodiff.Var) *autodiff.Var {
	if !c.canFuse(u1.Tape(), u1.Rows()) {
		return nil
	}
	loss, _ := fused(autodiff.ConcatRows(u1, u2), &c, nil)
	return loss
}

// fusedLoss returns the loss of z¹, z² [n×D] in tiles. It returns nil if the engine does not offer it,
// if n is so small that the definition is faster, or if the views have different widths.
func (c LaplacianMatch) fusedLoss(z1, z2 *autodiff.Var) *autodiff.Var {
	if !c.canFuse() || !tiles(z1.Tape(), z1.Rows()) || z1.Cols() != z2.Cols() {
		return nil
	}
	_, loss := fused(autodiff.ConcatRows(z1.L2Normalize(), z2.L2Normalize()), nil, &c)
	return loss
}

// fusedLosses returns the losses of z [2n×D] that the engine can compute in one call: L_C of c, and L_G of
// match unless it is nil. Losses that the engine does not offer are nil.
func fusedLosses(z *autodiff.Var, c *InfoNCE, match *LaplacianMatch) (l train.Losses) {
	if !c.canFuse(z.Tape(), z.Rows()/2) {
		return l
	}
	if match != nil && (z.Rows() < 4 || !match.canFuse()) {
		match = nil
	}
	l.Main, l.Aux = fused(z.L2Normalize(), c, match)
	return l
}

// fused returns L_C of c and L_G of match for the unit rows u [2n×D] of both views. A loss is nil if c or
// match is nil.
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
