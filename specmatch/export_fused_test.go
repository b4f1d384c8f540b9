package specmatch

import "github.com/specmatch/specmatch/autodiff"

// KeepGraphs sets the largest batch whose similarities are kept and returns what it was.
func KeepGraphs(n int) (before int) {
	before, keptGraphs = keptGraphs, n
	return before
}

// Losses returns both losses of z as a training step computes them, fused where
// the tape lets it.
func (o *Objective) Losses(z *autodiff.Var, match bool) (lossC, lossG *autodiff.Var) {
	if o.Contrast.canFuse(z.Tape(), z.Rows()/2) && z.Rows() >= 4 && !o.OnH && !o.Center && o.Match.canFuse() {
		var along *LaplacianMatch
		if match {
			along = &o.Match
		}
		return fused(z.L2Normalize(), &o.Contrast, along)
	}
	n := z.Rows() / 2
	z1, z2 := z.SliceRows(0, n), z.SliceRows(n, 2*n)
	return o.Contrast.Loss(z1, z2), o.Match.Loss(z1, z2)
}
