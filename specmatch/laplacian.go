package specmatch

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Adjacency is how a similarity becomes an edge weight.
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
	// it exists: trained so, SpecMatch-CL is the contrastive baseline.
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

// LossScale is the factor in front of ‖L¹-L²‖².
type LossScale uint8

// The scales: the paper's 1, 1/n, and the authors' code's 1/n².
const (
	ScaleOne LossScale = iota
	ScaleInvN
	ScaleInvN2
)

// LaplacianMatch is the paper's loss (section 4, L_G): each view's embeddings
// z [n×D] induce a similarity graph over the batch, and the graphs of the two
// views must have close normalised Laplacians,
//
//	L_G = scale·‖L¹ - L²‖²_F.
//
// Per view, with e_i = z_i/‖z_i‖:
//
//	S_ij = e_i·e_j / SimilarityScale       similarity
//	θ    = the Percentile of S_ij, i < j   threshold, linear interpolation
//	A    = an [Adjacency] of S and θ       zero diagonal
//	d_i  = Σ_j A_ij                        degree
//	L    = I - D^-½·A·D^-½  or  I - D^-1·A
//
// A node of degree 0 is isolated: L_ii = 1 and the rest of its row and column
// are 0. With n < 2 the loss is 0.
//
// The loss depends on Gram matrices only: rotating one view changes nothing.
// Alignment is InfoNCE's part.
type LaplacianMatch struct {
	Adjacency Adjacency
	// Kappa is the sharpness κ > 0; Hard ignores it.
	Kappa float64
	// RandomWalk takes D^-1·A in place of D^-½·A·D^-½.
	RandomWalk bool
	// Percentile p in 0..100 keeps the top 100-p % of the pairs.
	Percentile float64
	// FixedThreshold uses Threshold for θ in place of a percentile.
	FixedThreshold bool
	Threshold      float64
	// ThresholdGradient lets the gradient flow through θ; by default θ is a
	// constant.
	ThresholdGradient bool
	// Clamp keeps θ between the 50th and the 90th percentile, so that 10 to
	// 50 % of the pairs are edges, as the authors' code does.
	Clamp bool
	// SimilarityScale divides the cosines; 0 means 1. The authors' code uses
	// the temperature.
	SimilarityScale float64
	Scale           LossScale
}

// DefaultLaplacianMatch is the recommended start: sigmoid with κ = 10 on
// cosines, symmetric Laplacian, 80th percentile, θ constant, unscaled.
func DefaultLaplacianMatch() LaplacianMatch {
	return LaplacianMatch{Adjacency: Sigmoid, Kappa: 10, Percentile: 80}
}

func (c LaplacianMatch) similarityScale() float64 {
	if c.SimilarityScale == 0 {
		return 1
	}
	return c.SimilarityScale
}

func (c LaplacianMatch) factor(n int) float64 {
	switch c.Scale {
	case ScaleInvN:
		return 1 / float64(n)
	case ScaleInvN2:
		return 1 / (float64(n) * float64(n))
	}
	return 1
}

// Loss returns L_G [1×1] of the views z¹, z² [n×D].
func (c LaplacianMatch) Loss(z1, z2 *autodiff.Var) *autodiff.Var {
	if z1.Rows() != z2.Rows() {
		tensor.Mismatch("specmatch: LaplacianMatch", "want two views of the same n graphs", z1.Value(), z2.Value())
	}
	if c.Adjacency != Hard && !(c.Kappa > 0) {
		panic(fmt.Sprintf("specmatch: LaplacianMatch: kappa %v is not positive", c.Kappa))
	}
	t, n := z1.Tape(), z1.Rows()
	if n < 2 {
		return t.Scalar(0)
	}
	m1, m2 := c.normalized(z1.L2Normalize()), c.normalized(z2.L2Normalize())
	// The identities cancel, and with them the ones of isolated nodes.
	diff := m1.Sub(m2)
	return diff.Dot(diff).Scale(c.factor(n))
}

// normalized returns M = D^-½·A·D^-½ or D^-1·A of a view with unit rows e.
func (c LaplacianMatch) normalized(e *autodiff.Var) *autodiff.Var {
	s := e.MatMulT(e)
	if ts := c.similarityScale(); ts != 1 {
		s = s.Scale(1 / ts)
	}
	theta := c.threshold(s)
	if e.Tape().Fused() {
		return c.normalizedFused(s, theta)
	}
	return c.normalizedComposed(s, theta)
}

// threshold returns θ [1×1].
func (c LaplacianMatch) threshold(s *autodiff.Var) *autodiff.Var {
	t := s.Tape()
	from := s
	if !c.ThresholdGradient {
		from = s.Detach()
	}
	if !c.FixedThreshold {
		return from.UpperQuantile(c.percentile() / 100)
	}
	theta := t.Scalar(c.Threshold)
	if !c.Clamp {
		return theta
	}
	lo, hi := from.UpperQuantile(0.5), from.UpperQuantile(0.9)
	switch v := c.Threshold; {
	case v < lo.Float():
		return lo
	case v > hi.Float():
		return hi
	}
	return theta
}

// percentile returns the percentile in force.
func (c LaplacianMatch) percentile() float64 {
	if c.Clamp {
		return min(max(c.Percentile, 50), 90)
	}
	return c.Percentile
}

// normalizedComposed is the definition.
func (c LaplacianMatch) normalizedComposed(s, theta *autodiff.Var) *autodiff.Var {
	var a *autodiff.Var
	centred := s.SubScalar(theta)
	switch c.Adjacency {
	case Hard:
		a = s.Greater(theta).FillDiagonal(0)
	case StraightThrough:
		soft := centred.Scale(c.Kappa).Sigmoid()
		a = s.Greater(theta).Add(soft.Sub(soft.Detach())).FillDiagonal(0)
	case SpreadSigmoid:
		a = centred.DivScalar(spread(s)).Scale(c.Kappa).Sigmoid().FillDiagonal(0)
	default:
		a = centred.Scale(c.Kappa).Sigmoid().FillDiagonal(0)
	}
	r := a.RowSums().InvSqrt()
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

// normalizedFused is normalizedComposed as one operator on s with the closed
// form of the gradient. With G = ∂L/∂M and r = d^-½ (0 for an isolated node),
//
//	symmetric:    ∂L/∂A_ij = G_ij·r_i·r_j - ½(u_i·r_i² + v_i·r_i²),
//	              u_i = Σ_k G_ik·M_ik,  v_i = Σ_k G_ki·M_ki
//	random walk:  ∂L/∂A_ij = (G_ij - Σ_k G_ik·M_ik)·r_i²
//
// and ∂A/∂S = κ·A∘(1-A) with the soft A off the diagonal. A constant θ adds
// nothing; θ with gradient and the spread collect their share of ∂L/∂S.
func (c LaplacianMatch) normalizedFused(s, theta *autodiff.Var) *autodiff.Var {
	t := s.Tape()
	be := t.Backend()
	n := s.Rows()
	sv := s.Value()

	// a is what the graph is made of, soft what its derivative is made of.
	a := t.Alloc(n, n)
	var soft, sigma *tensor.Tensor
	if c.Adjacency != Hard {
		soft = a
		if c.Adjacency == StraightThrough {
			soft = t.Alloc(n, n)
		}
		be.BinaryScalar(soft, backend.Sub, sv, theta.Value())
		if c.Adjacency == SpreadSigmoid {
			sigma = spread(s.Detach()).Value()
			be.BinaryScalar(soft, backend.Div, soft, sigma)
		}
		be.Affine(soft, c.Kappa, soft, 0)
		be.Unary(soft, backend.Sigmoid, soft)
	}
	if c.Adjacency == Hard || c.Adjacency == StraightThrough {
		be.BinaryScalar(a, backend.Greater, sv, theta.Value())
	}
	be.FillDiagonal(a, 0)
	r, m := t.Alloc(n, 1), t.Alloc(n, n)
	be.ReduceRows(r, backend.RowSum, a)
	be.Unary(r, backend.InvSqrt, r)
	rRow := t.Alloc(1, n)
	be.Transpose(rRow, r)
	be.BinaryCol(m, backend.Mul, a, r)
	if c.RandomWalk {
		be.BinaryCol(m, backend.Mul, m, r)
	} else {
		be.BinaryRow(m, backend.Mul, m, rRow)
	}
	if c.Adjacency == Hard {
		return t.Const(m)
	}
	return t.Record("NormalizedAdjacency", m, func(g *tensor.Tensor) {
		ds, tmp := be.Alloc(n, n), be.Alloc(n, n)
		u, colSum := be.Alloc(n, 1), be.Alloc(1, n)
		// ds ← ∂L/∂A
		be.Binary(tmp, backend.Mul, g, m)
		be.ReduceRows(u, backend.RowSum, tmp)
		be.BinaryCol(ds, backend.Mul, g, r)
		if c.RandomWalk {
			be.BinaryCol(ds, backend.Mul, ds, r)
		} else {
			be.BinaryRow(ds, backend.Mul, ds, rRow)
			be.ColSums(colSum, tmp)
			v := be.Alloc(n, 1)
			be.Transpose(v, colSum)
			be.Axpby(u, 0.5, u, 0.5, v)
			be.Free(v)
		}
		be.Binary(u, backend.Mul, u, r)
		be.Binary(u, backend.Mul, u, r)
		be.BinaryCol(ds, backend.Sub, ds, u)
		// ds ← ∂L/∂X of X = κ·(S-θ)/s, through the sigmoid, times κ/s
		be.Affine(tmp, -1, soft, 1)
		be.Binary(tmp, backend.Mul, tmp, soft)
		be.Binary(ds, backend.Mul, ds, tmp)
		be.FillDiagonal(ds, 0)
		be.Affine(ds, c.Kappa, ds, 0)
		if sigma != nil {
			be.BinaryScalar(ds, backend.Div, ds, sigma)
		}
		if theta.NeedsGrad() {
			dTheta := be.Alloc(1, 1)
			be.Dot(dTheta, ds, nil)
			be.Affine(dTheta, -1, dTheta, 0)
			theta.AddGrad(dTheta)
		}
		if sigma != nil {
			c.addSpreadGradient(be, ds, tmp, sv, theta.Value(), sigma)
		}
		be.Free(tmp)
		be.Free(u)
		be.Free(colSum)
		s.AddGrad(ds)
	}, s, theta)
}

// addSpreadGradient adds to ds what flows through the spread σ: with ds so far
// ∂L/∂S at constant σ, ∂L/∂σ = -Σ ds∘(S-θ)/σ, and off the diagonal
// ∂σ/∂S_ij = (S_ij - mean)/(n(n-1)·σ).
func (c LaplacianMatch) addSpreadGradient(be backend.Backend, ds, tmp, s, theta, sigma *tensor.Tensor) {
	n := s.Rows
	pairs := float64(n * (n - 1))
	dSigma, mean := be.Alloc(1, 1), be.Alloc(1, 1)
	be.BinaryScalar(tmp, backend.Sub, s, theta)
	be.Dot(dSigma, ds, tmp)
	be.Binary(dSigma, backend.Div, dSigma, sigma)
	be.Binary(dSigma, backend.Div, dSigma, sigma)
	be.Affine(dSigma, -1/pairs, dSigma, 0)
	be.CopyBlock(tmp, 0, 0, s, 0, 0, n, n)
	be.FillDiagonal(tmp, 0)
	be.Dot(mean, tmp, nil)
	be.Affine(mean, 1/pairs, mean, 0)
	be.BinaryScalar(tmp, backend.Sub, tmp, mean)
	be.FillDiagonal(tmp, 0)
	be.BinaryScalar(tmp, backend.Mul, tmp, dSigma)
	be.Axpby(ds, 1, ds, 1, tmp)
	be.Free(dSigma)
	be.Free(mean)
}
