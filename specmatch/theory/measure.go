package theory

import (
	"fmt"
	"math"
)

// Quantities holds numbers by name. An undefined number is NaN or absent. Names that end in (t_d=…) belong to
// one diffusion time, see [AtTime].
//
// Theorem 4.2, for pairs of draws:
//
//	pairs, equal_pairs    numbers of pairs, and of those with L¹ = L², where Assumption 4.1 fails
//	pair_loss_g           L_G, the mean over pairs
//	gap_fixed, gap_view1, gap_midpoint       |L_C-L_C*|, means over pairs, see [Gap]
//	c, right              means of the least constant and of the right side over pairs with L¹ ≠ L²
//	duhamel               largest ‖P¹-P²‖²/(t_d²·L_G)
//	ratio_fixed, ratio_view1, ratio_midpoint largest left side divided by the right one
//	violated_view1        pairs in which z* = z¹ violates the theorem
//
// Theorem 4.3: the numbers of draws and of connected ones, and the values of [UniformityBound] over the
// connected draws if there are two or more.
type Quantities map[string]float64

// AtTime names a quantity at a diffusion time.
func AtTime(name string, td float64) string { return fmt.Sprintf("%s(t_d=%v)", name, td) }

// Measure returns both sides of both theorems for draws of one batch, at temperature tau, at diffusion
// times, and with the potential at t. gaps holds the left side of Theorem 4.2 for each pair of consecutive
// draws; it does not depend on the similarity graphs, so that several kinds of them can share it. The error
// is that of [Uniformity].
func Measure(views []*View, gaps []Gap, tau, t float64, times []float64) (Quantities, error) {
	q := Quantities{}
	n := float64(len(gaps))
	unequal := 0.0
	add := func(name string, v float64) { q[name] += v }
	raise := func(name string, v float64) { q[name] = max(q[name], v) }
	for k, gap := range gaps {
		v1 := views[2*k]
		v2 := views[2*k+1]
		lossG := LossG(v1, v2)
		add("pair_loss_g", lossG/n)
		add("gap_fixed", gap.Fixed/n)
		add("gap_view1", gap.View1/n)
		add("gap_midpoint", gap.Midpoint/n)
		if lossG == 0 {
			continue
		}
		unequal++
		for _, td := range times {
			a := Alignment(v1, v2, tau, td)
			add(AtTime("c", td), a.C)
			add(AtTime("right", td), a.Right)
			raise(AtTime("duhamel", td), a.Heat/(td*td*lossG))
			raise(AtTime("ratio_fixed", td), gap.Fixed/a.Right)
			raise(AtTime("ratio_view1", td), gap.View1/a.Right)
			raise(AtTime("ratio_midpoint", td), gap.Midpoint/a.Right)
			if gap.View1 > a.Right {
				add(AtTime("violated_view1", td), 1)
			}
		}
	}
	for _, td := range times {
		q[AtTime("c", td)] /= unequal // of none 0/0, NaN
		q[AtTime("right", td)] /= unequal
		add(AtTime("violated_view1", td), 0)
	}
	u, err := Uniformity(views, t)
	if err != nil {
		return nil, err
	}
	add("pairs", n)
	add("equal_pairs", n-unequal)
	add("draws", float64(len(views)))
	add("connected", float64(u.Connected()))
	for name, v := range map[string]float64{
		"expected_loss_g":    u.LossG,
		"mu2":                u.Mu2,
		"unif":               u.Unif,
		"direct":             u.Direct,
		"lambda_bar":         u.LambdaBar,
		"lambda_bar_nonzero": u.LambdaBarNonZero,
		"right_4.3":          u.Right,
		"right_4.3_nonzero":  u.RightNonZero,
		"hoffman":            u.Hoffman,
		"hoffman_nonzero":    u.HoffmanNonZero,
	} {
		if u.Connected() < 2 { // E[L_G] of a single draw is 0, which says nothing about augmentations
			v = math.NaN()
		}
		add(name, v)
	}
	return q, nil
}
