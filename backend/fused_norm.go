package backend

import "github.com/specmatch/specmatch/tensor"

// NormFuser is an optional capability, see [GINFuser]: an engine that runs batch
// norm, and a ReLU behind it if wanted, as one call each way.
type NormFuser interface {
	// NormForward computes Y, Mean and Var.
	NormForward(n *Norm)
	// NormBackward computes the gradients of a norm that NormForward computed
	// and that has not been changed since.
	NormBackward(n *Norm, g *NormGradients)
}

// Norm is batch norm of N rows in G groups:
//
//	y = γ·(x - μ)/√(σ² + Eps) + β       [N×F], μ and σ² of the row's group
//
// and with ReLU y ← max(y, 0). A group without rows has μ = σ² = 0.
type Norm struct {
	Groups *Indices // delimits the rows of the groups; rows behind them give 0
	Eps    float64
	ReLU   bool

	// The inputs: X [N×F], Gamma and Beta [1×F].
	X, Gamma, Beta *tensor.Tensor
	// The outputs: Y [N×F], and the means and biased variances [G×F].
	Y, Mean, Var *tensor.Tensor
}

// NormGradients are the gradient DY of a loss with respect to the output of a
// [Norm], given, and those with respect to its inputs, computed. DX may be nil.
type NormGradients struct{ DY, DX, Gamma, Beta *tensor.Tensor }

// CheckNorm panics unless the shapes of a norm fit.
func CheckNorm(n *Norm) {
	const op = "backend: Norm"
	g, f := n.Groups.Len()-1, n.X.Cols
	if !n.Y.Like(n.X) || int(n.Groups.Host[g]) > n.X.Rows {
		tensor.Mismatch(op, "want y as x, and groups of its rows", n.X, n.Y)
	}
	if !n.Gamma.Is(1, f) || !n.Beta.Is(1, f) || !n.Mean.Is(g, f) || !n.Var.Is(g, f) {
		tensor.Mismatch(op, "want γ and β [1×F], μ and σ² [G×F]", n.X, n.Gamma, n.Beta, n.Mean, n.Var)
	}
}

// BiasFuser is an optional capability, see [GINFuser]: an engine that adds a
// bias and clips in one call.
type BiasFuser interface {
	// BiasReLU sets y = max(x + b, 0) for x [N×F] and the row b [1×F].
	BiasReLU(y, x, b *tensor.Tensor)
	// BiasReLUBackward sets dx to dy where y > 0 and 0 elsewhere, and db [1×F]
	// to the column sums of dx.
	BiasReLUBackward(dx, db, dy, y *tensor.Tensor)
}
