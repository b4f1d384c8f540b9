package theory

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/specmatch"
)

// Pair is what the theorems see of one batch: the embeddings z¹, z² [n×d] of two
// views, with rows of length 1, and the normalised Laplacians of their
// similarity graphs.
type Pair struct {
	N, D   int
	Z1, Z2 []float64
	L1, L2 []float64
	LossG  float64 // ‖L¹-L²‖²_F

	s1, s2 *Spectrum
}

// NewPair returns the pair of embeddings z1 and z2 [n×d], whose rows it
// normalises, with the graphs of c. The heat kernel needs symmetric Laplacians,
// so c.RandomWalk is ignored; c.Scale too, since the theorems are about the
// unscaled loss.
func NewPair(z1, z2 []float64, n, d int, c specmatch.LaplacianMatch) (*Pair, error) {
	p := &Pair{N: n, D: d, Z1: normalize(z1, n, d), Z2: normalize(z2, n, d)}
	p.L1, p.L2 = c.Graph(z1, n, d).Laplacian(false), c.Graph(z2, n, d).Laplacian(false)
	p.LossG = distance2(p.L1, p.L2)
	var err error
	if p.s1, err = Eigen(p.L1, n); err != nil {
		return nil, err
	}
	p.s2, err = Eigen(p.L2, n)
	return p, err
}

// Gap is the left side of Theorem 4.2, |L_C - L_C*| with L_C the sum over the 2n
// anchors, for three readings of "perfect alignment". The proof is about the
// first.
type Gap struct {
	Fixed    float64 // positives at similarity 1, all negatives as they are
	View1    float64 // both views become z¹, and L_C* is the loss there
	Midpoint float64 // both views become the normalised mean of z¹ and z²
}

// Gap returns the left side of Theorem 4.2 at temperature τ > 0.
func (p *Pair) Gap(tau float64) Gap {
	middle := make([]float64, len(p.Z1))
	for i := range middle {
		middle[i] = p.Z1[i] + p.Z2[i]
	}
	middle = normalize(middle, p.N, p.D)
	loss := p.contrast(p.Z1, p.Z2, tau, false)
	return Gap{
		Fixed:    math.Abs(loss - p.contrast(p.Z1, p.Z2, tau, true)),
		View1:    math.Abs(loss - p.contrast(p.Z1, p.Z1, tau, false)),
		Midpoint: math.Abs(loss - p.contrast(middle, middle, tau, false)),
	}
}

// AlignmentBound is the right side of Theorem 4.2 for one batch,
//
//	|L_C - L_C*| ≤ t_d²·c·L_G/τ,
//
// and what the assumption is about.
type AlignmentBound struct {
	Heat     float64 // ‖P¹-P²‖²_F of the heat kernels at diffusion time t_d
	Distance float64 // Σ_i ‖z¹_i-z²_i‖²
	// C is Distance/Heat, the least constant of Assumption 4.1. It is +Inf where
	// the assumption fails: the graphs are equal and the embeddings are not.
	C     float64
	Bound float64 // t_d²·C·L_G/τ; +Inf with C
}

// Alignment returns the right side of Theorem 4.2 at temperature τ > 0 and
// diffusion time td > 0.
func (p *Pair) Alignment(tau, td float64) AlignmentBound {
	if !(tau > 0 && td > 0) {
		panic(fmt.Sprintf("theory: Alignment: temperature %v and diffusion time %v must be positive", tau, td))
	}
	b := AlignmentBound{
		Heat:     distance2(p.s1.Heat(td), p.s2.Heat(td)),
		Distance: distance2(p.Z1, p.Z2),
	}
	switch {
	case b.Distance == 0: // any constant will do
	case p.LossG == 0: // Heat may be a rounding error
		b.C, b.Bound = math.Inf(1), math.Inf(1)
	default:
		b.C = b.Distance / b.Heat
		b.Bound = td * td * b.C * p.LossG / tau
	}
	return b
}

// contrast is the paper's L_C, the sum over both views, of unit rows. With
// aligned, the similarity of the positives counts as 1 while that of the
// negatives stays.
func (p *Pair) contrast(z1, z2 []float64, tau float64, aligned bool) float64 {
	n, d := p.N, p.D
	u := append(append(make([]float64, 0, 2*n*d), z1...), z2...)
	total := 0.0
	for i := range 2 * n {
		positive := (i + n) % (2 * n)
		sum, own := 0.0, 0.0
		for j := range 2 * n {
			if j == i {
				continue
			}
			s := dot(u[i*d:(i+1)*d], u[j*d:(j+1)*d])
			if j == positive {
				if aligned {
					s = 1
				}
				own = s
			}
			sum += math.Exp((s - 1) / tau) // s ≤ 1: no overflow
		}
		total += math.Log(sum) - (own-1)/tau
	}
	return total
}

// normalize returns the rows of z [n×d] divided by their norms; a zero row stays
// zero.
func normalize(z []float64, n, d int) []float64 {
	u := make([]float64, n*d)
	for i := range n {
		row := z[i*d : (i+1)*d]
		norm := math.Sqrt(dot(row, row))
		for j, v := range row {
			if norm > 0 {
				u[i*d+j] = v / norm
			}
		}
	}
	return u
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// distance2 returns Σ(a-b)².
func distance2(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += (v - b[i]) * (v - b[i])
	}
	return sum
}
