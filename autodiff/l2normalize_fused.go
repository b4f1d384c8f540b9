package autodiff

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// l2NormalizeFused is [Var.L2Normalize] in one call of the engine each way. The definition is an
// operator with a VJP of its own, since a chain of operators has no gradient at a row of zeros.
func (x *Var) l2NormalizeFused(fuser backend.UnitFuser) *Var {
	t := x.tape
	y := t.Alloc(x.Rows(), x.Cols())
	r := t.Alloc(x.Rows(), 1)
	fuser.Normalize(y, r, x.value, normFloor)
	return t.Record("L2Normalize", y, func(dy *tensor.Tensor) {
		dx := t.be.Alloc(dy.Rows, dy.Cols)
		fuser.NormalizeBackward(dx, dy, y, r, normFloor)
		x.AddGrad(dx)
	}, x)
}
