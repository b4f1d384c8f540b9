package specmatch

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/tensor"
)

// InfoNCEVariant is a form of the contrastive loss. An anchor is an embedding that should be close to its
// positive, the other view of the same graph, and far from its negatives, the embeddings of other graphs.
type InfoNCEVariant uint8

// The forms.
const (
	// NTXent is the paper's form (Chen et al. 2020). It is symmetric in the views: each of the 2N anchors
	// has 2N-1 candidates, including the positive.
	NTXent InfoNCEVariant = iota
	// CrossView is the form of GraphCL's code. Anchors come from view 1 and candidates from view 2, and
	// the denominator excludes the positive.
	CrossView
)

// InfoNCE is the contrastive loss of embeddings z¹, z² [N×D] of two views. The loss
// normalises the rows: u_i = z_i/‖z_i‖. With the temperature τ, s_ij = u_i·u_j/τ
// over all 2N rows, and p(i) the other view of i, [NTXent] is
//
//	L = Σ_i ( ln Σ_{j≠i} e^s_ij - s_ip(i) )      divided by 2N unless Sum is set,
//
// and with s_ij = u¹_i·u²_j/τ, [CrossView] is
//
//	L = Σ_i ( ln Σ_{j≠i} e^s_ij - s_ii )         divided by N unless Sum is set.
//
// CrossView with N = 1 has no negative and drops the first term. A zero row stays zero and is equally
// similar to everything.
type InfoNCE struct {
	Variant InfoNCEVariant
	Tau     float64 // temperature τ > 0
	Sum     bool    // the paper's sum instead of the mean
}

// Loss returns the loss [1×1]. It panics unless z1 and z2 have the same shape with at
// least one row, and the temperature is positive.
func (c InfoNCE) Loss(z1, z2 *autodiff.Var) *autodiff.Var {
	if !z1.Value().Like(z2.Value()) || z1.Rows() == 0 {
		tensor.Mismatch("specmatch: InfoNCE", "want two views [N×D] with N ≥ 1", z1.Value(), z2.Value())
	}
	if !(c.Tau > 0) {
		panic(fmt.Sprintf("specmatch: InfoNCE: temperature %v is not positive", c.Tau))
	}
	u1, u2 := z1.L2Normalize(), z2.L2Normalize()
	if loss := c.fusedLoss(u1, u2); loss != nil {
		return loss
	}
	if c.Variant == CrossView {
		return c.crossView(u1, u2)
	}
	u := autodiff.ConcatRows(u1, u2)
	s := u.MatMulT(u).Scale(1 / c.Tau).FillDiagonal(negInf)
	positives := u1.Dot(u2).Scale(2 / c.Tau)
	return s.LogSumExp().Sum().Sub(positives).Scale(c.scale(u.Rows()))
}

// scale returns the factor that turns the sum over n anchors into the loss.
func (c InfoNCE) scale(n int) float64 {
	if c.Sum {
		return 1
	}
	return 1 / float64(n)
}

// crossView returns the loss [CrossView] of unit rows [N×D].
func (c InfoNCE) crossView(u1, u2 *autodiff.Var) *autodiff.Var {
	n := u1.Rows()
	positives := u1.Dot(u2).Scale(1 / c.Tau)
	if n == 1 {
		return positives.Scale(-1)
	}
	s := u1.MatMulT(u2).Scale(1 / c.Tau).FillDiagonal(negInf)
	return s.LogSumExp().Sum().Sub(positives).Scale(c.scale(n))
}
