package specmatch

import "github.com/specmatch/specmatch/autodiff"

// LossWithThresholds is LaplacianMatch.Loss with one constant threshold per view.
func LossWithThresholds(c LaplacianMatch, z1, z2 *autodiff.Var, theta1, theta2 float64) *autodiff.Var {
	t := z1.Tape()
	return c.distance(c.Weights(cosines(z1), t.Scalar(theta1)), c.Weights(cosines(z2), t.Scalar(theta2)))
}
