package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// Draw is what Theorem 4.3 sees of one view, a draw of the augmentations.
type Draw struct {
	Connected bool    // as the theorem assumes
	Lambda2   float64 // second smallest eigenvalue of the Laplacian L
	Mu2       float64 // ‖μ‖² of the mean embedding μ = Σ d_i·z_i/Σ d_i by degree d; NaN without edges
	EdgeMean  float64 // mean of ‖z_i-z_j‖² over edges (i, j), by weight; NaN without edges
	PairMean  float64 // mean of ‖z_i-z_j‖² over all pairs i ≠ j
	Deviation float64 // ‖L-L̄‖²_F from the mean over connected draws; 0 if not connected

	potential float64 // mean of e^(-t‖z_i-z_j‖²) over all pairs i ≠ j
}

// UniformityBound is both sides of Theorem 4.3 for the draws with a connected
// graph, all of them equally likely: with a = 1-e^(-4t),
//
//	L_unif ≤ a/(2√2)·(3/2 - E‖μ‖²)·√E[L_G] - a/2·λ̄₂·(1 - E‖μ‖²).
//
// Every field but Draws is NaN if no graph is connected.
type UniformityBound struct {
	Draws []Draw

	Unif   float64 // L_unif = ln of the mean of e^(-t‖z_i-z_j‖²) over pairs i ≠ j; never above 0
	LossG  float64 // E[L_G] = 2·E‖L-L̄‖²_F of two independent draws
	Mu2    float64 // E‖μ‖²
	Direct float64 // -a/2·E[λ₂(1-‖μ‖²)], the bound before E[L_G] enters

	// λ̄₂ and the right side, for the two readings of λ̄₂: the second smallest
	// eigenvalue of L̄, which the proof needs, and the smallest non-zero one,
	// which the paper writes. L̄ is no Laplacian of a graph: its smallest
	// eigenvalue is in general not 0.
	LambdaBar, Right               float64
	LambdaBarNonZero, RightNonZero float64
	// Hoffman and HoffmanNonZero are the largest (λ₂-λ̄₂)²/‖L-L̄‖² of a draw: the
	// step of the proof that cites Hoffman and Wielandt says at most 1.
	Hoffman, HoffmanNonZero float64
}

// Connected returns how many draws have a connected graph.
func (b *UniformityBound) Connected() int {
	n := 0
	for _, d := range b.Draws {
		if d.Connected {
			n++
		}
	}
	return n
}

// Uniformity returns both sides of Theorem 4.3 for draws of one batch, with the
// potential at t > 0.
func Uniformity(views []*View, t float64) (*UniformityBound, error) {
	if len(views) == 0 || !(t > 0) {
		panic(fmt.Sprintf("theory: Uniformity: %d draws and t = %v; want at least one and t above 0",
			len(views), t))
	}
	b := new(UniformityBound)
	for _, v := range views {
		b.Draws = append(b.Draws, newDraw(v, t))
	}
	n := views[0].N
	k := float64(b.Connected())
	if k == 0 {
		for _, x := range []*float64{
			&b.Unif, &b.LossG, &b.Mu2, &b.Direct, &b.LambdaBar, &b.Right, &b.LambdaBarNonZero,
			&b.RightNonZero, &b.Hoffman, &b.HoffmanNonZero,
		} {
			*x = math.NaN()
		}
		return b, nil
	}
	mean := make([]float64, n*n)
	for i, v := range views {
		if b.Draws[i].Connected {
			for j, l := range v.Graph.L {
				mean[j] += l / k
			}
		}
	}
	s, err := Eigen(mean, n)
	if err != nil {
		return nil, err
	}
	// λ̄₂ of connected graphs is above 0, also where it is too small to be told from it.
	b.LambdaBar = s.Lambda2()
	b.LambdaBarNonZero = min(b.LambdaBar, s.SmallestNonZero())

	a := 1 - math.Exp(-4*t)
	potential := 0.0
	for i := range b.Draws {
		d := &b.Draws[i]
		if !d.Connected {
			continue
		}
		d.Deviation = distance2(views[i].Graph.L, mean)
		potential += d.potential / k
		b.LossG += 2 * d.Deviation / k
		b.Mu2 += d.Mu2 / k
		b.Direct -= a / 2 * d.Lambda2 * (1 - d.Mu2) / k
		if d.Deviation > negligible*negligible { // less is rounding
			b.Hoffman = max(b.Hoffman, square(d.Lambda2-b.LambdaBar)/d.Deviation)
			b.HoffmanNonZero = max(b.HoffmanNonZero, square(d.Lambda2-b.LambdaBarNonZero)/d.Deviation)
		}
	}
	b.Unif = math.Log(potential)
	bound := func(lambda float64) float64 {
		return a/(2*math.Sqrt2)*(1.5-b.Mu2)*math.Sqrt(b.LossG) - a/2*lambda*(1-b.Mu2)
	}
	b.Right, b.RightNonZero = bound(b.LambdaBar), bound(b.LambdaBarNonZero)
	return b, nil
}

func newDraw(v *View, t float64) Draw {
	n := v.N
	d := v.D
	out := Draw{Connected: v.Connected(), Lambda2: v.Spectrum.Lambda2()}
	mu := make([]float64, d)
	volume := 0.0
	for i, degree := range v.Graph.Degrees {
		volume += degree
		for k := range d {
			mu[k] += degree * v.Z[i*d+k]
		}
		for j := range i {
			dist := distance2(v.Z[i*d:(i+1)*d], v.Z[j*d:(j+1)*d])
			out.EdgeMean += 2 * v.Graph.A[i*n+j] * dist // A is symmetric
			out.PairMean += 2 * dist
			out.potential += 2 * math.Exp(-t*dist)
		}
	}
	pairs := float64(n * (n - 1))
	out.Mu2 = floats.Dot(mu, mu) / (volume * volume)
	out.EdgeMean /= volume
	out.PairMean /= pairs
	out.potential /= pairs
	return out
}

func square(x float64) float64 { return x * x }
