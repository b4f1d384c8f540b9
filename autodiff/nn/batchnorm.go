package nn

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// BatchNorm normalises every column over the rows of a batch (Ioffe and Szegedy
// 2015), as torch.nn.BatchNorm1d:
//
//	y_ij = γ_j·(x_ij - μ_j)/√(σ²_j + ε) + b_j.
//
// In Train mode μ and σ² are the mean and the biased variance (divisor n) of
// the batch, and the running statistics move towards the mean and the
// *unbiased* variance (divisor n-1) by Momentum. In Eval mode the running
// statistics take their place.
//
// A batch may consist of groups of rows, such as the two views of contrastive
// learning. Each group is normalised by its own statistics, and the running
// statistics see one update per group, in order: exactly what separate forward
// passes would do.
type BatchNorm struct {
	Gamma, Bias *autodiff.Param
	// RunningMean and RunningVar are [1×F].
	RunningMean, RunningVar *Buffer
	Eps, Momentum           float64
	be                      backend.Backend
}

// NewBatchNorm returns a layer for F columns with PyTorch's defaults: γ = 1,
// b = 0, ε = 1e-5, momentum 0.1, running statistics 0 and 1.
func NewBatchNorm(be backend.Backend, name string, f int) *BatchNorm {
	ones := make([]float64, f)
	for i := range ones {
		ones[i] = 1
	}
	b := &BatchNorm{
		Gamma: vector(be, name+".weight", ones),
		Bias:  vector(be, name+".bias", make([]float64, f)),

		RunningMean: NewBuffer(be, name+".running_mean", 1, f, 0),
		RunningVar:  NewBuffer(be, name+".running_var", 1, f, 1),
		Eps:         1e-5,
		Momentum:    0.1,
		be:          be,
	}
	b.RunningMean.Layout = autodiff.Vector
	b.RunningVar.Layout = autodiff.Vector
	return b
}

// Forward normalises x [N×F]. Group g is the rows groups[g] ≤ i < groups[g+1];
// groups is not used in Eval mode and may then be nil. A group without rows leaves
// the running statistics alone. A group of one row has variance 0; its unbiased
// variance, which is 0/0 in PyTorch, is taken as 0.
func (b *BatchNorm) Forward(
	x *autodiff.Var, groups *backend.Indices, mode Mode,
) *autodiff.Var {
	return b.ForwardNorm(x, autodiff.Norm{Groups: groups}, groups, mode)
}

// ForwardNorm is [BatchNorm.Forward] with the bias of a layer before it, a ReLU after it
// and rows that stand for several equal ones, as n says, whose Eps is not read. counts
// delimits the rows of each group before equal ones were taken together: n.Groups, unless
// there are weights.
func (b *BatchNorm) ForwardNorm(
	x *autodiff.Var, n autodiff.Norm, counts *backend.Indices, mode Mode,
) *autodiff.Var {
	t := x.Tape()
	if mode == Eval {
		if n.Bias != nil {
			x = x.AddRow(n.Bias)
		}
		scale, shift := b.Affine(t)
		x = x.MulRow(scale)
		if n.ReLU {
			return x.AddRowReLU(shift)
		}
		return x.AddRow(shift)
	}
	n.Eps = b.Eps
	y, mean, variance := x.BatchNorm(t.Param(b.Gamma), t.Param(b.Bias), n)
	rows := x.Rows()
	if n.Weights != nil {
		rows = int(counts.Host[counts.Len()-1])
	}
	b.Track(t, rows, mean, variance, counts)
	return y
}

// Affine returns the rows [1×F] of Eval mode, where the layer is y = x∘scale + shift.
func (b *BatchNorm) Affine(t *autodiff.Tape) (scale, shift *autodiff.Var) {
	gamma := t.Param(b.Gamma)
	bias := t.Param(b.Bias)
	be := t.Backend() // another one may hold the weights
	rstd := t.Alloc(1, b.Gamma.Value.Cols)
	be.Affine(rstd, 1, b.RunningVar.Value, b.Eps)
	be.Unary(rstd, backend.InvSqrt, rstd)
	scale = gamma.Mul(t.Const(rstd))
	return scale, bias.Sub(scale.Mul(t.Const(b.RunningMean.Value)))
}

// Track moves the running statistics by one step per group towards the group's
// mean and biased variance [G×F]; rows is the number of rows N of the matrix that
// they are of. Forward calls it; code that computes the layer in another way, as
// fused layers do, must call it too. With n rows in a group,
//
//	running ← running + Momentum·[n > 0]·(new - running),
//
// where new is the mean, or the variance times n/(n-1) if n > 1.
func (b *BatchNorm) Track(
	t *autodiff.Tape,
	rows int,
	mean, variance *tensor.Tensor,
	groups *backend.Indices,
) {
	if f := t.Fused().Statistics; f != nil {
		f.TrackStatistics(
			b.RunningMean.Value, b.RunningVar.Value,
			mean, variance, groups, b.Momentum,
		)
		return
	}
	// The engine counts the rows, not the host: a training step that an engine
	// records and replays on another batch must see that batch's sizes.
	g := mean.Rows
	f := mean.Cols
	n := t.Alloc(g, 1)
	share := t.Alloc(g, 1)
	unbiased := t.Alloc(g, f)
	ones := t.Alloc(rows, 1)
	zero := t.Alloc(1, 1)
	one := t.Alloc(1, 1)
	be := b.be
	be.Fill(ones, 1)
	be.Fill(zero, 0)
	be.Fill(one, 1)
	be.SegmentSum(n, groups, ones)
	be.BinaryScalar(share, backend.Greater, n, zero)
	be.Affine(share, b.Momentum, share, 0)
	be.BinaryCol(unbiased, backend.Mul, variance, n)
	be.Affine(n, 1, n, -1)
	be.BinaryScalar(n, backend.Max, n, one)
	be.BinaryCol(unbiased, backend.Div, unbiased, n)
	step := t.Alloc(1, f)
	part := t.Alloc(1, 1)
	for k := range g {
		be.CopyBlock(part, 0, 0, share, k, 0, 1, 1)
		for _, s := range [...]struct{ running, latest *tensor.Tensor }{
			{b.RunningMean.Value, mean},
			{b.RunningVar.Value, unbiased},
		} {
			be.CopyBlock(step, 0, 0, s.latest, k, 0, 1, f)
			be.Axpby(step, 1, step, -1, s.running)
			be.BinaryScalar(step, backend.Mul, step, part)
			be.Axpby(s.running, 1, s.running, 1, step)
		}
	}
}

// Parameters returns γ and b.
func (b *BatchNorm) Parameters() []*autodiff.Param {
	return []*autodiff.Param{b.Gamma, b.Bias}
}

// Buffers returns the running mean and variance.
func (b *BatchNorm) Buffers() []*Buffer {
	return []*Buffer{b.RunningMean, b.RunningVar}
}
