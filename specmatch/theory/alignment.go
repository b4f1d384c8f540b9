package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// LossG returns L_G = ‖L¹-L²‖²_F.
func LossG(v1, v2 *View) float64 { return distance2(v1.Graph.L, v2.Graph.L) }

// Gap is the left side of Theorem 4.2, |L_C - L_C*| with L_C the sum over the 2n
// anchors, for three readings of "perfect alignment". The proof uses the first.
type Gap struct {
	Fixed    float64 // positives at similarity 1, all negatives as they are
	View1    float64 // both views become z¹, and L_C* is the loss there
	Midpoint float64 // both views become the normalised mean of z¹ and z²
}

// AlignmentGap returns the left side of Theorem 4.2 at temperature τ > 0. It depends on embeddings only, not
// on graphs.
func AlignmentGap(v1, v2 *View, tau float64) Gap {
	middle := make([]float64, len(v1.Z))
	for i := range middle {
		middle[i] = v1.Z[i] + v2.Z[i]
	}
	middle = normalize(middle, v1.N, v1.D)
	n := v1.N
	d := v1.D
	loss := contrast(v1.Z, v2.Z, n, d, tau, false)
	return Gap{
		Fixed:    math.Abs(loss - contrast(v1.Z, v2.Z, n, d, tau, true)),
		View1:    math.Abs(loss - contrast(v1.Z, v1.Z, n, d, tau, false)),
		Midpoint: math.Abs(loss - contrast(middle, middle, n, d, tau, false)),
	}
}

// contrast returns the paper's L_C, the sum over both views, for unit rows [n×d]. With aligned, the
// similarity of positives counts as 1, while that of negatives does not change.
func contrast(z1, z2 []float64, n, d int, tau float64, aligned bool) float64 {
	u := mat.NewDense(2*n, d, append(append(make([]float64, 0, 2*n*d), z1...), z2...))
	var s mat.Dense
	s.Mul(u, u.T())
	total := 0.0
	for i := range 2 * n {
		positive := (i + n) % (2 * n)
		matched := s.At(i, positive)
		if aligned {
			matched = 1
		}
		sum := math.Exp((matched - 1) / tau) // similarities are at most 1: no overflow
		for j, v := range s.RawRowView(i) {
			if j != i && j != positive {
				sum += math.Exp((v - 1) / tau)
			}
		}
		total += math.Log(sum) - (matched-1)/tau
	}
	return total
}

// AlignmentBound is the right side of Theorem 4.2 for one batch,
//
//	|L_C - L_C*| ≤ t_d²·c·L_G/τ,
//
// and the terms of the assumption.
type AlignmentBound struct {
	Heat     float64 // ‖P¹-P²‖²_F of the heat kernels at diffusion time t_d
	Distance float64 // Σ_i ‖z¹_i-z²_i‖²
	// C is Distance/Heat, the least constant of Assumption 4.1. It is +Inf where
	// the assumption fails: the graphs are equal and the embeddings are not.
	C     float64
	Right float64 // t_d²·C·L_G/τ; +Inf with C
}

// Alignment returns the right side of Theorem 4.2 at temperature τ > 0 and
// diffusion time td > 0.
func Alignment(v1, v2 *View, tau, td float64) AlignmentBound {
	if !(tau > 0 && td > 0) {
		panic(fmt.Sprintf("theory: Alignment: temperature %v and diffusion time %v must be positive",
			tau, td))
	}
	b := AlignmentBound{
		Heat:     distance2(v1.Spectrum.Heat(td), v2.Spectrum.Heat(td)),
		Distance: distance2(v1.Z, v2.Z),
	}
	lossG := LossG(v1, v2)
	switch {
	case b.Distance == 0: // any constant will do
	case lossG == 0: // Heat may be a rounding error
		b.C = math.Inf(1)
		b.Right = math.Inf(1)
	default:
		b.C = b.Distance / b.Heat
		b.Right = td * td * b.C * lossG / tau
	}
	return b
}
