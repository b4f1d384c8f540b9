package specmatch

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/tensor"
)

// Adjacency is the function that turns a similarity into an edge weight.
type Adjacency uint8

// The adjacencies, for a similarity S_ij, i ≠ j, and the threshold θ. The
// diagonal is zero.
const (
	// Sigmoid is A = σ(κ·(S-θ)).
	Sigmoid Adjacency = iota
	// SpreadSigmoid is A = σ(κ·(S-θ)/s) with s the standard deviation of the
	// off-diagonal S of the view, so that shrinking S earns nothing. The
	// gradient flows through s.
	SpreadSigmoid
	// Hard is the paper's A = 1 if S > θ, else 0. Its gradient is zero wherever
	// it exists: with it, SpecMatch-CL trains exactly as the contrastive baseline.
	Hard
	// StraightThrough has the values of Hard and the gradient of Sigmoid.
	StraightThrough
)

var adjacencyNames = [...]string{"sigmoid", "spread", "hard", "ste"}

// String returns the name that flags use.
func (a Adjacency) String() string { return adjacencyNames[a] }

// ParseAdjacency is the inverse of [Adjacency.String].
func ParseAdjacency(s string) (Adjacency, error) {
	for a, name := range adjacencyNames {
		if s == name {
			return Adjacency(a), nil
		}
	}
	return 0, fmt.Errorf("specmatch: adjacency %q: want one of %v", s, adjacencyNames)
}

// LaplacianMatch is the paper's loss (section 4, L_G): each view's embeddings
// z [n×D] induce a similarity graph over the batch, and the graphs of the two
// views must have close normalised Laplacians,
//
//	L_G = ‖L¹ - L²‖²_F.
//
// Per view, with e_i = z_i/‖z_i‖:
//
//	S_ij = e_i·e_j                         similarity
//	θ    = the Percentile of S_ij, i < j   threshold, see [backend.PercentilePosition]
//	A    = an [Adjacency] of S and θ       zero diagonal
//	d_i  = Σ_j A_ij                        degree
//	L    = I - D^-½·A·D^-½  or  I - D^-1·A
//
// A node whose degree is below [backend.LeastDegree] is isolated: L_ii = 1 and the
// rest of its row and column are 0. With n < 2 the loss is 0.
//
// In float32 the gradient for views that differ by a relative noise ε has a relative
// error of about 1e-6/ε, because L¹-L² is a difference of nearly equal numbers.
// Views that differ by an augmentation are far from that.
//
// The loss depends on Gram matrices only: rotating one view changes nothing.
// Alignment is InfoNCE's part.
type LaplacianMatch struct {
	Adjacency Adjacency
	// Kappa is the sharpness κ > 0; Hard ignores it.
	Kappa float64
	// RandomWalk uses D^-1·A in place of D^-½·A·D^-½.
	RandomWalk bool
	// Percentile p in 0..100 keeps the top 100-p % of the pairs.
	Percentile float64
	// ThresholdGradient lets the gradient flow through θ; by default θ is a
	// constant.
	ThresholdGradient bool
}

// DefaultLaplacianMatch is the recommended start: sigmoid with κ = 10 on
// cosines, symmetric Laplacian, 80th percentile, θ constant.
func DefaultLaplacianMatch() LaplacianMatch {
	return LaplacianMatch{Adjacency: Sigmoid, Kappa: 10, Percentile: 80}
}

// Loss returns L_G [1×1] of the views z¹, z² [n×D]. It panics unless both have n
// rows, and unless Kappa is positive where it is used.
func (c LaplacianMatch) Loss(z1, z2 *autodiff.Var) *autodiff.Var {
	if z1.Rows() != z2.Rows() {
		tensor.Mismatch("specmatch: LaplacianMatch", "want two views of the same n graphs", z1.Value(), z2.Value())
	}
	if c.Adjacency != Hard && !(c.Kappa > 0) {
		panic(fmt.Sprintf("specmatch: LaplacianMatch: kappa %v is not positive", c.Kappa))
	}
	if z1.Rows() < 2 {
		return z1.Tape().Scalar(0)
	}
	if loss := c.fusedLoss(z1, z2); loss != nil {
		return loss
	}
	return c.distance(c.graph(cosines(z1)), c.graph(cosines(z2)))
}

// distance returns ‖L¹ - L²‖²_F of edge weights a¹, a² [n×n].
func (c LaplacianMatch) distance(a1, a2 *autodiff.Var) *autodiff.Var {
	// L = I - M, and the identities cancel, also those of isolated nodes.
	diff := c.normalized(a1).Sub(c.normalized(a2))
	return diff.Dot(diff)
}

// cosines returns S [n×n] of the rows of z [n×D].
func cosines(z *autodiff.Var) *autodiff.Var {
	e := z.L2Normalize()
	return e.MatMulT(e)
}

// graph returns A [n×n] of the similarities s [n×n].
func (c LaplacianMatch) graph(s *autodiff.Var) *autodiff.Var { return c.Weights(s, c.threshold(s)) }

// threshold returns θ [1×1] of the similarities s [n×n].
func (c LaplacianMatch) threshold(s *autodiff.Var) *autodiff.Var {
	if !c.ThresholdGradient {
		s = s.Detach()
	}
	return s.UpperPercentile(c.Percentile)
}

// Weights returns A [n×n] of the similarities s [n×n] and a threshold θ [1×1].
func (c LaplacianMatch) Weights(s, theta *autodiff.Var) *autodiff.Var {
	centred := s.SubScalar(theta)
	switch c.Adjacency {
	case Hard:
		return s.Greater(theta).FillDiagonal(0)
	case StraightThrough:
		soft := centred.Scale(c.Kappa).Sigmoid()
		return s.Greater(theta).Add(soft.Sub(soft.Detach())).FillDiagonal(0)
	case SpreadSigmoid:
		return centred.DivScalar(spread(s)).Scale(c.Kappa).Sigmoid().FillDiagonal(0)
	}
	return centred.Scale(c.Kappa).Sigmoid().FillDiagonal(0)
}

// normalized returns M = D^-½·A·D^-½ or D^-1·A of edge weights a [n×n].
func (c LaplacianMatch) normalized(a *autodiff.Var) *autodiff.Var {
	r := a.RowSums().InvSqrt() // 0 for isolated nodes
	if c.RandomWalk {
		return a.MulCol(r).MulCol(r)
	}
	return a.MulCol(r).MulRow(r.T())
}

// spreadFloor keeps the spread of a constant similarity away from 0.
const spreadFloor = 1e-12

// spread returns the standard deviation [1×1] of the off-diagonal of s.
func spread(s *autodiff.Var) *autodiff.Var {
	n := s.Rows()
	pairs := float64(n * (n - 1))
	mean := s.FillDiagonal(0).Sum().Scale(1 / pairs)
	centred := s.SubScalar(mean).FillDiagonal(0)
	return centred.Dot(centred).Scale(1 / pairs).Shift(spreadFloor).Sqrt()
}
