package autodiff

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// mismatch panics: an operator cannot be applied to operands of these shapes.
func mismatch(op, have, want string) {
	panic(&tensor.ShapeError{Op: "autodiff: " + op, Have: have, Want: want})
}

func checkSame(op string, x *Var, sign string, b *Var) {
	if x.Rows() != b.Rows() || x.Cols() != b.Cols() {
		mismatch(op, fmt.Sprintf("%v%s%v", x.value, sign, b.value), "shapes must be equal")
	}
}

// checkSegments panics unless the segments of ptr end within the given rows.
func checkSegments(op string, x *Var, ptr *backend.Indices, rows int) {
	if end := int(ptr.Host[ptr.Len()-1]); end > rows {
		mismatch(
			op,
			x.Value().String(),
			fmt.Sprintf("the last of %d segments ends at row %d of %d", ptr.Len()-1, end, rows),
		)
	}
}

func checkSquare(op string, x *Var) {
	if x.Rows() != x.Cols() {
		mismatch(op, x.value.String(), "want a square matrix")
	}
}

// FirstNonFinite returns the name and position of the first recorded operator
// whose value holds a NaN or an infinity, or "". It downloads values until it
// finds one: for the error path only. FillDiagonal is skipped, because the losses
// fill diagonals with -Inf on purpose.
func (t *Tape) FirstNonFinite() string {
	for i, v := range t.nodes {
		if v.op == "FillDiagonal" {
			continue
		}
		for _, x := range v.Data() {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Sprintf("%s %v (number %d on the tape)", v.op, v.value, i)
			}
		}
	}
	return ""
}
