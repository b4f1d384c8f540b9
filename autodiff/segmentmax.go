package autodiff

import (
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// SegmentMax returns y [G×F], whose row g is the largest entry of each column over segment
// g of x [N×F]; an empty segment gives zeros. VJP: dy is divided evenly among the entries that
// are the largest. The host reads ptr, so a step with it cannot be recorded.
func (x *Var) SegmentMax(ptr *backend.Indices) *Var {
	checkSegments("SegmentMax", x, ptr, x.Rows())
	t := x.tape
	be := t.be
	values := x.value
	segments := ptr
	for slices.Max(segments.Host) > 0 { // pairs of rows, until each segment has at most one
		var left, right []int32
		next := []int32{0}
		for g, hi := range segments.Host[1:] {
			for i := segments.Host[g]; i < hi; i += 2 {
				left = append(left, i)
				right = append(right, min(i+1, hi-1))
			}
			next = append(next, int32(len(left)))
		}
		if slices.Equal(next, segments.Host) {
			break
		}
		larger := be.Alloc(len(left), x.Cols())
		partner := be.Alloc(len(left), x.Cols())
		be.GatherRows(larger, values, t.Indices(left))
		be.GatherRows(partner, values, t.Indices(right))
		be.Binary(larger, backend.Max, larger, partner)
		be.Free(partner)
		if values != x.value {
			be.Free(values)
		}
		values = larger
		segments = t.Indices(next)
	}
	out := t.Alloc(ptr.Len()-1, x.Cols())
	be.SegmentSum(out, segments, values)
	if values != x.value {
		be.Free(values)
	}
	return t.Record("SegmentMax", out, func(dy *tensor.Tensor) {
		largest := x.newGrad()
		share := be.Alloc(dy.Rows, dy.Cols)
		dx := x.newGrad()
		be.SegmentExpand(largest, ptr, out)
		be.Binary(largest, backend.Greater, largest, x.value)
		be.Affine(largest, -1, largest, 1)
		be.SegmentSum(share, ptr, largest)
		be.Binary(share, backend.Div, dy, share) // 0/0 of an empty segment goes to no row
		be.SegmentExpand(dx, ptr, share)
		be.Binary(dx, backend.Mul, dx, largest)
		be.Free(largest)
		be.Free(share)
		x.AddGrad(dx)
	}, x)
}
