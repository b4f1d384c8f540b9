package specmatch

import "github.com/specmatch/specmatch/autodiff"

// Losses returns both losses of z as a training step computes them, fused where
// the tape lets it.
func (o *Objective) Losses(z *autodiff.Var, match bool) (lossC, lossG *autodiff.Var) {
	if o.canFuse(z) && o.canFuseMatch(z) {
		return o.fused(z, match)
	}
	n := z.Rows() / 2
	z1, z2 := z.SliceRows(0, n), z.SliceRows(n, 2*n)
	return o.Contrast.Loss(z1, z2), o.Match.Loss(z1, z2)
}
