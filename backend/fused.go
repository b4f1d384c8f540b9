package backend

import "github.com/specmatch/specmatch/tensor"

// This file has the operands of the fused calls that an engine may offer
// (capabilities.go): their formulas and shapes.

// GINLayer is a layer of the GIN encoder on N nodes of G graphs in V views:
//
//	agg = A·x + Self·x                      [N×In]
//	h1  = ReLU(agg·W1 + b1)                 [N×Hid]
//	h2  = ReLU(h1·W2 + b2)                  [N×Out]
//	y   = γ·(h2 - μ)/√(σ² + Eps) + β        [N×Out], μ and σ² of the node's view
//	pooled_g = Σ y_i over the nodes of g    [G×Out]
type GINLayer struct {
	// Adj is A without values, AdjT its transpose. No edge joins two graphs.
	Adj, AdjT *CSR
	// Graphs delimits the nodes of the graphs, Views those of the views, which
	// are whole graphs.
	Graphs, Views *Indices
	Self, Eps     float64
	// X is the input. If it is nil, the rows are one-hot and Category [N] holds the
	// column of each row's one.
	X        *tensor.Tensor
	Category *Indices
	// Members [In×N] is the transpose of the one-hot rows: row c lists the nodes of
	// category c. It may be nil except in a recorded step.
	Members *CSR

	// The parameters: W1 [In×Hid], B1 [1×Hid], W2 [Hid×Out], and B2, Gamma and
	// Beta [1×Out].
	W1, B1, W2, B2, Gamma, Beta *tensor.Tensor

	// If Running is set, Mean and Var are an input, the running statistics [1×Out].
	// Otherwise they are an output, the means and biased variances of the views
	// [V×Out]; zero for a view without nodes.
	Running   bool
	Mean, Var *tensor.Tensor

	// The values that GINBackward needs again. Agg is nil for one-hot rows;
	// Sums [G×Out] are the sums of h2 over the graphs.
	Agg, H1, H2, Sums *tensor.Tensor

	// The outputs. Y may be nil.
	Y, Pooled *tensor.Tensor
}

// GINGradients are the gradients of a loss with respect to the outputs of a
// [GINLayer], set by the caller, and with respect to its inputs, computed by
// GINBackward.
type GINGradients struct {
	// DY and DPooled are the gradients of Y and Pooled; nil stands for zeros.
	DY, DPooled *tensor.Tensor
	// DX is the gradient of X; nil if it is not wanted, and for one-hot rows.
	DX *tensor.Tensor
	// The gradients of the parameters.
	W1, B1, W2, B2, Gamma, Beta *tensor.Tensor
}

// CheckGIN panics with *[tensor.ShapeError] unless the shapes of a layer fit. It
// returns the widths of the input, the hidden layer and the output.
func CheckGIN(l *GINLayer) (input, hid, out int) {
	const op = "backend: GIN"
	input = l.W1.Rows
	hid = l.W1.Cols
	out = l.W2.Cols
	n := l.H1.Rows
	g := l.Graphs.Len() - 1
	v := l.Views.Len() - 1
	if l.Running {
		v = 1
	}
	shape := func(t *tensor.Tensor, rows, cols int, what string) {
		if !t.Is(rows, cols) {
			tensor.Mismatch(op, what, t)
		}
	}
	// Parameters.
	shape(l.W2, hid, out, "want W2 as high as W1 is wide")
	shape(l.B1, 1, hid, "want a bias of the hidden width")
	for _, t := range []*tensor.Tensor{l.B2, l.Gamma, l.Beta} {
		shape(t, 1, out, "want a row of the output's width")
	}
	// Values and outputs.
	shape(l.H1, n, hid, "want h1 of the hidden width")
	shape(l.H2, n, out, "want h2 of the output's width")
	shape(l.Mean, v, out, "want one row of statistics for each view")
	shape(l.Var, v, out, "want one row of statistics for each view")
	shape(l.Sums, g, out, "want a row for each graph")
	shape(l.Pooled, g, out, "want a row for each graph")
	if l.Y != nil {
		shape(l.Y, n, out, "want y as h2")
	}
	// Inputs.
	if l.X != nil {
		shape(l.X, n, input,
			"want a row of the input's width for each node")
		shape(l.Agg, n, input, "want agg as x")
	} else if l.Category.Len() != n {
		tensor.Mismatch(op, "want a category for each node", l.H1)
	}
	if l.Adj.Rows != n || l.AdjT.Rows != n || l.Adj.Val != nil ||
		l.AdjT.Val != nil {
		tensor.Mismatch(
			op, "want an adjacency without values of all nodes", l.H1,
		)
	}
	return input, hid, out
}

// RowsLayer is a layer of the encoder of molecules whose batch norm is an affine map:
//
//	h = ReLU((A·X + C·E)·W1 + b1)                     [R×Hid]
//	row To[i] of Y = ((h_i·W2 + b2)∘Scale + Shift)·W  [R×Out], with ReLU clipped at 0 before W
//
// A [R×N] has no values. X is [N×In], E is [K×In], and C [R×K] counts the rows of E. The
// entries of To differ. W is the next layer's W1; it may be nil.
//
// If W1 is nil, X and E have been multiplied by it already. Then row g of Y [B×Hid] is the
// sum of the rows of h from Graphs[g] to Graphs[g+1]-1, and the other fields are ignored.
type RowsLayer struct {
	A                               *CSR
	X, C, E                         *tensor.Tensor
	W1, B1, W2, B2, Scale, Shift, W *tensor.Tensor
	ReLU                            bool
	Y                               *tensor.Tensor
	To                              []int32
	Graphs                          *Indices
}

// CheckRowsLayer panics with *[tensor.ShapeError] unless the shapes of a layer fit.
func CheckRowsLayer(l *RowsLayer) {
	const op = "backend: LayerRows"
	input := l.X.Cols
	hid := l.B1.Cols
	badTables := l.E.Cols != input || !l.C.Is(l.A.Rows, l.E.Rows)
	refuse(badTables, op, "want [N×In], [R×K], [K×In]", l.X, l.C, l.E)
	if l.W1 == nil {
		bad := !l.B1.Is(1, input) || !l.Y.Is(l.Graphs.Len()-1, input)
		refuse(
			bad, op, "want the hidden width and a row for each graph",
			l.X, l.B1, l.Y,
		)
		return
	}
	bad := !l.W1.Is(input, hid) || !l.B1.Is(1, hid) || l.W2.Rows != hid
	refuse(bad, op, "want the hidden width", l.X, l.W1, l.B1, l.W2)
	out := l.W2.Cols
	for _, t := range []*tensor.Tensor{l.B2, l.Scale, l.Shift} {
		refuse(
			!t.Is(1, out), op, "want a row of the output's width", t, l.W2,
		)
	}
	if l.W != nil {
		refuse(l.W.Rows != out, op, "want the output's width", l.W, l.W2)
		out = l.W.Cols
	}
	refuse(
		l.Y.Cols != out || len(l.To) != l.A.Rows,
		op,
		"want a place for each row",
		l.Y,
	)
}

// GCNLayer is a layer of ResGCN on N nodes of G graphs in V views:
//
//	z = γ·(x - μ)/√(σ² + Eps) + β           [N×In], μ and σ² of the node's view
//	r = ReLU(Â·(z·W) + b)                   [N×Out]
//	y = x + r with Residual, else r         [N×Out]
//
// Rows after the last graph give 0.
type GCNLayer struct {
	// Adj is Â with its values, AdjT its transpose. No edge joins two graphs.
	Adj, AdjT *CSR
	// Graphs delimits the nodes of the graphs, Views those of the views, which
	// are whole graphs.
	Graphs, Views *Indices
	Residual      bool
	Eps           float64

	// The inputs: X [N×In], and the parameters Gamma and Beta [1×In], W [In×Out]
	// and B [1×Out]. With Residual, In is Out.
	X, Gamma, Beta, W, B *tensor.Tensor

	// If Running is set, Mean and Var are an input, the running statistics [1×In].
	// Otherwise they are an output, the means and biased variances of x in the views
	// [V×In]; zero for a view without nodes.
	Running   bool
	Mean, Var *tensor.Tensor

	// The outputs R and Y, both of which GCNBackward needs again. Without Residual,
	// Y is R.
	R, Y *tensor.Tensor
}

// GCNGradients are the gradient DY of a loss with respect to the output of a
// [GCNLayer], set by the caller, and those with respect to its inputs, computed by
// GCNBackward. DX may be nil.
type GCNGradients struct{ DY, DX, Gamma, Beta, W, B *tensor.Tensor }

// CheckGCN panics with *[tensor.ShapeError] unless the shapes of a layer fit. It
// returns the widths of the input and of the output.
func CheckGCN(l *GCNLayer) (input, out int) {
	const op = "backend: GCN"
	input = l.W.Rows
	out = l.W.Cols
	n := l.X.Rows
	v := l.Views.Len() - 1
	if l.Running {
		v = 1
	}
	if l.X.Cols != input || l.Residual && input != out {
		tensor.Mismatch(
			op,
			"want W as high as x is wide, and square with a residual",
			l.X,
			l.W,
		)
	}
	if !l.Gamma.Is(1, input) || !l.Beta.Is(1, input) || !l.B.Is(1, out) {
		const shapes = "want γ and β of the input's width, a bias of the output's"
		tensor.Mismatch(op, shapes, l.W, l.Gamma, l.Beta, l.B)
	}
	badStatistics := !l.Mean.Is(v, input) || !l.Var.Is(v, input)
	refuse(
		badStatistics, op, "want one row of statistics for each view",
		l.X, l.Mean, l.Var,
	)
	if !l.R.Is(n, out) || !l.Y.Is(n, out) || (l.R == l.Y) == l.Residual {
		tensor.Mismatch(
			op,
			"want outputs of all nodes, and two of them with a residual",
			l.X,
			l.R,
			l.Y,
		)
	}
	if l.Adj.Rows != n || l.AdjT.Rows != n || l.Adj.Val == nil ||
		l.AdjT.Val == nil {
		tensor.Mismatch(
			op, "want an adjacency with values of all nodes", l.X,
		)
	}
	return input, out
}

// Norm is batch norm of N rows in G groups:
//
//	y = γ·(x - μ)/√(σ² + Eps) + β       [N×F], μ and σ² of the row's group
//
// and with ReLU y ← max(y, 0). A group without rows has μ = σ² = 0. With Weights, row i
// counts as Weights_i > 0 equal rows in μ and σ². With Bias, it is the norm of x + Bias:
// the mean cancels the bias, so only BiasedMean depends on it.
type Norm struct {
	Groups *Indices // delimits the rows of the groups; rows after them give 0
	Eps    float64
	ReLU   bool

	// The inputs: X [N×F], Gamma and Beta [1×F].
	X, Gamma, Beta *tensor.Tensor
	// Bias [1×F] and Weights [N×1] may be nil, and must be nil if the engine does not
	// support them ([NormFuser]).
	Bias, Weights *tensor.Tensor
	// The outputs: Y [N×F], the means and biased variances of x [G×F], and with Bias the
	// means of x + Bias [G×F].
	Y, Mean, Var, BiasedMean *tensor.Tensor
}

// NormGradients are the gradient DY of a loss with respect to the output of a
// [Norm], set by the caller, and those with respect to its inputs, computed by
// NormBackward. DX may be nil. Bias, required if the norm has one, becomes zero.
type NormGradients struct{ DY, DX, Gamma, Beta, Bias *tensor.Tensor }

// CheckNorm panics with *[tensor.ShapeError] unless the shapes of a norm fit.
func CheckNorm(n *Norm) {
	const op = "backend: Norm"
	g := n.Groups.Len() - 1
	f := n.X.Cols
	badRows := !n.Y.Like(n.X) || int(n.Groups.Host[g]) > n.X.Rows
	refuse(badRows, op, "want y as x, and groups of its rows", n.X, n.Y)
	badParameters := !n.Gamma.Is(1, f) || !n.Beta.Is(1, f)
	if badParameters || !n.Mean.Is(g, f) || !n.Var.Is(g, f) {
		tensor.Mismatch(
			op, "want γ and β [1×F], μ and σ² [G×F]",
			n.X, n.Gamma, n.Beta, n.Mean, n.Var,
		)
	}
	badWeights := n.Weights != nil && !n.Weights.Is(n.X.Rows, 1)
	refuse(badWeights, op, "want weights [N×1]", n.X, n.Weights)
	if n.Bias != nil && (!n.Bias.Is(1, f) || !n.BiasedMean.Like(n.Mean)) {
		tensor.Mismatch(
			op, "want a bias [1×F], its means [G×F]",
			n.X, n.Bias, n.BiasedMean,
		)
	}
}

// Contrast is NT-Xent over all rows of U and, if Match is set, the Laplacian loss
// between its two halves, which are the two views. Both are functions of
// S = U·Uᵀ. The rows of U [2N×D] have length 1 or 0. With p(i) the row of the other
// half that corresponds to i,
//
//	LossC = Scale·Σ_i (ln Σ_{j≠i} e^(s_ij/τ) - s_ip(i)/τ)
//
// and with θ_v the Percentile of the strict upper triangle of view v's half of S
// ([PercentilePosition]), a constant to the gradient,
//
//	A_v   = σ(κ·(S - θ_v)), zero diagonal, d = its row sums
//	M_v   = D_v^-½·A_v·D_v^-½, with 0 for d^-½ where d is below [LeastDegree]
//	LossG = ‖M_1 - M_2‖²
//
// The temperature must be at least [MinTemperature].
//
// If S is too large to keep, E, A1 and A2 are nil, and the engine computes S tile by tile,
// in the backward pass again. Only then may LossC be nil, which skips NT-Xent, and
// CrossView be set. With CrossView the anchors i are the first half, j runs over the
// second half, and the sum excludes p(i):
//
//	LossC = Scale·Σ_{i≤N} (ln Σ_{j>N, j≠p(i)} e^(s_ij/τ) - s_ip(i)/τ),    N ≥ 2
type Contrast struct {
	U                  *tensor.Tensor
	Temperature, Scale float64
	CrossView          bool

	Match             bool
	Kappa, Percentile float64

	// The values that ContrastBackward needs again: E is e^((s-1)/τ) with a zero
	// diagonal [2N×2N], and InvZ has the reciprocals of its row sums [2N×1], 0 for rows
	// that are not anchors. If Match is set, A1 and A2 are the adjacencies [N×N], R has
	// their d^-½ [2N×1], and W each row's term in the gradient through d [2N×1].
	E, InvZ, A1, A2, R, W *tensor.Tensor

	LossC, LossG *tensor.Tensor // [1×1]
}

// MinTemperature is the lowest temperature at which e^((s-1)/τ) of a cosine s is
// a normal float32, so the maximum of a row need not be subtracted.
const MinTemperature = 1.0 / 32

// CheckContrast panics with *[tensor.ShapeError] unless the shapes fit. It returns N
// and D.
func CheckContrast(c *Contrast) (n, d int) {
	const op = "backend: Contrast"
	m := c.U.Rows
	d = c.U.Cols
	n = m / 2
	tiles := c.E == nil
	bad := m%2 != 0 || m == 0 || !tiles && !c.E.Is(m, m)
	refuse(bad, op, "want U [2N×D], [2N×2N]", c.U, c.E)
	if c.LossC != nil || !tiles {
		bad := !c.InvZ.Is(m, 1) || !c.LossC.Is(1, 1) ||
			c.CrossView && (!tiles || n < 2)
		const shapes = "want U [2N×D], [2N×1], a loss [1×1]; tiles and N ≥ 2 across views"
		refuse(bad, op, shapes, c.U, c.InvZ, c.LossC)
	}
	if c.Match && !tiles {
		bad := !c.A1.Is(n, n) || !c.A2.Is(n, n)
		refuse(bad, op, "want U [2N×D], [N×N], [N×N]", c.U, c.A1, c.A2)
	}
	if c.Match {
		bad := !c.R.Is(m, 1) || !c.W.Is(m, 1) || !c.LossG.Is(1, 1)
		refuse(
			bad, op, "want U [2N×D], [2N×1], [2N×1], a loss [1×1]",
			c.U, c.R, c.W, c.LossG,
		)
	}
	return n, d
}
