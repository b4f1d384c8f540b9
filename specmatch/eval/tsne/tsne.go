// Package tsne lays points of many dimensions out in the plane so that
// neighbours stay neighbours: exact t-SNE (van der Maaten and Hinton,
// Visualizing Data using t-SNE, JMLR 2008).
//
// The mental model: every point i has a Gaussian around it, as wide as it takes
// to have some 30 neighbours; p_ij says how much of a neighbour j is. In the
// plane q_ij says the same with the heavier tails of Student's distribution. The
// layout is the one that brings q close to p, found by gradient descent on
// KL(P‖Q) = Σ p_ij·ln(p_ij/q_ij). Who is whose neighbour means something; the
// sizes of clusters and the distances between them do not.
//
// Time and memory grow with the square of the number of points: 1000 of them
// take seconds.
package tsne

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Options are the settings of [Embed]. Zero fields mean the defaults.
type Options struct {
	Perplexity float64 // the effective number of neighbours, default 30; at most (n-1)/3 is used
	Iterations int     // default 750, of which the first 250 are with exaggerated p_ij
}

const (
	exaggeration     = 12 // of p_ij at the beginning, so that clusters form
	earlyIterations  = 250
	earlyMomentum    = 0.5
	lateMomentum     = 0.8
	leastGain        = 0.01
	leastLearnRate   = 50
	initialDeviation = 1e-4
)

// Embed returns positions [n×2], row-major, for points x [n×d]. It starts from
// the two directions of largest variance (Kobak and Berens, The art of using
// t-SNE for single-cell transcriptomics, 2019), so equal points give equal bits. If
// ctx is cancelled, it returns the error of ctx.
func Embed(ctx context.Context, x []float64, n, d int, o Options) ([]float64, error) {
	if n < 4 || d < 1 || len(x) != n*d {
		return nil, fmt.Errorf("tsne: %d numbers for %d points of %d dimensions; want at least 4 points",
			len(x), n, d)
	}
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("tsne: coordinate %d of point %d is %v", i%d, i/d, v)
		}
	}
	o = Options{Perplexity: cmp.Or(o.Perplexity, 30), Iterations: cmp.Or(o.Iterations, 750)}
	if o.Perplexity < 1 || o.Iterations < 1 {
		return nil, fmt.Errorf("tsne: perplexity %v and %d iterations; want at least 1 of each",
			o.Perplexity, o.Iterations)
	}
	y, err := principal(x, n, d)
	if err != nil {
		return nil, err
	}
	p := joint(x, n, d, min(o.Perplexity, float64(n-1)/3))
	// scikit-learn's learning rate, but no more than half the number of points: with 50, sets
	// of 20 or 30 are thrown far apart and most end in a bad minimum.
	rate := min(max(float64(n)/exaggeration/4, leastLearnRate), float64(n)/2)
	gradient := make([]float64, 2*n)
	velocity := make([]float64, 2*n)
	gain := make([]float64, 2*n)
	q := make([]float64, n*n)
	for iteration := range o.Iterations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if iteration == 0 || iteration == earlyIterations {
			// Two descents, as scikit-learn has them: the speed of the exaggerated one would
			// throw small sets far apart.
			for i := range gain {
				velocity[i], gain[i] = 0, 1
			}
		}
		factor := 1.0
		momentum := lateMomentum
		if iteration < earlyIterations {
			factor = exaggeration
			momentum = earlyMomentum
		}
		klGradient(p, y, n, factor, q, gradient)
		for i, g := range gradient {
			// Gains grow while a coordinate keeps its direction (Jacobs 1988).
			if (g > 0) != (velocity[i] > 0) {
				gain[i] += 0.2
			} else {
				gain[i] = max(0.8*gain[i], leastGain)
			}
			velocity[i] = momentum*velocity[i] - rate*gain[i]*g
			y[i] += velocity[i]
		}
		centre(y, n, 2)
	}
	return y, nil
}

// principal returns the first two principal components, scaled to be tiny.
func principal(x []float64, n, d int) ([]float64, error) {
	x = slices.Clone(x)
	centre(x, n, d)
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(n, d, x), mat.SVDThinU) {
		return nil, errors.New("tsne: the singular value decomposition did not converge")
	}
	var u mat.Dense
	svd.UTo(&u)
	values := svd.Values(nil)
	y := make([]float64, 2*n)
	if values[0] == 0 {
		return nil, errors.New("tsne: all points are the same")
	}
	scale := initialDeviation * math.Sqrt(float64(n))
	for i := range n {
		y[2*i] = scale * u.At(i, 0)
		if len(values) > 1 {
			y[2*i+1] = scale * u.At(i, 1) * values[1] / values[0]
		}
	}
	return y, nil
}

// joint returns p_ij = (p_j|i + p_i|j)/2n [n×n], where the conditional
// probabilities are Gaussian with the wanted perplexity.
func joint(x []float64, n, d int, perplexity float64) []float64 {
	distances := make([]float64, n*n)
	for i := range n {
		for j := range i {
			sum := 0.0
			for k := range d {
				diff := x[i*d+k] - x[j*d+k]
				sum += diff * diff
			}
			distances[i*n+j], distances[j*n+i] = sum, sum
		}
	}
	p := make([]float64, n*n)
	for i := range n {
		conditional(p[i*n:(i+1)*n], distances[i*n:(i+1)*n], i, perplexity)
	}
	for i := range n {
		for j := range i {
			v := (p[i*n+j] + p[j*n+i]) / float64(2*n)
			p[i*n+j], p[j*n+i] = v, v
		}
	}
	return p
}

// conditional fills p with p_j|i for the squared distances of point i: the
// precision is found by bisection.
func conditional(p, distances []float64, i int, perplexity float64) {
	nearest := math.Inf(1)
	farthest := 0.0
	for j, dist := range distances {
		if j != i {
			nearest = min(nearest, dist)
			farthest = max(farthest, dist)
		}
	}
	precision := 1.0
	lo := 0.0
	hi := math.Inf(1)
	if farthest > nearest {
		precision = 1 / (farthest - nearest)
	}
	for range 100 {
		var sum, weighted float64
		for j, dist := range distances {
			p[j] = 0
			if j != i {
				p[j] = math.Exp(-precision * (dist - nearest))
				sum += p[j]
				weighted += p[j] * (dist - nearest)
			}
		}
		for j := range p {
			p[j] /= sum
		}
		// The entropy in nats; e to its power is the perplexity.
		entropy := math.Log(sum) + precision*weighted/sum
		if math.Abs(entropy-math.Log(perplexity)) < 1e-7 {
			return
		}
		if entropy > math.Log(perplexity) {
			lo = precision
		} else {
			hi = precision
		}
		if math.IsInf(hi, 1) {
			precision *= 2
		} else {
			precision = (lo + hi) / 2
		}
	}
}

// klGradient fills gradient with that of KL(f·P‖Q), with f the exaggeration:
//
//	∂KL/∂y_i = 4·Σ_j (f·p_ij - q_ij)·w_ij·(y_i - y_j),  w_ij = 1/(1+‖y_i-y_j‖²),  q_ij = w_ij/Σw.
//
// w is scratch memory [n×n].
func klGradient(p, y []float64, n int, f float64, w, gradient []float64) {
	total := 0.0
	for i := range n {
		for j := range i {
			dx, dy := y[2*i]-y[2*j], y[2*i+1]-y[2*j+1]
			v := 1 / (1 + dx*dx + dy*dy)
			w[i*n+j] = v
			total += 2 * v
		}
	}
	clear(gradient)
	for i := range n {
		var gx, gy float64
		for j := range i {
			v := w[i*n+j]
			c := 4 * (f*p[i*n+j] - v/total) * v
			dx, dy := c*(y[2*i]-y[2*j]), c*(y[2*i+1]-y[2*j+1])
			gx += dx
			gy += dy
			gradient[2*j] -= dx
			gradient[2*j+1] -= dy
		}
		gradient[2*i] += gx
		gradient[2*i+1] += gy
	}
}

// centre subtracts the mean of n points [n×d] from each.
func centre(x []float64, n, d int) {
	for k := range d {
		mean := 0.0
		for i := range n {
			mean += x[i*d+k]
		}
		mean /= float64(n)
		for i := range n {
			x[i*d+k] -= mean
		}
	}
}
