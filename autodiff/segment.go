package autodiff

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// This file has sums over segments of rows, such as the nodes of each graph of a batch, and
// their transposes.

// SegmentSum returns y [G×F], whose row g is Σ x_i over segment g of x [N×F], the
// rows ptr[g] ≤ i < ptr[g+1]: sum pooling over the graphs of a batch. Rows after the
// last segment, padding, are in no sum. VJP: dx_i = dy_g, and 0 for padding.
func (x *Var) SegmentSum(ptr *backend.Indices) *Var {
	checkSegments("SegmentSum", x, ptr, x.Rows())
	t := x.tape
	be := t.be
	out := t.Alloc(ptr.Len()-1, x.Cols())
	be.SegmentSum(out, ptr, x.value)
	return t.Record("SegmentSum", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.SegmentExpand(dx, ptr, dy)
		x.AddGrad(dx)
	}, x)
}

// SegmentExpand is the transpose of [Var.SegmentSum]: it returns y [n×F] with
// y_i = x_g for every row i of segment g, from x [G×F]. Rows after the last segment
// are 0. VJP: dx_g = Σ dy_i over the segment.
func (x *Var) SegmentExpand(ptr *backend.Indices, n int) *Var {
	checkSegments("SegmentExpand", x, ptr, n)
	if x.Rows() != ptr.Len()-1 {
		mismatch(
			"SegmentExpand",
			x.value.String(),
			fmt.Sprintf("want a row for each of %d segments", ptr.Len()-1),
		)
	}
	t := x.tape
	be := t.be
	out := t.Alloc(n, x.Cols())
	be.SegmentExpand(out, ptr, x.value)
	return t.Record("SegmentExpand", out, func(dy *tensor.Tensor) {
		dx := x.newGrad()
		be.SegmentSum(dx, ptr, dy)
		x.AddGrad(dx)
	}, x)
}

// SegmentMean returns y [G×F], whose row g is the mean of x_i over segment g; an
// empty segment gives zeros.
func (x *Var) SegmentMean(ptr *backend.Indices) *Var {
	checkSegments("SegmentMean", x, ptr, x.Rows())
	return x.SegmentSum(ptr).MulCol(x.tape.Const(x.inverseCounts(ptr)))
}

// inverseCounts returns the column [G×1] of 1/size of every segment of the rows of
// x; 1 for an empty one. The engine counts the rows, not the host: a training step
// that an engine records and replays on another batch must see that batch's sizes.
func (x *Var) inverseCounts(ptr *backend.Indices) *tensor.Tensor {
	t := x.tape
	be := t.be
	ones := be.Alloc(x.Rows(), 1)
	one := be.Alloc(1, 1)
	inv := t.Alloc(ptr.Len()-1, 1)
	be.Fill(ones, 1)
	be.Fill(one, 1)
	be.SegmentSum(inv, ptr, ones)
	be.BinaryScalar(inv, backend.Max, inv, one)
	be.Unary(inv, backend.Reciprocal, inv)
	be.Free(ones)
	be.Free(one)
	return inv
}
