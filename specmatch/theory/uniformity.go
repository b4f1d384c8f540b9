package theory

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/specmatch"
)

// Draw is what Theorem 4.3 sees of one draw of the augmentations: a view z [n×d]
// of a batch, with unit rows, and its similarity graph.
type Draw struct {
	// Connected: every node reaches every other, as the theorem assumes. Without
	// any edge Mu2 and EdgeMean are NaN.
	Connected bool
	Lambda2   float64 // second smallest eigenvalue of the Laplacian L
	Mu2       float64 // ‖μ‖² of the mean embedding μ = Σ d_i·z_i/Σ d_i by degree d
	EdgeMean  float64 // mean of ‖z_i-z_j‖² over edges (i, j), by weight
	PairMean  float64 // mean of ‖z_i-z_j‖² over all pairs i ≠ j
	Deviation float64 // ‖L-L̄‖²_F from the mean over connected draws

	potential float64 // mean of e^(-t‖z_i-z_j‖²) over all pairs i ≠ j
	laplacian []float64
}

// UniformityBound is both sides of Theorem 4.3 for the draws with a connected
// graph, each of them as likely as the other: with a = 1-e^(-4t),
//
//	L_unif ≤ a/(2√2)·(3/2 - E‖μ‖²)·√E[L_G] - a/2·λ̄₂·(1 - E‖μ‖²).
//
// All but Draws is NaN if no graph is connected.
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
	LambdaBar, Bound               float64
	LambdaBarNonZero, BoundNonZero float64
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

// Uniformity returns both sides of Theorem 4.3 for draws of a batch of n ≥ 2
// graphs, each the embeddings [n×d], with the graphs of c and the potential at
// t > 0. Rows are normalised. Laplacians are symmetric and unscaled.
func Uniformity(draws [][]float64, n, d int, c specmatch.LaplacianMatch, t float64) (*UniformityBound, error) {
	if n < 2 || !(t > 0) {
		panic(fmt.Sprintf("theory: Uniformity: %d graphs and t = %v; want at least 2 and t above 0", n, t))
	}
	b := &UniformityBound{}
	for _, z := range draws {
		draw, err := newDraw(z, n, d, c, t)
		if err != nil {
			return nil, err
		}
		b.Draws = append(b.Draws, draw)
	}
	return b, b.bound(n, t)
}

func newDraw(z []float64, n, d int, c specmatch.LaplacianMatch, t float64) (Draw, error) {
	g := c.Graph(z, n, d)
	u := normalize(z, n, d)
	out := Draw{Connected: true, laplacian: g.Laplacian(false)}
	s, err := Eigen(out.laplacian, n)
	if err != nil {
		return out, err
	}
	out.Lambda2 = s.Lambda2()
	out.Connected = out.Lambda2 > zero

	mu, volume := make([]float64, d), 0.0
	for i, degree := range g.Degrees {
		// An isolated node has the eigenvalue 1, so that λ₂ does not tell.
		out.Connected = out.Connected && degree > 0
		volume += degree
		for k := range d {
			mu[k] += degree * u[i*d+k]
		}
		for j := range n {
			if j == i {
				continue
			}
			dist := distance2(u[i*d:(i+1)*d], u[j*d:(j+1)*d])
			out.EdgeMean += g.A[i*n+j] * dist
			out.PairMean += dist
			out.potential += math.Exp(-t * dist)
		}
	}
	pairs := float64(n * (n - 1))
	out.Mu2 = dot(mu, mu) / (volume * volume)
	out.EdgeMean /= volume
	out.PairMean /= pairs
	out.potential /= pairs
	return out, nil
}

// bound fills in everything but the draws.
func (b *UniformityBound) bound(n int, t float64) error {
	k := float64(b.Connected())
	mean := make([]float64, n*n)
	for _, d := range b.Draws {
		if d.Connected {
			for i, v := range d.laplacian {
				mean[i] += v / k
			}
		}
	}
	if k == 0 {
		for _, x := range []*float64{
			&b.Unif, &b.LossG, &b.Mu2, &b.Direct, &b.LambdaBar, &b.Bound, &b.LambdaBarNonZero, &b.BoundNonZero, &b.Hoffman, &b.HoffmanNonZero,
		} {
			*x = math.NaN()
		}
		return nil
	}
	s, err := Eigen(mean, n)
	if err != nil {
		return err
	}
	b.LambdaBar, b.LambdaBarNonZero = s.Lambda2(), s.SmallestNonZero()

	a := 1 - math.Exp(-4*t)
	potential := 0.0
	for i := range b.Draws {
		d := &b.Draws[i]
		if !d.Connected {
			continue
		}
		d.Deviation = distance2(d.laplacian, mean)
		potential += d.potential / k
		b.LossG += 2 * d.Deviation / k
		b.Mu2 += d.Mu2 / k
		b.Direct -= a / 2 * d.Lambda2 * (1 - d.Mu2) / k
		if d.Deviation > zero*zero { // less is rounding
			b.Hoffman = max(b.Hoffman, square(d.Lambda2-b.LambdaBar)/d.Deviation)
			b.HoffmanNonZero = max(b.HoffmanNonZero, square(d.Lambda2-b.LambdaBarNonZero)/d.Deviation)
		}
	}
	b.Unif = math.Log(potential)
	right := func(lambda float64) float64 {
		return a/(2*math.Sqrt2)*(1.5-b.Mu2)*math.Sqrt(b.LossG) - a/2*lambda*(1-b.Mu2)
	}
	b.Bound, b.BoundNonZero = right(b.LambdaBar), right(b.LambdaBarNonZero)
	return nil
}

func square(x float64) float64 { return x * x }
