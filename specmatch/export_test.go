package specmatch

import "github.com/specmatch/specmatch/autodiff"

// Bucket is bucket.
var Bucket = bucket

// LossWithThresholds is LaplacianMatch.Loss with one constant threshold per
// view.
func LossWithThresholds(c LaplacianMatch, z1, z2 *autodiff.Var, theta1, theta2 float64) *autodiff.Var {
	c1, c2 := c, c
	c1.Threshold, c2.Threshold = theta1, theta2
	diff := c1.normalized(z1.L2Normalize()).Sub(c2.normalized(z2.L2Normalize()))
	return diff.Dot(diff)
}
